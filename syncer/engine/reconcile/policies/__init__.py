"""Policies for every kind: each takes a decision or its calls, and returns what may be done."""
