"""Decisions: the value that a syncer returns, carried out in a single place."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from syncer.api.objects import Obj, ObjectRef, Resource, Side
from syncer.api.paths import FieldPath
from syncer.api.values import value_class


class Verb(StrEnum):
    """The operation of a write."""

    APPLY = "apply"  # create the object, or patch the fields that differ
    DELETE = "delete"
    BIND = "bind"  # bind a Pod to a node through the binding subresource
    CONDITIONS = "conditions"  # set these status conditions by type; leave everything else alone
    #: Merge these fields through a subresource, list items by name; leave everything else alone.
    MERGE = "merge"
    #: Set these annotations (None removes one) on an existing object; leave everything else alone.
    NOTE = "note"
    #: Remove from an existing object all fields that this one, which is a part of it, lacks. Only
    #: policies use it.
    REVOKE = "revoke"


class Outcome(StrEnum):
    """The state of a request after its writes."""

    IN_STEP = "in_step"
    SKIPPED = "skipped"  # there is nothing to do, and that is right
    PENDING = "pending"  # it waits for something else


@dataclass(frozen=True, slots=True)
class Token:
    """A service account token to request from the virtual API server and put into the object before
    it is written.
    """

    #: The key under ``data`` that receives the token; it is base64-encoded there.
    field: str
    #: The name of the virtual ServiceAccount.
    service_account: str
    #: The namespace of the virtual ServiceAccount.
    namespace: str
    #: The requested lifetime, in seconds.
    seconds: int
    #: The requested audiences; empty for the API server's own.
    audiences: tuple[str, ...] = ()
    #: The virtual Pod that the token is bound to; None for an unbound token.
    bound_to: Obj | None = None


@dataclass(frozen=True, slots=True)
class Precondition:
    """A fact that a write was decided from; the live API server must confirm it before the write is
    made.
    """

    #: The object that the decision was made from.
    observed: ObjectRef
    #: The uid that the object must still have; ``""``: no such object must exist.
    uid: str = ""
    #: A time (RFC 3339), or ``""`` for no check. The object's namespace must exist, must not be
    #: terminating, and must not be newer; its kind must be served and its CRD not be terminating.
    #: An object that went with its namespace or its CRD was not deleted for itself.
    since: str = ""
    #: The resourceVersion that the object must still have; ``""`` for any.
    version: str = ""


@value_class
class Write:
    """A write to a single object."""

    #: The side that the object is on.
    side: Side
    #: The operation.
    verb: Verb
    #: For APPLY the wanted state, as far as the syncer sets it; otherwise the object as it was
    #: observed, of which only the identity is used (CONDITIONS, NOTE, MERGE and REVOKE also take
    #: its conditions, annotations, or other parts). A ``metadata.resourceVersion`` is a
    #: precondition: a later version is not changed.
    obj: Obj
    #: Paths below which fields that ``obj`` doesn't have are removed. Elsewhere fields of others
    #: are left alone, and only fields that we set before are removed. None for the syncer's
    #: ``exact``.
    exact: tuple[FieldPath, ...] | None = None
    #: The resource of the object; None for the syncer's own on that side.
    resource: Resource | None = None
    #: Create the object if it is missing; never change an existing one.
    create_only: bool = False
    #: ``obj`` is only a part of what we set: of the fields that we set before, only labels and
    #: annotations are removed.
    partial: bool = False
    #: The grace period of a deletion, in seconds; None for the object's own.
    grace: int | None = None
    #: The whole status that an object gets before it is deleted, over the version of ``obj`` alone;
    #: None for no change. Its kind must have the status subresource.
    final_status: Obj | None = None
    #: The name of the node, for BIND.
    node: str = ""
    #: For BIND: what the API server sets besides the node leads to another decision.
    looks_back: bool = True
    #: The subresource through which the API server changes these fields, for MERGE.
    subresource: str = ""
    #: Tokens to request and put into ``obj``.
    tokens: tuple[Token, ...] = ()
    #: True for a host object that is created with its namespace as its controller. The garbage
    #: collector then deletes it with the namespace alone, as it would be anyway.
    controlled_by_namespace: bool = False
    #: Refuse the deletion while any object of this resource exists on the same side.
    only_if_none: Resource | None = None
    #: Why the request waits once the API server has only marked the object for deletion; ``""`` if
    #: that leads to another decision.
    meanwhile: str = ""
    #: A fact to confirm on the live API server first, because the cache may be stale.
    precondition: Precondition | None = None
    #: The field, as in the causes of a refusal, that the API server may refuse; ``""`` for none.
    disputed: str = ""
    #: For MERGE: returns annotations to set on the object, given as it is once the API server has
    #: accepted the merge. The merge is then only made if the object is as it was last observed.
    afterwards: "Callable[[Obj], Mapping[str, str]] | None" = None
    #: Returns the write to make instead if the API server refuses ``disputed``. Its arguments are
    #: the refused write, which is this one with the changes that the configuration makes, and the
    #: refused fields, as in the causes: ``spec.ports[0].nodePort``.
    otherwise: "Callable[[Write, Collection[str]], Write] | None" = None
    #: An event for the tenant about the write, once it has changed something; None for none.
    warning: "Warned | None" = None
    #: True if it removes from a copy fields that the tenant may no longer have: no policy holds it
    #: back. Only policies set it.
    revokes: bool = False


class Warned(NamedTuple):
    """A warning event for the owner of the virtual object."""

    #: A word in CamelCase.
    reason: str
    #: A sentence with the way out.
    message: str


@value_class
class Decision:
    """The writes, in order, and the reason for them."""

    #: The writes, made in this order; a failure ends the attempt.
    writes: tuple[Write, ...] = ()
    #: A sentence for the person who asks why, in `syncer explain` and in the log. If the decision
    #: skips or waits, it may be a :class:`~syncer.api.reasons.StateReason`, whose code is kept.
    reason: str = ""
    outcome: Outcome = Outcome.IN_STEP
    #: Decide again after this many seconds; None: only when something changes.
    after: float | None = None
    #: The decision is made again when one of these objects appears or changes.
    on: tuple[ObjectRef, ...] = ()
    #: An event for the tenant about the limits of the writes, once they are made; None for none.
    warning: Warned | None = None
    #: True if the writes are a step: once they are made, the decision is made again at once.
    is_step: bool = False

    @property
    def deletes(self) -> bool:
        """True if the decision deletes an object."""
        # It is read several times for each request, and a generator costs twice as much.
        for write in self.writes:  # noqa: SIM110
            if write.verb is Verb.DELETE:
                return True
        return False

    def then(self, other: "Decision") -> "Decision":
        """Combine two decisions: writes in order, both reasons, the earlier of the two delays.

        The result is pending if either decision is, and then has the reason of that one.
        """
        after = self.after
        if after is None or (other.after is not None and other.after < after):
            after = other.after
        outcome = Outcome.IN_STEP
        if self.outcome is Outcome.PENDING:
            outcome = Outcome.PENDING
            reason = self.reason
        elif other.outcome is Outcome.PENDING:
            outcome = Outcome.PENDING
            reason = other.reason
        elif self.reason and other.reason:
            reason = f"{self.reason}; {other.reason}"
        else:
            # A reason with a code is that of a decision which skips or waits.
            reason = str(self.reason or other.reason)
        return Decision(
            self.writes + other.writes,
            reason,
            outcome,
            after,
            self.on + other.on,
            self.warning or other.warning,
            self.is_step or other.is_step,
        )

    def warn(self, reason: str, message: str) -> "Decision":
        """Return the same decision, with a warning event for the tenant once its writes are made.

        Args:
            reason: A word in CamelCase.
            message: A sentence with the way out.
        """
        return replace(self, warning=Warned(reason, message))

    def look_again(self, after: float) -> "Decision":
        """Return the same decision, to be made again after ``after`` seconds."""
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
    controlled_by_namespace: bool = False,
) -> Decision:
    """Create the object, or patch the fields that differ, on the host, on the virtual side, or on
    both.

    Args:
        host: The wanted state of the host object, as far as the syncer sets it; None for no write
            there.
        virtual: The same for the virtual object.
        reason: A sentence for the person who asks why, in `syncer parked` and in the log.
        exact: Paths below which fields that the object doesn't have are removed. None for the
            syncer's ``exact``.
        resource: The resource of the objects; None for the syncer's own.
        create_only: Create a missing object, but never change an existing one.
        partial: The object is only a part of what the syncer sets, so that of earlier fields only
            labels and annotations are removed.
        tokens: Service account tokens to request and put into the object.
        controlled_by_namespace: Create the host object with its namespace as its controller, unless
            it has another. An object that is there already stays as it is.
    """
    writes: tuple[Write, ...] = ()
    if host is not None:
        write = Write(
            Side.HOST,
            Verb.APPLY,
            host,
            exact,
            resource,
            create_only,
            partial,
            tokens=tokens,
            controlled_by_namespace=controlled_by_namespace,
        )
        writes = (write,)
    if virtual is not None:
        write = Write(
            Side.VIRTUAL, Verb.APPLY, virtual, exact, resource, create_only, partial, tokens=tokens
        )
        writes += (write,)
    return Decision(writes, reason)


def delete(
    *,
    host: Obj | None = None,
    virtual: Obj | None = None,
    reason: str,
    grace: int | None = None,
    final_status: Obj | None = None,
    resource: Resource | None = None,
    only_if_none: Resource | None = None,
    meanwhile: str = "",
) -> Decision:
    """Delete the object with this uid; a later object of the same name is left alone.

    No request is made for an object that the API server has marked as deleted without grace
    already, and that only waits for finalizers.

    Args:
        host: The host object as it was observed; None for no deletion there.
        virtual: The same for the virtual object.
        reason: A sentence for the person who asks why, in `syncer parked` and in the log.
        grace: The grace period in seconds; None for the object's own.
        final_status: The whole status to set first, for controllers that wait for it before they
            take their finalizers off; None for no change. It is set under the same preconditions as
            the deletion is made, and always after a look at the live other side.
        resource: The resource of the objects; None for the syncer's own.
        only_if_none: Refuse the deletion while any object of this resource exists on the same side.
        meanwhile: Why the request waits if the object is only marked for deletion then, as for
            :func:`wait`. Without it another decision follows at once.
    """
    sides = ((Side.HOST, host), (Side.VIRTUAL, virtual))
    writes = [
        Write(
            side,
            Verb.DELETE,
            obj,
            grace=grace,
            final_status=final_status,
            resource=resource,
            only_if_none=only_if_none,
            meanwhile=meanwhile,
        )
        for side, obj in sides
        if obj is not None
    ]
    return Decision(tuple(writes), reason)


def bind(*, virtual: Obj, node: str, looks_back: bool = True, reason: str = "") -> Decision:
    """Bind a virtual Pod to ``node`` through the binding subresource.

    The API server sets the condition ``PodScheduled`` with it. With ``looks_back`` the Pod is
    reconciled again once the watch shows it; a decision that replaces the condition needn't be.
    """
    write = Write(Side.VIRTUAL, Verb.BIND, virtual, node=node, looks_back=looks_back)
    return Decision((write,), reason or f"the host runs it on {node}")


def set_conditions(*, host: Obj, reason: str = "") -> Decision:
    """Merge ``status.conditions`` of ``host`` into the host object's by type; other conditions stay
    as they are.
    """
    return Decision((Write(Side.HOST, Verb.CONDITIONS, host),), reason)


def merge(
    *,
    host: Obj,
    subresource: str,
    reason: str = "",
    afterwards: Callable[[Obj], Mapping[str, str]] | None = None,
) -> Decision:
    """Merge fields into an existing host object through the subresource that they belong to, such
    as ``resize`` of Pods.

    Items of lists are merged by their ``name``; fields and items that ``host`` doesn't have stay as
    they are. A refusal by the API server is no failure of the request: the tenant gets an event,
    all other writes are made, and this one is tried again if it changes, or after five minutes. The
    right to patch the subresource belongs into the syncer's ``rights``.

    Args:
        host: The host object as it was observed, with only these fields besides its metadata.
        subresource: The name of the subresource.
        reason: A sentence for the person who asks why, in `syncer parked` and in the log.
        afterwards: Returns annotations to set once the API server has accepted the fields, given
            the object as it is then; None for none. With it, the fields are only sent to the object
            as it was last observed, so that an item of another client doesn't count as ours.
    """
    write = Write(
        Side.HOST,
        Verb.MERGE,
        host,
        partial=True,
        subresource=subresource,
        afterwards=afterwards,
    )
    return Decision((write,), reason)


def skip(reason: str) -> Decision:
    """Do nothing; ``reason`` is why that is right: a text, or a code with arguments
    (:class:`~syncer.api.reasons.ReasonCode`).
    """
    return Decision(reason=reason, outcome=Outcome.SKIPPED)


def wait(reason: str, *, after: float | None = None, on: tuple[ObjectRef, ...] = ()) -> Decision:
    """Do nothing yet: something that the object needs is missing.

    The decision is made again when an object of ``on`` appears or changes, or after ``after``
    seconds (None: no timer). ``reason`` is as for :func:`skip`.
    """
    return Decision(reason=reason, outcome=Outcome.PENDING, after=after, on=on)


def retry(after: float, reason: str) -> Decision:
    """Decide again in ``after`` seconds."""
    return Decision(reason=reason, outcome=Outcome.PENDING, after=after)
