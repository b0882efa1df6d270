"""The cache: objects of an API server, listed and watched."""
