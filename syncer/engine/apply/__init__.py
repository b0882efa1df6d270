"""Carry out plans: the only layer that writes."""
