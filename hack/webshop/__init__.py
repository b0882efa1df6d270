"""The implementation of hack/demo: two clusters, the daemon between them, and a web shop."""
