"""What should happen, as a value. A syncer returns one; one place carries it out."""

from dataclasses import dataclass, replace
from enum import StrEnum

from syncer.api.objects import Obj, ObjectRef, Resource, Side
from syncer.api.paths import FieldPath


class Verb(StrEnum):
    """What a write does."""

    APPLY = "apply"  # make the object so: create it, or change what differs
    DELETE = "delete"
    BIND = "bind"  # a Pod to a node, through the binding subresource
    CONDITIONS = "conditions"  # set these status conditions, by type, and leave all else
    NOTE = "note"  # set these annotations (None takes one away) on an object that is there, and leave all else


class Outcome(StrEnum):
    """How the request ends once the writes are made."""

    IN_STEP = "in_step"
    SKIPPED = "skipped"  # it is right that there is nothing to do
    PENDING = "pending"  # waits for something else


@dataclass(frozen=True, slots=True)
class Token:
    """A token to be asked of the virtual API server and put into the object before it is written.

    ``field`` is the key under ``data`` (base64 is applied), ``seconds`` the wanted lifetime, ``bound_to`` the Pod.
    """

    field: str
    service_account: str
    namespace: str
    seconds: int
    audiences: tuple[str, ...] = ()
    bound_to: Obj | None = None


@dataclass(frozen=True, slots=True)
class Precondition:
    """What a write was decided from and the live API server must confirm: the object there has this uid still.

    With uid ``""``: there is no such object. With ``version`` it must not have changed, either. With ``since``
    (RFC 3339) its namespace must be there, must not be on its way out, and must not have been made later, and its kind
    must be served and stay so: what went with its namespace or its CRD was not deleted for itself.
    """

    seen: ObjectRef
    uid: str = ""
    since: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One write. ``obj`` is what the object should be (apply) or the object as it was seen (all other verbs).

    ``exact`` names the paths under which what the object doesn't say must not be there. Elsewhere fields of
    others are left alone, and only fields that we set before are removed; with ``partial`` only labels and annotations
    that we set before. A ``metadata.resourceVersion`` in ``obj`` is a precondition: no change over a later version.
    ``resource`` is None for the syncer's own. A delete with ``only_if_none`` is refused for as long as there is any
    object of that resource on the same side; one with a
    ``precondition`` is made only where that holds on the live API server, because what was last seen may be old.
    """

    side: Side
    verb: Verb
    obj: Obj
    exact: tuple[FieldPath, ...] | None = None
    resource: Resource | None = None
    create_only: bool = False
    partial: bool = False
    grace: int | None = None
    node: str = ""
    tokens: tuple[Token, ...] = ()
    only_if_none: Resource | None = None
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The writes, in order, and the reason: a sentence for the person who asks why."""

    writes: tuple[Write, ...] = ()
    reason: str = ""
    outcome: Outcome = Outcome.IN_STEP
    #: Seconds after which to look again, or None.
    after: float | None = None
    #: Objects whose appearance or change makes it worth to look again.
    on: tuple[ObjectRef, ...] = ()

    @property
    def deletes(self) -> bool:
        """True if anything is to be deleted."""
        for write in self.writes:  # noqa: SIM110 - asked several times a look, and a generator costs twice as much
            if write.verb is Verb.DELETE:
                return True
        return False

    def then(self, other: "Decision") -> "Decision":
        """This decision and then the other; the later reason, the more pending outcome, the earlier look."""
        times = [time for time in (self.after, other.after) if time is not None]
        pending = Outcome.PENDING in (self.outcome, other.outcome)
        return Decision(
            writes=self.writes + other.writes,
            reason="; ".join(reason for reason in (self.reason, other.reason) if reason),
            outcome=Outcome.PENDING if pending else Outcome.IN_STEP,
            after=min(times, default=None),
            on=self.on + other.on,
        )

    def look_again(self, after: float) -> "Decision":
        """Return the same decision, to be asked again after so many seconds."""
        return replace(self, after=after)


def apply(
    *,
    host: Obj | None = None,
    virtual: Obj | None = None,
    reason: str = "",
    exact: tuple[FieldPath, ...] | None = None,
    resource: Resource | None = None,
    create_only: bool = False,
    partial: bool = False,
    tokens: tuple[Token, ...] = (),
) -> Decision:
    """Make the object on the host, on the virtual side, or both be so; ``exact`` None takes the syncer's own."""
    sides = ((Side.HOST, host), (Side.VIRTUAL, virtual))
    return Decision(
        tuple(
            Write(side, Verb.APPLY, obj, exact, resource, create_only=create_only, partial=partial, tokens=tokens)
            for side, obj in sides
            if obj is not None
        ),
        reason,
    )


def delete(
    *,
    host: Obj | None = None,
    virtual: Obj | None = None,
    reason: str,
    grace: int | None = None,
    resource: Resource | None = None,
    only_if_none: Resource | None = None,
) -> Decision:
    """Delete exactly this object (by uid); a reason is a must."""
    sides = ((Side.HOST, host), (Side.VIRTUAL, virtual))
    return Decision(
        tuple(
            Write(side, Verb.DELETE, obj, grace=grace, resource=resource, only_if_none=only_if_none)
            for side, obj in sides
            if obj is not None
        ),
        reason,
    )


def bind(*, virtual: Obj, node: str, reason: str = "") -> Decision:
    """Bind a virtual Pod to a node, through the binding subresource."""
    return Decision((Write(Side.VIRTUAL, Verb.BIND, virtual, node=node),), reason or f"the host runs it on {node}")


def set_conditions(*, host: Obj, reason: str = "") -> Decision:
    """Merge the object's ``status.conditions`` into the host object's by type; every other condition stays as it is."""
    return Decision((Write(Side.HOST, Verb.CONDITIONS, host),), reason)


def skip(reason: str) -> Decision:
    """Nothing to do, and that is right."""
    return Decision(reason=reason, outcome=Outcome.SKIPPED)


def wait(reason: str, *, after: float | None = None, on: tuple[ObjectRef, ...] = ()) -> Decision:
    """Nothing can be done yet. Asked again when one of ``on`` appears or changes, or after so many seconds."""
    return Decision(reason=reason, outcome=Outcome.PENDING, after=after, on=on)


def retry(after: float, reason: str) -> Decision:
    """Look again in ``after`` seconds."""
    return Decision(reason=reason, outcome=Outcome.PENDING, after=after)
