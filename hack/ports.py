"""Free ports on the loopback interface."""

from kube_envtest.controlplane.folder import free_ports


def free_port() -> int:
    """Return a port that is unused now and that no outgoing connection can take."""
    return free_ports(1)[0]
