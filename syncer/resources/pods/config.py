"""The options of Pod tokens."""

from syncer.api import Config


class PodTokenConfig(Config):
    """Service account tokens of the virtual API server for Pods."""

    enabled: bool = True
    """Whether Pods get tokens of the virtual API server.

    Off: the host's kubelet gives them tokens of the host for the copy of their ServiceAccount, for
    services that trust the host's issuer.
    """
