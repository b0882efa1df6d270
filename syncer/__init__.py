"""A resource syncer daemon for virtual Kubernetes clusters."""
