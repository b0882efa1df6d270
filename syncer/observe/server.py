"""A small HTTP server on its own threads, so that it answers even while the event loop hangs."""

import contextlib
import errno
import functools
import socket
import threading
from collections.abc import Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app

from syncer.api import ConfigError, Problem

#: Timeout of a silent client, in seconds.
CLIENT_TIMEOUT = 10.0

#: Connections at the same time; for a further one, the oldest is closed.
MOST_CLIENTS = 16
#: Seconds in which a client's thread must end after its disconnection, or else the new client is
#: disconnected, too. A kubelet's probe waits 1 s by default.
FREE_WITHIN = 0.5
#: Seconds for a whole request and its answer, however slowly a client sends and reads.
REQUEST_SECONDS = 30.0

#: Timeout for closing a server, in seconds.
CLOSE_WITHIN = 0.2

TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))


class HostPort(NamedTuple):
    """An address to listen on.

    An empty host means all addresses of the machine, port 0 any free port.
    """

    host: str
    port: int


def parse_address(text: str, *, setting: str) -> HostPort | None:
    """Parse ``:8080``, ``127.0.0.1:9090`` or ``[::1]:9090``. ``""`` and ``"0"`` return None: off.

    Raises:
        ConfigError: The address is malformed; the message names ``setting``.
    """
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    is_port = port.isascii() and port.isdecimal() and int(port) <= 65535
    if not colon or not is_port or (":" in host and not in_brackets):
        raise ConfigError(
            Problem(
                f"'{text}' is not an address.",
                path=setting,
                hint="Write ':8080', '127.0.0.1:8080', or '0' for off.",
            ),
        )
    if in_brackets:
        host = host[1:-1]
    return HostPort(host, int(port))


class Server:
    """Serves a WSGI application until :meth:`close`. ``setting`` names the address in messages.

    Raises:
        ConfigError: The address can't be listened on.
    """

    def __init__(self, address: HostPort, app: WSGIApplication, *, setting: str) -> None:
        self._http = _listen(address, setting)
        self._http.set_app(app)
        serve = functools.partial(self._http.serve_forever, poll_interval=CLOSE_WITHIN)
        self._thread = threading.Thread(target=serve, name=f"http {setting}", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._http.server_port

    def close(self) -> None:
        """Stop listening, and wait for the thread."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def serve(address: str, app: WSGIApplication, *, setting: str) -> Server | None:
    """Serve ``app`` at an address, or return None if the address is ``""`` or ``"0"``.

    Raises:
        ConfigError: The address is malformed, or can't be listened on.
    """
    parsed = parse_address(address, setting=setting)
    if parsed is None:
        return None
    return Server(parsed, app, setting=setting)


def metrics_app(registry: CollectorRegistry) -> WSGIApplication:
    """Return ``/metrics`` in Prometheus' text format, or in OpenMetrics for clients of that."""
    return routes({"/metrics": make_wsgi_app(registry)})


def routes(pages: dict[str, WSGIApplication]) -> WSGIApplication:
    """Return an application that passes a path, and the paths below it, to its page.

    Any other path gets status 404 and a list of the known paths.
    """

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        for prefix, page in pages.items():
            if path == prefix or path.startswith(prefix + "/"):
                return page(environ, start_response)
        return reply(
            start_response,
            "404 Not Found",
            f"no such page; there are {', '.join(pages)}\n",
        )

    return app


def reply(start_response: StartResponse, status: str, text: str) -> list[bytes]:
    """Start a plain-text response, and return its body."""
    start_response(status, list(TEXT))  # a copy, because wsgiref adds the length to it
    return [text.encode()]


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as in the base class
        """Log nothing: probes come every few seconds."""


class _Http(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    # Connections that wait to be accepted: beyond them, a client tries again after a second.
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: The connected clients, the oldest first.
        self._clients: dict[socket.socket, None] = {}
        self._freed = threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client on a thread of its own; if there are too many, disconnect the oldest.

        A probe is answered before it becomes the oldest, so silent clients can't block it.
        """
        with self._freed:
            if not self._has_room():
                _disconnect(next(iter(self._clients)))
                self._freed.wait_for(self._has_room, FREE_WITHIN)
            has_room = self._has_room()
            if has_room:
                self._clients[request] = None
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a client, for :data:`REQUEST_SECONDS` at most."""
        # A timeout of the socket restarts with each byte, so a slow client could stay for ever.
        end = threading.Timer(REQUEST_SECONDS, _disconnect, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and make room for another client."""
        super().shutdown_request(request)
        with self._freed:
            self._clients.pop(request, None)
            self._freed.notify()

    def _has_room(self) -> bool:
        return len(self._clients) < MOST_CLIENTS

    def server_bind(self) -> None:
        """Bind without a DNS query for the machine's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name = "localhost"
        self.server_port = self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: a client may disconnect at any time."""


def _disconnect(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Http6(_Http):
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Also accept IPv4 connections if the address is all addresses."""
        if self.server_address[0] == "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def _listen(address: HostPort, setting: str) -> _Http:
    host, port = address
    try:
        if not host:
            return _listen_everywhere(port)
        if ":" in host:
            return _Http6((host, port), _Handler)
        return _Http((host, port), _Handler)
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            why = "the port is in use"
        raise ConfigError(
            Problem(
                f"can't listen on {host}:{port}: {why}.",
                path=setting,
                hint="Choose another, or '0' for off.",
            ),
        ) from error


def _listen_everywhere(port: int) -> _Http:
    """Listen on IPv6 and IPv4 with a single socket, or on IPv4 alone if the machine has no IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return _Http6(("::", port), _Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    # Probes and scrapes come from other machines.
    return _Http(("0.0.0.0", port), _Handler)  # noqa: S104
