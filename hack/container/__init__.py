"""The container image of the daemon: its locked packages, its base where none can be pulled,
its build.
"""
