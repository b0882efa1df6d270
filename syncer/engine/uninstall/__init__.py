"""All that is ours taken away, on both sides."""
