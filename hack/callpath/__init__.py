"""Which functions of the daemon one object passes through, from watch event to POST."""
