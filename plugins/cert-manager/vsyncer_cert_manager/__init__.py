"""Lets the host's cert-manager issue certificates for virtual clusters."""
