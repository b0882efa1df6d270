"""Tools to test syncers, for authors of plugins too.

* :class:`~syncer.testing.World`: decisions without a cluster, in memory;
* :mod:`syncer.testing.objects`: builders of small objects;
* :mod:`syncer.testing.cases`: cases written in YAML;
* :mod:`syncer.testing.laws`: laws that every syncer must obey, checked by hypothesis;
* :class:`~syncer.testing.ApiServer`: an API server in this process, for kubectl and the daemon;
* :class:`~syncer.testing.ControlPlane`: a real kube-apiserver.

The last two are from the distribution kube-envtest: ``pip install ./plugins/envtest`` in a
checkout.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kube_envtest import ControlPlane
    from syncer.testing.in_process import ApiServer
    from syncer.testing.world import World

__all__ = ["ApiServer", "ControlPlane", "World"]

_MODULES = {
    "ApiServer": "syncer.testing.in_process",
    "ControlPlane": "kube_envtest",
    "World": "syncer.testing.world",
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
