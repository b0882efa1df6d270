"""The port of each node. A node keeps the port in its Node's status, also over restarts."""

from collections.abc import Collection, Mapping

from syncer.api.objects import Obj
from syncer.api.paths import dig
from syncer.byte_budget import SHARE_TIMES


class PortsInUse:
    """The ports of all kubelets of a process, which may serve several virtual clusters."""

    def __init__(self) -> None:
        self._ports: set[tuple[str, int]] = set()
        #: True if there may be several virtual clusters, so that none takes all ports.
        self.shared = False

    def take(self, address: str, port: int) -> None:
        """Record that a port of a listen address is in use."""
        self._ports.add((address, port))

    def give_back(self, address: str, port: int) -> None:
        """Record that a port is no longer in use."""
        self._ports.discard((address, port))

    def at(self, address: str) -> set[int]:
        """Return the ports of an address that are in use."""
        return {port for one, port in self._ports if one == address}

    def share(self, ports: range, others: Collection[int]) -> int:
        """Return how many of these ports the nodes of a virtual cluster may have beside ``others``.

        If there may be several virtual clusters, it is :data:`~syncer.byte_budget.SHARE_TIMES` as
        many as it leaves free: three quarters if no other has any.
        """
        left = sum(1 for port in ports if port not in others)
        if not self.shared:
            return left
        return max(left * SHARE_TIMES // (SHARE_TIMES + 1), 1)


def port_of(node: Obj) -> int | None:
    """Return the kubelet's port in a Node's status, or None."""
    port = dig(node, "status.daemonEndpoints.kubeletEndpoint.Port")
    if isinstance(port, int) and not isinstance(port, bool) and port > 0:
        return port
    return None


def choose(
    wanted: Mapping[str, int | None],
    serving: Mapping[str, int],
    ports: range,
    taken: Collection[int] = (),
    *,
    most: int,
) -> dict[str, int]:
    """Return a port for each node.

    Nodes are left out if there are too few ports, or ``most`` have one.

    Args:
        wanted: The port in the status of each node.
        serving: The ports that are served already; those of deleted nodes become free.
        ports: The ports to choose from.
        taken: The ports that others use.
        most: The number of nodes that may have one.
    """
    chosen = {node: port for node, port in serving.items() if node in wanted}
    used = {*chosen.values(), *taken}
    for node, port in sorted(wanted.items()):
        if len(chosen) >= most:
            break
        if node not in chosen and port is not None and port in ports and port not in used:
            chosen[node] = port
            used.add(port)

    free = (port for port in ports if port not in used)
    for node in sorted(wanted):
        if node in chosen:
            continue
        if len(chosen) >= most:
            break
        next_port = next(free, None)
        if next_port is not None:
            chosen[node] = next_port
    return chosen
