"""The engine: from watch events to API calls.

Its folders are its layers; ARCHITECTURE.md lists them from the top.
"""
