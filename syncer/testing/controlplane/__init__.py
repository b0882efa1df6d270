"""Real clusters for tests, in seconds: etcd and kube-apiserver on loopback ports, to be killed, frozen, compacted.

::

    host = ControlPlane("host", controllers=HOST_CONTROLLERS)
    virtual = ControlPlane("virtual", controllers=VIRTUAL_CONTROLLERS)
    start_all(host, virtual)

Where the programs come from: see `find`. Needs the packages `trustme` and `cryptography`.
"""

from syncer.testing.controlplane.errors import NotAvailable, StartFailed
from syncer.testing.controlplane.flags import HOST_CONTROLLERS, VIRTUAL_CONTROLLERS
from syncer.testing.controlplane.plane import ControlPlane, start_all
from syncer.testing.controlplane.programs import Layout, Program, Programs
from syncer.testing.controlplane.sources import find

__all__ = [
    "HOST_CONTROLLERS",
    "VIRTUAL_CONTROLLERS",
    "ControlPlane",
    "Layout",
    "NotAvailable",
    "Program",
    "Programs",
    "StartFailed",
    "find",
    "start_all",
]
