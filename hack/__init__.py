"""What a contributor runs; no logic of the product."""
