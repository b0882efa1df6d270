"""Sources, indexes, watches and rights.

They declare the objects that a syncer reads, the changes that notify it, and its permissions.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from syncer.api.context import Settings
from syncer.api.objects import Key, Obj, Resource, Side

#: Returns the index values of an object.
IndexFunction = Callable[[Obj], Iterable[str]]


class SourcePart(NamedTuple):
    """A part of a host's collection that is watched by itself: a namespace, or an object in it."""

    namespace: str
    #: The name of the object; ``""`` for all of the namespace.
    name: str = ""

    def contains(self, key: Key) -> bool:
        """Return True if an object of this key belongs to the part."""
        return self.namespace == key.namespace and self.name in ("", key.name)

    @property
    def fields(self) -> str:
        """The field selector of a watch; ``""`` for none. RBAC narrows such a watch to the name."""
        return f"metadata.name={self.name}" if self.name else ""


@dataclass(frozen=True, slots=True)
class Source:
    """A resource on one side that a syncer reads, and which is therefore watched."""

    side: Side
    resource: Resource
    #: True: only objects with our mark are watched.
    marked: bool = False
    #: The name of another syncer. The source is left out while that syncer is disabled. If the
    #: objects can't be read, for example because a right is missing, this syncer works without them
    #: instead of waiting. ``""``: always needed.
    optional_with: str = ""
    #: The label selector for the objects to watch; ``""`` for all.
    selector: str = ""
    #: The host namespaces to watch, each by a watch of its own; empty for those that copies are put
    #: in.
    namespaces: tuple[str, ...] = ()
    #: The host keys of the only objects to watch, besides those in ``namespaces``: each by a watch
    #: of its own, so that the right to read them can be narrowed to their names.
    names: tuple[Key, ...] = ()
    #: True for Events of the host: of them, only those are kept that are about copies of the
    #: virtual cluster's objects. So they are listed once the copies are known.
    about_copies: bool = False

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        """The parts that are watched; empty if it is watched as a whole.

        An object in a namespace that is a part has no part of its own.
        """
        whole = [SourcePart(namespace) for namespace in self.namespaces]
        alone = [SourcePart(*key) for key in self.names if key.namespace not in self.namespaces]
        return tuple(dict.fromkeys((*whole, *alone)))


@dataclass(frozen=True, slots=True)
class Index:
    """A named index of a source's objects by computed values, kept up to date by the cache."""

    #: The objects to index.
    source: Source
    #: The name, as in ``ctx.reader.indexed``.
    name: str
    #: Returns the values of an object.
    values: IndexFunction
    #: The name of another syncer; the index is left out while that is disabled. ``""``: always
    #: kept.
    optional_with: str = ""
    #: True: host objects have no values unless they are our copies of objects of the source's
    #: resource, whatever else is watched.
    copies_only: bool = False
    #: The name of an index of the syncer's own virtual objects, of their copies, or of both. When
    #: an object gains or loses a value here, the objects with this value there are reconciled
    #: again. ``""``: none.
    requeues: str = ""
    #: ``values``: as above. ``change``: the objects with the same value there are also reconciled
    #: again whenever an object changes here.
    when: Literal["values", "change"] = "values"
    #: True: an object that can't be read any more, or is too large to be, keeps its earlier values.
    #: False: it has none, for values that give a tenant something (see ``Grants``).
    keeps: bool = True


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch of other objects whose changes requeue keys of this syncer (client-go: an event
    handler with a map function).
    """

    #: The objects to watch.
    source: Source
    #: Returns the virtual keys of this syncer that an object names.
    keys: Callable[[Obj, Settings], Iterable[Key]]
    #: ``keys``: requeue only the keys that the object begins or ceases to name. ``used``: requeue
    #: only those of them that no other object names, where it matters only whether any does.
    #: ``change``: requeue all keys that it names, at every change.
    when: Literal["keys", "used", "change"] = "keys"
    #: The name of another syncer; the watch is left out while that is disabled. ``""``: always
    #: kept.
    optional_with: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """A right that a syncer needs besides those that follow from its roles, such as to create
    tokens.
    """

    side: Side
    resource: Resource
    #: The verbs, as in an RBAC rule.
    verbs: tuple[str, ...]
    #: The subresource, such as ``token``; ``""`` for the resource itself.
    subresource: str = ""
    #: The host namespaces that the right is for; empty for those that copies are put in.
    namespaces: tuple[str, ...] = ()
    #: The names of the only objects that the right is for; empty for all.
    names: tuple[str, ...] = ()
