"""Pods: run on the host as the virtual cluster says; their status comes up."""
