"""What a syncer can be asked. Each role is a base class with abstract methods, so a misspelt one fails at once.

A syncer gets plain objects and returns a :class:`~syncer.api.Decision`. It must not change what it is given, do I/O,
look at a clock, or keep state between calls: it may be asked at any time, any number of times.
"""

import inspect
from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, Generic, get_args

from syncer.api.config import Config
from syncer.api.context import C, Context, Settings
from syncer.api.decision import Decision, apply, delete
from syncer.api.objects import Key, Obj, Pair, Resource
from syncer.api.optional_roles import Refers
from syncer.api.paths import FieldPath, copy_fields
from syncer.api.reference_paths import ReferencePaths
from syncer.api.role import Role
from syncer.api.sources import Right, Source

#: The version of this contract. A syncer written for another major version is refused at start.
API_VERSION = 1


#: What of the metadata goes to the copy.
_CROSSING = ("metadata.labels", "metadata.annotations")


class Syncer(Role, Generic[C]):
    """Decides for one resource. Give it at least one of the roles below."""

    #: Identity: in logs, metrics, commands and requests; plural lower case, such as ``configmaps``.
    name: ClassVar[str]
    #: What is synced, on the virtual side.
    resource: ClassVar[Resource]
    #: What it becomes on the host, where that is another resource.
    host_resource: ClassVar[Resource]
    #: Where its options are, below ``sync:`` in the configuration; ``toHost.<name>`` unless said otherwise.
    section: ClassVar[str]
    #: The class of its options: the type argument of ``Syncer`` or ``Mirror`` unless said otherwise.
    config: ClassVar[type[Config]] = Config
    #: Paths that the virtual side owns: ``spec``, ``spec.ports``. See ``FieldPath`` for how paths are written.
    down: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths that the host side owns; of metadata only labels and annotations, each by its key.
    up: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths that either side may change: the other follows, and where both have changed, the virtual side wins.
    both: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths below ``down`` whose values are others on the host, so that nothing of them can go up.
    translates: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths below ``down`` that are written when the copy is made, and never compared or changed afterwards.
    create_only: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths under which what the owner doesn't say must not be there; elsewhere fields of others are left alone.
    exact: ClassVar[tuple[FieldPath, ...]] = ("data", "binaryData", "status")
    #: Whether its roles are asked also while one of the objects is being deleted; else deletion goes down by itself,
    #: and a host copy that somebody deletes is made again.
    own_deletion: ClassVar[bool] = False
    #: Other resources that its decisions read.
    reads: ClassVar[tuple[Source, ...]] = ()
    #: Rights beyond those that follow from its roles and sources.
    rights: ClassVar[tuple[Right, ...]] = ()
    #: Whether a copy that was made of an earlier object of the same name is taken over, instead of being made anew.
    adopts: ClassVar[bool] = False
    #: Whether an object is looked at again when something synced begins or ceases to refer to it (see ``Refers``).
    when_used: ClassVar[bool] = False
    #: The version of the plugin API that it was written for.
    api_version: ClassVar[int] = API_VERSION

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "resource" in vars(cls) and "host_resource" not in vars(cls):
            cls.host_resource = cls.resource
        if "name" in vars(cls) and "section" not in vars(cls):
            cls.section = f"toHost.{cls.name}"
        if "config" not in vars(cls):
            arguments = [each for base in vars(cls).get("__orig_bases__", ()) for each in get_args(base)]
            options = (each for each in arguments if inspect.isclass(each) and issubclass(each, Config))
            cls.config = next(options, cls.config)

    def applies_to(self, settings: Settings) -> bool:
        """Return True if the syncer has anything to do with these settings; where not, it is as if it were off."""
        return True

    def predicate(self, virtual: Obj) -> bool:
        """Return True if a virtual object can have a copy at all, told cheaply from what never changes in it.

        One that can't, and has none, is never asked about (controller-runtime's predicates do the same).
        """
        return True

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """``rights``; override it for those that depend on the configuration (``settings.sections[self.name]``)."""
        return self.rights

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the place on the host of a virtual key.

        Override it only for what must not share a name with another copy.
        """
        return settings.names.to_host(self.host_resource, key)


class SyncDown(Role, Generic[C]):
    """Role: the virtual object exists and its host copy doesn't."""

    @abstractmethod
    def sync_down(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Usually ``apply(host=…)``; ``skip(reason)`` where the object is not to be synced."""


class Sync(Role, Generic[C]):
    """Role: both objects exist, and either may have changed. It isn't told which, so it can't miss a change."""

    @abstractmethod
    def sync(self, ctx: Context[C], pair: Pair) -> Decision:
        """Return what both objects should be now."""


class SyncUp(Role, Generic[C]):
    """Role: the host copy exists and its virtual object doesn't. Without this role, the copy is deleted.

    Without ``SyncDown`` it stands for ``SyncFromHost``, which is deprecated; all but ``sync_up`` is for that use alone.
    """

    reverts_virtual_changes: ClassVar[bool] = False
    host_marked: ClassVar[bool] = True

    @abstractmethod
    def sync_up(self, ctx: Context[C], host: Obj) -> Decision:
        """Return ``delete(host=…)``, or whatever else is to become of the orphan."""

    def virtual_key(self, ctx: Context[C], host: Obj) -> Key | None:
        """Deprecated: see ``SyncFromHost``."""
        if ctx.marks.is_ours(host, cluster=ctx.identity, resource=ctx.resource):
            return ctx.marks.virtual_key(host)
        return None

    def host_gone(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Deprecated: see ``SyncFromHost``."""
        return delete(virtual=virtual, reason="the host object is gone")

    def host_selector(self, settings: Settings) -> str:
        """Deprecated: see ``SyncFromHost``."""
        return ""

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Deprecated: see ``SyncFromHost``."""
        return None


class SyncFromHost(Role, Generic[C]):
    """Role: the object begins on the host and is shown on the virtual side, where what we make bears our mark.

    Where both are there, ``Sync`` is asked. A syncer without ``Sync`` is asked by ``sync_from_host`` then, too, and
    leaves what it has shown when the host object is gone.
    """

    #: Whether a virtual object that is changed or deleted is put back. True needs a ``host_key`` that gives the place
    #: of the host object of each virtual key.
    reverts_virtual_changes: ClassVar[bool] = False
    #: Whether the host objects bear our mark, so that no others are watched.
    host_marked: ClassVar[bool] = False

    @abstractmethod
    def sync_from_host(self, ctx: Context[C], host: Obj) -> Decision:
        """Return ``apply(virtual=…)``, or ``skip(reason)`` where the object is not to be shown."""

    @abstractmethod
    def virtual_key(self, ctx: Context[C], host: Obj) -> Key | None:
        """Return the virtual key of a host object; None where it doesn't concern this virtual cluster."""

    def host_gone(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Return what becomes of a virtual object that we made, whose host object is gone: it is deleted."""
        return delete(virtual=virtual, reason="the host object is gone")

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the host objects that are watched; ``""`` for all."""
        return ""

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the host namespaces that are watched; None for those that copies are put in."""
        return None


class FakeSyncUp(Role, Generic[C]):
    """Role: the virtual side needs an object that exists nowhere, such as the Node that a Pod's spec names."""

    @abstractmethod
    def fake_sync_up(self, ctx: Context[C], key: Key) -> Decision:
        """Decide about a key that a watch names, where no virtual object is there."""

    @abstractmethod
    def fake_sync(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Keep the virtual object fresh, or delete it when nothing needs it."""


class Mirror(Syncer[C], SyncDown[C], Sync[C], Refers):
    """Copies the ``down`` and ``both`` paths to the host, the ``up`` paths back. Override ``translate`` for a twist."""

    @cached_property
    def references_down(self) -> ReferencePaths:
        """The ``references`` in what goes down."""
        return ReferencePaths(self.references).below((*self.down, *self.both, *_CROSSING))

    @cached_property
    def references_up(self) -> ReferencePaths:
        """The ``references`` in what comes up."""
        return ReferencePaths(self.references).below(self.up)

    def translate(self, ctx: Context[C], virtual: Obj) -> Obj:
        """Return the host copy of a virtual object; only paths that are set here are ever written."""
        host = ctx.host_copy(virtual)
        copy_fields(virtual, host, (*self.down, *self.both))
        names = self.references_down
        return host if names.is_empty else names.to_host(ctx, virtual, host)

    def reflect(self, ctx: Context[C], pair: Pair) -> Obj | None:
        """Return what the virtual object takes over from the host: the ``up`` paths. None for nothing."""
        if not self.up:
            return None
        virtual: Obj = {key: pair.virtual[key] for key in ("apiVersion", "kind")}
        virtual["metadata"] = {key: pair.virtual["metadata"].get(key, "") for key in ("name", "namespace", "uid")}
        copy_fields(pair.host, virtual, self.up)
        if self.references_up.is_empty:
            return virtual
        return self.references_up.to_virtual(ctx, pair.host, virtual, known=self.references_down.named(pair.virtual))

    def sync_down(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Create the host copy."""
        if self.references_down.holds_new and (obstacle := self.references_down.obstacle(ctx, virtual)):
            return obstacle
        return apply(host=self.translate(ctx, virtual), reason="the virtual object has no copy on the host yet")

    def sync(self, ctx: Context[C], pair: Pair) -> Decision:
        """Keep the copy as the virtual object says, and the virtual object as the host reports."""
        names = self.references_down
        if names.holds_made and (obstacle := names.obstacle(ctx, pair.virtual, made=True)):
            return obstacle
        return apply(host=self.translate(ctx, pair.virtual), virtual=self.reflect(ctx, pair))
