"""Uninstall: remove everything that we made, on both sides."""
