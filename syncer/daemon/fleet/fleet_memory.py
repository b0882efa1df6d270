"""The memory of the process, and the virtual clusters that have parts of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from syncer.api.errors import SyncerError
from syncer.byte_budget import ByteBudget
from syncer.config import VirtualCluster
from syncer.daemon.fleet.memory_limit import memory_limit

#: The most memory that the objects of a virtual cluster may take by default, in bytes, if there are
#: several.
DEFAULT_BYTES = 256 << 20
#: Bytes that a virtual cluster takes at least: its clients, its discovery, its tasks.
CLUSTER_OVERHEAD = 1 << 20


class OverBudget(SyncerError):
    """A virtual cluster takes too much of the daemon's memory, or there is no room for it."""


class FleetMemory:
    """The memory that all virtual clusters of the process may take together.

    It is half of the memory limit of the container, if that has one, and is divided between those
    who decide what takes it: each listed virtual cluster, and each namespace of Secrets that name
    some, however many these are. If only ending one is left, the largest of the largest part ends.
    """

    def __init__(self, *, is_alone: bool) -> None:
        """One that ``is_alone``, and stays so, has no other limit than its own."""
        self._process = ByteBudget(divided=True, ends_largest=True)
        self.limit(is_alone=is_alone)

    def limit(self, *, is_alone: bool) -> None:
        """Go by whether there is a single virtual cluster now."""
        self._is_alone = is_alone
        self._process.most = 0 if is_alone else memory_limit() // 2

    def most(self, cluster: VirtualCluster) -> int:
        """Return the most bytes that the objects of a virtual cluster may take; 0 for no limit."""
        if cluster.max_megabytes is not None:
            return cluster.max_megabytes << 20
        if self._is_alone:
            return memory_limit() // 2
        return min(DEFAULT_BYTES, self._process.most or DEFAULT_BYTES)

    @contextmanager
    def joined(self, cluster: VirtualCluster, ended: Callable[[], None]) -> Iterator[ByteBudget]:
        """Have room for a virtual cluster during the block; ``ended`` is called if it has to end.

        Raises:
            OverBudget: There is no room for it.
        """
        owner = self._process.of(cluster.owner, divided=True)
        part = owner.of(cluster.name)
        if not part.has_room(CLUSTER_OVERHEAD):
            raise OverBudget(f"there is no room for it: {self._taken(owner)}")
        part.over = ended
        part.take(CLUSTER_OVERHEAD)
        try:
            yield part
        finally:
            part.close()

    def connections(self, part: ByteBudget) -> ByteBudget:
        """Return what the connections of clients may take of the part of a virtual cluster.

        It is a quarter of the container's memory, as its objects may have half of it, and as much as
        a virtual cluster among several has by default if the container has no limit.
        """
        return ByteBudget(memory_limit() // 4 or DEFAULT_BYTES, parent=part, divided=True)

    def reason(self, objects: ByteBudget, cluster: VirtualCluster) -> str:
        """Return why a virtual cluster has ended whose objects take so much."""
        if objects.used > objects.most > 0:
            most = f"more than {objects.most >> 20} MB of the daemon's memory (maxMegabytes)"
            return f"its objects take {most}; delete some, or raise the limit"
        return f"its objects take {objects.used >> 20} MB: {self._taken(self._process.of(cluster.owner))}"

    def _taken(self, owner: ByteBudget) -> str:
        """Return how much is taken, and what to do."""
        together = f"the virtual clusters take {self._process.used >> 20} of {self._process.most >> 20} MB together"
        limit = "half of the memory limit of the daemon's container"
        own = f"those of this owner {owner.used >> 20}"
        return f"{together}, {limit}, {own}; delete objects, or raise the limit"
