"""The interface of directions, and what they have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol

from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, delete
from syncer.api.errors import NameTaken
from syncer.api.objects import Key, Obj, ObjectRef, Pair, Resource, Side, SyncRequest, is_deleting
from syncer.api.paths import FieldPath, path_steps
from syncer.api.roles import Syncer
from syncer.api.sources import Right, Source

#: Objects are created by POST, changed by PATCH and removed by DELETE; never replaced by PUT.
WRITE = ("create", "patch", "delete")


class SyncerView(Protocol):
    """The view that a direction has of its controller."""

    @property
    def settings(self) -> Settings:
        """The settings of the virtual cluster."""
        ...

    def context(self) -> Context:
        """Return the syncer's context, as of now."""
        ...

    def request(self, key: Key, host_key: Key | None = None) -> SyncRequest:
        """Return the request for a virtual key."""
        ...

    def host_key(self, key: Key) -> Key:
        """Return the host key of a virtual key; the virtual key itself if the syncer refuses to
        translate it.
        """
        ...

    def has(self, side: Side, key: Key) -> bool:
        """Return True if the cache has an object of the syncer's resource at this key."""
        ...

    def may_have_copy(self, virtual: Obj) -> bool:
        """Return the result of the syncer's ``predicate``; True if it raises."""
        ...


class Direction(ABC):
    """The way of a syncer's objects."""

    #: True if virtual objects have copies on the host.
    goes_down: ClassVar[bool] = False
    #: True if host objects appear on the virtual side.
    comes_up: ClassVar[bool] = False
    #: True if it makes objects that exist on the virtual side alone.
    fakes: ClassVar[bool] = False
    #: True if nothing is ever written for a request while neither of its objects exists.
    ends_with_both: ClassVar[bool] = False

    def __init__(self, syncer: Syncer) -> None:
        self.syncer = syncer
        #: The syncer's name, in the marks of its host objects, if these are no copies proper.
        self.made_for = ""
        #: True if changes of host objects lead to requests.
        self.by_host = self.goes_down or self.comes_up

    @property
    def syncs(self) -> bool:
        """True if the syncer is called with objects at all."""
        return self.goes_down or self.comes_up or self.fakes

    @property
    def by_virtual(self) -> bool:
        """Return True if every key of the virtual side is a request."""
        return self.goes_down or self.fakes

    @property
    def remakes(self) -> bool:
        """Return True if a copy that is deleted on the host is created again.

        A policy may forbid it.
        """
        return self.goes_down and not self.syncer.own_deletion

    @property
    def makes_copies(self) -> bool:
        """Return True if virtual objects have copies proper on the host."""
        return self.goes_down and not self.made_for

    @property
    def outlasts_mark(self) -> bool:
        """Return True if a copy stays while its original is being deleted, until that is gone."""
        return self.remakes and self.syncer.deletion == "whenGone"

    def ends_copy(self, virtual: Obj) -> bool:
        """Return True if an original is marked for deletion, and its copy is to go at once."""
        return is_deleting(virtual) and self.goes_down and not self.outlasts_mark

    @property
    def marked(self) -> bool:
        """Return True if the request of a host object follows from its metadata: from our marks."""
        return self.goes_down and not self.comes_up

    @abstractmethod
    def sources(self, settings: Settings | None = None) -> Iterable[Source]:
        """Yield the sources of the syncer's own resources.

        Without settings, they aren't limited to the namespaces that the operator names.
        """

    @abstractmethod
    def rights(self, settings: Settings | None = None) -> Iterable[Right]:
        """Yield the rights to write that follow from the syncer's roles and paths.

        Without settings, they aren't limited to the namespaces that the operator names.
        """

    @abstractmethod
    def request_for(
        self,
        view: SyncerView,
        side: Side,
        key: Key,
        obj: Obj | None,
    ) -> SyncRequest | None:
        """Return the request that a changed object of the syncer's resource belongs to, or None.

        ``obj`` is None for a virtual object of which only the key is known. An exception of the
        syncer is passed on.
        """

    @abstractmethod
    def answer(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision | None:
        """Return the decision about objects that no role is to be called with: they aren't ours,
        are being deleted, or don't belong together. Return None if the role decides.

        Args:
            ctx: The syncer's context.
            key: The virtual key.
            virtual: A private copy of the cached virtual object, or None.
            host: A private copy of the cached host object, or None.

        Raises:
            Refused: The objects can't be synced.
        """

    @abstractmethod
    def call_role(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Call the role for the objects of a key, which :meth:`answer` has returned None about.

        Raises:
            Refused: The objects can't be synced. Any other exception of the syncer is passed on,
                too.
        """

    @abstractmethod
    def role_for(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> str:
        """Return the name of the role that :meth:`call_role` calls for these objects."""

    def deselected(self, ctx: Context, pair: Pair, reason: str) -> Decision:
        """Decide about the copy of an object that the section's ``selector`` no longer matches."""
        return delete(host=pair.host, reason=reason)

    def is_among_copies(self, settings: Settings) -> bool:
        """Return True if its host objects are in no other namespaces than copies are put in."""
        return self.own_namespaces(settings) is None

    def own_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the host namespaces that its objects are put in; None if these are copies."""
        return None

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the request is about the host object at the host key of ``key``."""
        return True

    def is_real(self, ctx: Context, host: Obj) -> bool:
        """Return True if the host object is the syncer's, rather than another one with its key."""
        return True

    def shows(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if an unmarked host object appears at this virtual key, now or later.

        Later is at its next request.
        """
        return False

    def narrowed(self, source: Source, settings: Settings) -> Source | None:
        """Narrow a source of the syncer to the objects that can concern it; None if none can."""
        return source


def resources_of(syncer: Syncer | type[Syncer]) -> tuple[Resource, ...]:
    """Return the virtual and the host resource of a syncer; empty if it syncs nothing."""
    if not hasattr(syncer, "resource"):
        return ()
    return (syncer.resource, syncer.host_resource)


def came_up(ctx: Context, virtual: Obj) -> bool:
    """Return True if we made a virtual object."""
    labels = virtual["metadata"].get("labels")
    if not labels:
        return False
    settings = ctx.settings
    return settings.marks.is_from_here(virtual, cluster=settings.identity)


def collision(
    taken: ObjectRef,
    virtual: Obj | None = None,
    *,
    is_watched: bool = True,
) -> NameTaken:
    """Return the refusal for an object that is not ours at the key where ours would be.

    Args:
        taken: The object. A tenant sees it only on the virtual side.
        virtual: The object itself, on the virtual side: it gets the event.
        is_watched: False for an object that no watch shows.
    """
    side, resource, key = taken
    kind = resource.kind
    if side is Side.HOST:
        why = f"another {kind} on the host has the name that this object's copy would get"
        why = f"{why}. Rename this object, or ask the operator"
    else:
        why = f"the host has a {kind} that would have the name of this one here"
        why = f"{why}, which is left alone. Rename or remove this one to have that of the host"

    operator = f"the {side} cluster has a {kind} {key} that is not ours; it is left alone"
    operator = f"{operator}. Rename or remove one of the two"
    unwatched = None if is_watched else taken
    return NameTaken(why, about=virtual, for_operator=operator, in_the_way=unwatched)


def by_path(side: Side, resource: Resource, paths: Iterable[FieldPath]) -> Iterator[Right]:
    """Yield the rights to patch the fields; ``status`` is a subresource with a right of its own."""
    top_fields = {path_steps(path)[0] for path in paths}
    if "status" in top_fields:
        yield Right(side, resource, ("patch",), "status")
    if top_fields - {"status"}:
        yield Right(side, resource, ("patch",))
