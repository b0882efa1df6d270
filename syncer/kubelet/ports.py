"""Which port each node has; a port that a Node's status shows stays, also over restarts."""

from collections.abc import Collection, Mapping

from syncer.api.objects import Obj
from syncer.api.paths import dig


class PortsInUse:
    """The ports that kubelets of one process have, which may be those of several virtual clusters."""

    def __init__(self) -> None:
        self._ports: set[tuple[str, int]] = set()

    def take(self, address: str, port: int) -> None:
        """Note that a port of an address to listen on is in use."""
        self._ports.add((address, port))

    def give_back(self, address: str, port: int) -> None:
        """Note that a port is in use no longer."""
        self._ports.discard((address, port))

    def at(self, address: str) -> set[int]:
        """Return the ports of an address that are in use."""
        return {port for one, port in self._ports if one == address}


def port_of(node: Obj) -> int | None:
    """Return the kubelet's port in a Node's status, or None."""
    port = dig(node, "status.daemonEndpoints.kubeletEndpoint.Port")
    return port if isinstance(port, int) and not isinstance(port, bool) and port > 0 else None


def choose(
    wanted: Mapping[str, int | None],
    serving: Mapping[str, int],
    ports: range,
    taken: Collection[int] = (),
) -> dict[str, int]:
    """Return a port for each node, as far as there are enough.

    Args:
        wanted: The port in the status of each node.
        serving: The ports that are served already; a node that is gone gives its port back.
        ports: The ports to choose from.
        taken: Those of them that others have.
    """
    chosen = {node: port for node, port in serving.items() if node in wanted}
    used = {*chosen.values(), *taken}
    for node, port in sorted(wanted.items()):
        if node not in chosen and port is not None and port in ports and port not in used:
            chosen[node] = port
            used.add(port)
    free = (port for port in ports if port not in used)
    for node in sorted(wanted):
        if node not in chosen and (port := next(free, None)) is not None:
            chosen[node] = port
    return chosen
