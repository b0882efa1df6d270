"""Tools to test syncers, for authors of plugins too.

* :class:`~syncer.testing.World`: decisions without a cluster, in memory;
* :mod:`syncer.testing.objects`: builders of small objects;
* :mod:`syncer.testing.cases`: cases written in YAML;
* :mod:`syncer.testing.laws`: laws that every syncer must obey, checked by hypothesis;
* :class:`~syncer.testing.ApiServer`: an API server in this process, for kubectl and the daemon;
* :func:`~syncer.testing.running_cluster`: a cluster of :mod:`syncer.multicluster` on such a server;
* :class:`~syncer.testing.ControlPlane`: a real kube-apiserver.

The last three are from the distribution kube-envtest: ``pip install ./plugins/envtest`` in a
checkout.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kube_envtest import ControlPlane
    from syncer.testing.in_process import ApiServer
    from syncer.testing.running import running_cluster
    from syncer.testing.world import World

__all__ = ["ApiServer", "ControlPlane", "World", "running_cluster"]

_MODULES = {
    "ApiServer": "syncer.testing.in_process",
    "ControlPlane": "kube_envtest",
    "World": "syncer.testing.world",
    "running_cluster": "syncer.testing.running",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use, because pytest imports this package wherever it is installed.

    Raises:
        ImportError: A server is used, and kube-envtest isn't installed.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "kube_envtest":
            raise
        raise ImportError(
            f"syncer.testing.{name} needs the distribution kube-envtest. "
            "Run `pip install ./plugins/envtest` in a checkout"
        ) from None
