"""A request as the server sees it, the resource in its path, and the response."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import encode, key_of

Obj = dict[str, Any]

JSON = "application/json"


@dataclass(slots=True)
class Request:
    """A parsed HTTP request; ``query`` has the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    content_type: str
    accept: str
    user: User
    agent: str = ""
    client: str = ""

    @property
    def dry_run(self) -> bool:
        """True if nothing may be stored."""
        return self.query.get("dryRun") == "All"

    @property
    def manager(self) -> str:
        """The field manager: from the query, or else the program's name."""
        return self.query.get("fieldManager") or self.agent.partition("/")[0] or "unknown"


def make_request(method: str, target: str, body: bytes, user: User, **headers: str) -> Request:
    """Create a request from its target, path and query; ``headers``: content_type, accept, agent, client."""
    path, _, query = target.partition("?")
    if "%" in path:
        path = unquote(path)
    parameters: dict[str, str] = {}
    if query:
        parameters = dict(parse_qsl(query, keep_blank_values=True))
    return Request(
        method,
        path,
        parameters,
        body,
        headers.get("content_type", JSON),
        headers.get("accept", JSON),
        user,
        headers.get("agent", ""),
        headers.get("client", ""),
    )


@dataclass(slots=True)
class Response:
    """A whole response."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def reply(status: int, obj: Any) -> Response:
    """Return a response with an object as its body."""
    return Response(status, encode(obj))


class Target(NamedTuple):
    """The target of a path; ``group`` is None if it isn't a resource."""

    group: str | None
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_target(path: str) -> Target:
    """Parse a path like the real server's RequestInfo."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group = ""
        version = parts[1]
        rest = parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group = parts[1]
        version = parts[2]
        rest = parts[3:]
    else:
        return Target(None)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    plural, name, *subresource = [*rest, "", ""][: max(len(rest), 3)]
    return Target(group, version, plural, namespace, name, "/".join(filter(None, subresource)))


@dataclass(slots=True)
class Call:
    """A request for a resource: the resource, the object and the verb."""

    request: Request
    type: ResourceType
    verb: str
    namespace: str
    name: str
    subresource: str
    now: str
    warnings: list[str] = field(default_factory=list)
    #: The revision after which a list or a watch shows nothing, during a lag; otherwise None.
    until: int | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query."""
        return self.request.query

    @property
    def key(self) -> str:
        """The key under which the object is stored."""
        return key_of(self.namespace, self.name)

    @property
    def table(self) -> str:
        """The table of the resource."""
        return self.type.table_name


class Accept(NamedTuple):
    """The accepted form: ``form`` is "", "Table", "PartialObjectMetadata" or the list of the latter."""

    form: str = ""
    parameters: Mapping[str, str] = {}


def read_accept(header: str) -> Accept:
    """Return the first accepted form that this server has; plain JSON for all others."""
    for part in header.split(","):
        kind, *rest = (piece.strip() for piece in part.split(";"))
        if kind not in (JSON, "*/*", "application/*", ""):
            continue
        parameters = dict(piece.partition("=")[::2] for piece in rest)
        form = parameters.get("as", "")
        if not form or parameters.get("v") in ("v1", "v2"):
            return Accept(form, parameters)
    return Accept()
