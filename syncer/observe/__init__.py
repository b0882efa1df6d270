"""The daemon's logs, metrics, health pages, and Kubernetes events."""
