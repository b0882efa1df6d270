"""Roles that a syncer may have besides those that decide: what it needs, refers to, leaves alone, or does by itself."""

import warnings
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, MappingProxyType
from typing import ClassVar, Generic, Protocol

from syncer.api.context import C, Context
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.reference_paths import ReferencePaths
from syncer.api.references import References, resources_of
from syncer.api.role import Role
from syncer.api.sources import Index, Watch


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
    syncer: str
    virtual: LiveClient
    host: LiveClient
    request: Callable[[Key], None] = field(default=lambda key: None)
    """Put a virtual key of this syncer into the queue."""


class Initialize(Role):
    """Optional role: something to do once, before caches start; the one place for I/O at start (CRDs, say)."""

    @abstractmethod
    async def init(self, live: Live) -> None:
        """Called first of all; where it raises, this syncer waits and is tried again, and the others go on."""


class Indexes(Role):
    """Optional role: ways to find objects by a value."""

    @abstractmethod
    def indexes(self) -> Sequence[Index]:
        """Registered before caches start."""


class Watches(Role):
    """Optional role: other resources whose changes requeue keys of this syncer."""

    @abstractmethod
    def watches(self) -> Sequence[Watch]:
        """Registered before caches start."""


class AroundReconcile(Role, Generic[C]):
    """Optional role: look at a request before it is decided, and know when it has ended (the seed's Starter)."""

    @abstractmethod
    def reconcile_start(self, ctx: Context[C], key: Key) -> str | None:
        """Return a reason to skip this request, or None to go on."""

    @abstractmethod
    def reconcile_end(self, ctx: Context[C], key: Key, error: Exception | None) -> None:
        """Always called after ``reconcile_start``, whatever happened in between."""


class OwnController(Role):
    """Optional role: a fully custom controller, run beside the syncers while this process leads."""

    @abstractmethod
    def register(self, live: Live) -> Awaitable[None]:
        """Return the controller's life as a coroutine; cancelled when leadership or the process ends."""


class Excludes(Role, Generic[C]):
    """Optional role: objects that this syncer leaves alone altogether, on either side."""

    @abstractmethod
    def excluded(self, ctx: Context[C], side: Side, obj: Obj) -> str | None:
        """Return a reason to leave the object alone, or None."""


class Refers(Role):
    """Optional role: names other virtual objects, which have to be on the host for as long as its own are synced.

    Syncers with ``when_used``, such as that of Secrets, copy what is named, and remove the copy when nothing names it
    any more. A :class:`~syncer.api.Mirror` has this role. The methods are asked about virtual objects only, and only
    about those that the ``selector`` of the syncer's section selects.
    """

    #: What the objects say of others, by path: ``{"spec.tls[].secretName": SECRETS}``. In a Mirror's copy, names
    #: below ``down`` and ``both`` are those of the copies, and below ``up`` they become virtual ones.
    references: ClassVar[References] = MappingProxyType({})
    #: The resources that may be named; follows from ``references``.
    refers_to: ClassVar[tuple[Resource, ...]] = ()
    #: Resources whose objects belong to an object of this syncer that is among their owners (``ownerReferences``).
    owns: ClassVar[tuple[Resource, ...]] = ()
    #: Whether an object is looked at again when something that it names appears, changes or goes.
    follows: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("references")
        if isinstance(own, FunctionType):
            why = "Refers.references is data now; a method that gives what an object names is called `refers`"
            warnings.warn(f"{cls.__qualname__}: {why}", DeprecationWarning, stacklevel=2)
            setattr(cls, "refers", own)  # noqa: B010 - to a type checker it would be another method
            cls.references = MappingProxyType({})
        elif isinstance(own, Mapping) and "refers_to" not in vars(cls):
            cls.refers_to = resources_of(own)

    @cached_property
    def references_down(self) -> ReferencePaths:
        """The ``references``, ready to be found in objects and put into the words of the other side."""
        return ReferencePaths(self.references)

    def refers(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return what the object names, by resource and virtual key; override it for what ``references`` can't say."""
        return self.references_down.keys(virtual)

    def selects(self, virtual: Obj) -> Iterable[tuple[Resource, Obj]]:
        """Return label selectors (``matchLabels``, ``matchExpressions``) of further objects in the same namespace."""
        return ()

    def made_on_host(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return objects that the host makes for the object's copy, and which are not copied there, therefore."""
        return self.references_down.made(virtual)
