"""The stores of both sides of a virtual cluster, and their indexes."""
