"""The certificates of a virtual control plane, in three Secrets of the host.

They are made once, and renewed before they end.
"""
