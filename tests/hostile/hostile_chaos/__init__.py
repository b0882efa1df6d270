"""A tenant with all rights in their virtual cluster against the daemon's own process, for hack/chaos --hostile."""
