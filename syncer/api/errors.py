"""The error tree. The class of an error decides the next action of the engine.

The action is in ``engine/controllers/retry_policy.py``.

::

    SyncerError
    ├─ ConfigError     path, line, hint        never started; exit 2
    ├─ PluginError     plugin, package, version never started; exit 3
    ├─ Refused         object, field path, why parked until an object it read changes; an event
    │  ├─ NameTaken                            as Refused; counted as a collision
    │  └─ TooLarge                             parked until the object itself changes; an event
    ├─ NotYet          on                      waits until that object is there
    └─ ClusterError    cluster, side, verb, resource, key, status; by kind:
       ├─ NotFound AlreadyExists Conflict      at once from fresh state, later with backoff
       ├─ Invalid  Denied                      as Refused: the other API server refused it
       ├─ QuotaExceeded quota, requested       parked until there is room in the quota
       ├─ Forbidden     right                  parked until the RBAC rule that it names is there
       ├─ TooMany      retry_after             after the delay that the server asks for
       ├─ NotConnected                         with backoff, while the cluster is probed
       ├─ Unauthorized                         with backoff, while the cluster is probed
       ├─ NamespaceTerminating                 with backoff, until the namespace is gone
       └─ Unreachable  Expired                 with backoff; readiness goes false
          ├─ NoCredentials                     as Unreachable
          └─ ServerFailed                      with backoff: the API server answered 5xx
             └─ WebhookFailed webhook          as ServerFailed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, Unpack

from syncer.api.objects import Key, Obj, ObjectRef, Resource, Side
from syncer.api.texts import shortened


class SyncerError(Exception):
    """The base of all errors of this package."""

    #: The exit status of a command that ends with this error.
    exit_code = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in the configuration: its place, a description, and a hint."""

    #: The mistake, in a sentence.
    message: str
    #: The dotted path of the option; ``""`` if unknown.
    path: str = ""
    #: The line in the file, from 1; None if unknown.
    line: int | None = None
    #: The file; ``""`` if the value comes from elsewhere.
    file: str = ""
    #: How to mend it; ``""`` if there is no suggestion.
    hint: str = ""

    def __str__(self) -> str:
        location = ":".join(part for part in (self.file, str(self.line or "")) if part)
        where = ": ".join(part for part in (location, self.path) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} {self.hint}" if self.hint else text


class ConfigError(SyncerError):
    """The configuration is invalid. Carries all problems, not only the first."""

    exit_code = 2

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class PluginError(SyncerError):
    """An installed plugin can't be used. Gives the reason, and the plugin's package and version."""

    exit_code = 3

    def __init__(self, plugin: str, why: str, *, package: str = "", version: str = "") -> None:
        self.plugin = plugin
        self.package = package
        self.version = version
        source = f" (from {package} {version})" if package else ""
        super().__init__(f"plugin {plugin}{source}: {why}")


class Refused(SyncerError):
    """The syncer refuses to sync this object as it is.

    The request is parked until the object, or another one that the decision read, changes. It is
    also retried now and then without a change.
    """

    def __init__(
        self,
        why: str,
        *,
        path: str = "",
        reason: str = "SyncRefused",
        about: Obj | None = None,
        for_operator: str = "",
        in_the_way: ObjectRef | None = None,
    ) -> None:
        """Refuse an object.

        Args:
            why: A sentence for the tenant; it becomes the message of a warning event. It is cut if
                it is too long.
            path: The field at fault; ``""`` for the object as a whole.
            reason: The event's reason, in CamelCase.
            about: The virtual object that gets the event; None for the one that is synced.
            for_operator: What ``syncer parked`` and the log show instead of ``why``; by default the
                same.
            in_the_way: An object that is in no cache; the request waits for its deletion.
        """
        self.why = shortened(why)
        self.path = path
        self.reason = reason
        self.about = about
        self.in_the_way = in_the_way
        text = shortened(for_operator) if for_operator else self.why
        super().__init__(f"{path}: {text}" if path else text)


class NotYet(SyncerError):
    """The object can't be synced before another one is there: its request waits, which is no
    failure.
    """

    def __init__(self, why: str, *, on: ObjectRef) -> None:
        """Wait for an object; ``why`` gives the reason in a sentence."""
        self.why = why
        self.on = on
        super().__init__(why)


class NameTaken(Refused):
    """Another object has the name of this object's counterpart on the other side.

    The request is parked until either object changes or ends, and counted as a collision.
    """

    def __init__(
        self,
        why: str,
        *,
        about: Obj | None = None,
        for_operator: str = "",
        in_the_way: ObjectRef | None = None,
    ) -> None:
        """Refuse an object. The parameters are those of :class:`Refused`."""
        super().__init__(
            why,
            reason="NameCollision",
            about=about,
            for_operator=for_operator,
            in_the_way=in_the_way,
        )


class TooLarge(Refused):
    """The object is larger than can be worked on, or its counterpart would be.

    The request is parked until the object itself changes. Neither a timer nor a change of another
    object wakes it, because each attempt costs memory.
    """

    def __init__(self, why: str, *, path: str = "", about: Obj | None = None) -> None:
        """Refuse an object.

        Args:
            why: A sentence for the tenant with the size, the limit and the way out; it becomes the
                message of a warning event.
            path: The largest part; ``""`` for the object as a whole.
            about: The virtual object that gets the event; None for the one that is synced.
        """
        super().__init__(why, path=path, reason="TooLarge", about=about)


class RequestFields(TypedDict, total=False):
    """The failed request, as keyword arguments of every :class:`ClusterError`."""

    #: The name of the virtual cluster.
    cluster: str
    side: Side | None
    #: The verb as RBAC spells it, such as ``get`` or ``patch``.
    verb: str
    resource: Resource | None
    key: Key | None
    #: The HTTP status; 0 if there was no response.
    status: int
    #: The ``reason`` of the API server's Status, such as ``AlreadyExists``.
    reason: str
    #: The ``details`` of the API server's Status.
    details: Obj | None


class ClusterError(SyncerError):
    """A request to an API server failed."""

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
        self.cluster = cluster
        self.side = side
        self.verb = verb
        self.resource = resource
        self.key = key
        self.status = status
        self.reason = reason
        self.details = details or {}
        super().__init__(message)


class NotFound(ClusterError):
    """404: the object, its namespace or its resource does not exist."""


class AlreadyExists(ClusterError):
    """409 AlreadyExists: another object has the name."""


class Conflict(ClusterError):
    """409 Conflict: the object changed meanwhile, or has another uid than the request expected."""


class Invalid(ClusterError):
    """400, 413 or 422: the API server does not accept the object."""


class Denied(ClusterError):
    """Admission refused the request: a webhook, a policy or a limit.

    This error has its message.
    """


class QuotaExceeded(ClusterError):
    """403: a quota has no room for ``requested``, the amount of each resource that the request
    needs.
    """

    def __init__(
        self,
        message: str,
        *,
        quota: str = "",
        requested: Mapping[str, str] | None = None,
        **where: Unpack[RequestFields],
    ) -> None:
        self.quota = quota
        self.requested = requested or {}
        super().__init__(message, **where)


class MissingRight(NamedTuple):
    """A right as the API server names it in a 403."""

    #: The verb, such as ``patch``.
    verb: str
    #: The API group; ``""`` for the core group.
    group: str
    #: The plural of the resource, with the subresource if there is one: ``pods/status``.
    resource: str
    #: The namespace; ``""`` for all, or for a cluster-scoped resource.
    namespace: str = ""


class Forbidden(ClusterError):
    """403: a right is missing.

    The message names the RBAC rule; ``right`` is the right as the API server named it.
    """

    def __init__(
        self,
        message: str,
        *,
        right: MissingRight | None = None,
        **where: Unpack[RequestFields],
    ) -> None:
        self.right = right
        super().__init__(message, **where)


class TooMany(ClusterError):
    """429, or 503 with Retry-After: try again in ``retry_after`` seconds."""

    def __init__(self, message: str, *, retry_after: float, **where: Unpack[RequestFields]) -> None:
        self.retry_after = retry_after
        super().__init__(message, **where)


class NotConnected(ClusterError):
    """The cluster isn't connected at the moment, or another daemon may lead.

    In the latter case nothing may be written to it.
    """


class Unauthorized(ClusterError):
    """The credentials are not accepted, even after they were refreshed.

    The API server answers 401, or treats us as ``system:anonymous``.
    """


class Unreachable(ClusterError):
    """No response, a broken connection, an expired deadline, or a 5xx."""


class NoCredentials(Unreachable):
    """Nothing was sent, as a program that is to give the credentials hasn't answered yet."""


class ServerFailed(Unreachable):
    """A 5xx: the API server, its etcd, or a proxy before it failed."""


class WebhookFailed(ServerFailed):
    """An admission webhook gave no usable answer, and its failurePolicy requires one."""

    def __init__(self, message: str, *, webhook: str = "", **where: Unpack[RequestFields]) -> None:
        self.webhook = webhook
        super().__init__(message, **where)


class NamespaceTerminating(ClusterError):
    """403: the namespace is being deleted, so nothing can be created in it."""


class Expired(ClusterError):
    """410: the resourceVersion or the continue token is too old."""
