"""Lets the host's Prometheus scrape workloads of virtual clusters."""
