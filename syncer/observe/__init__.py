"""What the daemon shows of itself: logs, metrics, health pages, and Kubernetes events."""
