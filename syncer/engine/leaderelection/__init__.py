"""Who may write: the Lease, and the note that says whose a virtual cluster is."""
