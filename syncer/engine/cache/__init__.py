"""The cache: all objects of both sides that syncers read, listed and watched."""
