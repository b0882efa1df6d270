"""Lets the Prometheus of a host scrape what runs in virtual clusters."""
