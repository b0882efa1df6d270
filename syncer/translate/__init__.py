"""Pure functions on parts of objects that more than one syncer needs: paths, label selectors, times."""
