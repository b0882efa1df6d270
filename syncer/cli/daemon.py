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


def ask(found: Loaded, method: str, path: str, given: Mapping[str, Any] | None = None, *, one: bool = False) -> Any:
    """Query the daemon of this configuration about the selected virtual cluster, or all if none is selected.

    ``given`` is sent as the query of a GET, otherwise as JSON. With ``one``, there must be a single virtual
    cluster, or one is selected.

    Raises:
        ConfigError: There are several virtual clusters, and the query is about one.
        NoDaemon: No daemon answers.
        Unanswered: A daemon is running, but can't answer, or refuses this user.
    """
    names = [
        *found.config.names_listed,
        *(f"of Secrets in {each.namespace}" for each in found.config.virtual_cluster_secrets),
    ]
    cluster = found.chosen or (found.cluster.name if one or (len(names) == 1 and found.config.virtual_clusters) else "")
    place = found.config.control_socket(os.environ)
    if not place:
        raise NoDaemon("control.socket is '0': a daemon of this configuration can't be asked anything")
    try:
        status, body = _exchange(place, method, path, {"cluster": cluster, **(given or {})})
    except (PermissionError, TimeoutError, ConnectionResetError, BrokenPipeError, http.client.HTTPException) as error:
        raise Unanswered(_silent(place, error)) from error
    except OSError as error:
        raise NoDaemon(_unreachable(place, names, error)) from error
    answer = json.loads(body)
    if status != http.HTTPStatus.OK:
        raise Unanswered(answer["error"])
    return answer


def _exchange(place: str, method: str, path: str, given: Mapping[str, Any]) -> tuple[int, bytes]:
    connection = _Connection(place)
    try:
        if method == "GET":
            connection.request(method, f"{path}?{urlencode(given)}" if given else path)
        else:
            connection.request(method, path, json.dumps(given))
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def _silent(place: str, error: Exception) -> str:
    if isinstance(error, PermissionError):
        return f"the daemon's socket {place} belongs to another user: run this as that user"
    return (
        f"a daemon listens at {place}, and gave no answer ({str(error) or type(error).__name__}); its log may say why"
    )


def _unreachable(place: str, clusters: Sequence[str], error: Exception) -> str:
    there = "kubectl -n NAMESPACE exec deploy/NAME -- syncer …"
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return (
        f"no daemon of virtual cluster {', '.join(clusters[:MOST_NAMED])} answers at {place} ({why}). "
        f"Where the daemon runs in a cluster, run this command in its pod: {there}"
    )


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, place: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._place = place

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._place)
        if not is_peer_trusted(self.sock):
            raise PermissionError
