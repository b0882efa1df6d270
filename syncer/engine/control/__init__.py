"""What a person can ask a running daemon."""
