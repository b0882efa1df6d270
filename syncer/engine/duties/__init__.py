"""Work on a virtual cluster beside that of its syncers."""
