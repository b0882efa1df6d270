"""Facts that are found out before a virtual cluster is cached or written to."""
