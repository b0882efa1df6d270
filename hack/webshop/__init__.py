"""What hack/demo runs: two clusters, the daemon between them, and a web shop."""
