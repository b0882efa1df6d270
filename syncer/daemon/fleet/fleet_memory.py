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


class ClusterMemory:
    """The memory of a virtual cluster, by what takes it; all of it counts at ``part``.

    ``objects`` is for the stored ones, and ``work`` for the large ones in work. ``replies`` is for
    the large replies of its API server while they arrive, and ``connections`` for those of clients
    of its kubelets. Neither work nor replies end a virtual cluster: one of each goes on even where
    there is no room for it.
    """

    def __init__(self, part: ByteBudget, most: int) -> None:
        self.objects = ByteBudget(parent=part)
        self.replies = ByteBudget(parent=part, divided=True, passing=True)
        self._in_work = ByteBudget(parent=part, divided=True, passing=True)
        self.work = self._in_work.of("work")
        self.connections = ByteBudget(
            memory_limit() // 4 or DEFAULT_BYTES, parent=part, divided=True
        )
        self.limit(most)

    def limit(self, most: int) -> None:
        """Let the objects take so many bytes, 0 for no limit.

        Replies may take a quarter of it, of 256 MB at most, and objects in work an eighth of that:
        1 MiB of JSON for the latter. Connections may take a quarter of the container's memory, and
        256 MB if that has no limit.
        """
        self.objects.most = most
        self.replies.most = _most_of_replies(most)
        self._in_work.most = self.replies.most // 8


class FleetMemory:
    """The memory that all virtual clusters of the process may take together.

    It is half of the memory limit of the container, if that has one, and is divided between those
    who decide what takes it: each listed virtual cluster, and each namespace of Secrets that name
    some, however many these are. If only ending one is left, the largest of the largest part ends.
    """

    def __init__(self, *, is_alone: bool) -> None:
        """One that ``is_alone``, and stays so, has no other limit than its own."""
        self._process = ByteBudget(divided=True, ends_largest=True)
        #: The virtual clusters that have joined, by name.
        self._joined: dict[str, ClusterMemory] = {}
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
    def joined(self, cluster: VirtualCluster, ended: Callable[[], None]) -> Iterator[ClusterMemory]:
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
        memory = ClusterMemory(part, self.most(cluster))
        memory.objects.over = ended
        self._joined[cluster.name] = memory
        try:
            yield memory
        finally:
            del self._joined[cluster.name]
            part.close()

    def update(self, cluster: VirtualCluster) -> None:
        """Go by the present limit of a virtual cluster, if it has joined."""
        memory = self._joined.get(cluster.name)
        if memory is not None:
            memory.limit(self.most(cluster))

    def reason(self, cluster: VirtualCluster) -> str:
        """Return why a virtual cluster in it ends because of the memory of its objects."""
        objects = self._joined[cluster.name].objects
        if objects.used > objects.most > 0:
            most = f"more than {objects.most >> 20} MB of the daemon's memory (maxMegabytes)"
            return f"its objects take {most}; delete some, or raise the limit"
        taken = self._taken(self._process.of(cluster.owner))
        return f"its objects take {objects.used >> 20} MB: {taken}"

    def _taken(self, owner: ByteBudget) -> str:
        """Return how much is taken, and what to do."""
        used = self._process.used >> 20
        most = self._process.most >> 20
        together = f"the virtual clusters take {used} of {most} MB together"
        limit = "half of the memory limit of the daemon's container"
        own = f"those of this owner {owner.used >> 20}"
        return f"{together}, {limit}, {own}; delete objects, or raise the limit"


def host_replies() -> ByteBudget:
    """Return what large replies of the host may take while they arrive."""
    return ByteBudget(_most_of_replies(memory_limit() // 2), divided=True)


def _most_of_replies(objects: int) -> int:
    """Return the bytes of large replies beside so many of objects; 0 of these is no limit."""
    return min(objects or DEFAULT_BYTES, DEFAULT_BYTES) // 4
