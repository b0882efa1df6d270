"""Every error of ours; the class says what the flow does next.

::

    SyncerError
    ├─ ConfigError     path, line, hint                             never started; exit 2
    ├─ PluginError     plugin, package, version                     never started; exit 3
    ├─ Refused         object, field path, why                      parked until the object changes; a warning event
    └─ ClusterError    cluster, side, verb, resource, key, status   by kind:
       ├─ Missing  Exists  Conflict                                 at once, from fresh state
       ├─ Invalid  Denied                                           as Refused: the other API server said no
       ├─ QuotaExceeded quota, requested                            parked until there is room in the quota
       ├─ Forbidden     right                                       parked until the RBAC rule that it names is there
       ├─ TooMany      retry_after                                  when told to
       ├─ NotConnected                                              waits for the reconnect event
       ├─ Unauthorized                                              slowly; the credentials are not accepted
       └─ Unreachable  Expired                                      with backoff; readiness goes false
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, Unpack

from syncer.api.objects import Key, Obj, Resource, Side


class SyncerError(Exception):
    """The root of all errors of ours."""

    #: The exit status of a command that ends with it.
    exit_code = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a configuration: where, what, and a way out."""

    message: str
    path: str = ""
    line: int | None = None
    file: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = ":".join(part for part in (self.file, str(self.line or "")) if part)
        where = ": ".join(part for part in (place, self.path) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} {self.hint}" if self.hint else text


class ConfigError(SyncerError):
    """The configuration is wrong; carries every problem found, not only the first."""

    exit_code = 2

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class PluginError(SyncerError):
    """An installed plugin can't be used; says which package and version, and why."""

    exit_code = 3

    def __init__(self, plugin: str, why: str, *, package: str = "", version: str = "") -> None:
        self.plugin, self.package, self.version = plugin, package, version
        source = f" (from {package} {version})" if package else ""
        super().__init__(f"plugin {plugin}{source}: {why}")


class Refused(SyncerError):
    """A syncer will not sync this object as it is; parked until it changes."""

    def __init__(self, why: str, *, path: str = "", reason: str = "SyncRefused", about: Obj | None = None) -> None:
        """``about`` is the virtual object whose owner should be told, where it isn't the one that is synced."""
        self.why, self.path, self.reason, self.about = why, path, reason, about
        super().__init__(f"{path}: {why}" if path else why)


class Where(TypedDict, total=False):
    """What every :class:`ClusterError` may say of the request that failed, by keyword."""

    cluster: str
    side: Side | None
    verb: str
    resource: Resource | None
    key: Key | None
    status: int
    reason: str
    details: Obj | None


class ClusterError(SyncerError):
    """An API server did not do what it was asked."""

    def __init__(
        self,
        message: str,
        *,
        cluster: str = "",
        side: Side | None = None,
        verb: str = "",
        resource: Resource | None = None,
        key: Key | None = None,
        status: int = 0,
        reason: str = "",
        details: Obj | None = None,
    ) -> None:
        self.cluster, self.side, self.verb = cluster, side, verb
        self.resource, self.key = resource, key
        self.status, self.reason, self.details = status, reason, details or {}
        super().__init__(message)


class Missing(ClusterError):
    """404: the object, its namespace or its resource does not exist."""


class Exists(ClusterError):
    """409 AlreadyExists: another object has the name."""


class Conflict(ClusterError):
    """409 Conflict: the object has changed meanwhile, or it is not the one that was meant."""


class Invalid(ClusterError):
    """400, 413 or 422: the API server does not accept this object."""


class Denied(ClusterError):
    """Refused by admission: a webhook, a policy, a limit; the message is theirs."""


class QuotaExceeded(ClusterError):
    """403: there is no room in a quota, for as much as was ``requested`` of each of its resources."""

    def __init__(
        self, message: str, *, quota: str = "", requested: Mapping[str, str] | None = None, **where: Unpack[Where]
    ) -> None:
        self.quota, self.requested = quota, requested or {}
        super().__init__(message, **where)


class MissingRight(NamedTuple):
    """A right as an API server names it when it refuses; ``resource`` may have a subresource: ``pods/status``."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


class Forbidden(ClusterError):
    """403: a right is missing; the message names the RBAC rule, and ``right`` is what the API server named."""

    def __init__(self, message: str, *, right: MissingRight | None = None, **where: Unpack[Where]) -> None:
        self.right = right
        super().__init__(message, **where)


class TooMany(ClusterError):
    """429, or 503 with Retry-After: asked to come back later."""

    def __init__(self, message: str, *, retry_after: float, **where: Unpack[Where]) -> None:
        self.retry_after = retry_after
        super().__init__(message, **where)


class NotConnected(ClusterError):
    """There is no connection to the cluster at the moment; a reconnect event follows."""


class Unauthorized(ClusterError):
    """401, also after the credentials were refreshed."""


class Unreachable(ClusterError):
    """No answer, a broken connection, a deadline passed, or a 5xx."""


class Expired(ClusterError):
    """410: the resourceVersion or the continue token is too old."""
