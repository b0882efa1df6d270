"""Steps 1 and 2: what is on both sides, listed and watched, and kept."""
