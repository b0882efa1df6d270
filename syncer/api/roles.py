"""The roles of a syncer.

Each is a base class with abstract methods, so a misspelt method fails at once.

A syncer gets plain objects and returns a :class:`~syncer.api.Decision`. It must not change its
arguments, do I/O, read a clock, or keep state between calls: it may be called at any time, any
number of times.
"""

import inspect
from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, Generic, Literal, get_args

from syncer.api.config import Config
from syncer.api.context import C, Context, Settings
from syncer.api.decision import Decision, apply, delete, wait
from syncer.api.errors import NotYet
from syncer.api.host_texts import host_names
from syncer.api.metadata_rules import MetadataRules
from syncer.api.objects import Key, Obj, Pair, Resource, key_of
from syncer.api.optional_roles import Refers
from syncer.api.paths import FieldPath, copy_fields
from syncer.api.reference_paths import ReferencePaths
from syncer.api.role import Role
from syncer.api.sources import Right, Source

#: The version of the plugin API. A syncer written for another version is refused at start.
API_VERSION = 1


#: When a copy is deleted whose original is.
Deletion = Literal["whenMarked", "whenGone"]

#: The metadata that goes to the copy.
_CROSSING = ("metadata.labels", "metadata.annotations")


class Syncer(Role, Generic[C]):
    """Decides for a resource. Derive it from at least one role.

    Roles are additive. A syncer with only ``Initialize``, ``Indexes`` or ``OwnController`` syncs
    nothing, and has no resource.
    """

    #: The name in logs, metrics, commands and requests; a lower-case plural such as ``configmaps``.
    name: ClassVar[str]
    #: The resource on the virtual side; not set by a syncer that syncs nothing.
    resource: ClassVar[Resource]
    #: The resource on the host; by default the same.
    host_resource: ClassVar[Resource]
    #: The place of its options below ``sync:`` in the configuration; by default ``toHost.<name>``.
    section: ClassVar[str]
    #: The class of its options; by default the type argument of ``Syncer`` or ``Mirror``.
    config: ClassVar[type[Config]] = Config
    #: Paths that the virtual side owns: ``spec``, ``spec.ports``. See ``FieldPath`` for the
    #: notations.
    down: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths that the host owns; in metadata only single labels and annotations.
    up: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths that either side may change. The other side follows; if both changed, the virtual side
    #: wins.
    both: ClassVar[tuple[FieldPath, ...]] = ()
    #: The labels and annotations that are copied, besides those that every kind leaves behind
    #: because controllers of the host act on them (docs/metadata.md). The section can deny more,
    #: and allow a denied key by its full name.
    metadata: ClassVar[MetadataRules] = MetadataRules()
    #: Paths below ``down`` whose values differ on the host, so that they can't be copied up.
    translates: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths below ``down`` that are written when the copy is created, and never compared or changed
    #: later.
    create_only: ClassVar[tuple[FieldPath, ...]] = ()
    #: Paths below which fields that the owner doesn't set are removed. Elsewhere fields of others
    #: are left alone.
    exact: ClassVar[tuple[FieldPath, ...]] = ("data", "binaryData", "status")
    #: False: deletion is handled for the syncer: it goes down, and a copy that is deleted on the
    #: host is created again. True: its roles are also called while an object is being deleted.
    own_deletion: ClassVar[bool] = False
    #: When the copy is deleted. ``whenMarked``: as soon as the virtual object bears a deletion
    #: timestamp, for kinds whose controllers act on that. ``whenGone``: the copy stays, and is kept
    #: in step, while finalizers hold the virtual object, for kinds that others only read. Without
    #: effect, and so refused, with ``own_deletion`` or without ``SyncDown``.
    deletion: ClassVar[Deletion] = "whenMarked"
    #: Other resources that its decisions read.
    reads: ClassVar[tuple[Source, ...]] = ()
    #: True if its decisions read the copies of other syncers, and their originals
    #: (``ctx.copied_by``).
    reads_copies: ClassVar[bool] = False
    #: True if its decisions count the copies. Then one object at a time is worked on, so that each
    #: copy is counted before the next one is made.
    counts_copies: ClassVar[bool] = False
    #: Rights besides those that follow from its roles and sources.
    rights: ClassVar[tuple[Right, ...]] = ()
    #: True: a copy of an earlier object of the same name is taken over. False: it is deleted and
    #: created again.
    adopts: ClassVar[bool] = False
    #: True: once its copy is made or changed, an object is reconciled again at once. False: only if
    #: the answer shows other values at the ``up`` paths than before, or than a new copy's original
    #: has, or lacks values that were sent for a new copy. That is for a ``sync`` that decides about
    #: the virtual object from these alone, and whose changes of the copy lead to no further ones;
    #: where more follows from a new copy, ``sync_down`` returns a step (``Decision.is_step``). A
    #: change of the copy of a mirror with the ``sync`` and ``reflect`` of :class:`Mirror` is one of
    #: these anyway.
    looks_back: ClassVar[bool] = True
    #: Of a syncer with ``SyncDown``. False: the ``observedGeneration`` of a status that it brings
    #: up, and of each condition there, counts changes of the copy, as on the host, and becomes one
    #: of the virtual object before the status is written. True: the syncer returns those of the
    #: virtual object itself.
    own_generations: ClassVar[bool] = False
    #: True: an object is reconciled again when a synced object begins or ceases to refer to it (see
    #: ``Refers``).
    when_used: ClassVar[bool] = False
    #: The version of the plugin API that it is written for.
    api_version: ClassVar[int] = API_VERSION

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "resource" in vars(cls) and "host_resource" not in vars(cls):
            cls.host_resource = cls.resource
        if "name" in vars(cls) and "section" not in vars(cls):
            cls.section = f"toHost.{cls.name}"
        if "config" not in vars(cls):
            cls.config = _type_argument(cls) or cls.config

    def applies_to(self, settings: Settings) -> bool:
        """Return False to disable the syncer under these settings, as if the configuration did."""
        return True

    def predicate(self, virtual: Obj) -> bool:
        """Return False if a virtual object can never have a copy.

        It may only depend on fields that never change. Like controller-runtime's predicates: an
        object without a copy for which it returns False is never reconciled.
        """
        return True

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the other resources that its decisions read; by default ``reads``.

        Override it for sources that depend on the configuration.
        """
        return self.reads

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the rights besides those that follow from the roles and sources.

        By default these are ``rights``. Override it for rights that depend on the configuration
        (``settings.section(self.name, Section)``).
        """
        return self.rights

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the host key of a virtual key; by default the name translator's.

        Override it only for objects that must not share a name with another copy.

        Raises:
            Refused: The key has no valid translation.
        """
        return settings.names.to_host(self.host_resource, key)


def _type_argument(cls: type) -> type[Config] | None:
    """Return the class of options among the type arguments of a class, or None."""
    for base in vars(cls).get("__orig_bases__", ()):
        for argument in get_args(base):
            if inspect.isclass(argument) and issubclass(argument, Config):
                return argument
    return None


class SyncDown(Role, Generic[C]):
    """Role: the virtual object exists and its host copy doesn't."""

    #: The label selector of the virtual objects to watch; ``""`` for all. It only saves their cost:
    #: objects that it doesn't match are there while another syncer watches them.
    virtual_selector: ClassVar[str] = ""

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the host namespaces of its objects; None for those that copies are put in.

        Objects in namespaces that the operator names are no copies proper: no name in another
        object leads to them, and a mark names the syncer, so that it may make them beside the
        copies of the same kind. Each namespace takes a watch and a Role of its own. One that isn't
        returned any more is neither read nor written, so its objects must be gone before. Override
        ``host_key``, too.
        """
        return None

    @abstractmethod
    def sync_down(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Return ``apply(host=…)``, or ``skip(reason)`` for an object that is not to be synced."""

    def takes_on(self, ctx: Context[C], virtual: Obj) -> bool:
        """Return True if an object that came from the host has a copy like the tenant's own.

        By default it has none: what it was made from is where its copy would be.
        """
        return False

    def deselected(self, ctx: Context[C], pair: Pair, reason: str) -> Decision:
        """Return the decision about the copy of an object that is no longer selected.

        The section's ``selector`` doesn't match the object any more. By default delete the copy.
        """
        return delete(host=pair.host, reason=reason)


class Sync(Role, Generic[C]):
    """Role: both objects exist, and either may have changed.

    It is called with the state, not with events, so no change is missed.
    """

    @abstractmethod
    def sync(self, ctx: Context[C], pair: Pair) -> Decision:
        """Return the wanted state of both objects."""


class SyncUp(Role, Generic[C]):
    """Role: the host copy exists and its virtual object doesn't.

    Without this role, the copy is deleted. It needs ``SyncDown``, which makes the copies;
    for objects that begin on the host see ``SyncFromHost``.
    """

    @abstractmethod
    def sync_up(self, ctx: Context[C], host: Obj) -> Decision:
        """Return ``delete(host=…)``, or another decision about the orphan."""


class SyncFromHost(Role, Generic[C]):
    """Role: the object begins on the host and appears on the virtual side.

    There our object bears the cluster mark. ``Sync`` is called when both exist. Without ``Sync``,
    ``sync_from_host`` is called then too, and the virtual object stays when the host object is
    gone.
    """

    #: True: a virtual object that is changed or deleted is restored. Needs a ``host_key`` that
    #: returns the key of the host object for each virtual key.
    reverts_virtual_changes: ClassVar[bool] = False
    #: True if the host objects bear our mark; then no others are watched.
    host_marked: ClassVar[bool] = False
    #: True if the host objects are Events, of which only those about copies are shown; then no
    #: others are kept. Needs ``reads_copies``.
    about_copies: ClassVar[bool] = False
    #: The host namespaces to watch; None for those that copies are put in. Each takes a watch and a
    #: Role of its own.
    namespaces: ClassVar[tuple[str, ...] | None] = None

    @abstractmethod
    def sync_from_host(self, ctx: Context[C], host: Obj) -> Decision:
        """Return ``apply(virtual=…)``, or ``skip(reason)`` for an object that is not to appear."""

    @abstractmethod
    def virtual_key(self, ctx: Context[C], host: Obj) -> Key | None:
        """Return the virtual key of a host object; None if it isn't for this virtual cluster."""

    def host_gone(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Return the decision about a virtual object that we made and whose host object is gone.

        By default delete it.
        """
        return delete(virtual=virtual, reason="the host object is gone")

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector for the host objects to watch; ``""`` for all."""
        return ""

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the host namespaces to watch; None for those that copies are put in.

        By default these are ``namespaces``. Override it for namespaces that depend on the
        configuration (``settings.section(self.name, Section)``).
        """
        return self.namespaces

    def host_names(self, settings: Settings) -> tuple[Key, ...]:
        """Return the host keys of further objects to watch, each by a watch of its own.

        Only called where ``host_namespaces`` isn't None. The right to read these objects is
        narrowed to their names.
        """
        return ()


class FakeSyncUp(Role, Generic[C]):
    """Role: the virtual side needs an object that exists nowhere.

    An example is the Node that a Pod's spec names. Beside ``SyncDown`` or ``SyncFromHost`` it is
    called only where there is neither an object of the tenant's nor one on the host; ``host_gone``
    is not called then. ``SyncFromHost`` needs ``reverts_virtual_changes`` for that.
    """

    @abstractmethod
    def fake_sync_up(self, ctx: Context[C], key: Key) -> Decision:
        """Decide about a key that one of its ``watches`` yielded, and that has no object."""

    @abstractmethod
    def fake_sync(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Update the virtual object, or delete it when nothing needs it."""


class Mirror(Syncer[C], SyncDown[C], Sync[C], Refers):
    """Copies ``down`` and ``both`` paths to the host, and ``up`` paths back.

    Override ``translate`` to change the copy.
    """

    #: False if no field that goes down can hold labels and annotations of other objects, as a
    #: template does.
    has_templates: ClassVar[bool] = True

    @cached_property
    def references_down(self) -> ReferencePaths:
        """The compiled ``references`` of fields that go down."""
        return ReferencePaths(self.references).below((*self.down, *self.both, *_CROSSING))

    @cached_property
    def references_up(self) -> ReferencePaths:
        """The compiled ``references`` of fields that come up."""
        return ReferencePaths(self.references).below(self.up)

    def going_down(self, virtual: Obj) -> Iterable[FieldPath]:
        """Return the paths of a virtual object that are copied down: ``down`` and ``both``."""
        return (*self.down, *self.both)

    def translate(self, ctx: Context[C], virtual: Obj) -> Obj:
        """Return the host copy of a virtual object. Fields that it doesn't set are never written.

        Its templates are without marks, and without keys that the rules of ``metadata`` deny.

        Raises:
            Refused: The object, or a name in it, can't be translated.
        """
        host = ctx.host_copy(virtual)
        copy_fields(virtual, host, self.going_down(virtual))
        if self.has_templates:
            # Its own metadata is without forged marks already, and bears those of a copy;
            # translated selectors will.
            for name, value in host.items():
                if name != "metadata":
                    host[name] = ctx.without_marks(value)
        names = self.references_down
        if names.is_empty:
            return host
        return names.to_host(ctx, virtual, host)

    def reflect(self, ctx: Context[C], pair: Pair) -> Obj | None:
        """Return the virtual object with the ``up`` paths of the host object.

        None if there is nothing to copy up. Messages in its status have virtual names in place of
        the host's.
        """
        if not self.up:
            return None
        metadata = pair.virtual["metadata"]
        virtual: Obj = {
            "apiVersion": pair.virtual["apiVersion"],
            "kind": pair.virtual["kind"],
            "metadata": {name: metadata.get(name, "") for name in ("name", "namespace", "uid")},
        }
        copy_fields(pair.host, virtual, self.up)

        def named() -> Iterable[tuple[Resource, Key]]:
            return (*self.refers(pair.virtual), *self.made_on_host(pair.virtual))

        if "status" in virtual:
            names = host_names(ctx, key_of(pair.virtual), key_of(pair.host), named)
            virtual["status"] = names.in_messages(virtual["status"])
        if self.references_up.is_empty:
            return virtual
        known = self.references_down.named(pair.virtual)
        return self.references_up.to_virtual(ctx, pair.host, virtual, known=known)

    def sync_down(self, ctx: Context[C], virtual: Obj) -> Decision:
        """Create the host copy."""
        names = self.references_down
        if names.holds_new:
            obstacle = names.obstacle(ctx, virtual)
            if obstacle:
                return obstacle
        host = self.translate(ctx, virtual)
        return apply(host=host, reason="the virtual object has no copy on the host yet")

    def sync(self, ctx: Context[C], pair: Pair) -> Decision:
        """Update the copy, and the virtual object's ``up`` paths from the copy."""
        names = self.references_down
        if names.holds_made:
            obstacle = names.obstacle(ctx, pair.virtual, made=True)
            if obstacle:
                return obstacle
        try:
            host = self.translate(ctx, pair.virtual)
        except NotYet as missing:
            waiting = wait(missing.why, on=(missing.on,))
            return apply(virtual=self.reflect(ctx, pair)).then(waiting)
        return apply(host=host, virtual=self.reflect(ctx, pair))
