"""Real control planes: the programs that they are made of in this checkout, and the controllers of each side."""

import os
from pathlib import Path

from kube_envtest import Programs, find

#: What ``hack/controlplane/build`` makes.
BINARY = Path(__file__).parent / "controlplane" / "bin" / "controlplane"

VIRTUAL_CONTROLLERS = ",".join(
    (
        "*",
        # A syncer decides which nodes there are, and whether they are ready.
        "-node-lifecycle-controller",
        "-node-ipam-controller",
        "-taint-eviction-controller",
        "-device-taint-eviction-controller",
        "-ttl-controller",
        # It removes pods whose node it can't find; a fake node may come after the pod.
        "-pod-garbage-collector-controller",
        # Volumes are bound and attached on the host.
        "-persistentvolume-binder-controller",
        "-persistentvolume-attach-detach-controller",
        "-persistentvolume-expander-controller",
    )
)
"""For `ControlPlane(controllers=…)` of a virtual cluster: all but those that decide what the host decides."""

HOST_CONTROLLERS = ",".join(
    (
        "namespace-controller",  # deletes what is in a deleted namespace
        "garbage-collector-controller",  # deletes what is owned by a deleted object
        "serviceaccount-controller",
        "clusterrole-aggregation-controller",  # without it the roles admin, edit and view are empty
    )
)
"""For a host cluster whose nodes and pods are simulated: few, and none that looks after nodes or pods."""


def find_programs() -> Programs:
    """Return the programs that the environment names, else those of this checkout's own binary.

    Raises:
        NotAvailable: there are none; the message says how to get them.
    """
    return find(environment())


def environment() -> dict[str, str]:
    """Return the environment, with this checkout's own binary where it names none."""
    chosen = os.environ.get("ENVTEST_CONTROLPLANE") or str(BINARY)
    return {**os.environ, "ENVTEST_CONTROLPLANE": chosen}
