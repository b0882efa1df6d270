"""Pure functions on parts of objects: patches, CEL, merges, ownership of fields, quantities, times."""
