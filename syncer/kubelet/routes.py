"""The paths of a kubelet, and the corresponding ones of the host's API server.

A virtual API server makes these paths and queries (Kubernetes'
``pkg/registry/core/pod/strategy.go``); a kubelet reads them in ``pkg/kubelet/server``.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, urlencode

from syncer.api.dns_names import DNS_LABEL, DNS_SUBDOMAIN
from syncer.api.objects import LONGEST_LABEL, LONGEST_NAME, Key
from syncer.kubelet.errors import RefusedRequest
from syncer.translate.messages import LONGEST_QUOTE

#: The subject of a request: a subresource of a host pod, or one of the kubelet's own pages.
RequestKind = Literal[
    "log",
    "exec",
    "attach",
    "portforward",
    "pods",
    "healthz",
    "resource",
    "cadvisor",
    "summary",
]

_STREAMS: dict[str, RequestKind] = {
    "exec": "exec",
    "attach": "attach",
    "portForward": "portforward",
}
_PAGES: dict[str, RequestKind] = {
    "pods": "pods",
    "healthz": "healthz",
    "metrics/resource": "resource",
    "metrics/cadvisor": "cadvisor",
    "stats/summary": "summary",
}
#: The verb of a method in an authorisation (``pkg/kubelet/server/auth.go``). Into a pod's streams
#: leads "create" alone, also by a WebSocket, whose method is GET: with a kubelet, who may read
#: ``nodes/proxy`` may run commands.
_VERBS = {"GET": "get", "POST": "create"}

#: Most ports of a port-forward.
MOST_PORTS = 100
#: Most digits of a number in a query.
MOST_DIGITS = 19

_label = re.compile(DNS_LABEL).fullmatch
_subdomain = re.compile(DNS_SUBDOMAIN).fullmatch
_uid = re.compile(r"[0-9a-zA-Z-]{1,128}").fullmatch
_port = re.compile(r"[1-9][0-9]{0,4}").fullmatch
_time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)").fullmatch


_NO_POD = Key("", "")


@dataclass(frozen=True, slots=True)
class Route:
    """A parsed request.

    ``query`` is the encoded query for the host's subresource. ``container`` is empty for a
    port-forward, ``uid`` unless the path names it.
    """

    page: RequestKind
    pod: Key = _NO_POD
    uid: str = ""
    container: str = ""
    query: str = ""

    @property
    def upgrades(self) -> bool:
        """Return True if the connection is upgraded to another protocol."""
        return self.page in ("exec", "attach", "portforward")

    @property
    def goes_on(self) -> bool:
        """Return True if the reply doesn't end by itself, like that of a followed log."""
        return self.upgrades or "follow=true" in self.query.split("&")


def verb(method: str, target: str) -> str:
    """Return the verb that the client must have the right to.

    Raises:
        RefusedRequest: No page has this method.
    """
    if method not in _VERBS:
        raise RefusedRequest(405, f"the method {method[:LONGEST_QUOTE]} is not allowed here")
    if _first(target) in _STREAMS:
        return "create"
    return _VERBS[method]


def subresources(target: str) -> tuple[str, ...]:
    """Return subresources of ``nodes``; the client must have the right to one of them.

    These are the kubelet's (``pkg/kubelet/server/auth.go``, with KubeletFineGrainedAuthz).
    """
    match _first(target):
        case "pods" | "runningpods":
            return ("pods", "proxy")
        case "healthz":
            return ("healthz", "proxy")
        case "stats" | "metrics" as own:
            return (own,)
        case "logs":
            return ("log",)
        case _:
            return ("proxy",)


def _first(target: str) -> str:
    return target.partition("?")[0].split("/")[1]


def route(method: str, target: str) -> Route:
    """Parse a request; ``target`` is its path and query as they were sent.

    Raises:
        RefusedRequest: There is no such page, or a name or value is malformed.
    """
    path, _, query = target.partition("?")
    first, *names = path.removeprefix("/").rstrip("/").split("/")
    page = _PAGES.get(path.strip("/"))
    if not names or page is not None:
        if method != "GET":
            raise RefusedRequest(405, f"{method} is not allowed for this page")
        if page is None:
            raise RefusedRequest(404, "there is no such page")
        return Route(page)

    if first == "containerLogs" and len(names) == 3:
        if method != "GET":
            raise RefusedRequest(405, f"{method} is not allowed for logs")
        return Route("log", _pod(names), "", _container(names[2]), _log_query(query, names[2]))
    if first in _STREAMS:
        return _stream(_STREAMS[first], names, query)
    raise RefusedRequest(404, "there is no such page")


def _stream(page: RequestKind, names: Sequence[str], query: str) -> Route:
    """Return the route of ``NAMESPACE/POD[/UID][/CONTAINER]``; a port-forward has no container."""
    expected = 2 if page == "portforward" else 3
    if len(names) not in (expected, expected + 1):
        raise RefusedRequest(404, "there is no such page")
    uid = names[2] if len(names) > expected else ""
    if uid and not _uid(uid):
        raise RefusedRequest(400, "the path has no valid uid")
    if page == "portforward":
        return Route(page, _pod(names), uid, "", _ports(query))
    container = _container(names[-1])
    return Route(
        page,
        _pod(names),
        uid,
        container,
        _stream_query(query, container, commands=page == "exec"),
    )


def _pod(names: Sequence[str]) -> Key:
    namespace, name = names[:2]
    is_namespace = _label(namespace) and len(namespace) <= LONGEST_LABEL
    is_name = _subdomain(name) and len(name) <= LONGEST_NAME
    if not (is_namespace and is_name):
        raise RefusedRequest(400, "the path names no valid pod")
    return Key(namespace, name)


def _container(name: str) -> str:
    if not _label(name) or len(name) > LONGEST_LABEL:
        raise RefusedRequest(400, "the path names no valid container")
    return name


def _flag(value: str) -> str:
    """Return a boolean as Kubernetes parses it (``Convert_Slice_string_To_bool``).

    All texts but ``0`` and ``false`` are true.
    """
    if value.lower() in ("0", "false"):
        return "false"
    return "true"


def _number(value: str) -> str:
    if not (value.isascii() and value.isdecimal() and len(value) <= MOST_DIGITS):
        raise ValueError
    return value


def _since(value: str) -> str:
    if not _time(value):
        raise ValueError
    return value


def _stream_name(value: str) -> str:
    if value not in ("All", "Stdout", "Stderr"):
        raise ValueError
    return value


#: The parameters of logs, which are called the same on both sides.
_LOG: dict[str, Callable[[str], str]] = {
    "follow": _flag,
    "previous": _flag,
    "timestamps": _flag,
    "sinceSeconds": _number,
    "sinceTime": _since,
    "tailLines": _number,
    "limitBytes": _number,
    "stream": _stream_name,
}
#: The parameters of exec and attach: of a kubelet, and of an API server.
_STREAM = {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=10_000)
    except ValueError:
        raise RefusedRequest(400, "the query can't be read") from None


def _log_query(query: str, container: str) -> str:
    found = [("container", container)]
    for name, value in _pairs(query):
        host_name = name
        if name == "tail":
            if value == "all":
                continue
            host_name = "tailLines"
        if host_name not in _LOG:
            continue
        try:
            found.append((host_name, _LOG[host_name](value)))
        except ValueError:
            raise RefusedRequest(400, f"the query has no valid {name[:LONGEST_QUOTE]}") from None
    return urlencode(found)


def _stream_query(query: str, container: str, *, commands: bool) -> str:
    found = [("container", container)]
    given = _pairs(query)
    on = {_STREAM[name] for name, value in given if name in _STREAM and value in ("1", "true")}
    # Also those that are off, as an API server's default for stdout and stderr is on.
    found += [(name, "true" if name in on else "false") for name in _STREAM.values()]
    if commands:
        found += [pair for pair in given if pair[0] == "command"]
    return urlencode(found)


def _ports(query: str) -> str:
    given = []
    for name, value in _pairs(query):
        if name in ("port", "ports"):
            given += value.split(",")
    are_valid = all(_port(port) and int(port) < 65536 for port in given)
    if len(given) > MOST_PORTS or not are_valid:
        raise RefusedRequest(400, "the query has no valid port, or too many")
    return urlencode([("ports", port) for port in given])
