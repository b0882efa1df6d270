"""The process: which virtual clusters it serves, how each starts and ends, and their status."""
