"""Tools for contributors; nothing of the product."""
