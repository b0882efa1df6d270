"""What can be seen of the daemon: logs, metrics, health pages, and Kubernetes events."""
