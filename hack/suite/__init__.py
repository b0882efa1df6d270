"""Kubernetes' conformance suite, run against a real node and against a virtual cluster on it."""
