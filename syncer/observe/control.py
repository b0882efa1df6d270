"""The control API: commands query the running daemon over a unix socket, with HTTP and JSON.

Only the daemon's own user, or root, may connect (mode 0600 in a folder of mode 0700, and the uid of
the peer). Requests are read and answered on the event loop, so a handler may use the engine's state
directly. A client may make a single request, within limits of bytes, of seconds, and of concurrent
clients.
"""

import asyncio
import contextlib
import json
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from syncer.api import ConfigError, Problem, SyncerError
from syncer.observe.logs import get_logger

#: Timeout of a handler, in seconds.
ANSWER_SECONDS = 600.0
#: Timeout for a client to send its request, and to read the answer, in seconds.
CLIENT_SECONDS = 10.0
#: Maximum size of the head of a request, in bytes.
MOST_HEAD = 16_384
#: Maximum size of its body, in bytes.
MOST_BODY = 65_536
#: Requests that are answered at the same time; further ones get status 503.
MOST_ANSWERS = 16
#: Clients that may be connected at the same time; further ones are disconnected.
MOST_CLIENTS = 128

log = get_logger(__name__)

#: Takes the query of a GET or the JSON body of a POST, and returns a JSON value. Raises SyncerError
#: for a request that it refuses.
ControlHandler = Callable[[Mapping[str, Any]], Awaitable[Any]]


def _led_here() -> None:
    """Return None: no other process leads."""


class Control:
    """Answers requests by method and path.

    ``led_by`` returns None if this process leads, else the leader's identity (``""`` if unknown).
    If another process leads, every request is refused with its identity.
    """

    def __init__(self, *, led_by: Callable[[], str | None] = _led_here) -> None:
        self._handlers: dict[tuple[str, str], ControlHandler] = {}
        self._led_by = led_by

    def add(self, method: str, path: str, handler: ControlHandler) -> None:
        """Register the handler of a method and path: ``add("GET", "/parked", …)``."""
        self._handlers[method, path] = handler

    async def answer(
        self,
        method: str,
        path: str,
        given: Mapping[str, Any],
    ) -> tuple[HTTPStatus, Any]:
        """Return the status and the answer to a request.

        Errors become a status and a sentence; none is raised.
        """
        handler = self._handlers.get((method, path))
        if handler is None:
            known = ", ".join(" ".join(each) for each in self._handlers)
            return _refused(
                HTTPStatus.NOT_FOUND,
                f"{method} {path} is not known to this daemon; it answers {known}",
            )
        leader = self._led_by()
        if leader is not None:
            reason = "no replica leads at the moment"
            if leader:
                reason = f"{leader} leads; run the command there"
            return _refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this daemon is on standby: {reason}",
            )

        try:
            return HTTPStatus.OK, await handler(given)
        except SyncerError as error:
            return _refused(HTTPStatus.CONFLICT, str(error))
        except Exception as error:
            log.exception("a request of a command or of the page failed", path=path)
            return _refused(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"{type(error).__name__}; the daemon's log has the details",
            )

    @asynccontextmanager
    async def serving(self, path: str) -> AsyncIterator[None]:
        """Listen on a socket at this path while the block runs; ``""`` is off.

        If the socket can't be created, a warning is logged, and the block runs without it.

        Raises:
            ConfigError: Another daemon listens at the path, or it is a file other than a socket.
        """
        listener = _listen_or_warn(path)
        if listener is None:
            yield
            return
        clients = _Clients(self)
        server = await asyncio.start_unix_server(
            clients.serve,
            sock=listener.socket,
            limit=MOST_HEAD,
        )
        try:
            yield
        finally:
            server.close()
            await clients.close()
            listener.remove()


def _refused(status: HTTPStatus, why: str) -> tuple[HTTPStatus, Any]:
    return status, {"error": why}


# -- the socket ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Socket:
    """A listening socket, and the inode of its file."""

    path: Path
    socket: socket.socket
    inode: int

    def remove(self) -> None:
        """Delete the file, unless another daemon listens at the path by now."""
        try:
            if self.path.lstat().st_ino == self.inode:
                self.path.unlink()
        except OSError as error:
            log.debug("the control socket was deleted", path=str(self.path), error=str(error))


def _listen_or_warn(path: str) -> _Socket | None:
    if not path:
        return None
    try:
        return _listen(Path(path))
    except OSError as error:
        log.warning(
            "there is no control socket; commands can't query this daemon",
            path=path,
            error=error.strerror or str(error),
            hint="set control.socket to another path, or to '0'",
        )
        return None


def _listen(path: Path) -> _Socket:
    """Listen at this path.

    Raises:
        OSError: The socket can't be created.
        ConfigError: The path is in use.
    """
    _must_be_private(path.parent)
    _must_be_free(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(0o600)  # before listening, so that no other user can connect in between
        listening.listen(MOST_CLIENTS)
    except OSError:
        listening.close()
        raise
    return _Socket(path, listening, path.lstat().st_ino)


def _must_be_private(folder: Path) -> None:
    """Create the default folder, which only this user may access. Other folders are not checked.

    Raises:
        OSError: The folder can't be created.
        ConfigError: Another user has created the folder, or can access it.
    """
    if folder.name != f"vsyncer-{os.geteuid()}":
        return
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise _taken(folder, "it is not a folder of this user alone (mode 0700)")


def is_peer_trusted(connected: socket.socket) -> bool:
    """Return True if the process at the other end is of this user, or of root."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True  # not Linux: the modes of the folder and of the socket decide
    credentials = connected.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return uid in (os.geteuid(), 0)


def _must_be_free(path: Path) -> None:
    """Delete the socket of a dead daemon.

    Raises:
        ConfigError: A daemon listens at the path, or it is a file other than a socket.
    """
    if not path.exists() and not path.is_symlink():
        return
    if not path.is_socket():
        raise _taken(path, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:
            raise _taken(path, "another daemon listens there, and is too busy to answer") from None
    raise _taken(path, "another daemon listens there")


def _taken(path: Path, why: str) -> ConfigError:
    hint = "Stop that daemon, or choose another path; '0' is for none."
    return ConfigError(Problem(f"can't listen on {path}: {why}.", path="control.socket", hint=hint))


# -- clients ---------------------------------------------------------------------------------------


class _ControlRequest(NamedTuple):
    """A client's request. ``given`` is the query of a GET, or the JSON body of a POST."""

    method: str
    path: str
    given: Mapping[str, Any]


class _Malformed(Exception):
    """A malformed request; ``status`` and the message are the answer."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Clients:
    """The connected clients."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a client's only request, and disconnect."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            connected = writer.get_extra_info("socket")
            if len(self._tasks) <= MOST_CLIENTS and is_peer_trusted(connected):
                status, answer = await self._answer(reader)
                await _send(writer, status, answer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client disconnected, or doesn't read
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def close(self) -> None:
        """Disconnect all clients."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Any]:
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                request = await _read(reader)
        except _Malformed as error:
            return _refused(error.status, str(error))
        except TimeoutError:
            return _refused(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the request was not complete after {CLIENT_SECONDS:g} s",
            )
        if self._answering >= MOST_ANSWERS:
            return _refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"the daemon answers {MOST_ANSWERS} requests already; try again later",
            )

        self._answering += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._control.answer(*request)
        except TimeoutError:
            return _refused(
                HTTPStatus.GATEWAY_TIMEOUT,
                f"the daemon gave no answer in {ANSWER_SECONDS:g} s",
            )
        finally:
            self._answering -= 1


async def _read(reader: asyncio.StreamReader) -> _ControlRequest:
    """Read a request.

    Raises:
        _Malformed: The request is malformed or too large.
        IncompleteReadError: The client disconnected.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        why = f"the head has more than {MOST_HEAD} bytes"
        raise _Malformed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why) from None

    first, *fields = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/") or not parts[2].startswith("HTTP/1."):
        raise _Malformed(HTTPStatus.BAD_REQUEST, "expected HTTP/1.1")
    method, target, _ = parts
    path, _, query = target.partition("?")
    if method == "GET":
        return _ControlRequest(method, path, dict(parse_qsl(query)))
    body = await reader.readexactly(_length(fields))
    return _ControlRequest(method, path, _object(body))


def _length(fields: list[str]) -> int:
    """Return the length of the body, in bytes.

    Raises:
        _Malformed: The length is missing, or too large.
    """
    headers = {}
    for field in fields:
        name, _, value = field.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdecimal()):
        raise _Malformed(HTTPStatus.BAD_REQUEST, "expected a Content-Length")
    if len(length) > 9 or int(length) > MOST_BODY:
        raise _Malformed(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the body has more than {MOST_BODY} bytes",
        )
    return int(length)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise _Malformed(HTTPStatus.BAD_REQUEST, "expected a JSON object")
    return given


async def _send(writer: asyncio.StreamWriter, status: HTTPStatus, answer: Any) -> None:
    """Send an answer.

    Raises:
        TimeoutError: The client doesn't read it.
        OSError: The client disconnected.
    """
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
    writer.transport.set_write_buffer_limits(high=0)  # makes drain() wait until everything is sent
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    async with asyncio.timeout(CLIENT_SECONDS):
        await writer.drain()
