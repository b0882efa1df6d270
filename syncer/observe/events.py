"""Kubernetes events on the virtual object, where its owner looks: an error or a refusal, and the reason.

Recording never waits and never raises. Equal events become one event with a count, as client-go's recorder does it. All
is bounded for each virtual cluster, as a tenant causes the events and chooses much of their text: events about one
object (``BURST`` at once, then one in ``REFILL`` seconds), events a second, and bytes that are kept.
"""

import asyncio
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from cachetools import LRUCache, TTLCache

from syncer.api import Key, LiveClient, Missing, Obj, Resource
from syncer.observe.logs import get_logger
from syncer.resources.kinds import EVENTS

#: client-go's limits: events about one object at once, and seconds until one more is allowed.
BURST, REFILL = 25, 300.0
#: Events of one virtual cluster that are written at once, and a second from then on; the others wait.
CLUSTER_BURST, CLUSTER_RATE = 100, 10.0
#: Objects whose limit is remembered, and seconds that a series of equal events is; an API server keeps events an hour.
REMEMBERED, SERIES_LIFE = 4096, 3600.0
#: Bytes that the series of one virtual cluster may take; the oldest are forgotten first.
SERIES_BYTES = 1 << 20
#: Bytes that the events of one virtual cluster may take while they wait to be written; more are dropped.
WAITING_BYTES = 1 << 20
#: Bytes that one event may take; no event of an object that an API server accepts comes near.
NOTE_BYTES = 1 << 13
#: Seconds that writing one event may take.
CALL_TIMEOUT = 10.0
#: Bytes that are kept for an event beside its text.
OVERHEAD = 500
#: The API server's limits: bytes of a message, characters of a name.
MESSAGE_LIMIT, NAME_LIMIT = 1024, 253

Level = Literal["Normal", "Warning"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Note:
    """The content of an event, and the object that it is about. Events of equal notes are counted as one event."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    level: Level
    reason: str
    message: str

    @property
    def size(self) -> int:
        """The bytes of memory that the note takes, with those of the entry that holds it."""
        text = (self.api_version, self.kind, self.namespace, self.name, self.uid, self.reason, self.message)
        return OVERHEAD + sum(map(sys.getsizeof, text))


@dataclass(slots=True)
class _Series:
    """An event that was written, and is counted up when it happens again."""

    key: Key
    count: int
    size: int


class EventRecorder:
    """Write events about objects of one virtual cluster. Run :meth:`run` as a task beside the recording code.

    ``client`` reaches the virtual cluster, ``cluster`` is its name. ``component`` and ``instance`` are the source that
    the events name; the instance is by default the component. ``clock`` gives seconds.
    """

    def __init__(
        self,
        client: LiveClient,
        *,
        cluster: str,
        component: str = "vsyncer",
        instance: str = "",
        clock: Callable[[], float] = time.monotonic,
        utcnow: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._cluster = client, cluster
        self._component, self._instance = component, instance or component
        self._utcnow = utcnow
        self._clock = clock
        self._series: TTLCache[Note, _Series] = TTLCache(
            SERIES_BYTES, SERIES_LIFE, timer=clock, getsizeof=lambda series: series.size
        )
        self._limits = _Limits(clock)
        self._waiting: dict[Note, int] = {}
        self._waiting_bytes = 0
        self._next = -math.inf
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._complained = False
        self._last_name = 0

    def warning(
        self, resource: Resource, obj: Obj, reason: str, message: str, *, names: Mapping[str, str] | None = None
    ) -> None:
        """Record that something is wrong with a virtual object.

        ``reason`` is a word in CamelCase. ``names`` maps host names in the message to virtual names.
        """
        self._record(note_about(resource, obj, "Warning", reason, virtual_names(message, names or {})))

    def normal(
        self, resource: Resource, obj: Obj, reason: str, message: str, *, names: Mapping[str, str] | None = None
    ) -> None:
        """Record a deed that is worth knowing; the parameters are those of :meth:`warning`."""
        self._record(note_about(resource, obj, "Normal", reason, virtual_names(message, names or {})))

    async def run(self) -> None:
        """Write the recorded events, one after the other, until cancelled."""
        while True:
            await self._wake.wait()
            while self._waiting:
                await self._turn()
                note = next(iter(self._waiting))
                self._waiting_bytes -= note.size
                await self._write(note, self._waiting.pop(note))
            self._wake.clear()
            self._idle.set()

    async def flush(self) -> None:
        """Wait until all recorded events are written or given up; :meth:`run` must be running."""
        await self._idle.wait()

    def _record(self, note: Note) -> None:
        if not self._limits.allow(note):
            return
        if note not in self._waiting:
            size = note.size
            if size > NOTE_BYTES or self._waiting_bytes + size > WAITING_BYTES:
                return
            self._waiting_bytes += size
        self._waiting[note] = self._waiting.get(note, 0) + 1
        self._idle.clear()
        self._wake.set()

    async def _turn(self) -> None:
        """Wait until one more event of this virtual cluster may be written."""
        turn = max(self._next, self._clock() - CLUSTER_BURST / CLUSTER_RATE)
        self._next = turn + 1 / CLUSTER_RATE
        await asyncio.sleep(max(0.0, turn - self._clock()))

    async def _write(self, note: Note, times: int) -> None:
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await self._count_up_or_create(note, times)
            self._complained = False
        except Exception as error:  # noqa: BLE001 — a tenant's API server may answer anything, and others go on
            self._complain(note, error)

    async def _count_up_or_create(self, note: Note, times: int) -> None:
        series = self._series.get(note)
        if series:
            try:
                await self._count_up(series, times)
            except Missing:
                self._series.pop(note, None)
            else:
                return
        await self._create(note, times)

    async def _count_up(self, series: _Series, times: int) -> None:
        count = series.count + times
        patch = {"count": count, "lastTimestamp": rfc3339(self._utcnow())}
        await self._client.patch(EVENTS, series.key, patch)
        series.count = count

    async def _create(self, note: Note, times: int) -> None:
        now = self._utcnow()
        key = Key(note.namespace or "default", self._name(note, now))
        await self._client.create(EVENTS, self._event(note, key, times, rfc3339(now)))
        self._series[note] = _Series(key, times, note.size + sys.getsizeof(key.name))

    def _name(self, note: Note, now: datetime) -> str:
        """Return the object's name with the time, as client-go has it; never the same twice."""
        self._last_name = max(self._last_name + 1, int(now.timestamp() * 1e9))
        suffix = f".{self._last_name:x}"
        return note.name[: NAME_LIMIT - len(suffix)].rstrip(".-") + suffix

    def _event(self, note: Note, key: Key, count: int, now: str) -> Obj:
        about = {"apiVersion": note.api_version, "kind": note.kind, "name": note.name}
        optional = {"namespace": note.namespace, "uid": note.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": key.namespace, "name": key.name},
            "involvedObject": about | {name: value for name, value in optional.items() if value},
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

    def _complain(self, note: Note, error: Exception) -> None:
        """Log a failure once until an event gets through again: without the right to create, all fail."""
        if not self._complained:
            self._complained = True
            key = str(Key(note.namespace, note.name))
            about = {"cluster": self._cluster, "key": key}
            log.warning("an event could not be written", **about, reason=note.reason, error=str(error) or "no answer")


class _Limits:
    """A token bucket for each of the objects that events were last about."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: LRUCache[int, tuple[float, float]] = LRUCache(REMEMBERED)

    def allow(self, note: Note) -> bool:
        """Take a token of the note's object, if it has one."""
        about, now = hash((note.kind, note.namespace, note.name, note.uid)), self._clock()
        tokens, last = self._buckets.get(about, (float(BURST), now))
        tokens = min(float(BURST), tokens + (now - last) / REFILL)
        allowed = tokens >= 1
        self._buckets[about] = (tokens - 1 if allowed else tokens, now)
        return allowed


def note_about(resource: Resource, obj: Obj, level: Level, reason: str, message: str) -> Note:
    """Return a note about an object; of the object only its identity is used."""
    metadata = obj["metadata"]
    return Note(
        resource.api_version,
        resource.kind,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("uid", ""),
        level,
        reason,
        _shortened(message),
    )


def virtual_names(message: str, names: Mapping[str, str]) -> str:
    """Return the message with virtual names for host names; a name within a longer name is left alone."""
    if not names:
        return message
    alternatives = "|".join(map(re.escape, names))
    return re.sub(rf"(?<![\w.-])(?:{alternatives})(?![\w-]|\.\w)", lambda found: names[found[0]], message)


def rfc3339(time: datetime) -> str:
    """Return a time in whole seconds, as the core API writes it: ``2026-01-31T12:00:00Z``."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shortened(message: str) -> str:
    data = message.encode()
    if len(data) <= MESSAGE_LIMIT:
        return message
    return data[: MESSAGE_LIMIT - 3].decode(errors="ignore") + "…"
