"""Pure functions on parts of objects.

Patches, CEL, merges, ownership of fields, quantities, times.
"""
