"""The certificates of a virtual control plane, in three Secrets of the host: made once, renewed before they end."""
