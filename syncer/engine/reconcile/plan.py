"""The outcome of one reconcile as a value: the decision, the API calls that it takes, and its reasons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from syncer.api.context import Context
from syncer.api.decision import Decision, Write
from syncer.api.objects import Key, Obj, Request, Resource, Side
from syncer.engine.reconcile.calls import Call
from syncer.engine.reconcile.controller import Controller, Read


class Place(NamedTuple):
    """One object on one side."""

    side: Side
    resource: Resource
    key: Key


@dataclass(slots=True)
class Frozen:
    """A field that is left alone for some time, because another manager sets it back each time."""

    place: Place
    #: The names from the top to the field; ``()`` is the whole object.
    path: tuple[str, ...]
    request: Request
    #: The hash of the wanted value.
    ours: int
    #: The end, in seconds of the engine's clock.
    until: float
    #: The end, for people (RFC 3339).
    ends: str
    #: The other manager, where it is known.
    other: str = ""
    #: True once people have been told of it.
    announced: bool = False

    @property
    def field(self) -> str:
        """The path for people, ``metadata.labels["example.org/team"]``; ``""`` is the whole object."""
        written = (f".{name}" if name.isidentifier() else f'["{name}"]' for name in self.path)
        return "".join(written).removeprefix(".")


@dataclass(slots=True)
class Observed:
    """One request and its two objects as they were last seen; the objects are private copies."""

    controller: Controller
    request: Request
    ctx: Context
    virtual: Obj | None
    host: Obj | None
    #: The key of the host object.
    host_key: Key

    def key_on(self, side: Side) -> Key:
        """Return the key of the object of a side."""
        return self.request.key if side is Side.VIRTUAL else self.host_key

    def on(self, side: Side) -> Obj | None:
        """Return the object of a side."""
        return self.virtual if side is Side.VIRTUAL else self.host


class PlannedWrite(NamedTuple):
    """One write of a decision with the API calls that it takes, often none."""

    write: Write
    place: Place
    #: The object as it was last seen; None: there is none.
    live: Obj | None
    calls: Sequence[Call] = ()
    #: Fields that are left out of the calls.
    held: Sequence[Frozen] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about one request. Nothing has been done yet, and nothing must be."""

    decision: Decision
    writes: tuple[PlannedWrite, ...]
    #: The request's own two objects.
    seen: Observed
    #: The objects that the decision was made from, beside the request's own two.
    reads: Sequence[Read]
    #: Plans one of the writes anew, for when its object has changed since.
    again: Callable[[Write], PlannedWrite]

    @property
    def calls(self) -> list[Call]:
        """The API calls of all writes, in order."""
        return [call for write in self.writes for call in write.calls]

    @property
    def held(self) -> list[Frozen]:
        """The fields that are left out."""
        return [field for write in self.writes for field in write.held]
