"""Kubernetes events about virtual objects: errors and refusals, with the reason for the owner.

Recording never blocks and never raises. Equal events are counted in a single Event, as in
client-go's recorder. A tenant causes the events and chooses much of their text, so there are limits
for each virtual cluster: events about an object (``BURST`` at once, then one in ``REFILL``
seconds), events per second, and bytes of memory.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from typing import Literal, Protocol

from cachetools import LRUCache, TTLCache

from syncer.api import LONGEST_NAME, AlreadyExists, Key, NotFound, Obj, Resource, SyncRequest
from syncer.api.texts import shortened
from syncer.observe.logs import get_logger
from syncer.remembered import REMEMBERED
from syncer.resources.kinds import EVENTS
from syncer.token_bucket import TokenBucket
from syncer.translate.times import utcnow, written

#: Events about an object at once; this and the next are client-go's limits.
BURST = 25
#: Seconds until another event about the object is allowed.
REFILL = 300.0
#: Events of a virtual cluster that are written at once; further ones wait.
CLUSTER_BURST = 100
#: Events of a virtual cluster that are written per second after that.
CLUSTER_RATE = 10.0
#: Life of a series of equal events, in seconds; an API server keeps events for an hour.
SERIES_LIFE = 3600.0
#: Memory for the series of a virtual cluster, of which the oldest are forgotten first, and as much
#: for the unwritten events, of which further ones are dropped; in bytes.
MOST_BYTES = 1 << 20
#: Memory for a single event, in bytes; objects that an API server accepts stay far below.
NOTE_BYTES = 1 << 13
#: Timeout for writing an event, in seconds.
CALL_TIMEOUT = 10.0
#: Memory for an event besides its text, in bytes.
OVERHEAD = 500
#: Hexadecimal digits of the digest in the name of an event that is written once, 4 bits each; a
#: tenant who finds two notes with the same digest hides one of their own events.
_DIGITS = 16
#: The API server's limit of a message, in bytes.
MESSAGE_LIMIT = 1024

EventType = Literal["Normal", "Warning"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EventNote:
    """The content of an event, and the object that it is about.

    Events with equal notes are counted in a single Event, or written only ``once``: not again by
    another process either.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    level: EventType
    reason: str
    message: str
    once: bool = False

    @property
    def size(self) -> int:
        """The memory of the note and of its entry, in bytes."""
        text = (
            self.api_version,
            self.kind,
            self.namespace,
            self.name,
            self.uid,
            self.reason,
            self.message,
        )
        return OVERHEAD + sum(map(sys.getsizeof, text))


class EventWriter(Protocol):
    """Writes Events, live."""

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        """Create an object."""
        ...

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        """Change an object by a merge patch."""
        ...


class NotifyOwner(Protocol):
    """Records an event for the owner of a virtual object."""

    def __call__(
        self,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        """Record the event; see :meth:`EventRecorder.record`."""
        ...


@dataclass(slots=True)
class _Series:
    """A written event; its count is increased when it recurs."""

    key: Key
    count: int
    size: int


class EventRecorder:
    """Writes events about objects of a virtual cluster. :meth:`run` must run as a task.

    Args:
        client: The client of the virtual cluster.
        cluster: The name of the virtual cluster, for logs and metrics.
        component: The reporting component that the events name.
        instance: The reporting instance; by default the component.
        clock: Returns seconds, for the limits.
    """

    def __init__(
        self,
        client: EventWriter,
        *,
        cluster: str,
        component: str = "vsyncer",
        instance: str = "",
        clock: Callable[[], float] = time.monotonic,
        utcnow: Callable[[], datetime] = utcnow,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._component = component
        self._instance = instance or component
        self._utcnow = utcnow
        self._clock = clock
        self._series: TTLCache[EventNote, _Series] = TTLCache(
            MOST_BYTES,
            SERIES_LIFE,
            timer=clock,
            getsizeof=attrgetter("size"),
        )
        self._limit = TokenBucket(rate=CLUSTER_RATE, burst=CLUSTER_BURST, now=clock())
        #: By the hash of an object, for objects with recent events.
        self._limits: LRUCache[int, TokenBucket] = LRUCache(REMEMBERED)
        self._waiting: dict[EventNote, int] = {}
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._complained = False
        self._last_name = 0

    def record(
        self,
        resource: Resource,
        obj: Obj,
        reason: str,
        message: str,
        *,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        """Record an event about a virtual object.

        Args:
            resource: The resource of the object.
            obj: The object; only its identity is used.
            reason: A word in CamelCase.
            message: A sentence for the object's owner, in virtual names.
            level: The type of the event.
            once: True to write it only once, while the API server keeps it, instead of counting how
                often it recurs.
        """
        note = note_about(resource, obj, level, reason, message, once=once)
        if not (once and note in self._series):
            self._record(note)

    def warning(self, resource: Resource, obj: Obj, reason: str, message: str) -> None:
        """Record a warning; the parameters are those of :meth:`record`."""
        self.record(resource, obj, reason, message)

    async def run(self) -> None:
        """Write the recorded events in order, until cancelled."""
        while True:
            await self._wake.wait()
            while self._waiting:
                await asyncio.sleep(self._limit.take(self._clock()))
                note = next(iter(self._waiting))
                self._waiting_bytes -= note.size
                await self._write(note, self._waiting.pop(note))
            self._wake.clear()
            self._idle.set()

    async def flush(self) -> None:
        """Wait until all recorded events are written or dropped; :meth:`run` must be running."""
        await self._idle.wait()

    def _record(self, note: EventNote) -> None:
        if not self._is_allowed(note):
            return
        if note not in self._waiting:
            size = note.size
            if size > NOTE_BYTES or self._waiting_bytes + size > MOST_BYTES:
                return
            self._waiting_bytes += size
        self._waiting[note] = self._waiting.get(note, 0) + 1
        self._idle.clear()
        self._wake.set()

    def _is_allowed(self, note: EventNote) -> bool:
        """Return True if the limit of the note's object allows another event."""
        about = hash((note.kind, note.namespace, note.name, note.uid))
        now = self._clock()
        limit = self._limits.get(about)
        if limit is None:
            limit = TokenBucket(rate=1 / REFILL, burst=BURST, now=now)
            self._limits[about] = limit
        return limit.take_now(now)

    async def _write(self, note: EventNote, times: int) -> None:
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await self._count_up_or_create(note, times)
            self._complained = False
        except Exception as error:  # noqa: BLE001 — a tenant's API server may answer anything
            self._complain(note, error)

    async def _count_up_or_create(self, note: EventNote, times: int) -> None:
        series = self._series.get(note)
        if series is None:
            await self._create(note, times)
            return
        if note.once:
            return
        try:
            await self._count_up(series, times)
        except NotFound:
            self._series.pop(note, None)
            await self._create(note, times)

    async def _count_up(self, series: _Series, times: int) -> None:
        count = series.count + times
        patch = {"count": count, "lastTimestamp": written(self._utcnow())}
        await self._client.patch(EVENTS, series.key, patch)
        series.count = count

    async def _create(self, note: EventNote, times: int) -> None:
        now = self._utcnow()
        key = Key(note.namespace or "default", self._name(note, now))
        if note.once:
            times = 1
        try:
            await self._client.create(EVENTS, self._event(note, key, times, written(now)))
        except AlreadyExists:
            if not note.once:
                raise
        self._series[note] = _Series(key, times, note.size + sys.getsizeof(key.name))

    def _name(self, note: EventNote, now: datetime) -> str:
        """Return the object's name with the time, as in client-go; never the same twice.

        An event that is to be written once has a digest of its note instead of the time.
        """
        if note.once:
            content = "\0".join((note.kind, note.uid, note.level, note.reason, note.message))
            suffix = f".{sha256(content.encode()).hexdigest()[:_DIGITS]}"
        else:
            self._last_name = max(self._last_name + 1, int(now.timestamp() * 1e9))
            suffix = f".{self._last_name:x}"
        return note.name[: LONGEST_NAME - len(suffix)].rstrip(".-") + suffix

    def _event(self, note: EventNote, key: Key, count: int, now: str) -> Obj:
        about = {"apiVersion": note.api_version, "kind": note.kind, "name": note.name}
        if note.namespace:
            about["namespace"] = note.namespace
        if note.uid:
            about["uid"] = note.uid
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": key.namespace, "name": key.name},
            "involvedObject": about,
            "type": note.level,
            "reason": note.reason,
            "message": note.message,
            "count": count,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    def _complain(self, note: EventNote, error: Exception) -> None:
        """Log a failure, but only once until an event is written again.

        Without the right to create events, all fail.
        """
        if self._complained:
            return
        self._complained = True
        log.warning(
            "an event could not be written",
            cluster=self._cluster,
            key=str(Key(note.namespace, note.name)),
            reason=note.reason,
            error=str(error) or "no answer",
        )


def note_about(
    resource: Resource,
    obj: Obj,
    level: EventType,
    reason: str,
    message: str,
    *,
    once: bool = False,
) -> EventNote:
    """Return a note about an object; only the identity of the object is used."""
    metadata = obj["metadata"]
    return EventNote(
        resource.api_version,
        resource.kind,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("uid", ""),
        level,
        reason,
        _shortened(shortened(message)),
        once,
    )


def _shortened(message: str) -> str:
    data = message.encode()
    if len(data) <= MESSAGE_LIMIT:
        return message
    return data[: MESSAGE_LIMIT - 3].decode(errors="ignore") + "…"
