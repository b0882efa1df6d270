"""What an operator would check when a daemon doesn't do what it should, in one go."""
