"""Step 4: from a request to a decision, and what holds for all kinds alike."""
