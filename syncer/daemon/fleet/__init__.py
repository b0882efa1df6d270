"""The virtual clusters of a process: where they come from, and which are served here."""
