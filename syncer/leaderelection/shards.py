"""A fleet that several replicas share: each leads some shards, and keeps others warm.

The Lease of a shard alone gives the right to write. Rendezvous hashing over the member Leases
(:mod:`.members`) decides about the candidates: the first member of a shard competes for its Lease,
the second keeps its caches filled, and the others don't serve its virtual clusters. A wrong view of
the members costs time, and never makes a second writer.

Kubernetes has no fencing tokens. So a write must have ended when another replica may take the Lease
(:meth:`Shards.until`).
"""

import asyncio
import math
import random
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol

from syncer.api import ClusterError, Key
from syncer.clusters.client import SideClient
from syncer.leaderelection.lease import LEAST_WAIT, Lease, reason
from syncer.leaderelection.members import Members
from syncer.leaderelection.rendezvous import ranked, shard_of
from syncer.leaderelection.uninstalls import Uninstalls
from syncer.lease_times import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from syncer.observe.logs import get_logger
from syncer.translate.times import utcnow

#: The number of members that keep the caches of a shard filled: the leader, and a standby.
KEEPERS = 2

log = get_logger(__name__)


class ShardWork(Protocol):
    """The work on the virtual clusters of a shard."""

    def begin(self, shard: int) -> None:
        """Begin the work: this replica leads the shard."""

    async def end(self, shard: int) -> None:
        """Begin no further requests, and return when none is in work."""

    def assigned(self) -> None:
        """Serve the virtual clusters of :meth:`Shards.keeps`, which have changed."""

    def is_warm(self, shard: int) -> bool:
        """Return True if the caches of the shard's virtual clusters are filled.

        Caches that can't be filled don't count.
        """

    def may_serve(self, cluster: str) -> bool:
        """Return True if a virtual cluster is in the configuration.

        Also while the configuration isn't known yet.
        """


class Shards:
    """The shards of this replica.

    ``fleet`` is the namespace and name of the Leases; times are in seconds.
    """

    def __init__(
        self,
        client: SideClient,
        *,
        fleet: Key,
        number: int,
        identity: str,
        duration: float = LEASE_DURATION,
        renew_deadline: float = RENEW_DEADLINE,
        retry_period: float = RETRY_PERIOD,
        clock: Callable[[], float] | None = None,
        random: Callable[[], float] = random.random,
        utcnow: Callable[[], datetime] = utcnow,
    ) -> None:
        clock = clock or asyncio.get_running_loop().time
        self.number = number
        self._identity = identity
        self._clock = clock
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._members = Members(
            client,
            fleet=fleet,
            identity=identity,
            shards=number,
            duration=duration,
            clock=clock,
            utcnow=utcnow,
        )

        self._leases: list[Lease] = []
        #: The shards by the names of their Leases.
        self._numbers: dict[str, int] = {}
        for shard in range(number):
            name = lease_name(fleet.name, shard)
            self._numbers[name] = shard
            lease = Lease(
                client,
                key=Key(fleet.namespace, name),
                identity=identity,
                duration=duration,
                renew_deadline=renew_deadline,
                retry_period=retry_period,
                clock=clock,
                random=random,
                utcnow=utcnow,
                labels=self._members.labels,
            )
            self._leases.append(lease)

        #: The tasks that compete for a Lease, or hold it.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: The shards on which work may begin.
        self._led: set[int] = set()
        #: The times at which the last write of a shard that is handed over must have ended.
        self._ends: dict[int, float] = {}
        #: The shards for which this replica keeps caches filled.
        self._warm: frozenset[int] = frozenset()
        self._uninstalls = Uninstalls(fleet.name, duration, clock)
        #: The problem that was logged last.
        self._complaint = ""

    # -- the rights of this replica ----------------------------------------------------------------

    def leads(self, cluster: str) -> bool:
        """Return True if work on a virtual cluster may begin here."""
        if cluster in self._uninstalls:
            return False
        shard = self.shard(cluster)
        return shard in self._led and self._leases[shard].is_leader

    def until(self, cluster: str) -> float:
        """Return the time at which a write to or for a virtual cluster must have ended.

        It is by our own clock, and ``-inf`` if no write may be sent. Requests that are in work when
        a shard is handed over may still write, until the Lease as it was then ends.
        """
        if cluster in self._uninstalls:
            return -math.inf
        shard = self.shard(cluster)
        return min(self._leases[shard].until, self._ends.get(shard, math.inf))

    def keeps(self, cluster: str) -> bool:
        """Return True if this replica works on a virtual cluster, or keeps its caches filled."""
        if cluster in self._uninstalls:
            return False
        shard = self.shard(cluster)
        return shard in self._warm or shard in self._tasks

    def shard(self, cluster: str) -> int:
        """Return the shard of a virtual cluster."""
        return shard_of(cluster, self.number)

    def holder(self, cluster: str) -> str:
        """Return the leader of a virtual cluster, as far as it is known here; ``""`` for none."""
        return self._leases[self.shard(cluster)].holder

    def led(self) -> dict[str, bool]:
        """Return for each shard, by the name of its Lease, whether this replica leads it.

        Thread-safe.
        """
        return {name: self._leases[shard].is_leader for name, shard in self._numbers.items()}

    # -- membership --------------------------------------------------------------------------------

    async def run(self, work: ShardWork) -> None:
        """Be a member until cancelled; then hand over all shards."""
        try:
            while True:
                await self._look(work)
                if self._members.is_known:
                    self._arrange(work)
                # A dead member's shards are taken as soon as it is known to be dead.
                await asyncio.sleep(min(self._retry_period, self._members.rest() + LEAST_WAIT))
        finally:
            await self._leave()

    async def _look(self, work: ShardWork) -> None:
        """Renew the member Lease, and read the Leases of the fleet."""
        ready = [shard for shard in self._warm if work.is_warm(shard)]
        is_first = not self._members.is_known

        def heeds(cluster: str) -> bool:
            # A replica that has just started heeds every uninstall.
            return is_first or not work.may_serve(cluster)

        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                others = await self._members.look(ready, self._uninstalls.ended())
                for lease in others:
                    shard = self._numbers.get(lease["metadata"]["name"])
                    if shard is not None:
                        self._leases[shard].saw(lease)
                if self._uninstalls.saw(others, heeds):
                    work.assigned()
                await self._members.collect()
        except (ClusterError, TimeoutError) as error:
            self._complain(reason(error))
        else:
            self._complaint = ""

    def _arrange(self, work: ShardWork) -> None:
        """Compete for the shards that the present members leave to us, and hand over others."""
        live = self._members.live()
        warm: set[int] = set()
        others = {each.identity for each in live.values() if each.shards != self.number}
        if others:
            names = ", ".join(sorted(others))
            self._complain(f"replicas have another leaderElection.shards: {names}")

        for shard in range(self.number):
            order = ranked(shard, live)
            if self._identity in order[:KEEPERS]:
                warm.add(shard)
            task = self._tasks.get(shard)
            if order[0] == self._identity:
                if task is None and not others:
                    self._compete(shard, work)
            elif task is not None and not task.cancelling():
                # A shard that is led goes when the caches of the next leader are filled.
                is_ready = shard in live[order[0]].ready
                if is_ready or shard not in self._led:
                    log.info("handing a shard over", shard=shard, to=order[0])
                    task.cancel()

        if self._warm != warm:
            self._warm = frozenset(warm)
            work.assigned()

    def _compete(self, shard: int, work: ShardWork) -> None:
        """Start the task that competes for a shard's Lease, and leads the shard."""

        def ended(task: asyncio.Task[None]) -> None:
            del self._tasks[shard]
            if not task.cancelled():
                error = task.exception()
                if error:
                    log.error("leading a shard failed; retrying", shard=shard, error=repr(error))
            work.assigned()

        async def term() -> None:
            await self._term(shard, work)

        task = asyncio.create_task(self._leases[shard].lead(term))
        self._tasks[shard] = task
        task.add_done_callback(ended)

    async def _term(self, shard: int, work: ShardWork) -> None:
        """Lead a shard until cancelled. Return once no request of it is in work."""
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
        """Wait for the end of the work, at most until its writes must have ended anyway."""
        left = end - self._clock()
        try:
            async with asyncio.timeout(max(left, LEAST_WAIT)):
                await ending
        except TimeoutError:
            log.warning("requests of a shard did not finish before it was handed over")

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
            log.warning("can't list the fleet's replicas, or their `shards` differ", error=error)


def lease_name(fleet: str, shard: int) -> str:
    """Return the name of the Lease of a shard."""
    return f"{fleet}-{shard}"
