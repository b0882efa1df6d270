"""The connections of a daemon that is put through the sieve: they count what goes over them, and break at one point."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
from wrapped_stream import WrappedStream

from syncer.api import Side
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse, Stream, Transport
from syncer.testing import ApiServer

#: Who the daemon is on both sides; everybody else is the script or somebody on the host.
DAEMON = "daemon"

#: How an event is kept from the daemon: it lists again at once, goes on after it, or sees it as one with the next.
How = Literal["relist", "resume", "merge"]

decode = msgspec.json.decode
encode = msgspec.json.encode


class Sent(NamedTuple):
    """A write that went out."""

    side: Side
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.side} {self.path}"


class Came(NamedTuple):
    """An event that a watch brought."""

    side: Side
    collection: str
    type: str
    key: str

    def __str__(self) -> str:
        return f"{self.type} {self.side} {self.collection} {self.key}"


@dataclass(frozen=True, slots=True)
class Crash:
    """The daemon dies just before or just after a write, and another one starts some seconds later."""

    write: int
    after: bool
    away: float


@dataclass(frozen=True, slots=True)
class Unseen:
    """The daemon never sees an event."""

    event: int
    how: How


@dataclass(slots=True)
class Traffic:
    """All that goes between the daemons of one run and both API servers, in order."""

    point: object = None
    writes: list[Sent] = field(default_factory=list)
    events: list[Came] = field(default_factory=list)
    reads: list[tuple[Side, str]] = field(default_factory=list)
    #: Whether an event doesn't arrive that alone would tell of an object: nobody can know of it then.
    blind: bool = False
    #: Set when the daemon that runs now has died; the next one has another.
    death: asyncio.Event = field(default_factory=asyncio.Event)

    def line(self, server: ApiServer, side: Side) -> "Line":
        """The way to one server."""
        return Line(self, server, side)


@dataclass(frozen=True, slots=True)
class Line:
    """An API server as the daemon reaches it."""

    traffic: Traffic
    server: ApiServer
    side: Side

    def transport(self, user: str = DAEMON) -> Transport:
        """A transport for the daemon that runs now."""
        return Wire(self.traffic, self.server.transport(user), self.side)


def is_question(path: str) -> bool:
    """Return True if a request stores nothing: a dry run, or a review of rights."""
    return "dryRun=All" in path or path.partition("?")[0].endswith("reviews")


class Wire:
    """The requests and watches of one daemon to one server."""

    def __init__(self, traffic: Traffic, inner: Transport, side: Side) -> None:
        self._traffic, self._inner, self._side = traffic, inner, side
        self._death = traffic.death

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Pass a request on, unless the daemon dies of it."""
        self.check()
        if request.method == "GET" or is_question(request.path):
            self._read(request.path)
            return await self._inner.send(request)
        number, point = len(self._traffic.writes), self._traffic.point
        self._traffic.writes.append(Sent(self._side, request.method, request.path.partition("?")[0]))
        dies = isinstance(point, Crash) and point.write == number
        if dies and isinstance(point, Crash) and not point.after:
            self._death.set()
        self.check()
        reply = await self._inner.send(request)
        if dies:
            self._death.set()
        self.check()
        return reply

    def check(self) -> None:
        """Let nothing pass after the daemon's death."""
        if self._death.is_set():
            raise ConnectionFailed("this daemon is dead")

    def _read(self, path: str) -> None:
        self._traffic.reads.append((self._side, path.partition("?")[0].rpartition("/")[2]))

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        """Open a watch."""
        self.check()
        async with self._inner.stream(request) as stream:
            yield Watched(self, self._traffic, stream, self._side, request.path.partition("?")[0])

    async def close(self) -> None:
        """Refuse further requests."""
        await self._inner.close()


class Watched(WrappedStream):
    """A watch whose events are counted, one of which may not arrive."""

    def __init__(self, wire: Wire, traffic: Traffic, inner: Stream, side: Side, path: str) -> None:
        super().__init__(inner)
        self._wire, self._traffic, self._side = wire, traffic, side
        self._collection = path.rpartition("/")[2]
        self._cut = False
        #: Once an event is held back: it, and all that has come after it.
        self._delayed: list[Any] = []

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        async for batch in self.inner:
            self._wire.check()
            lines: list[bytes] = []
            for line in batch:
                lines += self._passed(line)
                if self._cut:
                    break
            if lines:
                yield lines
            if self._cut:
                raise ConnectionFailed("the watch was cut")

    def _passed(self, line: bytes) -> list[bytes]:
        event = decode(line)
        if event["type"] == "ERROR":
            delayed, self._delayed = self._delayed, []
            return [*map(encode, delayed), line]
        if event["type"] == "BOOKMARK":
            return [] if self._delayed else [line]
        number, metadata = len(self._traffic.events), event["object"]["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        self._traffic.events.append(Came(self._side, self._collection, event["type"], key))
        point = self._traffic.point
        if self._delayed:
            return self._merged(event)
        if isinstance(point, Unseen) and point.event == number:
            return self._kept_back(event, point.how)
        return [line]

    def _kept_back(self, event: Any, how: How) -> list[bytes]:
        self._cut = how != "merge"
        self._traffic.blind = how == "resume" or (how == "merge" and event["type"] == "ADDED" and not self._is_own())
        match how:
            case "relist":
                status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
                return [encode({"type": "ERROR", "object": status})]
            case "resume":
                version = {"resourceVersion": event["object"]["metadata"]["resourceVersion"]}
                return [encode({"type": "BOOKMARK", "object": {"metadata": version}})]
            case "merge":
                self._delayed = [event]
                return []

    def _is_own(self) -> bool:
        """Return True if the daemon makes such objects itself, and so knows of them without an event."""
        made = f"/{self._collection}"
        return any(
            (sent.side, sent.method) == (self._side, "POST") and sent.path.endswith(made)
            for sent in self._traffic.writes
        )

    def _merged(self, event: Any) -> list[bytes]:
        """All that was held, without its first, once the next event of that object has come."""
        first, *others = self._delayed
        if _name(first) != _name(event):
            self._delayed.append(event)
            return []
        self._delayed, self._traffic.blind = [], False
        new = first["type"] == "ADDED" and event["type"] == "MODIFIED"
        again = first["type"] == "DELETED" and event["type"] == "ADDED"
        kind = "ADDED" if new else "MODIFIED" if again else event["type"]
        return [encode(one) for one in (*others, {**event, "type": kind})]


def _name(event: Any) -> tuple[str, str]:
    metadata = event["object"]["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
