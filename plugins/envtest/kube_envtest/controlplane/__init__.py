"""Real clusters for tests, in seconds: etcd and kube-apiserver on loopback ports, to be killed, frozen and compacted.

::

    one, other = ControlPlane("one"), ControlPlane("other", controllers="*")
    start_all(one, other)

See `find` for where the programs come from.
"""

from kube_envtest.controlplane.errors import NotAvailable, StartFailed
from kube_envtest.controlplane.plane import ControlPlane, start_all
from kube_envtest.controlplane.programs import Layout, Program, Programs
from kube_envtest.controlplane.sources import find

__all__ = [
    "ControlPlane",
    "Layout",
    "NotAvailable",
    "Program",
    "Programs",
    "StartFailed",
    "find",
    "start_all",
]
