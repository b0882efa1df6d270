"""Syncs the Foos of Kubernetes' sample controller between a virtual cluster and its host."""
