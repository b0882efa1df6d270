"""The uninstall of one virtual cluster beside replicas that go on with the others.

Whoever uninstalls holds a Lease that names the virtual cluster. Each replica reads it with the other Leases of the
fleet. If the virtual cluster is no longer in its configuration, it begins no write for it while that Lease is held, and
says so in its member Lease once the last one must have ended. A replica that starts meanwhile does the same, whatever
its configuration says.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from syncer.api import Key, Obj, SyncerError
from syncer.clusters.client import Cluster
from syncer.leaderelection.lease import Lease, LeaseRecord
from syncer.leaderelection.members import Member, leases_of, member_prefix

#: Looks, in retry periods, that the replicas may take beyond twice the duration of a Lease.
LOOKS = 5


class StillServed(SyncerError):
    """A replica may write for a virtual cluster."""

    def __init__(self, cluster: str, replicas: Collection[str]) -> None:
        who = ", ".join(sorted(replicas))
        super().__init__(
            f"{who} may still write for the virtual cluster {cluster}; nothing was written. Take it out of the"
            " configuration of all replicas, and remove its Secret if it has one, or stop the replicas"
        )


def uninstall_name(fleet: str, cluster: str) -> str:
    """Return the name of the Lease of who uninstalls a virtual cluster."""
    return f"{fleet}-uninstall-{cluster}"


def answer(cluster: str, holder: str) -> str:
    """Return what a replica says that writes nothing for a virtual cluster while this holder uninstalls it."""
    return f"{cluster}={holder}"


class Uninstalls:
    """The uninstalls that a replica heeds. ``duration`` is that of a shard's Lease, in seconds of ``clock``."""

    def __init__(self, fleet: str, duration: float, clock: Callable[[], float]) -> None:
        self._prefix, self._duration, self._clock = uninstall_name(fleet, ""), duration, clock
        #: The Leases by virtual cluster, as they were when they changed last.
        self._seen: dict[str, LeaseRecord] = {}
        #: When the last write from here must have ended, by virtual cluster; of those that are heeded.
        self._ends: dict[str, float] = {}

    def __contains__(self, cluster: str) -> bool:
        """Return True if nothing may be written for a virtual cluster."""
        return cluster in self._ends

    def ended(self) -> list[str]:
        """Return the answers to those who uninstall a virtual cluster for which no write can be under way any more."""
        now = self._clock()
        return [answer(name, self._seen[name].holder) for name, end in self._ends.items() if now >= end]

    def saw(self, leases: Sequence[Obj], heeds: Callable[[str], bool]) -> bool:
        """Note the Leases as they are now. Return True if there are others to heed than before.

        ``heeds`` says whether one that isn't heeded yet is from now on.
        """
        now, before = self._clock(), set(self._ends)
        there = {
            lease["metadata"]["name"].removeprefix(self._prefix): LeaseRecord.of(lease, at=now)
            for lease in leases
            if lease["metadata"]["name"].startswith(self._prefix)
        }
        self._seen = {
            cluster: known if (known := self._seen.get(cluster)) and known.version == record.version else record
            for cluster, record in there.items()
        }
        held = {cluster for cluster, each in self._seen.items() if not each.is_free("", now=now)}
        self._ends = {cluster: end for cluster, end in self._ends.items() if cluster in held}
        # A write ends with the shard's Lease as it was when that was sent.
        self._ends |= {cluster: now + self._duration for cluster in held - set(self._ends) if heeds(cluster)}
        return set(self._ends) != before


@asynccontextmanager
async def uninstalling(
    client: Cluster, lease: Lease, *, fleet: Key, cluster: str, shard: str, patience: float, pause: float
) -> AsyncIterator[None]:
    """Hold the Lease of an uninstall while the block runs. It begins when no replica writes for the virtual cluster.

    ``shard`` is the name of its shard's Lease; ``patience`` and ``pause`` are seconds: in all, and between two looks.

    Raises:
        AnotherLeads: Another uninstall of it is under way.
        StillServed: A replica may write for it.
        LeaseLost: The Lease was lost, which ends the block.
        ClusterError: A request failed.
    """
    clock = asyncio.get_running_loop().time
    seen: dict[str, Member] = {}
    async with lease.held():
        deadline = clock() + patience
        said = answer(cluster, lease.holder)
        while waiting := _waiting(
            await leases_of(client, fleet), seen, clock(), member_prefix(fleet.name), shard, said
        ):
            if clock() >= deadline:
                raise StillServed(cluster, waiting)
            await asyncio.sleep(pause)
        yield


def _waiting(
    leases: Sequence[Obj], seen: dict[str, Member], now: float, members: str, shard: str, said: str
) -> set[str]:
    """Return the live replicas, and the live holder of a shard's Lease, that haven't said this.

    ``members`` is how the names of member Leases begin.
    """
    for lease in leases:
        name = lease["metadata"]["name"]
        known = seen.get(name)
        if known is None or known.version != lease["metadata"]["resourceVersion"]:
            seen[name] = Member.of(lease, at=now)
    there = {lease["metadata"]["name"] for lease in leases}
    live = {name: each for name, each in seen.items() if name in there and now < each.at + each.duration}
    replicas = [each for name, each in live.items() if name.startswith(members)]
    away = {each.identity for each in replicas if said in each.away}
    holder = {live[shard].identity} if shard in live else set()
    return ({each.identity for each in replicas} | holder) - away - {""}
