"""The pipeline: all policies in their order, which is defined here alone.

A policy that is disabled for a syncer is not in its pipeline, and so costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from syncer.api.decision import Decision
from syncer.api.objects import Resource, Side, SyncRequest
from syncer.api.optional_roles import Grants
from syncer.api.roles import Syncer
from syncer.directions import resources_of
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.plan import (
    CallObserver,
    Deferred,
    Observed,
    Plan,
    PlannedWrite,
    Results,
)
from syncer.engine.reconcile.policies.bound_pods import BoundPods
from syncer.engine.reconcile.policies.breaker import CircuitBreaker
from syncer.engine.reconcile.policies.confirmation_pace import ConfirmationPace
from syncer.engine.reconcile.policies.contention import Contention
from syncer.engine.reconcile.policies.drift_policy import DriftPolicy
from syncer.engine.reconcile.policies.futile import FutilePatches
from syncer.engine.reconcile.policies.generations import Generations, brings_up_status
from syncer.engine.reconcile.policies.host_made import leave_to_the_host
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.reconcile.policies.limits import refuse_unreadable
from syncer.engine.reconcile.policies.ownership import Ownership
from syncer.engine.reconcile.policies.pause import Pause
from syncer.engine.reconcile.policies.placement import refuse_other_key
from syncer.engine.reconcile.policies.preconditions import add_preconditions
from syncer.engine.reconcile.policies.refusals import Refusals
from syncer.engine.reconcile.policies.revocation import Revocation
from syncer.engine.reconcile.policies.room import Room
from syncer.engine.reconcile.policies.selection import deselect
from syncer.engine.reconcile.policies.staleness import delay_unconfirmed_deletions, guard_pod_start
from syncer.engine.reconcile.policies.write_pace import WritePace
from syncer.resources.kinds import PODS
from syncer.translate.patches import Patcher

#: Lets the calls of a plan be sent now, or returns why not. The text is the version of the original
#: that the request has just written from; None if it has written nothing yet.
AdmissionGate = Callable[[Plan, str | None], Deferred | None]
#: Answers a request instead of its syncer, or returns None.
Answer = Callable[[Observed], Decision | None]
#: Takes a decision and returns the one that applies. May raise Refused.
DecisionPolicy = Callable[[Observed, Decision], Decision]
#: Takes a planned write and returns it with the calls to make.
CallPolicy = Callable[[PlannedWrite, SyncRequest], PlannedWrite]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The policies for the requests of a controller, in order."""

    #: Policies that let the calls of a plan go out now; the first that doesn't defers them all.
    gates: tuple[AdmissionGate, ...]
    #: Takes out of a copy what is no longer granted, before any other policy, and also if the
    #: virtual object can't be read. None if the syncer's copies grant nothing and its section has
    #: no selector.
    revocation: Answer | None
    #: Policies that may answer instead of the syncer; the first answer is final. The first one
    #: refuses objects that are too large or can't be read.
    answers: tuple[Answer, ...]
    #: Policies that may decide instead of the syncer; the first decision is treated as the syncer's
    #: own.
    substitutes: tuple[Answer, ...]
    #: Policies that may decide instead of a role, once exclusions, marks, uids and deletions have
    #: been checked; the first decision is treated as the syncer's own.
    role_substitutes: tuple[Answer, ...]
    #: Policies for every decision.
    decisions: tuple[DecisionPolicy, ...]
    #: Policies for a decision that deletes an object, after the others.
    deletions: tuple[DecisionPolicy, ...]
    #: Translates the generations in a status that comes up, once the writes of the copy are
    #: planned. None if no status does.
    generations: Generations | None
    #: Policies for the calls of a write.
    calls: tuple[CallPolicy, ...]
    #: Policies that learn from the calls that were made.
    results: Results


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipeline for a controller's requests, and the shorter one for a scan of the patroller."""

    requests: Pipeline
    scan: Pipeline


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a cluster pair that keep state between requests."""

    pause: Pause
    breaker: CircuitBreaker
    drift: DriftPolicy
    contention: Contention
    futile: FutilePatches
    refusals: Refusals
    homes: HostNamespaces
    room: Room
    write_pace: WritePace
    bound_pods: BoundPods
    confirmations: ConfirmationPace


def pipelines(
    controller: BoundSyncer,
    policies: Policies,
    patcher: Patcher,
    ownership: Ownership | None,
    has_status: Callable[[Side, Resource], bool],
) -> Pipelines:
    """Return the pipelines of a controller.

    The pipeline of the patroller is without the circuit breaker and the drift policy, and counts no
    new contention, so that all drift is found. It has no gates, as it writes nothing.

    Args:
        controller: The controller.
        policies: The policies that all controllers share.
        patcher: The patches of its section.
        ownership: Its policy for ``authority`` and ``onHostDeletion``; None if both have their
            defaults.
        has_status: Returns True if a resource has the status subresource on a side.
    """
    generations = None
    if controller.direction.goes_down and brings_up_status(controller.syncer):
        generations = Generations(controller.syncer, has_status)
    return Pipelines(
        requests=_pipeline(controller, policies, patcher, ownership, generations, scan=False),
        scan=_pipeline(controller, policies, patcher, ownership, generations, scan=True),
    )


def _pipeline(
    controller: BoundSyncer,
    policies: Policies,
    patcher: Patcher,
    ownership: Ownership | None,
    generations: Generations | None,
    *,
    scan: bool,
) -> Pipeline:
    syncer = controller.syncer
    goes_down = controller.direction.goes_down
    selects = goes_down and controller.config.selector.narrows
    contention = policies.contention

    gates: list[AdmissionGate] = []
    if not scan:
        gates += (policies.room.admit, policies.write_pace.admit, policies.confirmations.admit)

    revocation = None
    if goes_down and (selects or isinstance(syncer, Grants)):
        revocation = Revocation(controller, patcher, policies.pause.holds).revoked

    substitutes: list[Answer] = []
    if goes_down:
        substitutes.append(leave_to_the_host)

    role_substitutes: list[Answer] = []
    if selects:
        role_substitutes.append(deselect)

    decisions: list[DecisionPolicy] = []
    if patcher.has_any:
        decisions.append(_patched(patcher))
    if ownership:
        decisions.append(ownership.apply_owners)
    if PODS in resources_of(syncer)[1:]:
        decisions.append(guard_pod_start)
    # Without host namespaces of its own, a tenant's namespaces decide where the copies are put.
    is_free = controller.settings.names.host_namespaces() is None and controller.is_among_copies
    if is_free and goes_down and syncer.host_resource.namespaced:
        decisions.append(policies.homes.hold_back)

    deletions: list[DecisionPolicy] = [add_preconditions, delay_unconfirmed_deletions]
    if not scan:
        deletions.append(policies.breaker.admit)

    calls: list[CallPolicy] = []
    sent: list[CallObserver] = []
    stores = (*controller.stores, *controller.extras)
    sees_pods = any(store.side is Side.VIRTUAL and store.resource == PODS for store in stores)
    if sees_pods:
        calls.append(policies.bound_pods.drop_bound)
        sent.append(policies.bound_pods.sent)
    is_lenient = bool(policies.drift.lenient(controller.name))
    if is_lenient and not scan:
        calls.append(policies.drift.drop_tolerated)
    if contention.is_on:
        drop_contended = contention.drop_frozen if scan else contention.drop_contended
        calls.append(drop_contended)
    calls.append(policies.futile.drop_futile)
    if _merges(syncer):
        calls.append(policies.refusals.drop_refused)

    sent += (policies.futile.answered, policies.write_pace.sent)
    if contention.is_on:
        sent.append(contention.sent)
    settled = (policies.drift.settled,) if is_lenient else ()
    return Pipeline(
        gates=tuple(gates),
        revocation=revocation,
        answers=(refuse_unreadable, policies.pause.answer, refuse_other_key),
        substitutes=tuple(substitutes),
        role_substitutes=tuple(role_substitutes),
        decisions=tuple(decisions),
        deletions=tuple(deletions),
        generations=generations,
        calls=tuple(calls),
        results=Results(
            sent=tuple(sent),
            frozen=(contention.freeze,),
            named=(contention.report,),
            settled=settled,
            refused=(policies.refusals.note,),
        ),
    )


def _merges(syncer: Syncer) -> bool:
    """Return True if a syncer has a right to change a subresource of its copies."""
    for right in syncer.rights:
        is_of_copies = right.side is Side.HOST and right.resource == syncer.host_resource
        if is_of_copies and right.subresource and "patch" in right.verbs:
            return True
    return False


def _patched(patcher: Patcher) -> DecisionPolicy:
    def patch(observed: Observed, decision: Decision) -> Decision:
        return patcher.apply(
            decision, ctx=observed.ctx, virtual=observed.virtual, host=observed.host
        )

    return patch
