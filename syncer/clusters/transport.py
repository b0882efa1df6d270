"""The interface between the API client and HTTP: requests, streams, and the two ways they end without an answer."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from syncer.clusters.proxy import Proxy

#: Seconds until a request without an answer counts as lost.
REQUEST_SECONDS = 30.0
#: How we name ourselves to API servers, in their audit logs too.
USER_AGENT = "vsyncer"


class ConnectionFailed(OSError):
    """No reply came: refused, reset, not resolved, not trusted, or cut in the middle of the reply."""


class DeadlineExceeded(ConnectionFailed):
    """No reply came in time."""


class CredentialsFailed(ConnectionFailed):
    """Nothing was sent, because there are no credentials to send; the message says why."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as a value: what to send, and how long to wait for the reply.

    ``path`` is absolute and has the query in it. ``timeout`` is in seconds: until the whole reply is there for
    :meth:`Transport.send`, until its head is there for :meth:`Transport.stream`. ``idle_timeout`` is the seconds
    without a byte after which a stream is given up; ``None``: never.

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

    def __post_init__(self) -> None:
        path = self.path
        if not (path.startswith("/") and path.isascii() and path.isprintable() and " " not in path):
            raise ValueError(f"not a path of a request: {path!r}")


class HttpResponse(NamedTuple):
    """The server's answer, whatever the status; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An open reply that is read line by line.

    Iteration yields batches of complete lines without their newline, ends where the server ends the reply in good
    order, and raises :class:`ConnectionFailed` where the reply is cut, :class:`DeadlineExceeded` where no byte came
    for ``idle_timeout`` seconds.
    """

    @property
    def status(self) -> int:
        """The HTTP status of the reply."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The reply's headers; names are lower-case."""

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        """Yield what has arrived since the last batch."""

    async def body(self) -> bytes:
        """Read the whole body instead, for a status other than 200."""


class Transport(Protocol):
    """A way to one API server. Every HTTP status is returned and none raised.

    A rate limit, a dry run and the faults of a test are transports around another transport.
    """

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and wait for the whole reply.

        Raises:
            ConnectionFailed: No reply came.
            DeadlineExceeded: No reply came within the request's ``timeout``.
        """

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Send a request and hand over the reply line by line while it arrives."""

    async def close(self) -> None:
        """End all connections; requests under way fail."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is and how it is reached.

    ``prefix`` stands in front of every path (``/k8s/clusters/c-1``), ``server_name`` is the name in the server's
    certificate where it isn't ``host``, ``proxy`` is on the way to it, ``source`` says for people where all this comes
    from.
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
        """Host and port as a URL has them; an IPv6 address in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL without a trailing slash."""
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"


class Headers(Mapping[str, str]):
    """Header lines as the parser saw them, made into a mapping only when somebody looks."""

    __slots__ = ("_lines", "_names")

    def __init__(self, lines: list[tuple[bytes, bytes]]) -> None:
        self._lines = lines
        self._names: dict[str, str] | None = None

    def _mapping(self) -> dict[str, str]:
        if self._names is None:
            self._names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._lines}
        return self._names

    def __getitem__(self, name: str) -> str:
        return self._mapping()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())


class Lines:
    """Splits a body that arrives in pieces into lines; a long line costs one copy, however many pieces it has."""

    __slots__ = ("_tail", "_tail_size", "ready", "size")

    #: Longest line accepted; the largest object that an API server stores is far below.
    LONGEST = 64 << 20

    def __init__(self) -> None:
        self.ready: list[bytes] = []
        self.size = 0
        self._tail: list[bytes] = []
        self._tail_size = 0

    def feed(self, piece: bytes) -> None:
        """Add a piece; complete lines appear in ``ready`` and their bytes in ``size``."""
        end = piece.find(b"\n")
        if 0 < end == len(piece) - 1 and end <= self.LONGEST and not self._tail:  # as events come, as a rule
            self.ready.append(piece[:end])
            self.size += end
            return
        first, *rest = piece.split(b"\n")
        if first:
            self._tail.append(first)
            self._tail_size += len(first)
            if self._tail_size > self.LONGEST:
                raise ConnectionFailed(f"a line of more than {self.LONGEST >> 20} MiB in the reply")
        if rest:
            self._complete()
            last = rest.pop()
            self.ready.extend(line for line in rest if line)
            self.size += sum(map(len, rest))
            if last:
                self._tail, self._tail_size = [last], len(last)

    def _complete(self) -> None:
        if self._tail:
            self.ready.append(self._tail[0] if len(self._tail) == 1 else b"".join(self._tail))
            self.size += self._tail_size
            self._tail, self._tail_size = [], 0

    def take(self) -> list[bytes]:
        """Everything complete so far, leaving nothing."""
        taken, self.ready, self.size = self.ready, [], 0
        return taken

    def finish(self) -> None:
        """The body has ended: what is left is a line too."""
        self._complete()
