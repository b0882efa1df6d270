"""The control API: commands ask the running daemon over a unix socket, as HTTP with a JSON answer.

Only the daemon's own user may connect (mode 0600). Questions are read and answered on the event loop, so a handler may
use whatever the engine has. Each client has one question, and bounds: bytes, seconds, and how many there are at once.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from syncer.api import ConfigError, Problem, SyncerError
from syncer.observe.logs import get_logger

#: Seconds that a handler may take to answer.
ANSWER_SECONDS = 600.0
#: Seconds in which a client has to send its question, and to read the answer.
CLIENT_SECONDS = 10.0
#: Bytes that the head and the body of a question may have.
MOST_HEAD, MOST_BODY = 16_384, 65_536
#: Questions that are answered at the same time; a further question is answered with status 503.
MOST_ANSWERS = 16
#: Clients that may be connected at the same time; a further client is hung up on.
MOST_CLIENTS = 128

log = get_logger(__name__)

#: Get the query of a GET or the JSON body of a POST, and return a value that JSON can hold. Raise SyncerError for a
#: request that can't be met.
Handler = Callable[[Mapping[str, Any]], Awaitable[Any]]


class Control:
    """Answer questions by method and path.

    ``led_by`` returns None where this process leads, else the leader's identity, ``""`` for an unknown leader: then
    each question is refused with that identity.
    """

    def __init__(self, *, led_by: Callable[[], str | None] = lambda: None) -> None:
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._led_by = led_by

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Answer a question with this handler: ``add("GET", "/parked", …)``."""
        self._handlers[method, path] = handler

    async def answer(self, method: str, path: str, given: Mapping[str, Any]) -> tuple[HTTPStatus, Any]:
        """Return the status and the answer to a question. Raises nothing: an error becomes a status and a sentence."""
        handler = self._handlers.get((method, path))
        if handler is None:
            known = ", ".join(" ".join(each) for each in self._handlers)
            return _refused(HTTPStatus.NOT_FOUND, f"{method} {path} is not known to this daemon; it answers {known}")
        leader = self._led_by()
        if leader is not None:
            who = f"{leader} leads, ask there" if leader else "nobody leads at the moment"
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, f"this daemon stands by and does no work: {who}")
        try:
            return HTTPStatus.OK, await handler(given)
        except SyncerError as error:
            return _refused(HTTPStatus.CONFLICT, str(error))
        except Exception as error:
            log.exception("a question on the control socket could not be answered", path=path)
            return _refused(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}; the daemon's log says more")

    @asynccontextmanager
    async def serving(self, path: str) -> AsyncIterator[None]:
        """Listen on a socket at this path while the block runs; ``""`` is off.

        A socket that can't be made costs a warning, and the block runs without. Raises ConfigError where another
        daemon listens at the path, or a file that is no socket is there.
        """
        listener = _listen_or_warn(path)
        if listener is None:
            yield
            return
        clients = _Clients(self)
        server = await asyncio.start_unix_server(clients.serve, sock=listener.socket, limit=MOST_HEAD)
        try:
            yield
        finally:
            server.close()
            await clients.close()
            listener.remove()


def _refused(status: HTTPStatus, why: str) -> tuple[HTTPStatus, Any]:
    return status, {"error": why}


# -- the socket --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Listener:
    """A socket that listens, and the inode of its file."""

    path: Path
    socket: socket.socket
    inode: int

    def remove(self) -> None:
        """Remove the file, unless the path is another daemon's by now."""
        try:
            if self.path.lstat().st_ino == self.inode:
                self.path.unlink()
        except OSError as error:
            log.debug("the control socket is gone already", path=str(self.path), error=str(error))


def _listen_or_warn(path: str) -> _Listener | None:
    if not path:
        return None
    try:
        return _listen(Path(path))
    except OSError as error:
        why = error.strerror or str(error)
        hint = "set control.socket to another path, or to '0'"
        log.warning("no control socket; commands can't ask this daemon", path=path, error=why, hint=hint)
        return None


def _listen(path: Path) -> _Listener:
    """Listen at this path. Raises OSError, and ConfigError where the path is taken."""
    _must_be_free(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        path.chmod(0o600)  # before it listens: until then nobody can connect
        made.listen(MOST_CLIENTS)
    except OSError:
        made.close()
        raise
    return _Listener(path, made, path.lstat().st_ino)


def _must_be_free(path: Path) -> None:
    """Remove the socket of a dead daemon. Raises ConfigError for a live daemon's socket, and for any other file."""
    if not path.exists() and not path.is_symlink():
        return
    if not path.is_socket():
        raise _taken(path, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.setblocking(False)
        try:
            knocking.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:
            raise _taken(path, "another daemon listens there, and is too busy to answer") from None
    raise _taken(path, "another daemon listens there")


def _taken(path: Path, why: str) -> ConfigError:
    hint = "Stop that daemon, or choose another path; '0' is for none."
    return ConfigError(Problem(f"can't listen on {path}: {why}.", path="control.socket", hint=hint))


# -- clients -----------------------------------------------------------------------------------------------------------


class _Question(NamedTuple):
    """A client's question: ``given`` is the query of a GET, the JSON body of a POST."""

    method: str
    path: str
    given: Mapping[str, Any]


class _Malformed(Exception):
    """A question that can't be read; ``status`` and the message are the answer."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Clients:
    """The clients that are connected at the moment."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one question of a client, and hang up."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) <= MOST_CLIENTS:
                await _say(writer, *await self._answer(reader))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has hung up, or doesn't read
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def close(self) -> None:
        """Hang up on all clients."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Any]:
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                question = await _read(reader)
        except _Malformed as error:
            return _refused(error.status, str(error))
        except TimeoutError:
            return _refused(HTTPStatus.REQUEST_TIMEOUT, f"no whole question came in {CLIENT_SECONDS:g} s")
        if self._answering >= MOST_ANSWERS:
            why = f"the daemon answers {MOST_ANSWERS} questions already; ask again later"
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, why)
        self._answering += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._control.answer(*question)
        except TimeoutError:
            return _refused(HTTPStatus.GATEWAY_TIMEOUT, f"the daemon gave no answer in {ANSWER_SECONDS:g} s")
        finally:
            self._answering -= 1


async def _read(reader: asyncio.StreamReader) -> _Question:
    """Return the question. Raises _Malformed, and IncompleteReadError where the client hangs up."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        why = f"the head has more than {MOST_HEAD} bytes"
        raise _Malformed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why) from None
    first, *fields = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/") or not parts[2].startswith("HTTP/1."):
        raise _Malformed(HTTPStatus.BAD_REQUEST, "expected HTTP/1.1")
    path, _, query = parts[1].partition("?")
    if parts[0] == "GET":
        return _Question("GET", path, dict(parse_qsl(query)))
    return _Question(parts[0], path, _object(await reader.readexactly(_length(fields))))


def _length(fields: list[str]) -> int:
    """Return how many bytes the body has. Raises _Malformed where that isn't said, or is too much."""
    headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdecimal()):
        raise _Malformed(HTTPStatus.BAD_REQUEST, "expected a Content-Length")
    if len(length) > 9 or int(length) > MOST_BODY:
        raise _Malformed(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {MOST_BODY} bytes")
    return int(length)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise _Malformed(HTTPStatus.BAD_REQUEST, "expected a JSON object")
    return given


async def _say(writer: asyncio.StreamWriter, status: HTTPStatus, answer: Any) -> None:
    """Send an answer. Raises TimeoutError where the client doesn't read it, OSError where it has hung up."""
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
    writer.transport.set_write_buffer_limits(high=0)  # drain() then waits until all is sent
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    async with asyncio.timeout(CLIENT_SECONDS):
        await writer.drain()
