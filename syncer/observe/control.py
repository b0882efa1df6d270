"""A unix socket on which commands ask the daemon something, or tell it to do something: HTTP with JSON.

Only the daemon's own user may connect (mode 0600). It listens on threads of its own, but every answer is made on the
event loop, so that a handler may use whatever the flow has.
"""

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from syncer.api import ConfigError, Problem, SyncerError
from syncer.observe.logs import get_logger

#: Seconds that an answer may take; a scan of everything is asked for here, too.
ANSWER_SECONDS = 600.0
#: Seconds after which a client that says nothing is hung up on, and that looking for a live daemon takes at most.
CLIENT_SECONDS, KNOCK_SECONDS = 10.0, 2.0
#: Bytes that a question may have.
LONGEST = 1_000_000
#: Seconds that closing takes at most.
CLOSE_WITHIN = 0.2

log = get_logger(__name__)

#: Gets what was asked with (the query of a GET, the JSON body of a POST), gives what becomes JSON. Raises SyncerError
#: for what can't be done.
Handler = Callable[[Mapping[str, Any]], Awaitable[Any]]


class Control:
    """What can be asked, by method and path. ``led_by`` gives who leads where this process doesn't, else None."""

    def __init__(self, *, led_by: Callable[[], str | None] = lambda: None) -> None:
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._led_by = led_by

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Let a question be answered: ``add("GET", "/parked", …)``."""
        self._handlers[method, path] = handler

    async def answer(self, method: str, path: str, given: Mapping[str, Any]) -> tuple[HTTPStatus, Any]:
        """The answer to a question; raises nothing."""
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

    def serve(self, path: str) -> "ControlServer | None":
        """Listen on a socket at this path until closed; must be called on the event loop. ``""`` is off.

        None, and a warning, where none can be made. Raises ConfigError where another daemon listens there.
        """
        if not path:
            return None
        try:
            return ControlServer(Path(path), self, asyncio.get_running_loop())
        except OSError as error:
            why = error.strerror or str(error)
            hint = "set control.socket to another path, or to '0'"
            log.warning("no control socket; commands can't ask this daemon", path=path, error=why, hint=hint)
            return None


class ControlServer:
    """Answers on a unix socket until it is closed."""

    def __init__(self, path: Path, control: Control, loop: asyncio.AbstractEventLoop) -> None:
        _must_be_free(path)
        self._path = path
        self._listener = _Listener(path, control, loop)
        self._made = path.lstat().st_ino
        serve = self._listener.serve_forever
        self._thread = Thread(target=serve, args=(CLOSE_WITHIN,), name="control socket", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and remove the socket, unless it is another daemon's by now."""
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()
        try:
            if self._path.lstat().st_ino == self._made:
                self._path.unlink()
        except OSError as error:
            log.debug("the control socket is gone already", path=str(self._path), error=str(error))


def _refused(status: HTTPStatus, why: str) -> tuple[HTTPStatus, Any]:
    return status, {"error": why}


def _must_be_free(path: Path) -> None:
    """Remove the socket of a dead daemon. Raises ConfigError for a live one's, and where something else is there."""
    if not path.exists() and not path.is_symlink():
        return
    if not path.is_socket():
        raise _taken(path, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.settimeout(KNOCK_SECONDS)
        try:
            knocking.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise _taken(path, "another daemon listens there")


def _taken(path: Path, why: str) -> ConfigError:
    hint = "Stop that daemon, or choose another path; '0' is for none."
    return ConfigError(Problem(f"can't listen on {path}: {why}.", path="control.socket", hint=hint))


class _Listener(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, control: Control, loop: asyncio.AbstractEventLoop) -> None:
        self.control, self.loop = control, loop
        super().__init__(str(path), _Questions)

    def server_bind(self) -> None:
        """Make the socket so that at no time anybody else may connect."""
        before = os.umask(0o177)
        try:
            super().server_bind()
        finally:
            os.umask(before)

    def get_request(self) -> tuple[socket.socket, Any]:
        """As the base class does, with an address such as the HTTP server expects: a unix socket has none."""
        return self.socket.accept()[0], ("local", 0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle is no news."""


class _Questions(BaseHTTPRequestHandler):
    timeout = CLIENT_SECONDS
    server: _Listener

    def do_GET(self) -> None:
        """A question."""
        self._answer(dict(parse_qsl(urlsplit(self.path).query)))

    def do_POST(self) -> None:
        """An order."""
        try:
            size = int(self.headers.get("Content-Length") or 0)
            given = json.loads(self.rfile.read(size) or b"{}") if 0 <= size <= LONGEST else None
        except ValueError:
            given = None
        if isinstance(given, dict):
            self._answer(given)
        else:
            self._say(*_refused(HTTPStatus.BAD_REQUEST, "expected a JSON object"))

    def _answer(self, given: Mapping[str, Any]) -> None:
        asked = self.server.control.answer(self.command, urlsplit(self.path).path, given)
        try:
            self._say(*asyncio.run_coroutine_threadsafe(asked, self.server.loop).result(ANSWER_SECONDS))
        except TimeoutError:
            self._say(*_refused(HTTPStatus.GATEWAY_TIMEOUT, f"the daemon gave no answer in {ANSWER_SECONDS:g} s"))

    def _say(self, status: HTTPStatus, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the name in the base class
        """What matters is logged by whoever does it."""
