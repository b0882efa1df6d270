"""Explain an object: its state with the reason, and everything that its decision was made from.

The state and the reason are those of the latest attempt (:class:`RequestStatuses`). The rest is
decided again, from the caches, as a scan of the patroller decides it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from syncer.api import reasons
from syncer.api.decision import Write
from syncer.api.errors import SyncerError
from syncer.api.objects import Json, Key, Obj, ObjectRef, Resource, Side, SyncRequest
from syncer.api.optional_roles import Refers
from syncer.api.paths import EACH, path_steps, path_text
from syncer.api.reasons import RequestState, StateReason
from syncer.api.reference_paths import Named
from syncer.api.texts import shortened
from syncer.daemon.pages.kind_names import is_called
from syncer.daemon.pages.live_objects import (
    LiveObject,
    endings,
    host_events,
    last_write,
    live_objects,
    managers_of,
    missed_home,
)
from syncer.daemon.pages.status import IN_STEP, lost, unlisted, unread
from syncer.daemon.process import Process
from syncer.engine.controllers.failure_reasons import failure_reason
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatus, decided_status
from syncer.engine.controllers.retry_policy import RetryAction, retry_for
from syncer.engine.reconcile.controller import BoundSyncer, safely
from syncer.engine.reconcile.drift import drifts, other_owner
from syncer.engine.reconcile.drift import path_text as drift_path
from syncer.engine.reconcile.plan import Frozen
from syncer.engine.reconcile.trace import Explained
from syncer.translate.authority import authority_of
from syncer.translate.times import written

#: The reasons of an object, besides of one in step, that may be otherwise on a side that isn't read
#: at present, or that waits for that side.
_UNSEEN = (reasons.NO_OBJECT, reasons.QUEUED)
#: Objects that are named as read, and fields of a drift.
MOST_SHOWN = 50
#: Names in an object of which the copies are looked for.
MOST_NAMES = 500


def find(controller: BoundSyncer, key: Key) -> SyncRequest | None:
    """Return the request of the object with this name on either side; None if there is none.

    The virtual side's name comes first.
    """
    direction = controller.direction
    if controller.has(Side.VIRTUAL, key):
        if direction.goes_down or direction.fakes:
            return controller.request(key)
        return _of_shown(controller, key)
    host = controller.host_at(key)
    if host is None or key not in host:
        return None
    return controller.request_for(Side.HOST, key, host.get(key))


def _of_shown(controller: BoundSyncer, key: Key) -> SyncRequest:
    """Return the request of a virtual object that came from the host."""
    host_key = controller.host_key(key)
    host = controller.host_at(host_key)
    if host is not None and host_key in host:
        request = controller.request_for(Side.HOST, host_key, host.get(host_key))
        if request is not None and request.key == key:
            return request
    return controller.request(key)


async def explained(
    process: Process, pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> dict[str, Any]:
    """Return the state of a request, the reason, and what it was decided from, as JSON."""
    status = status_of(process, pair, controller, request)
    unanswered = lost(process, pair.name)
    if status is None or status.reason.code in _UNSEEN:
        unseen = unanswered or "; ".join(sorted(unlisted(pair, controller)))
        if unseen:
            why = reasons.NOT_SEEN(unseen)
            status = RequestStatus(RequestState.PENDING, why, since=process.clock())
    answer = row(process, controller, request, status)
    answer["lastError"] = _last_error(process, request)
    if not _runs(pair, controller):
        return answer
    found = pair.reconciler.explain(controller, request)
    live: list[LiveObject] = []
    home: list[LiveObject] = []
    if not unanswered:
        live = await live_objects(pair, controller, request)
        home = await missed_home(pair, controller, request)
    managers = managers_of(live)
    return {
        **answer,
        **_decided(pair, controller, found),
        "lacks": _lacks(process, pair, controller, request),
        "owners": _owners(controller),
        "leftOut": list(found.left_out),
        "frozen": _frozen(pair, request),
        "notKept": _not_kept(pair, controller, request),
        "ending": endings([*live, *home]),
        "hostEvents": await host_events(pair, live),
        "lastWrite": last_write(managers),
        "managers": managers,
    }


def row(
    process: Process,
    controller: BoundSyncer,
    request: SyncRequest,
    status: RequestStatus | None,
) -> dict[str, Any]:
    """Return the names and the state of a request, with the reason, as JSON.

    ``status`` is that of :func:`status_of`.
    """
    host_key = controller.host_key_of(request)
    by_host = controller.direction.by_host
    names = {
        "cluster": request.cluster,
        "syncer": request.syncer,
        "kind": controller.syncer.resource.kind,
        "key": str(request.key),
        "hostKey": str(host_key) if by_host else "",
        "onVirtual": controller.has(Side.VIRTUAL, request.key),
        "onHost": controller.has(Side.HOST, host_key),
    }
    if status is None:
        return {**names, "state": IN_STEP, "code": "", "reason": "", "wayOut": ""}
    seconds = max(process.clock() - status.since, 0.0)
    due = process.queue.delayed().get(request)
    is_known = process.statuses.of(request) is not None
    return {
        **names,
        **stated(status.state, status.reason),
        "class": status.error,
        "since": written(process.utcnow() - timedelta(seconds=seconds)) if is_known else "",
        "seconds": round(seconds),
        "tried": status.tried if is_known else 0,
        "nextTry": None if due is None else round(due - process.clock()),
        "wakes": ["a change of the object or its copy", *process.workers.wakeups.reasons(request)],
    }


def stated(state: RequestState, reason: StateReason) -> dict[str, Any]:
    """Return a state and its reason as JSON."""
    return {
        "state": state.value,
        "code": reason.code.name,
        "reason": str(reason),
        "wayOut": reason.way_out,
    }


def status_of(
    process: Process, pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> RequestStatus | None:
    """Return the status of a request; None if it is in step.

    A process without workers, as that of a command, decides it here.
    """
    now = process.clock()
    status = process.statuses.of(request)
    if status is not None:
        return status
    if not _runs(pair, controller):
        return RequestStatus(RequestState.PENDING, not_running(pair, controller), since=now)
    if process.is_working and process.queue.holds(request):
        return RequestStatus(RequestState.PENDING, reasons.QUEUED(), since=now)
    if process.is_working and not pair.is_gone(request):
        return None
    return decide_status(pair, controller, request, now)


def _runs(pair: ClusterPair, controller: BoundSyncer) -> bool:
    """Return True if a syncer is ready, and hasn't been stopped or replaced meanwhile."""
    return controller.ready and pair.controllers.get(controller.name) is controller


def not_running(pair: ClusterPair, controller: BoundSyncer) -> StateReason:
    """Return why a syncer isn't ready."""
    failures = unread(pair, controller)
    if failures:
        return reasons.SYNCER_WAITS(controller.name, "; ".join(sorted(failures)))
    return reasons.SYNCER_STARTS(controller.name)


def decide_status(
    pair: ClusterPair, controller: BoundSyncer, request: SyncRequest, now: float
) -> RequestStatus | None:
    """Return the status that a decision made now leads to; None if it is in step."""
    found = pair.reconciler.explain(controller, request)
    if found.error is not None:
        text = _text(found.error)
        is_parked = retry_for(found.error, 0).action is RetryAction.PARK
        state = RequestState.PARKED if is_parked else RequestState.FAILING
        error = type(found.error).__name__
        return RequestStatus(state, failure_reason(found.error, text), error, now)
    assert found.plan is not None
    decided = decided_status(found.plan.decision)
    if decided is not None:
        return RequestStatus(*decided, since=now)
    if found.plan.calls:
        return RequestStatus(
            RequestState.PENDING, reasons.UNWRITTEN(len(found.plan.calls)), since=now
        )
    return None


def _text(error: Exception) -> str:
    if isinstance(error, SyncerError):
        return shortened(str(error))
    return shortened(f"{type(error).__name__}: {error}")


def _decided(pair: ClusterPair, controller: BoundSyncer, found: Explained) -> dict[str, Any]:
    """Return the decision, the policies that made it, what it read, and the drift."""
    steps = [{"policy": step.name, "what": step.what} for step in found.steps]
    reads: dict[str, bool] = {}
    for store, key, _ in found.reads[:MOST_SHOWN]:
        reads[str(ObjectRef(store.side, store.resource, key))] = key in store
    answer: dict[str, Any] = {
        "steps": steps,
        "reads": [{"object": ref, "exists": exists} for ref, exists in reads.items()],
    }
    if found.plan is None:
        assert found.error is not None
        return {**answer, "decision": {"error": _text(found.error)}, "drift": []}
    plan = found.plan
    decision = plan.decision
    reason = decision.reason
    answer["decision"] = {
        "outcome": decision.outcome.value,
        "code": reason.code.name if isinstance(reason, StateReason) else "",
        "reason": str(reason),
        "writes": [_write(each.write, each.ref, len(each.calls)) for each in plan.writes],
        "after": decision.after,
    }
    observed = plan.observed
    marks = pair.settings.marks
    owner = other_owner(observed.virtual, observed.host, uid_mark=marks.uid)
    drift = []
    for planned in plan.writes:
        for one in drifts(
            planned.write,
            planned.calls,
            planned.live,
            resource=planned.ref.resource,
            owner=owner,
        ):
            paths = [drift_path(change.path) for change in one.changes[:MOST_SHOWN]]
            drift.append({"class": one.kind, "object": str(planned.ref), "paths": paths})
    return {**answer, "drift": drift}


def _write(write: Write, ref: ObjectRef, calls: int) -> dict[str, Any]:
    return {"verb": write.verb.value, "object": str(ref), "calls": calls}


def _lacks(
    process: Process, pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> list[dict[str, str]]:
    """Return the objects without a copy that a virtual object names, with their states."""
    syncer = controller.syncer
    if not isinstance(syncer, Refers) or controller.virtual is None:
        return []
    virtual = controller.virtual.get(request.key)
    if virtual is None:
        return []
    names_in = safely(pair.name, syncer, syncer.references_down.named)
    found: dict[tuple[Resource, Key], dict[str, str]] = {}
    for named in names_in(virtual)[:MOST_NAMES]:
        is_needed = named.reference.use == "used" and not named.shows
        maker = _maker(pair, named.resource)
        if not is_needed or maker is None or maker.has(Side.HOST, maker.host_key(named.key)):
            continue
        if _may_be_missing(virtual, named):
            continue
        status = status_of(process, pair, maker, maker.request(named.key))
        if status is not None:
            found[named.resource, named.key] = {
                "object": f"{named.resource.kind} {named.key}",
                **stated(status.state, status.reason),
            }
        if len(found) == MOST_SHOWN:
            break
    return list(found.values())


def _may_be_missing(virtual: Obj, named: Named) -> bool:
    """Return True if ``optional: true`` is beside each place of the name."""
    *above, last = path_steps(named.path)
    is_named = False
    for holder in _values(virtual, above):
        if isinstance(holder, dict) and holder.get(last) == named.key.name:
            if holder.get("optional") is not True:
                return False
            is_named = True
    return is_named


def _values(value: Json, steps: Sequence[str]) -> Iterator[Json]:
    """Yield the values at a path."""
    if not steps:
        yield value
    elif steps[0] == EACH and isinstance(value, list):
        for item in value:
            yield from _values(item, steps[1:])
    elif isinstance(value, dict) and steps[0] in value:
        yield from _values(value[steps[0]], steps[1:])


def _maker(pair: ClusterPair, resource: Resource) -> BoundSyncer | None:
    """Return the syncer that copies a resource to the host; None if none does at present."""
    for controller in pair.controllers.values():
        is_of = controller.syncer.resource == resource and controller.direction.makes_copies
        if is_of and _runs(pair, controller):
            return controller
    return None


def _owners(controller: BoundSyncer) -> Mapping[str, Sequence[str]]:
    """Return the paths of fields that are synced, by their owner."""
    syncer = controller.syncer
    owners: dict[str, str] = {}
    for path in syncer.down:
        owners[path_text(path)] = Side.VIRTUAL.value
    for path in syncer.up:
        owners[path_text(path)] = Side.HOST.value
    owners |= authority_of(syncer, controller.config).owners
    found: dict[str, list[str]] = {}
    for path, owner in owners.items():
        found.setdefault(owner, []).append(path)
    return found


def _frozen(pair: ClusterPair, request: SyncRequest) -> list[dict[str, str]]:
    frozen = pair.policies.contention.frozen()
    return [frozen_field(one) for one in frozen if one.request == request]


def _not_kept(
    pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> list[dict[str, str]]:
    """Return the fields that an API server has dropped or rewritten."""
    syncer = controller.syncer
    host_key = controller.host_key_of(request)
    found: list[dict[str, str]] = []
    for ref in (
        ObjectRef(Side.VIRTUAL, syncer.resource, request.key),
        ObjectRef(Side.HOST, syncer.host_resource, host_key),
    ):
        paths = pair.policies.futile.rewritten(ref)[:MOST_SHOWN]
        found += [{"object": str(ref), "field": drift_path(path)} for path in paths]
    return found


def frozen_field(one: Frozen) -> dict[str, str]:
    """Return a frozen field as JSON."""
    return {
        "object": str(one.ref),
        "field": one.field or "(all of it)",
        "until": one.ends,
        "other": one.other,
    }


def _last_error(process: Process, request: SyncRequest) -> dict[str, Any] | None:
    last = process.statuses.last_error(request)
    if last is None:
        return None
    seconds = max(process.clock() - last.at, 0.0)
    return {
        "class": last.error,
        "message": last.message,
        "time": written(process.utcnow() - timedelta(seconds=seconds)),
        "seconds": round(seconds),
    }


def waiting_syncers(
    process: Process, pairs: Iterable[ClusterPair], kind: str, key: Key
) -> Iterator[dict[str, Any]]:
    """Yield the syncers of this name that have not begun, as explanations of an object."""
    for pair in pairs:
        for name, why in process.served[pair.name].waiting().items():
            if is_called(name, kind):
                yield _unknown(pair.name, name, kind, key, reasons.SYNCER_WAITS(name, why))


def unserved_clusters(process: Process, kind: str, key: Key) -> Iterator[dict[str, Any]]:
    """Yield the virtual clusters that can't be served, as explanations of an object."""
    for name, why in process.unserved.clusters.items():
        if name not in process.served:
            yield _unknown(name, "", kind, key, reasons.CLUSTER_UNSERVED(name, why.message))


def _unknown(cluster: str, syncer: str, kind: str, key: Key, reason: StateReason) -> dict[str, Any]:
    """Return the explanation of an object of which no side is read yet, as JSON."""
    return {
        "cluster": cluster,
        "syncer": syncer,
        "kind": kind,
        "key": str(key),
        "hostKey": "",
        "onVirtual": False,
        "onHost": False,
        **stated(RequestState.PENDING, reason),
    }
