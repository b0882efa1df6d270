"""Lets the Gateways of a host serve virtual clusters."""
