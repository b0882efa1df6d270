"""The ``auth-provider`` section of a kubeconfig (oidc, gcp).

Only the ``kubernetes`` package supports it.
"""

from typing import Any

from kubernetes.client import Configuration
from kubernetes.config import load_kube_config_from_dict

from syncer.clusters.login import LegacyProvider, PluginFailed


def token(provider: LegacyProvider) -> str:
    """Return a provider's token, which it may request over the network.

    Raises:
        PluginFailed: There is none.
    """
    configuration = Configuration()
    try:
        load_kube_config_from_dict(  # type: ignore[no-untyped-call]
            _kubeconfig(provider),
            client_configuration=configuration,
        )
    except Exception as error:  # noqa: BLE001  (whatever a third-party login flow raises)
        raise PluginFailed(
            f"auth provider {provider.name} failed: {type(error).__name__}: {error}",
        ) from None
    header = configuration.get_api_key_with_prefix("BearerToken") or ""
    if not header.startswith("Bearer "):
        hint = "Log in with kubectl, or use an exec plugin instead."
        raise PluginFailed(f"auth provider {provider.name} gave no token. {hint}")
    return header.removeprefix("Bearer ")


def _kubeconfig(provider: LegacyProvider) -> dict[str, Any]:
    """Return a kubeconfig with only this provider.

    It is a copy: the loader writes renewed tokens into it.
    """
    user = {"auth-provider": {"name": provider.name, "config": dict(provider.config)}}
    return {
        "current-context": "only",
        "contexts": [{"name": "only", "context": {"cluster": "only", "user": "only"}}],
        "clusters": [{"name": "only", "cluster": {"server": "https://localhost"}}],
        "users": [{"name": "only", "user": user}],
    }
