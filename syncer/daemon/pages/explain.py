"""Explain an object: its state with the reason, and everything that its decision was made from.

The state and the reason are those of the latest attempt (:class:`RequestStatuses`). The rest is
decided again, from the caches, as a scan of the patroller decides it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from syncer.api import reasons
from syncer.api.decision import Write
from syncer.api.errors import ClusterError, SyncerError
from syncer.api.objects import Json, Key, Obj, ObjectRef, Resource, Side, SyncRequest
from syncer.api.optional_roles import Refers
from syncer.api.paths import EACH, path_steps, path_text
from syncer.api.reasons import RequestState, StateReason
from syncer.api.reference_paths import Named
from syncer.api.texts import shortened
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.clusters.codec import DecodeError
from syncer.daemon.pages.status import IN_STEP, unread
from syncer.daemon.process import Process
from syncer.engine.controllers.failure_reasons import failure_reason
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatus, decided_status
from syncer.engine.controllers.retry_policy import RetryAction, retry_for
from syncer.engine.reconcile.controller import BoundSyncer, safely
from syncer.engine.reconcile.drift import drifts, other_owner
from syncer.engine.reconcile.drift import path_text as drift_path
from syncer.engine.reconcile.managed_fields import writers
from syncer.engine.reconcile.plan import Frozen
from syncer.engine.reconcile.trace import Explained
from syncer.translate.authority import authority_of
from syncer.translate.times import written

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
    answer = row(process, controller, request, status)
    answer["lastError"] = _last_error(process, request)
    if not _runs(pair, controller):
        return answer
    found = pair.reconciler.explain(controller, request)
    managers = await _managers(pair, controller, request)
    return {
        **answer,
        **_decided(pair, controller, found),
        "lacks": _lacks(process, pair, controller, request),
        "owners": _owners(controller),
        "leftOut": list(found.left_out),
        "frozen": _frozen(pair, request),
        "lastWrite": _last_write(managers),
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
    host_key = request.host_key or controller.host_key(request.key)
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


def frozen_field(one: Frozen) -> dict[str, str]:
    """Return a frozen field as JSON."""
    return {
        "object": str(one.ref),
        "field": one.field or "(all of it)",
        "until": one.ends,
        "other": one.other,
    }


async def _managers(
    pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> list[dict[str, Any]]:
    """Return who wrote the two objects and when, the latest first, ours among them.

    The live objects are read, as the caches don't keep it. One that can't be read has none.
    """
    found: list[dict[str, Any]] = []
    for client, resource, key in _live(pair, controller, request):
        try:
            live = await client.get(resource, key)
        except (ClusterError, DecodeError):
            continue
        for manager in writers(live):
            one = {
                "side": client.side.value,
                "manager": manager.name,
                "time": manager.time,
                "subresource": manager.subresource,
                "ours": manager.name == FIELD_MANAGER,
            }
            found.append(one)
    return found


def _last_write(managers: Iterable[Mapping[str, Any]]) -> dict[str, str] | None:
    """Return the side and the time of our latest write, which may be an earlier daemon's."""
    latest: dict[str, str] | None = None
    for each in managers:
        if each["ours"] and (latest is None or each["time"] > latest["time"]):
            latest = {"side": each["side"], "time": each["time"]}
    return latest


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


def _live(
    pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> Iterator[tuple[Any, Resource, Key]]:
    syncer = controller.syncer
    if controller.has(Side.VIRTUAL, request.key):
        yield pair.virtual, syncer.resource, request.key
    host_key = request.host_key or controller.host_key(request.key)
    if controller.has(Side.HOST, host_key):
        yield pair.host, syncer.host_resource, host_key


def is_called(syncer: str, kind: str) -> bool:
    """Return True if a syncer that hasn't begun is meant: by its name, or the plural in it.

    That of an entry of ``sync.custom`` is a plural with its group.
    """
    name = syncer.lower()
    return kind.lower() in (name, name.partition(".")[0])


def waiting_syncers(
    process: Process, pairs: Iterable[ClusterPair], kind: str, key: Key
) -> Iterator[dict[str, Any]]:
    """Yield the syncers of this name that have not begun, as explanations of an object."""
    for pair in pairs:
        for name, why in process.served[pair.name].waiting().items():
            if is_called(name, kind):
                reason = reasons.SYNCER_WAITS(name, why)
                yield {
                    "cluster": pair.name,
                    "syncer": name,
                    "kind": kind,
                    "key": str(key),
                    "hostKey": "",
                    "onVirtual": False,
                    "onHost": False,
                    **stated(RequestState.PENDING, reason),
                }
