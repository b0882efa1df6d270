"""Pods: run on the host as the virtual cluster says, reported back as the host says."""
