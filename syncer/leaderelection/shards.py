"""A fleet that several replicas share: each leads some shards of its virtual clusters, and keeps others warm.

The Lease of a shard alone gives the right to write. Who competes for it is decided by rendezvous hashing over the
member Leases (:mod:`.members`): the first of a shard does, the second keeps its caches filled, and the others don't
serve its virtual clusters. A wrong view of the members costs time, and never makes a second writer.

Kubernetes has no fencing tokens. So a write must have ended when another may take the Lease (:meth:`Shards.until`).
"""

import asyncio
import math
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol

from syncer.api import ClusterError, Key
from syncer.clusters.client import Cluster
from syncer.leaderelection.lease import LEAST_WAIT, Lease
from syncer.leaderelection.members import Member, Members
from syncer.leaderelection.rendezvous import ranked, shard_of
from syncer.leaderelection.uninstalls import Uninstalls
from syncer.observe.logs import get_logger

#: How many members keep the caches of a shard filled: the one that leads, and a standby.
KEEPERS = 2

log = get_logger(__name__)


class ShardWork(Protocol):
    """The work on the virtual clusters of a shard."""

    def begin(self, shard: int) -> None:
        """Begin the work: this replica leads the shard."""

    async def end(self, shard: int) -> None:
        """Begin nothing more, and return when nothing is in work."""

    def assigned(self) -> None:
        """Serve what :meth:`Shards.keeps` says from now on."""

    def is_warm(self, shard: int) -> bool:
        """Return True if the caches of the shard's virtual clusters are filled, as far as they can be."""

    def may_serve(self, cluster: str) -> bool:
        """Return True if a virtual cluster is in the configuration, or it isn't known yet whether it is."""


class Shards:
    """The shards of this replica. ``fleet`` is the namespace and name of the Leases; times are in seconds."""

    def __init__(
        self,
        client: Cluster,
        *,
        fleet: Key,
        number: int,
        identity: str,
        duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        clock: Callable[[], float] | None = None,
        random: Callable[[], float] = random.random,
        utcnow: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        clock = clock or asyncio.get_running_loop().time
        self.number, self._identity = number, identity
        self._clock, self._renew_deadline, self._retry_period = clock, renew_deadline, retry_period
        self._members = Members(
            client, fleet=fleet, identity=identity, shards=number, duration=duration, clock=clock, utcnow=utcnow
        )
        self._leases = [
            Lease(
                client,
                key=Key(fleet.namespace, lease_name(fleet.name, shard)),
                identity=identity,
                duration=duration,
                renew_deadline=renew_deadline,
                retry_period=retry_period,
                clock=clock,
                random=random,
                utcnow=utcnow,
                labels=self._members.labels,
            )
            for shard in range(number)
        ]
        self._numbers = {lease_name(fleet.name, shard): shard for shard in range(number)}
        #: The tasks that compete for a Lease, or hold it.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._led: set[int] = set()
        #: When the last write of a shard that is handed over must have ended.
        self._ends: dict[int, float] = {}
        self._warm: frozenset[int] = frozenset()
        self._uninstalls = Uninstalls(fleet.name, duration, clock)
        self._complaint = ""

    # -- what this replica may do ------------------------------------------------------------------

    def leads(self, cluster: str) -> bool:
        """Return True if work on a virtual cluster may begin here."""
        shard = self.shard(cluster)
        return shard in self._led and self._leases[shard].is_leader and cluster not in self._uninstalls

    def until(self, cluster: str) -> float:
        """Return the time, by our own clock, at which a write to or for a virtual cluster must have ended.

        It is ``-inf`` if none may be sent. What is in work when a shard is handed over may still write, until the
        Lease as it was then ends.
        """
        if cluster in self._uninstalls:
            return -math.inf
        shard = self.shard(cluster)
        return min(self._leases[shard].until, self._ends.get(shard, math.inf))

    def keeps(self, cluster: str) -> bool:
        """Return True if a virtual cluster is to be served here: worked on, or its caches filled."""
        shard = self.shard(cluster)
        return (shard in self._warm or shard in self._tasks) and cluster not in self._uninstalls

    def shard(self, cluster: str) -> int:
        """Return the shard of a virtual cluster."""
        return shard_of(cluster, self.number)

    def holder(self, cluster: str) -> str:
        """Return who leads a virtual cluster, as far as is known here; ``""`` for nobody."""
        return self._leases[self.shard(cluster)].holder

    def led(self) -> dict[str, bool]:
        """Return by the name of its Lease whether this replica leads a shard. Thread-safe."""
        return {name: self._leases[shard].is_leader for name, shard in self._numbers.items()}

    # -- taking part -------------------------------------------------------------------------------

    async def run(self, work: ShardWork) -> None:
        """Take part until cancelled; then hand over everything."""
        try:
            while True:
                await self._look(work)
                if self._members.is_known:
                    self._arrange(work)
                await asyncio.sleep(min(self._retry_period, self._members.rest() + LEAST_WAIT))
        finally:
            await self._leave()

    async def _look(self, work: ShardWork) -> None:
        ready = [shard for shard in self._warm if work.is_warm(shard)]
        is_first = not self._members.is_known
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                others = await self._members.look(ready, self._uninstalls.ended())
                for lease in others:
                    if (shard := self._numbers.get(lease["metadata"]["name"])) is not None:
                        self._leases[shard].saw(lease)
                if self._uninstalls.saw(others, lambda cluster: is_first or not work.may_serve(cluster)):
                    work.assigned()
                await self._members.collect()
        except (ClusterError, TimeoutError) as error:
            self._complain("no answer in time" if isinstance(error, TimeoutError) else str(error))
        else:
            self._complaint = ""

    def _arrange(self, work: ShardWork) -> None:
        """Compete for the shards that are ours by the members as they are now, and hand over others."""
        live, warm = self._members.live(), set[int]()
        others = {each.identity for each in live.values() if each.shards != self.number}
        if others:
            self._complain(f"replicas have another leaderElection.shards: {', '.join(sorted(others))}")
        for shard in range(self.number):
            order = ranked(shard, live)
            if self._identity in order[:KEEPERS]:
                warm.add(shard)
            task = self._tasks.get(shard)
            if order[0] == self._identity:
                if task is None and not others:
                    self._compete(shard, work)
            elif task is not None and not task.cancelling() and self._may_go(shard, live[order[0]]):
                log.info("handing a shard over", shard=shard, to=order[0])
                task.cancel()
        before, self._warm = self._warm, frozenset(warm)
        if self._warm != before:
            work.assigned()

    def _may_go(self, shard: int, first: Member) -> bool:
        """Return True if a shard may go to the first of its members: its caches are filled, or this doesn't lead."""
        return shard not in self._led or shard in first.ready

    def _compete(self, shard: int, work: ShardWork) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            del self._tasks[shard]
            if not task.cancelled() and (error := task.exception()):
                log.error("leading a shard failed, and is tried again", shard=shard, error=repr(error))
            work.assigned()

        task = asyncio.create_task(self._leases[shard].lead(lambda: self._term(shard, work)))
        self._tasks[shard] = task
        task.add_done_callback(ended)

    async def _term(self, shard: int, work: ShardWork) -> None:
        """Lead a shard until cancelled. Return once nothing of it is in work."""
        self._led.add(shard)
        try:
            work.begin(shard)
            await asyncio.Future()
        finally:
            self._led.discard(shard)
            self._ends[shard] = self._leases[shard].until
            try:
                await self._before(self._ends[shard], work.end(shard))
            finally:
                del self._ends[shard]

    async def _before(self, end: float, ending: Coroutine[Any, Any, None]) -> None:
        """Wait for the end of the work, until no write of it may go out any more anyway."""
        left = end - self._clock()
        try:
            async with asyncio.timeout(max(left, LEAST_WAIT)):
                await ending
        except TimeoutError:
            log.warning("what was in work when a shard was handed over has not ended in time")

    async def _leave(self) -> None:
        """Leave the members first, so that the others compete while the work here ends."""
        await self._members.leave()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _complain(self, error: str) -> None:
        """Log a problem once, not at every attempt."""
        if error != self._complaint:
            self._complaint = error
            log.warning("the replicas of the fleet can't be known, or don't fit", error=error)


def lease_name(fleet: str, shard: int) -> str:
    """Return the name of the Lease of a shard."""
    return f"{fleet}-{shard}"
