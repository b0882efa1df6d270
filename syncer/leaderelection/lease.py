"""Leader election with a Lease: one of several daemons works, and the others stand by.

The rules are client-go's (``tools/leaderelection``): a Lease is taken by compare-and-swap on its
resourceVersion, and another holder's Lease has expired when *this* process has seen no change of it
for its duration, so that clocks of different machines are never compared. Unlike client-go, losing
the Lease ends the term rather than the process, and the Lease is kept while the work of a term
winds down.
"""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from syncer.api import (
    ClusterError,
    ConfigError,
    Conflict,
    Exists,
    Key,
    LiveClient,
    Missing,
    Obj,
    Problem,
    Resource,
    SyncerError,
)
from syncer.observe.logs import get_logger
from syncer.translate.times import written_in_micros

LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases")

#: A candidate waits up to this many times the retry period longer, so that candidates don't retry
#: in step.
JITTER = 1.2
#: Minimum seconds before the next renewal: the rest of a term may be too short for the clock.
LEAST_WAIT = 0.01

log = get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class AnotherLeads(SyncerError):
    """Another process holds the Lease; ``holder`` is its identity, or ``""`` if unknown."""

    def __init__(self, holder: str, lease: Key) -> None:
        self.holder = holder
        who = f"{holder} leads" if holder else "nobody can be asked who leads"
        super().__init__(f"{who} (Lease {lease} on the host); nothing was written. Stop the daemons first")


class LeaseLost(SyncerError):
    """The Lease was lost while it was needed."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as it was last read or written, with the time of that by our own clock."""

    version: str
    holder: str
    duration: float
    transitions: int
    at: float

    @classmethod
    def of(cls, lease: Obj, *, at: float) -> "LeaseRecord":
        """Parse a Lease object."""
        spec = lease.get("spec") or {}
        version = lease["metadata"]["resourceVersion"]
        holder, duration = spec.get("holderIdentity") or "", spec.get("leaseDurationSeconds") or 0
        return cls(version, holder, float(duration), spec.get("leaseTransitions") or 0, at)

    def is_free(self, identity: str, *, now: float) -> bool:
        """Return True if ``identity`` may take the Lease: it holds it, nobody does, or it has
        expired as we watched.
        """
        return self.holder in ("", identity) or now >= self.at + self.duration


class Lease:
    """Runs work in at most one process at a time.

    ``identity`` must be unique to this process: a Lease with this holder is taken at once.
    ``duration``, ``renew_deadline`` and ``retry_period`` are in seconds. ``labels`` are put on the Lease.

    Raises:
        ConfigError: The times contradict each other.
    """

    def __init__(
        self,
        client: LiveClient,
        *,
        key: Key,
        identity: str,
        duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        clock: Callable[[], float] | None = None,
        random: Callable[[], float] = random.random,
        utcnow: Callable[[], datetime] = lambda: datetime.now(UTC),
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        _check_times(duration, renew_deadline, retry_period)
        self._client, self._key, self._identity = client, key, identity
        self._duration, self._renew_deadline, self._retry_period = duration, renew_deadline, retry_period
        self._clock = clock or asyncio.get_running_loop().time
        self._random, self._utcnow, self._labels = random, utcnow, labels
        self._seen: LeaseRecord | None = None
        self._sure = False
        self._held_until = -math.inf
        self._complaint = ""

    @property
    def is_leader(self) -> bool:
        """True while this process leads.

        Becomes False by time alone, even if the event loop is stuck.
        """
        return self._clock() < self._held_until

    @property
    def until(self) -> float:
        """The time, by this process's clock, until which no other may take the Lease; ``-inf`` if this doesn't lead.

        What is sent while this process leads must have ended by then.
        """
        return self._held_until + self._duration - self._renew_deadline if self.is_leader else -math.inf

    def saw(self, lease: Obj) -> None:
        """Note the Lease as it was just read, unless it is ours: who stands by knows when the holder's expires."""
        if not self._sure:
            self._note(lease)

    @property
    def holder(self) -> str:
        """The identity of the last known holder; ``""`` for none."""
        return self._seen.holder if self._seen else ""

    @property
    def stranger(self) -> str:
        """The holder, if it is a pod of another Deployment than this process; ``""`` otherwise.

        Two releases that serve the same virtual cluster are a mistake of the operator's.
        """
        return self.holder if self.holder and _deployment(self.holder) != _deployment(self._identity) else ""

    async def lead(self, work: Work) -> None:
        """Run ``work()`` whenever this process leads, until cancelled or until the work ends by itself.

        When the Lease is lost, the work is cancelled and its end awaited before standing by again.
        When this is cancelled, the work is cancelled, and the Lease is kept until the work has
        ended, then released. An exception of the work is passed on.
        """
        while True:
            await self._acquire()
            log.info("leading", lease=self._key, identity=self._identity)
            if await self._term(work):
                return
            log.warning("no longer leading, standing by", lease=self._key, holder=self.holder)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the Lease while the block runs. A dead holder's Lease is awaited until it expires.

        Raises:
            AnotherLeads: The holder is alive.
            LeaseLost: The Lease was lost, which ends the block.
        """
        if not await self._take():
            raise AnotherLeads(self.holder, self._key)
        keeping = asyncio.create_task(self._keep())
        scope = asyncio.timeout(None)

        def lost(_: asyncio.Task[None]) -> None:
            scope.reschedule(self._clock())

        try:
            async with scope:
                keeping.add_done_callback(lost)
                try:
                    yield
                finally:
                    keeping.remove_done_callback(lost)
        except TimeoutError:
            if scope.expired():
                raise LeaseLost(f"the Lease {self._key} was lost; {self.holder or 'nobody'} holds it now") from None
            raise
        finally:
            if await self._end(keeping):
                await self._release()

    async def _term(self, work: Work) -> bool:
        """Run a term. Return True if the work ended by itself, False if the Lease was lost."""
        working, renewing = asyncio.create_task(work()), asyncio.create_task(self._keep())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = working.done()
            await self._wind_down(working, renewing)
        if ended:
            working.result()
        elif not working.cancelled() and (error := working.exception()):
            log.error("the work of a lost term did not end well", error=repr(error))
        return ended

    async def _wind_down(self, working: asyncio.Task[None], renewing: asyncio.Task[None]) -> None:
        """End the work while the Lease is still kept, then release it.

        If this is interrupted, the Lease expires by itself.
        """
        try:
            working.cancel()
            await asyncio.wait({working})
        finally:
            held = await self._end(renewing)
        if held:
            await self._release()

    async def _end(self, renewing: asyncio.Task[None]) -> bool:
        """Stop renewing and leading. Return True if the Lease was still ours."""
        renewing.cancel()
        await asyncio.wait({renewing})
        held, self._held_until = self.is_leader, -math.inf
        return held

    async def _take(self) -> bool:
        """Take the Lease; return False if its holder is alive. A dead holder's is awaited until it expires."""
        known, deadline = "", self._clock() + self._renew_deadline
        while not await self._attempt(self._clock() + self._renew_deadline):
            if self._seen and self._taken_by_another():
                if known not in ("", self._seen.version):
                    return False
                if not known:
                    known, deadline = self._seen.version, self._clock() + self._seen.duration + 2 * self._retry_period
            if self._clock() > deadline:
                return False
            await asyncio.sleep(self._retry_period)
        return True

    async def _acquire(self) -> None:
        told = ""
        while True:
            if await self._attempt(self._clock() + self._renew_deadline):
                return
            if self.holder != told and self._taken_by_another():
                told = self.holder
                log.info("standing by", lease=self._key, holder=told)
            await asyncio.sleep(min(self._retry_period * (1 + JITTER * self._random()), self._rest()))

    def _rest(self) -> float:
        """Return the seconds until the holder's Lease expires, if that is to come; else infinity."""
        left = self._seen.at + self._seen.duration - self._clock() if self._seen and self.holder else 0.0
        return left + LEAST_WAIT if left > 0 else math.inf

    async def _keep(self) -> None:
        """Renew until that has failed for too long, or another process holds the Lease."""
        while self.is_leader:
            await asyncio.sleep(min(self._retry_period, max(LEAST_WAIT, self._held_until - self._clock())))
            if self.is_leader and not await self._attempt(self._held_until) and self._taken_by_another():
                self._held_until = -math.inf

    def _taken_by_another(self) -> bool:
        return self.holder not in ("", self._identity)

    async def _attempt(self, deadline: float) -> bool:
        """Take or renew the Lease.

        A hanging call ends at the deadline, or earlier to leave time for another.
        """
        start = self._clock()
        limit = min(deadline - start, self._renew_deadline / 2)
        try:
            async with asyncio.timeout(limit):
                return await self._take_or_renew(start)
        except (Conflict, Exists):
            return False
        except (ClusterError, TimeoutError) as error:
            self._complain(_said(error))
            return False

    async def _take_or_renew(self, start: float) -> bool:
        """Try once, and once more from fresh state after a conflict."""
        try:
            return await self._swap(start)
        except (Conflict, Exists, Missing):
            return await self._swap(start)

    async def _swap(self, start: float) -> bool:
        """Compare and swap once. If our last write succeeded, without reading the Lease first."""
        if not self._sure:
            await self._look()
        self._sure = False
        seen = self._seen
        if seen is None:
            self._won(await self._client.create(LEASES, self._fresh()), start)
        elif seen.is_free(self._identity, now=self._clock()):
            self._won(await self._client.patch(LEASES, self._key, self._claim(seen)), start)
        else:
            return False
        return True

    async def _look(self) -> None:
        """Read the Lease. Only a change of it counts as a sign of life of its holder."""
        try:
            lease = await self._client.get(LEASES, self._key)
        except Missing:
            self._seen = None
            return
        self._note(lease)

    def _note(self, lease: Obj) -> None:
        if not self._seen or self._seen.version != lease["metadata"]["resourceVersion"]:
            self._seen = LeaseRecord.of(lease, at=self._clock())

    def _won(self, lease: Obj, start: float) -> None:
        """Record that the Lease is ours, from the time before the request: others can't have seen
        it earlier.
        """
        self._seen, self._sure = LeaseRecord.of(lease, at=self._clock()), True
        self._held_until = start + self._renew_deadline
        self._complaint = ""

    def _fresh(self) -> Obj:
        metadata: Obj = {"name": self._key.name, "namespace": self._key.namespace}
        metadata |= {"labels": dict(self._labels)} if self._labels else {}
        spec = self._term_spec(0) | self._renewal()
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}

    def _claim(self, seen: LeaseRecord) -> Obj:
        """Return the patch that renews our Lease or takes a free one.

        It fails if the Lease changes before it arrives.
        """
        metadata: Obj = {"resourceVersion": seen.version}
        if seen.holder == self._identity:
            return {"metadata": metadata, "spec": self._renewal()}
        metadata |= {"labels": dict(self._labels)} if self._labels else {}
        return {"metadata": metadata, "spec": self._term_spec(seen.transitions + 1) | self._renewal()}

    def _term_spec(self, transitions: int) -> Obj:
        return {"acquireTime": written_in_micros(self._utcnow()), "leaseTransitions": transitions}

    def _renewal(self) -> Obj:
        duration = math.ceil(self._duration)
        renewed = written_in_micros(self._utcnow())
        return {"holderIdentity": self._identity, "leaseDurationSeconds": duration, "renewTime": renewed}

    async def _release(self) -> None:
        """Release the Lease, so that another process need not wait for its expiry."""
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                await self._give_up()
        except (ClusterError, TimeoutError) as error:
            log.warning("the lease could not be given up, it will run out", lease=self._key, error=_said(error))

    async def _give_up(self) -> None:
        if not self._sure:
            await self._look()
        if self._seen and self._seen.holder == self._identity:
            now = written_in_micros(self._utcnow())
            spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
            patch = {"metadata": {"resourceVersion": self._seen.version}, "spec": spec}
            self._seen = LeaseRecord.of(await self._client.patch(LEASES, self._key, patch), at=self._clock())
            self._sure = False
            log.info("gave the lease up", lease=self._key)

    def _complain(self, error: str) -> None:
        """Log a problem once, not at every attempt."""
        if error != self._complaint:
            self._complaint = error
            log.warning("can't take or renew the lease", lease=self._key, error=error)


def _said(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)


def _check_times(duration: float, renew_deadline: float, retry_period: float) -> None:
    """Check client-go's rules: otherwise two processes could lead at once, or none could renew in time."""
    if not duration > renew_deadline > retry_period * JITTER > 0:
        raise ConfigError(
            Problem(
                f"leaseDuration {duration:g}s, renewDeadline {renew_deadline:g}s and retryPeriod {retry_period:g}s "
                "do not fit together.",
                path="leaderElection",
                hint=f"leaseDuration must be more than renewDeadline, and that more than {JITTER} times retryPeriod.",
            )
        )


def _deployment(identity: str) -> str:
    """Return the Deployment of the pod in an identity: the pod's namespace and name, and a random part."""
    return identity.rpartition("_")[0].rsplit("-", 2)[0]
