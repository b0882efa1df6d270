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
from datetime import datetime
from types import MappingProxyType
from typing import Any

from syncer.api import (
    AlreadyExists,
    ClusterError,
    ConfigError,
    Conflict,
    Key,
    LiveClient,
    NotFound,
    Obj,
    Problem,
    Resource,
    SyncerError,
)
from syncer.lease_times import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from syncer.observe.logs import get_logger
from syncer.translate.times import utcnow, written_in_micros

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
        leader = f"{holder} leads" if holder else "the leader is unknown"
        way_out = "Stop the daemons first"
        super().__init__(f"{leader} (Lease {lease} on the host); nothing was written. {way_out}")


class LeaseLost(SyncerError):
    """The Lease was lost while it was needed."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as it was last read or written."""

    #: Its resourceVersion.
    version: str
    #: The identity of its holder; ``""`` for none.
    holder: str
    #: Seconds after which it expires if it doesn't change.
    duration: float
    #: The number of changes of its holder.
    transitions: int
    #: The time of the reading or writing, by our own clock.
    at: float

    @classmethod
    def of(cls, lease: Obj, *, at: float) -> "LeaseRecord":
        """Parse a Lease object."""
        spec = lease.get("spec") or {}
        version = lease["metadata"]["resourceVersion"]
        holder = spec.get("holderIdentity") or ""
        duration = float(spec.get("leaseDurationSeconds") or 0)
        transitions = spec.get("leaseTransitions") or 0
        return cls(version, holder, duration, transitions, at)

    def is_free(self, identity: str, *, now: float) -> bool:
        """Return True if ``identity`` may take the Lease.

        It may if it is the holder, if there is no holder, or if the Lease expired while we watched.
        """
        return self.holder in ("", identity) or now >= self.at + self.duration


class Lease:
    """Runs work in at most one process at a time.

    ``identity`` must be unique to this process: a Lease with this holder is taken at once.
    ``duration``, ``renew_deadline`` and ``retry_period`` are in seconds. ``labels`` are put on the
    Lease.

    Raises:
        ConfigError: The times contradict each other.
    """

    def __init__(
        self,
        client: LiveClient,
        *,
        key: Key,
        identity: str,
        duration: float = LEASE_DURATION,
        renew_deadline: float = RENEW_DEADLINE,
        retry_period: float = RETRY_PERIOD,
        clock: Callable[[], float] | None = None,
        random: Callable[[], float] = random.random,
        utcnow: Callable[[], datetime] = utcnow,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        _check_times(duration, renew_deadline, retry_period)
        self._client = client
        self._key = key
        self._identity = identity
        self._duration = duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._clock = clock or asyncio.get_running_loop().time
        self._random = random
        self._utcnow = utcnow
        self._labels = labels
        #: The Lease as it was when it last changed; None if it isn't there, or isn't known yet.
        self._record: LeaseRecord | None = None
        #: True if our last write succeeded, so that the next one need not read the Lease first.
        self._sure = False
        #: The time, by our own clock, until which this process leads.
        self._leads_until = -math.inf
        #: The problem that was logged last.
        self._complaint = ""

    @property
    def is_leader(self) -> bool:
        """True while this process leads.

        Becomes False by time alone, even if the event loop is stuck.
        """
        return self._clock() < self._leads_until

    @property
    def until(self) -> float:
        """The time, by this process's clock, until which no other process may take the Lease.

        It is ``-inf`` if this process doesn't lead. Requests that are sent while it leads must have
        ended by then.
        """
        if not self.is_leader:
            return -math.inf
        return self._leads_until + self._duration - self._renew_deadline

    def saw(self, lease: Obj) -> None:
        """Note the Lease as it was just read, unless it is ours.

        So a standby knows when the holder's Lease expires.
        """
        if not self._sure:
            self._note(lease)

    @property
    def holder(self) -> str:
        """The identity of the last known holder; ``""`` for none."""
        if self._record is None:
            return ""
        return self._record.holder

    @property
    def stranger(self) -> str:
        """The holder, if it is a pod of another Deployment than this process; ``""`` otherwise.

        Two releases that serve the same virtual cluster are a mistake of the operator's.
        """
        if not self.holder or _deployment(self.holder) == _deployment(self._identity):
            return ""
        return self.holder

    async def lead(self, work: Work) -> None:
        """Run ``work()`` whenever this process leads.

        Returns when the work ends by itself; otherwise it runs until it is cancelled.

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
    async def holding(self) -> AsyncIterator[None]:
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
                holder = self.holder or "no process"
                why = f"the Lease {self._key} was lost; {holder} holds it now"
                raise LeaseLost(why) from None
            raise
        finally:
            if await self._end(keeping):
                await self._release()

    async def _term(self, work: Work) -> bool:
        """Run a term. Return True if the work ended by itself, False if the Lease was lost."""
        working = asyncio.create_task(work())
        renewing = asyncio.create_task(self._keep())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = working.done()
            await self._wind_down(working, renewing)
        if ended:
            working.result()
        elif not working.cancelled():
            error = working.exception()
            if error:
                log.error("work failed while leadership was being given up", error=repr(error))
        return ended

    async def _wind_down(self, working: asyncio.Task[None], renewing: asyncio.Task[None]) -> None:
        """End the work while the Lease is still kept, then release it.

        If this is interrupted, the Lease expires by itself.
        """
        try:
            working.cancel()
            await asyncio.wait({working})
        finally:
            was_leader = await self._end(renewing)
        if was_leader:
            await self._release()

    async def _end(self, renewing: asyncio.Task[None]) -> bool:
        """Stop renewing and leading. Return True if the Lease was still ours."""
        renewing.cancel()
        await asyncio.wait({renewing})
        was_leader = self.is_leader
        self._leads_until = -math.inf
        return was_leader

    async def _take(self) -> bool:
        """Take the Lease; return False if its holder is alive.

        A dead holder's Lease is awaited until it expires.
        """
        known = ""
        deadline = self._clock() + self._renew_deadline
        while not await self._attempt(self._clock() + self._renew_deadline):
            record = self._record
            if record and self._taken_by_another():
                if not known:
                    known = record.version
                    deadline = self._clock() + record.duration + 2 * self._retry_period
                elif record.version != known:  # its holder has renewed it
                    return False
            if self._clock() > deadline:
                return False
            await asyncio.sleep(self._retry_period)
        return True

    async def _acquire(self) -> None:
        """Try until this process holds the Lease."""
        logged = ""
        while True:
            if await self._attempt(self._clock() + self._renew_deadline):
                return
            if self.holder != logged and self._taken_by_another():
                logged = self.holder
                log.info("standing by", lease=self._key, holder=logged)

            wait = self._retry_period * (1 + JITTER * self._random())
            if self._record and self.holder:
                left = self._record.at + self._record.duration - self._clock()
                if left > 0:  # try as soon as the holder's Lease expires
                    wait = min(wait, left + LEAST_WAIT)
            await asyncio.sleep(wait)

    async def _keep(self) -> None:
        """Renew until that has failed for too long, or another process holds the Lease."""
        while self.is_leader:
            left = max(LEAST_WAIT, self._leads_until - self._clock())
            await asyncio.sleep(min(self._retry_period, left))
            if not self.is_leader:
                return
            if await self._attempt(self._leads_until):
                continue
            if self._taken_by_another():
                self._leads_until = -math.inf

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
        except (Conflict, AlreadyExists):
            return False
        except (ClusterError, TimeoutError) as error:
            self._complain(reason(error))
            return False

    async def _take_or_renew(self, start: float) -> bool:
        """Try once, and once more from fresh state after a conflict."""
        try:
            return await self._swap(start)
        except (Conflict, AlreadyExists, NotFound):
            return await self._swap(start)

    async def _swap(self, start: float) -> bool:
        """Compare and swap once.

        If our last write succeeded, the Lease isn't read first.
        """
        if not self._sure:
            await self._look()
        self._sure = False
        record = self._record
        if record is None:
            lease = await self._client.create(LEASES, self._fresh())
        elif record.is_free(self._identity, now=self._clock()):
            lease = await self._client.patch(LEASES, self._key, self._claim(record))
        else:
            return False
        self._won(lease, start)
        return True

    async def _look(self) -> None:
        """Read the Lease. Only a change of it counts as a sign of life of its holder."""
        try:
            lease = await self._client.get(LEASES, self._key)
        except NotFound:
            self._record = None
            return
        self._note(lease)

    def _note(self, lease: Obj) -> None:
        """Note the Lease if it has changed: its expiry counts from the time of its last change."""
        if not self._record or self._record.version != lease["metadata"]["resourceVersion"]:
            self._record = LeaseRecord.of(lease, at=self._clock())

    def _won(self, lease: Obj, start: float) -> None:
        """Record that the Lease is ours, from the time before the request.

        Others can't have read it earlier.
        """
        self._record = LeaseRecord.of(lease, at=self._clock())
        self._sure = True
        self._leads_until = start + self._renew_deadline
        self._complaint = ""

    def _fresh(self) -> Obj:
        """Return the Lease to create, with us as its holder."""
        metadata: Obj = {"name": self._key.name, "namespace": self._key.namespace}
        if self._labels:
            metadata["labels"] = dict(self._labels)
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": self._term_spec(0) | self._renewal(),
        }

    def _claim(self, record: LeaseRecord) -> Obj:
        """Return the patch that renews our Lease or takes a free one.

        It fails if the Lease changes before it arrives.
        """
        metadata: Obj = {"resourceVersion": record.version}
        if record.holder == self._identity:
            return {"metadata": metadata, "spec": self._renewal()}
        if self._labels:
            metadata["labels"] = dict(self._labels)
        spec = self._term_spec(record.transitions + 1) | self._renewal()
        return {"metadata": metadata, "spec": spec}

    def _term_spec(self, transitions: int) -> Obj:
        """Return the fields that a new holder sets."""
        return {"acquireTime": written_in_micros(self._utcnow()), "leaseTransitions": transitions}

    def _renewal(self) -> Obj:
        """Return the fields that each renewal sets."""
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._duration),
            "renewTime": written_in_micros(self._utcnow()),
        }

    async def _release(self) -> None:
        """Release the Lease, so that another process need not wait for its expiry."""
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                await self._give_up()
        except (ClusterError, TimeoutError) as error:
            log.warning(
                "can't release the Lease; it expires by itself",
                lease=self._key,
                error=reason(error),
            )

    async def _give_up(self) -> None:
        if not self._sure:
            await self._look()
        if self._record is None or self._record.holder != self._identity:
            return
        now = written_in_micros(self._utcnow())
        # As in client-go: an empty holder, and the shortest duration that is valid.
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": now,
            "acquireTime": now,
        }
        patch = {"metadata": {"resourceVersion": self._record.version}, "spec": spec}
        lease = await self._client.patch(LEASES, self._key, patch)
        self._record = LeaseRecord.of(lease, at=self._clock())
        self._sure = False
        log.info("released the Lease", lease=self._key)

    def _complain(self, error: str) -> None:
        """Log a problem once, not at every attempt."""
        if error != self._complaint:
            self._complaint = error
            log.warning("can't take or renew the Lease", lease=self._key, error=error)


def reason(error: Exception) -> str:
    """Return the text of an error of a request; a TimeoutError has none."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error)


def _check_times(duration: float, renew_deadline: float, retry_period: float) -> None:
    """Check client-go's rules.

    Otherwise two processes could lead at once, or none could renew in time.

    Raises:
        ConfigError: The times break a rule.
    """
    if duration > renew_deadline > retry_period * JITTER > 0:
        return
    first = f"leaseDuration {duration:g}s, renewDeadline {renew_deadline:g}s"
    message = f"{first} and retryPeriod {retry_period:g}s do not fit together."
    order = "leaseDuration must be more than renewDeadline"
    hint = f"{order}, and that more than {JITTER} times retryPeriod."
    raise ConfigError(Problem(message, path="leaderElection", hint=hint))


def _deployment(identity: str) -> str:
    """Return the Deployment of the pod in an identity.

    An identity is the pod's namespace and name, and a random part.
    """
    return identity.rpartition("_")[0].rsplit("-", 2)[0]
