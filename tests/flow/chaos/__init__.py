"""Chaos between API servers in this process: what may happen, who does it, and what must hold all along."""
