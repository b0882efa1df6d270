"""Syncs Widgets between a virtual cluster and its host."""
