"""Step 5: from a decision to API calls; the only place that writes."""
