"""Testing of syncers, for authors of plugins too.

* :class:`~syncer.testing.World`: decisions without a cluster, in memory and at once;
* :mod:`syncer.testing.objects`: builders of small objects;
* :mod:`syncer.testing.cases`: cases written in YAML;
* :mod:`syncer.testing.laws`: what holds for every syncer, checked by hypothesis;
* :class:`~syncer.testing.ApiServer`: an API server in this process, that kubectl and the daemon can talk to;
* :class:`~syncer.testing.ControlPlane`: a real kube-apiserver.

The last two are those of the distribution kube-envtest, which ``vsyncer[testing]`` brings.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kube_envtest import ControlPlane
    from syncer.testing.in_process import ApiServer
    from syncer.testing.world import World

__all__ = ["ApiServer", "ControlPlane", "World"]

_MODULES = {"ApiServer": "syncer.testing.in_process", "ControlPlane": "kube_envtest", "World": "syncer.testing.world"}


def __getattr__(name: str) -> Any:
    """Import what is first wanted then: pytest imports this package wherever it is installed.

    Raises:
        ImportError: a server is wanted, and kube-envtest isn't installed.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "kube_envtest":
            raise
        raise ImportError(
            f"syncer.testing.{name} needs the distribution kube-envtest. Run `pip install 'vsyncer[testing]'`"
        ) from None
