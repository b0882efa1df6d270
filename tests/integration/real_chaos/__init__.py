"""Chaos on real API servers: a script made of a seed, the faults that it inflicts, and what must hold in the end."""
