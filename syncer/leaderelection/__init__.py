"""The right to write: a Lease, or the shards of a fleet."""
