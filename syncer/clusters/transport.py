"""The interface between the API client and HTTP: requests, streams, and kinds of failure."""

import io
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from syncer.api.values import value_class
from syncer.clusters.large_replies import LARGE_REPLY
from syncer.clusters.proxy import Proxy
from syncer.steps import STEP_BYTES, STEP_OBJECTS

#: Timeout of a request, in seconds.
REQUEST_SECONDS = 30.0
#: Largest body of a response and longest line of a watch that are read, in bytes. An API server
#: stores 1.5 MiB of an object (etcd's ``--max-request-bytes``), and JSON writes a byte as six at
#: most (``\\u0001``), which makes 9 MiB.
LARGEST_REPLY = 16 << 20
#: Our User-Agent, also in audit logs.
USER_AGENT = "vsyncer"


class ConnectionFailed(OSError):
    """There was no response: refused, reset, not resolved, not trusted, or cut in the middle."""


class DeadlineExceeded(ConnectionFailed):
    """There was no response in time."""


class ReplyTooLarge(ConnectionFailed):
    """The response, or a line of it, is larger than is read; the connection is closed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the reply is larger than {most >> 20} MiB")


class CredentialsFailed(ConnectionFailed):
    """Nothing was sent, because there are no credentials; the message has the reason."""


class CredentialsAwaited(DeadlineExceeded):
    """Nothing was sent, because a plugin gave no credentials yet; the message names it."""


@value_class
class HttpRequest:
    """A request as a value: its content and its timeouts.

    ``path`` is absolute and includes the query. ``timeout`` is in seconds: until the whole response
    for :meth:`Transport.send`, until its head for :meth:`Transport.stream`. ``idle_timeout`` is the
    number of seconds without a byte after which a stream fails; None for no limit. ``most`` is the
    largest body of the response that is read by :meth:`Transport.send`, in bytes. ``may_send`` is
    called by :meth:`Transport.send` right before the request is written to a connection. An
    ``urgent`` request waits neither for a limit of requests nor for a free connection: a probe
    checks whether the server answers, not how busy we are.

    Raises:
        ValueError: The path would break the request line.
    """

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    timeout: float = REQUEST_SECONDS
    idle_timeout: float | None = None
    most: int = LARGEST_REPLY
    may_send: Callable[[], bool] | None = None
    urgent: bool = False

    def __post_init__(self) -> None:
        path = self.path
        if not (path.startswith("/") and path.isascii() and path.isprintable() and " " not in path):
            raise ValueError(f"not a path of a request: {path!r}")

    def while_allowed(self, may_send: Callable[[], bool]) -> "HttpRequest":
        """Return the same request, which is only written if ``may_send`` returns True then.

        Spelled out, it takes a third of the time of ``dataclasses.replace``.
        """
        return HttpRequest(
            self.method,
            self.path,
            self.body,
            self.content_type,
            self.accept,
            self.timeout,
            self.idle_timeout,
            self.most,
            may_send,
            self.urgent,
        )

    def check_may_send(self) -> None:
        """Check that the request may still be sent.

        Raises:
            DeadlineExceeded: It may not.
        """
        if self.may_send is not None and not self.may_send():
            raise DeadlineExceeded("nothing was sent: the time in which it may be sent has ended")


class HttpResponse(NamedTuple):
    """The server's response, with any status; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An open response that is read line by line.

    Iteration yields batches of complete lines without their newline. It ends when the server ends
    the response regularly, raises :class:`ConnectionFailed` if the response is cut, and
    :class:`DeadlineExceeded` if no byte comes for ``idle_timeout`` seconds.
    """

    @property
    def status(self) -> int:
        """The HTTP status of the response."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response; names are lower-case."""

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        """Yield the lines that arrived since the last batch."""

    async def body(self) -> bytes:
        """Read the whole body instead, for a status other than 200."""


class Transport(Protocol):
    """A connection to an API server. Every HTTP status is returned, none raised.

    A rate limit, a dry run and the faults of a test are transports around another transport.
    """

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and wait for the whole response.

        Raises:
            ConnectionFailed: There was no response.
            DeadlineExceeded: There was no response within the request's ``timeout``, or
                ``may_send`` returned False.
            ReplyTooLarge: The body is larger than the request's ``most``.
        """

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Send a request, and yield the response line by line as it arrives."""

    async def close(self) -> None:
        """Close all connections; requests in progress fail."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an API server, and how it is reached.

    ``prefix`` precedes every path (``/k8s/clusters/c-1``), ``server_name`` is the name in the
    server's certificate if it isn't ``host``, ``proxy`` is the proxy to use, ``source`` is the
    origin of all this, for people.
    """

    host: str
    port: int
    tls: bool = True
    prefix: str = ""
    server_name: str = ""
    proxy: Proxy | None = None
    source: str = ""

    @property
    def authority(self) -> str:
        """Host and port as in a URL; an IPv6 address in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL without a trailing slash."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{self.authority}{self.prefix}"


class Headers(Mapping[str, str]):
    """A copy of the parser's headers; their names become lower-case on first use."""

    __slots__ = ("_found", "_names")

    def __init__(self, found: Mapping[bytes, bytes]) -> None:
        self._found = dict(found)
        self._names: dict[str, str] | None = None

    def _mapping(self) -> dict[str, str]:
        if self._names is None:
            self._names = {}
            for name, value in self._found.items():
                self._names[name.decode("latin-1").lower()] = value.decode("latin-1")
        return self._names

    def __getitem__(self, name: str) -> str:
        return self._mapping()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())


class LineSplitter:
    """Splits a body that arrives in pieces into lines.

    A long line costs a single copy, however many pieces it has.

    For a large line, ``room`` is called with its bytes so far. It returns how many these may become
    before it is called again.
    """

    __slots__ = ("_room", "_room_for", "_tail", "ready", "size")

    #: Longest accepted line, in bytes.
    LONGEST = LARGEST_REPLY
    #: Most lines and bytes that are taken at once; a single line may be longer.
    MOST_LINES = STEP_OBJECTS
    MOST_BYTES = STEP_BYTES
    #: Memory that a line takes besides its bytes.
    OVERHEAD = 64

    def __init__(self, room: Callable[[int], int] = lambda size: LARGEST_REPLY) -> None:
        self._room = room
        self._room_for = min(LARGE_REPLY, self.LONGEST)
        self.ready: deque[bytes] = deque()
        #: Memory that the lines in ``ready`` take, in bytes.
        self.size = 0
        #: The line that is not complete yet. A BytesIO hands it out without a copy.
        self._tail = io.BytesIO()

    def feed(self, piece: bytes) -> None:
        """Add a piece; complete lines are added to ``ready`` and their memory to ``size``."""
        end = piece.find(b"\n")
        # The usual case of an event: a piece is a line.
        if 0 < end == len(piece) - 1 and end <= self.LONGEST and not self._tail.tell():
            self._add(piece[:end])
            return
        first, *rest = piece.split(b"\n")
        if first:
            self._tail.write(first)
            if self._tail.tell() > self._room_for:
                self._outgrow(self._tail.tell())
        if rest:
            self._complete()
            last = rest.pop()
            for line in rest:
                if line:
                    self._add(line)
            self._tail.write(last)

    def _add(self, line: bytes) -> None:
        self.ready.append(line)
        self.size += len(line) + self.OVERHEAD

    def _complete(self) -> None:
        if self._tail.tell():
            tail = self._tail
            self._tail = io.BytesIO()
            self._room_for = min(LARGE_REPLY, self.LONGEST)
            self._add(tail.getvalue())

    def _outgrow(self, size: int) -> None:
        if size > self.LONGEST:
            raise ReplyTooLarge(self.LONGEST)
        self._room_for = min(self._room(size), self.LONGEST)

    def has_large(self) -> bool:
        """Return True if there are lines to be taken, or the one that arrives is large."""
        return bool(self.ready) or self._tail.tell() > LARGE_REPLY

    def take(self) -> list[bytes]:
        """Return and remove complete lines; if there are many, some are left in ``ready``."""
        if len(self.ready) == 1:
            self.size = 0
            return [self.ready.popleft()]
        taken: list[bytes] = []
        room = self.MOST_BYTES
        while self.ready and len(taken) < self.MOST_LINES:
            room -= len(self.ready[0])
            if taken and room < 0:
                break
            line = self.ready.popleft()
            taken.append(line)
            self.size -= len(line) + self.OVERHEAD
        return taken

    def finish(self) -> None:
        """Handle the end of the body: the remainder is a line, too."""
        self._complete()
