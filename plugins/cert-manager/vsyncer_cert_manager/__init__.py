"""Lets a host's cert-manager issue the certificates of virtual clusters."""
