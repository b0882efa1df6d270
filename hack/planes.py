"""Real control planes: their programs in this checkout, and the controllers for each side."""

import os
from pathlib import Path

from kube_envtest import Programs, find

#: The output of ``hack/controlplane/build``.
BINARY = Path(__file__).parent / "controlplane" / "bin" / "controlplane"

VIRTUAL_CONTROLLERS = ",".join(
    (
        "*",
        # A syncer decides which nodes exist, and whether they are ready.
        "-node-lifecycle-controller",
        "-node-ipam-controller",
        "-taint-eviction-controller",
        "-device-taint-eviction-controller",
        "-ttl-controller",
        # It removes pods whose node it can't find; a stand-in node may come after the pod.
        "-pod-garbage-collector-controller",
        # Volumes are bound and attached on the host.
        "-persistentvolume-binder-controller",
        "-persistentvolume-attach-detach-controller",
        "-persistentvolume-expander-controller",
    )
)
"""For `ControlPlane(controllers=…)` of a virtual cluster: all but those that work on the host."""

SCHEDULED_CONTROLLERS = VIRTUAL_CONTROLLERS.replace(",-taint-eviction-controller,", ",")
"""For that of a virtual cluster with a scheduler of its own, where the tenant's taints count."""

HOST_CONTROLLERS = ",".join(
    (
        "namespace-controller",  # deletes the contents of deleted namespaces
        "garbage-collector-controller",  # deletes the dependents of deleted objects
        "serviceaccount-controller",
        "clusterrole-aggregation-controller",  # without it the roles admin, edit and view are empty
    )
)
"""For a host cluster whose nodes and pods are simulated: few, and none for nodes or pods."""


def find_programs() -> Programs:
    """Return the programs that the environment configures, else those of this checkout's own
    binary.

    Raises:
        NotAvailable: There are none; the message says how to get them.
    """
    return find(environment())


def environment() -> dict[str, str]:
    """Return the environment, with this checkout's own binary if it configures none."""
    chosen = os.environ.get("ENVTEST_CONTROLPLANE") or str(BINARY)
    return {**os.environ, "ENVTEST_CONTROLPLANE": chosen}
