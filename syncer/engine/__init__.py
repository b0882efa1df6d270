"""One virtual cluster: from watch events to API calls.

Its folders are its layers; docs/architecture/engine.md lists them from the top.
"""
