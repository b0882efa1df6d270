"""The work queue: fair, delaying, and rate limiting."""
