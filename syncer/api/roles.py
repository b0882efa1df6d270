"""What a syncer can be asked. Each role is a base class with abstract methods, so a misspelt one fails at once.

A syncer gets plain objects and returns a :class:`~syncer.api.Decision`. It must not change what it is given, do I/O,
look at a clock, or keep state between calls: it may be asked at any time, any number of times.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, Protocol

from syncer.api.config import Config
from syncer.api.context import C, Context, Settings
from syncer.api.decision import Decision, apply
from syncer.api.objects import Key, Obj, Pair, Resource, Side, dig

#: The version of this contract. A syncer written for another major version is refused at start.
API_VERSION = 1

#: Gives the values under which an object is found again.
IndexFunction = Callable[[Obj], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Source:
    """A resource on one side that a syncer reads, so that it must be watched. ``marked``: only what bears our mark."""

    side: Side
    resource: Resource
    marked: bool = False
    #: Left out where the syncer of this name is off; and where the objects can't be had (a right is missing, say), this
    #: syncer works without them instead of waiting.
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """A named way to find objects of a source by a value computed from them, kept up to date by the store."""

    source: Source
    name: str
    values: IndexFunction
    #: Left out where the syncer of this name is off.
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """Other objects whose changes make this syncer look at its own keys again (the seed's ControllerModifier).

    ``keys`` gives the virtual keys of this syncer that an object concerns. With ``when="keys"`` only those keys are
    asked again that an object begins or ceases to name; with ``when="change"`` all that it names, at any change of it.
    """

    source: Source
    keys: Callable[[Obj, Settings], Iterable[Key]]
    when: Literal["keys", "change"] = "keys"
    #: Left out where the syncer of this name is off.
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """A right that a syncer needs beyond those that follow from its roles, such as to create tokens."""

    side: Side
    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""


class Syncer(ABC, Generic[C]):
    """Decides for one resource. Give it at least one of the roles below."""

    #: Identity: in logs, metrics, commands and requests; plural lower case, such as ``configmaps``.
    name: ClassVar[str]
    #: What is synced, on the virtual side.
    resource: ClassVar[Resource]
    #: What it becomes on the host, where that is another resource.
    host_resource: ClassVar[Resource]
    #: Where its options are, below ``sync:`` in the configuration; ``toHost.<name>`` unless said otherwise.
    section: ClassVar[str]
    #: The class of its options.
    config: ClassVar[type[Config]] = Config
    #: Dotted paths that the virtual side owns.
    down: ClassVar[tuple[str, ...]] = ()
    #: Dotted paths that the host side owns.
    up: ClassVar[tuple[str, ...]] = ()
    #: Paths under which what the owner doesn't say must not be there; elsewhere fields of others are left alone.
    exact: ClassVar[tuple[str, ...]] = ("data", "binaryData", "status")
    #: Whether its roles are asked also while one of the objects is being deleted; else deletion goes down by itself,
    #: and a host copy that somebody deletes is made again.
    own_deletion: ClassVar[bool] = False
    #: Other resources that its decisions read.
    reads: ClassVar[tuple[Source, ...]] = ()
    #: Rights beyond those that follow from its roles and sources.
    rights: ClassVar[tuple[Right, ...]] = ()
    #: The version of the plugin API that it was written for.
    api_version: ClassVar[int] = API_VERSION

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "resource" in vars(cls) and "host_resource" not in vars(cls):
            cls.host_resource = cls.resource
        if "name" in vars(cls) and "section" not in vars(cls):
            cls.section = f"toHost.{cls.name}"

    def concerns(self, settings: Settings) -> bool:
        """Whether the syncer has anything to do with these settings; where not, it is as if it were off."""
        return True

    def host_key(self, settings: Settings, key: Key) -> Key:
        """The place on the host of a virtual key; override it only for what must not share a name with another copy."""
        return settings.names.to_host(self.host_resource, key)


class SyncDown(ABC):
    """Role: the virtual object exists and its host copy doesn't."""

    @abstractmethod
    def sync_down(self, ctx: Context[Any], virtual: Obj) -> Decision:
        """Usually ``apply(host=…)``; ``skip(reason)`` where the object is not to be synced."""


class Sync(ABC):
    """Role: both objects exist, and either may have changed. It isn't told which, so it can't miss a change."""

    @abstractmethod
    def sync(self, ctx: Context[Any], pair: Pair) -> Decision:
        """What both objects should be now."""


class SyncUp(ABC):
    """Role: the host object exists and no virtual one does. Without it, a host copy of ours is deleted."""

    @abstractmethod
    def sync_up(self, ctx: Context[Any], host: Obj) -> Decision:
        """``delete(host=…)``, or ``apply(virtual=…)`` for what begins on the host."""

    def virtual_key(self, ctx: Context[Any], host: Obj) -> Key | None:
        """The virtual key of a host object, by its marks; None where it doesn't concern this virtual cluster."""
        if ctx.marks.is_ours(host, cluster=ctx.identity, resource=ctx.resource):
            return ctx.marks.virtual_key(host)
        return None

    #: Whether the host objects bear our mark. False for those that begin on the host, which are watched unmarked.
    host_marked: ClassVar[bool] = True


class FakeSyncUp(ABC):
    """Role: the virtual side needs an object that exists nowhere, such as the Node that a Pod's spec names."""

    @abstractmethod
    def fake_sync_up(self, ctx: Context[Any], key: Key) -> Decision:
        """The key was named by a watch and no virtual object is there."""

    @abstractmethod
    def fake_sync(self, ctx: Context[Any], virtual: Obj) -> Decision:
        """The virtual object is there: keep it fresh, or delete it when nothing needs it."""


class Mirror(Syncer[C], SyncDown, Sync):
    """Copies the ``down`` paths to the host and the ``up`` paths back. Override ``translate`` for a twist."""

    def translate(self, ctx: Context[C], virtual: Obj) -> Obj:
        """The host copy of a virtual object; only paths that are set here are ever written."""
        host = ctx.host_copy(virtual)
        for path in self.down:
            _copy_path(virtual, host, path)
        return host

    def reflect(self, ctx: Context[C], pair: Pair) -> Obj | None:
        """What the virtual object takes over from the host: the ``up`` paths. None for nothing."""
        if not self.up:
            return None
        virtual: Obj = {key: pair.virtual[key] for key in ("apiVersion", "kind")}
        virtual["metadata"] = {key: pair.virtual["metadata"].get(key, "") for key in ("name", "namespace", "uid")}
        for path in self.up:
            _copy_path(pair.host, virtual, path)
        return virtual

    def sync_down(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Create the host copy."""
        return apply(host=self.translate(ctx, virtual), reason="the virtual object has no copy on the host yet")

    def sync(self, ctx: Context[C], pair: Pair) -> Decision:
        """Keep the copy as the virtual object says, and the virtual object as the host reports."""
        return apply(host=self.translate(ctx, pair.virtual), virtual=self.reflect(ctx, pair))


def _copy_path(source: Obj, target: Obj, path: str) -> None:
    value = dig(source, path)
    if value is None:
        return
    *parents, last = path.split(".")
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value


class LiveClient(Protocol):
    """A client of one API server, for the two roles that do I/O. Errors are :class:`~syncer.api.ClusterError`."""

    async def get(self, resource: Resource, key: Key) -> Obj:
        """Read one object from the API server."""
        ...

    async def list(self, resource: Resource, *, namespace: str = "", selector: str = "") -> Sequence[Obj]:
        """Read a collection from the API server."""
        ...

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        """Create an object."""
        ...

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        """Change an object by a merge patch (RFC 7386)."""
        ...

    async def delete(self, resource: Resource, key: Key, *, uid: str | None = None) -> Obj | None:
        """Delete an object, with the uid as a precondition."""
        ...


@dataclass(frozen=True, slots=True)
class Live:
    """Live clients of both sides, for ``Initialize`` and ``OwnController``."""

    cluster: str
    virtual: LiveClient
    host: LiveClient
    request: Callable[[Key], None] = field(default=lambda key: None)
    """Put a virtual key of this syncer into the queue."""


class Initialize(ABC):
    """Optional role: something to do once, before caches start; the one place for I/O at start (CRDs, say)."""

    @abstractmethod
    async def init(self, live: Live) -> None:
        """Called first of all; an error stops the start of this syncer."""


class Indexes(ABC):
    """Optional role: ways to find objects by a value."""

    @abstractmethod
    def indexes(self) -> Sequence[Index]:
        """Registered before caches start."""


class Watches(ABC):
    """Optional role: other resources whose changes requeue keys of this syncer."""

    @abstractmethod
    def watches(self) -> Sequence[Watch]:
        """Registered before caches start."""


class AroundReconcile(ABC):
    """Optional role: look at a request before it is decided, and know when it has ended (the seed's Starter)."""

    @abstractmethod
    def reconcile_start(self, ctx: Context[Any], key: Key) -> str | None:
        """A reason to skip this request, or None to go on."""

    @abstractmethod
    def reconcile_end(self, ctx: Context[Any], key: Key, error: Exception | None) -> None:
        """Always called after ``reconcile_start``, whatever happened in between."""


class OwnController(ABC):
    """Optional role: a fully custom controller, run beside the syncers while this process leads."""

    @abstractmethod
    def register(self, live: Live) -> Awaitable[None]:
        """The controller's life as a coroutine; cancelled when leadership or the process ends."""


class Excludes(ABC):
    """Optional role: objects that this syncer leaves alone altogether, on either side."""

    @abstractmethod
    def excluded(self, ctx: Context[Any], side: Side, obj: Obj) -> str | None:
        """A reason to leave the object alone, or None."""
