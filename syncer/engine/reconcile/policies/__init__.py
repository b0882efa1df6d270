"""Rules that hold for every kind: each takes a decision or its calls, and gives what is left of them."""
