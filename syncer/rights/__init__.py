"""The rights that a configuration needs on both sides, and what else bounds the daemon there."""
