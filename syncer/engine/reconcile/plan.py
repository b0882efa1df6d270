"""The plan of a request: the decision, its API calls, and the objects that were read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from syncer.api.context import Context
from syncer.api.decision import Decision, Outcome, Write
from syncer.api.errors import Refused, SyncerError
from syncer.api.objects import Key, Obj, ObjectRef, Side, SyncRequest
from syncer.api.reasons import ReasonCode
from syncer.api.values import value_class
from syncer.engine.reconcile.calls import Call
from syncer.engine.reconcile.controller import BoundSyncer, NamedCopy, Read, Vacant


@dataclass(frozen=True, slots=True)
class PostponedFields:
    """The fields of a write that are held back for a time."""

    #: The code for the reason.
    code: ReasonCode
    reason: str
    #: Seconds until they are written.
    after: float
    #: True if the reason hasn't been reported yet.
    new: bool


@dataclass(slots=True)
class Frozen:
    """A field that is not written for some time, because another manager reverts it each time."""

    ref: ObjectRef
    #: The field names from the top; ``()`` is the whole object.
    path: tuple[str, ...]
    request: SyncRequest
    #: The hash of the wanted value.
    ours: int
    #: The end, in seconds of the engine's clock.
    until: float
    #: The end as a time (RFC 3339).
    ends: str
    #: The other manager; ``""`` if unknown.
    other: str = ""
    #: True once it was logged and reported as an event.
    announced: bool = False

    @property
    def field(self) -> str:
        """The path as text: ``metadata.labels["example.org/team"]``; ``""`` is the whole object."""
        text = ""
        for name in self.path:
            if name.isidentifier():
                text += f".{name}"
            else:
                text += f'["{name}"]'
        return text.removeprefix(".")


@dataclass(slots=True)
class Observed:
    """A request with private copies of its two cached objects."""

    controller: BoundSyncer
    request: SyncRequest
    ctx: Context
    virtual: Obj | None
    host: Obj | None
    #: The key of the host object.
    host_key: Key
    #: True if the host object can't be read, and ``host`` has its marks alone.
    unreadable_host: bool = False
    #: Why the two objects aren't decoded, or have no name on the host; None if all is well.
    error: Refused | None = None

    def key_on(self, side: Side) -> Key:
        """Return the key of the object on a side."""
        return self.request.key if side is Side.VIRTUAL else self.host_key

    def take_error(self) -> Refused:
        """Return the error, and keep it no longer: once raised it refers to these objects."""
        error = self.error
        self.error = None
        assert error is not None
        return error

    def on(self, side: Side) -> Obj | None:
        """Return the object on a side."""
        return self.virtual if side is Side.VIRTUAL else self.host


class PlannedWrite(NamedTuple):
    """A write of a decision, with the API calls that it takes, often none."""

    write: Write
    ref: ObjectRef
    #: The cached object; None if there is none.
    live: Obj | None
    calls: Sequence[Call] = ()
    #: Fields that are left out of the calls.
    frozen: Sequence[Frozen] = ()
    #: An earlier refusal of the same write, because of which its calls are left out; None if there
    #: is none.
    refused: PostponedFields | None = None
    #: True if the calls leave out drift outside of metadata, because a drift policy allows it.
    tolerates: bool = False

    @property
    def changes_contents(self) -> bool:
        """True if its calls raise the generation of the object."""
        return any(call.changes_contents for call in self.calls)


class ServerAnswer(NamedTuple):
    """The answer of an API server to a call."""

    #: The call as it was sent, with the tokens that its write asks for.
    call: Call
    #: The object as it is now; None if the answer doesn't have its fields.
    obj: Obj | None
    #: False if the call changed nothing.
    changed: bool


#: Learns from a call of a write, and its answer; None if the call failed.
CallObserver = Callable[[PlannedWrite, Call, ServerAnswer | None], None]


@dataclass(frozen=True, slots=True)
class Results:
    """The policies that learn from calls and their answers; each sort in order."""

    #: From each call of a write.
    sent: tuple[CallObserver, ...] = ()
    #: From the fields that a write was made without, as another manager writes them, too.
    frozen: tuple[Callable[[Sequence[Frozen]], None], ...] = ()
    #: From the same fields, once their other managers are known; each returns a report about them.
    named: tuple[Callable[[Sequence[Frozen]], PostponedFields], ...] = ()
    #: From a write whose planned calls have all succeeded, also if it had none, or lacked frozen
    #: fields.
    settled: tuple[Callable[[PlannedWrite], None], ...] = ()
    #: From a merge that was refused; each returns the report about it.
    refused: tuple[Callable[[PlannedWrite, SyncerError], PostponedFields], ...] = ()


@value_class
class Plan:
    """The plan of a request. Making it writes nothing; only policies remember anything of it."""

    decision: Decision
    writes: tuple[PlannedWrite, ...]
    #: The request with its two objects.
    observed: Observed
    #: Plans a write again if its object has changed since.
    again: Callable[[Write], PlannedWrite]
    #: The policies that learn how it was carried out.
    results: Results
    #: The host keys that copies name. There the live host must have no object but the tenant's.
    vacant: Sequence[Vacant] = ()

    @property
    def original(self) -> str:
        """The version of the virtual object that it was made from; ``""`` if there is none."""
        virtual = self.observed.virtual
        if not virtual:
            return ""
        version: str = virtual["metadata"]["resourceVersion"]
        return version

    @property
    def calls(self) -> list[Call]:
        """The API calls of all writes, in order."""
        calls: list[Call] = []
        for write in self.writes:
            calls += write.calls
        return calls

    @property
    def frozen(self) -> list[Frozen]:
        """The frozen fields, which the calls leave out."""
        fields: list[Frozen] = []
        for write in self.writes:
            fields += write.frozen
        return fields


@value_class
class Decided:
    """The decision about a request, and the objects that it was made from."""

    decision: Decision
    #: The objects that were read besides the two of the request.
    reads: tuple[Read, ...]
    #: As :attr:`Plan.vacant`.
    vacant: tuple[Vacant, ...]
    #: The fields of the virtual object that are not copied.
    left_out: tuple[str, ...]


@value_class
class Reconciled:
    """The plan of a request or the error instead of it, and the objects that it was made from."""

    #: None if there is an error.
    plan: Plan | None
    #: None if there is a plan.
    error: Exception | None
    #: The objects that were read besides the two of the request.
    reads: tuple[Read, ...]
    #: The fields of the virtual object that are not copied.
    left_out: tuple[str, ...]
    #: The named copies that were not read, and taken for the right ones. If there are any, the
    #: caller checks them and reconciles the request again with the result.
    unread: tuple[NamedCopy, ...]


class Deferred(NamedTuple):
    """A plan that may not be carried out now."""

    reason: str
    #: Seconds until it may; None if its request is enqueued again in another way.
    seconds: float | None = None
    #: True if the request is retried with backoff, and after these seconds at the earliest.
    backs_off: bool = False

    def instead_of(self, decision: Decision) -> Decision:
        """Return the decision of the plan as one that is pending."""
        if self.seconds is None:
            return replace(decision, outcome=Outcome.PENDING, reason=self.reason)
        after = None if self.backs_off else self.seconds
        return replace(decision, outcome=Outcome.PENDING, reason=self.reason, after=after)
