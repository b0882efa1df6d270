"""Step 3: which requests are looked at when, by whom, and what becomes of those that fail."""
