"""The options of the tokens of Pods."""

from syncer.api import Config


class PodTokenConfig(Config):
    """The tokens of the ServiceAccounts that virtual Pods run under."""

    enabled: bool = True
    """Whether Pods get tokens of the virtual API server. Off: the host's kubelet gives them tokens of the host, made
    out to the host copy of their ServiceAccount, for use with services that trust the host's issuer."""
