"""Benchmarks: commands that print figures as JSON."""
