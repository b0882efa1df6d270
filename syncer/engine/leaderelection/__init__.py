"""Who may write: the Lease, and the identity of a virtual cluster."""
