"""Who may write: a Lease, or the shards of a fleet."""
