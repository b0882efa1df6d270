"""Checks of a virtual cluster before anything is cached or written."""
