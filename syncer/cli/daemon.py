"""Query a running daemon over its control socket."""

import http.client
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from syncer.api import SyncerError
from syncer.config import Loaded
from syncer.observe.control import is_peer_trusted
from syncer.translate.messages import MOST_NAMED

#: Timeout for an answer, in seconds; a little longer than the daemon's own.
PATIENCE = 630.0


class NoDaemon(SyncerError):
    """No daemon answers."""


class Unanswered(SyncerError):
    """A daemon is running, but can't answer, or refuses this user."""


def ask(
    found: Loaded,
    method: str,
    path: str,
    given: Mapping[str, Any] | None = None,
    *,
    one: bool = False,
    seconds: float | None = None,
) -> Any:
    """Query the daemon of a configuration about the selected virtual cluster.

    If none is selected, the query is about all.

    Args:
        found: The configuration.
        method: The HTTP method.
        path: The path of the query.
        given: Sent as the query of a GET, otherwise as JSON.
        one: True if there must be a single virtual cluster, or one is selected.
        seconds: Timeout for the answer; ``PATIENCE`` by default.

    Raises:
        ConfigError: There are several virtual clusters, and the query is about one.
        NoDaemon: No daemon answers.
        Unanswered: A daemon is running, but can't answer, or refuses this user.
    """
    socket_path = found.config.control_socket(os.environ)
    names = list(found.config.names_listed)
    is_alone = len(names) == 1 and not found.config.virtual_cluster_secrets
    cluster = found.chosen
    if not cluster and (one or is_alone):
        cluster = found.cluster.name
    names += [f"of Secrets in {each.namespace}" for each in found.config.virtual_cluster_secrets]

    if not socket_path:
        raise NoDaemon("control.socket is '0': a daemon of this configuration can't be queried")
    if seconds is None:
        seconds = PATIENCE
    try:
        query = {"cluster": cluster, **(given or {})}
        status, body = _exchange(socket_path, method, path, query, seconds)
    except (
        PermissionError,
        TimeoutError,
        ConnectionResetError,
        BrokenPipeError,
        http.client.HTTPException,
    ) as error:
        raise Unanswered(_no_answer(socket_path, error)) from error
    except OSError as error:
        raise NoDaemon(_unreachable(socket_path, names, error)) from error

    answer = json.loads(body)
    if status != http.HTTPStatus.OK:
        raise Unanswered(answer["error"])
    return answer


def _exchange(
    socket_path: str,
    method: str,
    path: str,
    given: Mapping[str, Any],
    seconds: float,
) -> tuple[int, bytes]:
    """Send a request to the daemon, and return the status and the body of the answer."""
    connection = _Connection(socket_path, seconds)
    try:
        if method == "GET":
            address = f"{path}?{urlencode(given)}" if given else path
            connection.request(method, address)
        else:
            connection.request(method, path, json.dumps(given))
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def _no_answer(socket_path: str, error: Exception) -> str:
    """Return the message for a daemon that listens and doesn't answer."""
    if isinstance(error, PermissionError):
        owner = f"the daemon's socket {socket_path} belongs to another user"
        return f"{owner}: run this as that user"
    why = str(error) or type(error).__name__
    return f"a daemon listens at {socket_path}, and gave no answer ({why}); its log may say why"


def _unreachable(socket_path: str, clusters: Sequence[str], error: OSError) -> str:
    """Return the message for a socket on which no daemon listens."""
    why = error.strerror or str(error) or type(error).__name__
    named = ", ".join(clusters[:MOST_NAMED])
    return (
        f"no daemon of virtual cluster {named} answers at {socket_path} ({why}). "
        "Where the daemon runs in a cluster, run this command in its pod: "
        "kubectl -n NAMESPACE exec deploy/NAME -- syncer …"
    )


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
        if not is_peer_trusted(self.sock):
            raise PermissionError
