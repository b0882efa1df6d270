"""What a syncer reads besides its own objects, what wakes it, and what it may do: as values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from syncer.api.context import Settings
from syncer.api.objects import Key, Obj, Resource, Side

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
    optional_with: str = ""
    #: The label selector of what is watched; ``""`` for all.
    selector: str = ""
    #: Namespaces on the host, where those aren't the ones that copies are put in.
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """A named way to find objects of a source by a value computed from them, kept up to date by the store."""

    source: Source
    name: str
    values: IndexFunction
    #: Left out where the syncer of this name is off.
    optional_with: str = ""


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
    optional_with: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """A right that a syncer needs beyond those that follow from its roles, such as to create tokens."""

    side: Side
    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    #: Namespaces on the host, where those aren't the ones that copies are put in.
    namespaces: tuple[str, ...] = ()
