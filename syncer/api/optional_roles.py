"""Optional roles of a syncer: setup, indexes, watches, hooks around a request, references,
exclusions, and an own controller.
"""

import warnings
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol

from syncer.api.context import C, Context, Settings
from syncer.api.decision import Decision
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.paths import FieldPath
from syncer.api.reference_paths import ReferencePaths
from syncer.api.references import References, resources_of
from syncer.api.role import Role
from syncer.api.sources import Index, Watch

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient


class LiveClient(Protocol):
    """A client of an API server, for the two roles that do I/O.

    Its errors are :class:`~syncer.api.ClusterError`.
    """

    async def get(self, resource: Resource, key: Key) -> Obj:
        """Read an object from the API server.

        Raises:
            NotFound: There is no such object.
        """
        ...

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selector: str = "",
    ) -> Sequence[Obj]:
        """List objects, in all namespaces unless ``namespace`` is given; ``selector`` is a label
        selector as text.
        """
        ...

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        """Create an object, and return it as the API server stored it.

        Raises:
            AlreadyExists: Another object has the name.
        """
        ...

    async def try_create(self, resource: Resource, obj: Obj) -> Obj:
        """Check whether an object could be created (``dryRun=All``).

        Return it as it would be stored; nothing is stored.

        Raises:
            Invalid: The API server does not accept the object.
        """
        ...

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        """Change an object by a merge patch (RFC 7386), and return the changed object."""
        ...

    async def delete(self, resource: Resource, key: Key, *, uid: str | None = None) -> Obj | None:
        """Delete an object; ``uid`` is a precondition, None for no precondition.

        Raises:
            NotFound: There is no such object.
            Conflict: The object has another uid.
        """
        ...

    def kubernetes_client(self) -> "ApiClient":
        """Return the asyncio ``ApiClient`` of the ``kubernetes`` package for this API server.

        Create it once and keep it.

        ``kubernetes.aio.client.CoreV1Api(live.host.kubernetes_client())`` uses the daemon's
        credentials, which are renewed automatically, its TLS, proxy and rate limit, and writes
        nothing in a dry run. Its errors are the package's ``ApiException``, and ``OSError`` or
        ``TimeoutError`` if there is no response. The first call imports the package.
        """
        ...


def _request_nothing(key: Key) -> None:
    """Enqueue no request."""


def _show_nothing(sentence: str, detail: str) -> None:
    """Show no condition."""


@dataclass(frozen=True, slots=True)
class Live:
    """Live clients of both sides, for ``Initialize`` and ``OwnController``."""

    #: The name of the virtual cluster.
    cluster: str
    #: The name of the syncer.
    syncer: str
    virtual: LiveClient
    host: LiveClient
    request: Callable[[Key], None] = _request_nothing
    """Put a virtual key of this syncer into the queue."""
    #: The settings of the virtual cluster.
    settings: Settings = field(kw_only=True)
    tell: Callable[[str, str], None] = field(default=_show_nothing, kw_only=True)
    """Show a condition of the syncer: it works, but not as it could.

    The condition is shown on ``/readyz?verbose``, in ``syncer status``, and in an event in the
    virtual namespace ``default`` while this process leads.

    The first text is a sentence that any reader may see, the second adds, for the operator, such as
    addresses. A sentence ``""`` ends the condition.
    """


class Initialize(Role):
    """Optional role: work to do once, before the caches start.

    The only place for I/O at start, such as creating CRDs.
    """

    @abstractmethod
    async def init(self, live: Live) -> None:
        """Prepare the clusters; called before everything else.

        What another virtual cluster of the daemon has read from the host within the last second may
        be the answer to the same read, unless something was written here meanwhile.

        If it raises, it is called again later; until it succeeds, this syncer waits and the others
        run.
        """


class Indexes(Role):
    """Optional role: indexes, to find objects by a computed value."""

    @abstractmethod
    def indexes(self) -> Sequence[Index]:
        """Return the indexes; called once, before the caches start."""

    def indexes_with(self, settings: Settings) -> Sequence[Index]:
        """Return the indexes; by default those of :meth:`indexes`.

        Override it for sources that depend on the configuration.
        """
        return self.indexes()


class Watches(Role):
    """Optional role: other resources whose changes requeue keys of this syncer."""

    @abstractmethod
    def watches(self) -> Sequence[Watch]:
        """Return the watches; called once, before the caches start."""


class AroundReconcile(Role, Generic[C]):
    """Optional role: hooks before a request is decided and after it has ended."""

    @abstractmethod
    def reconcile_start(self, ctx: Context[C], key: Key) -> str | None:
        """Return a reason to skip this request, or None to go on."""

    @abstractmethod
    def reconcile_end(self, ctx: Context[C], key: Key, error: Exception | None) -> None:
        """Clean up. Always called after ``reconcile_start``.

        ``error`` is the exception that ended the request, None if it succeeded.
        """


class OwnController(Role):
    """Optional role: a custom controller, run beside the syncers while this process leads."""

    @abstractmethod
    def register(self, live: Live) -> Awaitable[None]:
        """Return the controller's coroutine.

        It is cancelled when leadership or the process ends, and while its syncer is paused. It is
        run again after it has ended, never beside itself.
        """


class Excludes(Role, Generic[C]):
    """Optional role: objects that this syncer leaves alone, on either side."""

    @abstractmethod
    def excluded(self, ctx: Context[C], side: Side, obj: Obj) -> str | None:
        """Return a reason to leave the object alone, or None to sync it."""


class Grants(Role, Generic[C]):
    """Optional role: its copies give the tenant something that can end before the copies do.

    An example are the addresses of Pods, to which the host's nodes connect. A grant that has ended
    is removed from a copy before any other decision, and in any state of the virtual object:
    paused, excluded, refused, too large or unreadable. So are labels and annotations of the
    tenant's that may no longer cross. A copy that depends on facts is reconciled when they change
    if the syncer has an index of its ``host_resource`` with these facts as values (see
    ``Index.requeues``).

    Only a syncer with ``SyncDown`` has copies. ``still_granted`` must leave the fields that
    ``sync`` writes, or both would undo each other's writes.
    """

    #: The paths of a copy that give something. Where a patch of the operator's rewrites one, that
    #: isn't judged.
    grants: ClassVar[tuple[FieldPath, ...]]
    #: Paths among ``grants`` that can't be changed in a copy, or without which it would give more:
    #: a copy that would lose one is deleted.
    fixed_grants: ClassVar[tuple[FieldPath, ...]] = ()

    @abstractmethod
    def still_granted(self, ctx: Context[C], host: Obj) -> Obj | None:
        """Return the part of a copy that is still granted.

        It must follow from the copy, the configuration and facts of the host alone.

        Args:
            ctx: The context of the decision. Reads of the virtual side must not count: the objects
                there are the tenant's.
            host: The copy as it is cached, without the labels and annotations that we have set and
                that may no longer cross; not changed.

        Returns:
            The copy itself if all of it is; an object without the rest of its fields, labels,
            annotations and list items if it is not, and with those that the operator gives each
            copy; None if nothing can be left out: the copy is deleted.
        """

    def beside(self, ctx: Context[C], host: Obj) -> Decision:
        """Return the writes of the operator's own objects that belong to a copy, such as a quota.

        By default there are none.

        Args:
            ctx: As for :meth:`still_granted`.
            host: The copy as it is cached; not changed.
        """
        return Decision()


class Refers(Role):
    """Optional role: its objects refer to other virtual objects.

    These must be on the host while its objects are synced. A syncer with ``when_used``, such as
    that of Secrets, copies an object while something refers to it, and removes the copy when
    nothing does any more. A :class:`~syncer.api.Mirror` has this role. The methods are only called
    with virtual objects that match the ``selector`` of the syncer's section.
    """

    #: The references, by path: ``{"spec.tls[].secretName": SECRETS}``. A Mirror renames those below
    #: ``down`` and ``both`` to the names of the copies, and those below ``up`` to virtual names.
    references: ClassVar[References] = MappingProxyType({})
    #: The resources that may be referred to; follows from ``references``.
    refers_to: ClassVar[tuple[Resource, ...]] = ()
    #: Resources of the objects that belong to this syncer's objects by their ``ownerReferences``.
    owns: ClassVar[tuple[Resource, ...]] = ()
    #: Whether an object is reconciled again when an object that it refers to appears, changes or is
    #: deleted.
    follows: ClassVar[bool] = False
    #: True if what an object refers to follows from its spec and from metadata that never change,
    #: and API servers count the changes of its spec (``metadata.generation``). Then it isn't
    #: searched again at other changes, as each Pod has several of its status.
    refers_by_spec: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("references")
        if isinstance(own, FunctionType):
            why = (
                "Refers.references is data now;"
                " a method that gives what an object names is called `refers`"
            )
            warnings.warn(f"{cls.__qualname__}: {why}", DeprecationWarning, stacklevel=2)
            setattr(cls, "refers", own)  # noqa: B010 - to a type checker it would be another method
            cls.references = MappingProxyType({})
        elif isinstance(own, Mapping) and "refers_to" not in vars(cls):
            cls.refers_to = resources_of(own)

    @cached_property
    def references_down(self) -> ReferencePaths:
        """The compiled ``references``, which find and translate names in objects."""
        return ReferencePaths(self.references)

    def refers(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return the objects that this object refers to, by resource and virtual key.

        Override it for references that ``references`` can't express.
        """
        return self.references_down.keys(virtual)

    def selects(self, virtual: Obj) -> Iterable[tuple[Resource, Obj]]:
        """Return label selectors for further objects that this object refers to.

        Each with the resource, as ``matchLabels`` and ``matchExpressions``; they select objects in
        the same namespace.
        """
        return ()

    def made_on_host(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return objects that the host makes for this object's copy; they are not copied."""
        return self.references_down.made(virtual)
