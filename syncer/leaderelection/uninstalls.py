"""The uninstall of one virtual cluster beside replicas that go on with the others.

The process that uninstalls holds a Lease that names the virtual cluster. Each replica reads it with
the other Leases of the fleet. If the virtual cluster is no longer in its configuration, the replica
begins no write for it while that Lease is held, and answers in its member Lease once the last write
must have ended. A replica that starts meanwhile does the same, even if the virtual cluster is in
its configuration.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from syncer.api import Key, Obj, SyncerError
from syncer.clusters.client import SideClient
from syncer.leaderelection.lease import Lease, LeaseRecord
from syncer.leaderelection.members import Member, leases_of, member_prefix

#: Retry periods that the replicas may take beyond twice the duration of a Lease.
LOOKS = 5


class StillServed(SyncerError):
    """A replica may write for a virtual cluster."""

    def __init__(self, cluster: str, replicas: Collection[str]) -> None:
        names = ", ".join(sorted(replicas))
        super().__init__(
            f"{names} may still write for the virtual cluster {cluster}; nothing was written. "
            "Take it out of the configuration of all replicas, and remove its Secret if it has "
            "one, or stop the replicas"
        )


def uninstall_name(fleet: str, cluster: str) -> str:
    """Return the name of the Lease for the uninstall of a virtual cluster."""
    return f"{fleet}-uninstall-{cluster}"


def answer(cluster: str, holder: str) -> str:
    """Return the answer of a replica to an uninstall: it writes nothing for the virtual cluster.

    ``holder`` is the holder of the uninstall's Lease.
    """
    return f"{cluster}={holder}"


class Uninstalls:
    """The uninstalls that a replica heeds.

    ``duration`` is that of a shard's Lease, in seconds of ``clock``.
    """

    def __init__(self, fleet: str, duration: float, clock: Callable[[], float]) -> None:
        self._prefix = uninstall_name(fleet, "")
        self._duration = duration
        self._clock = clock
        #: The Leases by virtual cluster, as they were when they changed last.
        self._records: dict[str, LeaseRecord] = {}
        #: For each virtual cluster with an uninstall that is heeded: the time at which the last
        #: write from here must have ended.
        self._ends: dict[str, float] = {}

    def __contains__(self, cluster: str) -> bool:
        """Return True if nothing may be written for a virtual cluster."""
        return cluster in self._ends

    def ended(self) -> list[str]:
        """Return the answers to the uninstalls for which no write can be under way any more."""
        now = self._clock()
        answers: list[str] = []
        for cluster, end in self._ends.items():
            if now >= end:
                answers.append(answer(cluster, self._records[cluster].holder))
        return answers

    def saw(self, leases: Sequence[Obj], heeds: Callable[[str], bool]) -> bool:
        """Note the Leases as they are now. Return True if the uninstalls to heed have changed.

        ``heeds`` returns True if an uninstall that isn't heeded yet is to be from now on.
        """
        now = self._clock()
        records: dict[str, LeaseRecord] = {}
        for lease in leases:
            name = lease["metadata"]["name"]
            if not name.startswith(self._prefix):
                continue
            cluster = name.removeprefix(self._prefix)
            record = LeaseRecord.of(lease, at=now)
            known = self._records.get(cluster)
            if known and known.version == record.version:
                record = known  # with the time of the change
            records[cluster] = record
        self._records = records

        ends: dict[str, float] = {}
        for cluster, record in records.items():
            if record.is_free("", now=now):
                continue
            end = self._ends.get(cluster)
            if end is not None:
                ends[cluster] = end
            elif heeds(cluster):
                # A write ends with the shard's Lease as it was when the write was sent.
                ends[cluster] = now + self._duration
        has_changed = ends.keys() != self._ends.keys()
        self._ends = ends
        return has_changed


@asynccontextmanager
async def uninstalling(
    client: SideClient,
    lease: Lease,
    *,
    fleet: Key,
    cluster: str,
    shard: str,
    patience: float,
    pause: float,
) -> AsyncIterator[None]:
    """Hold the Lease of an uninstall while the block runs.

    The block begins when no replica writes for the virtual cluster.

    Args:
        client: The client of the host.
        lease: The Lease of the uninstall.
        fleet: The namespace and name of the fleet's Leases.
        cluster: The name of the virtual cluster.
        shard: The name of its shard's Lease.
        patience: Seconds to wait for the replicas, in all.
        pause: Seconds between two reads of their Leases.

    Raises:
        AnotherLeads: Another uninstall of it is under way.
        StillServed: A replica may write for it.
        LeaseLost: The Lease was lost, which ends the block.
        ClusterError: A request failed.
    """
    clock = asyncio.get_running_loop().time
    members: dict[str, Member] = {}
    async with lease.holding():
        deadline = clock() + patience
        expected = answer(cluster, lease.holder)
        prefix = member_prefix(fleet.name)
        while True:
            leases = await leases_of(client, fleet)
            waiting = _waiting(leases, members, clock(), prefix, shard, expected)
            if not waiting:
                break
            if clock() >= deadline:
                raise StillServed(cluster, waiting)
            await asyncio.sleep(pause)
        yield


def _waiting(
    leases: Sequence[Obj],
    members: dict[str, Member],
    now: float,
    prefix: str,
    shard: str,
    expected: str,
) -> set[str]:
    """Return the live replicas and the live holder of a shard's Lease that must still answer.

    ``prefix`` is the beginning of the names of member Leases.
    """
    may_write: set[str] = set()
    away: set[str] = set()
    for lease in leases:
        name = lease["metadata"]["name"]
        member = members.get(name)
        if member is None or member.version != lease["metadata"]["resourceVersion"]:
            member = Member.of(lease, at=now)
            members[name] = member
        if now >= member.at + member.duration:
            continue
        if name.startswith(prefix):
            may_write.add(member.identity)
            if expected in member.away:
                away.add(member.identity)
        elif name == shard:
            may_write.add(member.identity)
    return may_write - away - {""}
