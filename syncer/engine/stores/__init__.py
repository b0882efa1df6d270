"""The stores of both sides of a virtual cluster, and what is indexed in them."""
