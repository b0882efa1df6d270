"""API servers for tests of Kubernetes clients, controllers and operators.

* :class:`ApiServer` is an API server in the test's own process, on its event loop: it starts at
  once, runs in virtual time too (:mod:`kube_envtest.virtual_time`), and can be broken in every way
  that an API server can be (:class:`Rule`);
* :class:`BackgroundApiServer` is the same server on a thread of its own, for tests and clients that
  block;
* :class:`ControlPlane` is a real etcd and kube-apiserver, found by :func:`find`.

Where this package is installed, pytest has the fixtures ``api_server`` and ``control_plane``:
:mod:`kube_envtest.fixtures`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kube_envtest.apiserver import (
        ADMIN,
        EPOCH,
        ApiServer,
        BackgroundApiServer,
        Change,
        ConnectionLost,
        Faults,
        Lag,
        Logged,
        MemoryClient,
        Reply,
        Rule,
        User,
    )
    from kube_envtest.controlplane import (
        ControlPlane,
        Layout,
        NotAvailable,
        Program,
        Programs,
        StartFailed,
        find,
        start_all,
    )

_CONTROLPLANE = ("ControlPlane", "Layout", "NotAvailable", "Program", "Programs", "StartFailed", "find", "start_all")

__all__ = [
    "ADMIN",
    "EPOCH",
    "ApiServer",
    "BackgroundApiServer",
    "Change",
    "ConnectionLost",
    "ControlPlane",
    "Faults",
    "Lag",
    "Layout",
    "Logged",
    "MemoryClient",
    "NotAvailable",
    "Program",
    "Programs",
    "Reply",
    "Rule",
    "StartFailed",
    "User",
    "find",
    "start_all",
]


def __getattr__(name: str) -> Any:
    """Import a server on first use, because pytest imports this package wherever it is installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'controlplane' if name in _CONTROLPLANE else 'apiserver'}"), name)
