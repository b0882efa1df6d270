"""The virtual clusters of a process: where they come from, and how each begins, fails and begins again."""
