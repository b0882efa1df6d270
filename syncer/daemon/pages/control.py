"""Handlers of the control API, for an operator's commands."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from syncer.api import reasons, selectors
from syncer.api.errors import Refused
from syncer.api.objects import Key, Obj, SyncRequest
from syncer.api.reasons import RequestState
from syncer.daemon.pages.explain import explained, find, unserved_clusters, waiting_syncers
from syncer.daemon.pages.kind_names import is_called, plural_of, why_unsynced
from syncer.daemon.pages.listing import PAGE, STATES, ListPage, ObjectFilter, limit_of, page
from syncer.daemon.pages.status import IN_STEP, clusters, failed, lost, mapped, syncers
from syncer.daemon.process import Process
from syncer.directions import resources_of
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatus
from syncer.engine.patrol.patrollers import confirm, report
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.plan import Frozen
from syncer.engine.reconcile.reconciler import cannot_be_read
from syncer.observe.control import Control
from syncer.translate.times import written

#: The states of requests that only a person ends.
_HELD = (RequestState.PENDING, RequestState.PAUSED, RequestState.FROZEN)


@dataclass(frozen=True, slots=True)
class CommandSelection:
    """The selection of a command: cluster pairs, names of syncers, and a key or ``""`` for all."""

    pairs: Sequence[ClusterPair]
    syncers: frozenset[str]
    key: str = ""

    def has(self, request: SyncRequest) -> bool:
        """Return True if a request is selected."""
        if request.syncer not in self.syncers or self.key not in ("", str(request.key)):
            return False
        return any(pair.name == request.cluster for pair in self.pairs)


def selection(
    process: Process,
    *,
    cluster: str = "",
    kinds: Iterable[str] = ("",),
    key: str = "",
) -> CommandSelection:
    """Return the selection for these words; ``""`` selects every virtual cluster, kind or key.

    A kind is the name of a syncer, a kind, or a plural.

    Raises:
        Refused: No virtual cluster or synced kind has this name.
    """
    absent = process.unserved.clusters.get(cluster)
    if absent is not None and cluster not in process.served:
        raise Refused(f"virtual cluster {cluster} can't be served at present: {absent.message}")
    if cluster in process.served and not process.leads(cluster):
        why = f"this replica stands by for virtual cluster {cluster}"
        raise Refused(f"{why}; ask the one that leads it")
    pairs = [pair for pair in process.pairs.values() if process.leads(pair.name)]
    if cluster:
        pairs = [pair for pair in pairs if pair.name == cluster]
    if cluster and not pairs:
        there = ", ".join(sorted(process.pairs)) or "none at present"
        raise Refused(f"this daemon serves no virtual cluster {cluster!r}; it serves {there}")
    names = set[str]()
    for kind in kinds:
        names |= _syncers(process, pairs, kind)
    return CommandSelection(pairs, frozenset(names), key)


def _syncers(process: Process, pairs: Collection[ClusterPair], kind: str) -> frozenset[str]:
    known = set[str]()
    found = set[str]()
    word = plural_of(kind)
    for pair in pairs:
        for controller in pair.controllers.values():
            known.add(controller.syncer.name)
            if not kind or word in _names(controller):
                found.add(controller.syncer.name)
    if found or not kind:
        return frozenset(found)
    for pair in pairs:
        for name, why in process.served[pair.name].waiting().items():
            if is_called(name, kind):
                raise Refused(reasons.SYNCER_WAITS(name, why))
    raise Refused(why_unsynced(kind, known))


def _names(controller: BoundSyncer) -> Iterable[str]:
    for resource in resources_of(controller.syncer):
        yield from (str(resource).lower(), resource.plural.lower(), resource.kind.lower())
    yield controller.syncer.name.lower()


def parked(process: Process, chosen: CommandSelection) -> list[dict[str, Any]]:
    """Return the parked requests of a selection, the longest parked first.

    After them come those that only a person ends, and the objects that can't be read.
    """
    rows = [_shown(process, *each) for each in _parked_requests(process, chosen)]
    return [*rows, *_waiting(process, chosen), *_unreadable(process, chosen)]


def _age(found: tuple[SyncRequest, RequestStatus]) -> tuple[float, str, Key]:
    request, status = found
    return status.since, request.syncer, request.key


def _waiting(process: Process, chosen: CommandSelection) -> Iterator[dict[str, Any]]:
    """Yield the requests that nothing but a person ends.

    These are copies that a pause on the host keeps, and objects that are made and deleted again
    and again.
    """
    for pair in chosen.pairs:
        classes: dict[SyncRequest, str] = {}
        for frozen in pair.policies.contention.frozen():
            if not frozen.path:
                classes[frozen.request] = "Contended"
        for request in pair.policies.pause.kept:
            classes[request] = "Paused"
        for request, kind in classes.items():
            status = process.statuses.of(request)
            is_held = status is not None and status.state in _HELD
            if status is not None and is_held and chosen.has(request):
                yield {**_shown(process, request, status), "class": kind}


def _unreadable(process: Process, chosen: CommandSelection) -> Iterator[dict[str, Any]]:
    """Yield the quarantined objects that no parked request is about, because they are only read.

    Yield also the objects about which an index or a watch of a syncer raised.
    """
    known = {status.reason.partition(":")[0] for _, status in process.statuses.troubles()}
    for pair in chosen.pairs:
        controllers = pair.controllers.values()
        for store in pair.informers:
            readers = [one.name for one in controllers if store in (*one.stores, *one.extras)]
            since = dict.fromkeys(sorted(failed(store)), process.clock()) | store.quarantined
            for key in since:
                text = cannot_be_read(store, key)
                is_chosen = chosen.key in ("", str(key)) and not chosen.syncers.isdisjoint(readers)
                if is_chosen and text.partition(":")[0] not in known:
                    yield {
                        "cluster": pair.name,
                        "syncer": ",".join(readers),
                        "key": str(key),
                        **_times(process, since[key]),
                        "tried": 0,
                        "state": RequestState.PARKED.value,
                        "class": "Unreadable",
                        "code": reasons.UNREADABLE.name,
                        "reason": text,
                        "wayOut": "",
                        "wakes": ["a change of the object"],
                        "nextTry": None,
                    }


def _times(process: Process, since: float) -> dict[str, Any]:
    seconds = max(process.clock() - since, 0.0)
    return {
        "since": written(process.utcnow() - timedelta(seconds=seconds)),
        "seconds": round(seconds),
    }


def syncer_rows(process: Process, pairs: Iterable[ClusterPair]) -> list[dict[str, Any]]:
    """Return the state and the counts of each syncer of these pairs.

    Without the number of mapped objects, for which all of them may have to be looked at:
    :func:`mapped_rows`.
    """
    return [
        {
            "cluster": one.cluster,
            "syncer": one.syncer,
            "state": one.state.value,
            "inStep": one.objects.get(IN_STEP, 0),
            **{state.value: one.objects.get(state, 0) for state in RequestState},
            "collisions": one.collisions,
            "reason": one.reason or lost(process, one.cluster),
        }
        for one in syncers(process, pairs)
    ]


def mapped_rows(process: Process, pairs: Iterable[ClusterPair]) -> list[dict[str, Any]]:
    """Return the same with ``mapped``, the number of objects with a counterpart.

    It is None for a syncer that creates nothing on the other side, and before it has begun.
    """
    rows = syncer_rows(process, pairs)
    for row in rows:
        pair = process.pairs[row["cluster"]]
        controller = pair.controllers.get(row["syncer"])
        row["mapped"] = mapped(pair, controller) if controller is not None else None
    return rows


def retry(process: Process, chosen: CommandSelection) -> list[dict[str, Any]]:
    """Retry the parked requests of a selection now, and return them like :func:`parked`.

    The others that :func:`parked` returns aren't retried, and so not returned.
    """
    found = _parked_requests(process, chosen)
    rows = [_shown(process, *each) for each in found]
    for request, _ in found:
        process.queue.add(request)
    return rows


def _parked_requests(
    process: Process,
    chosen: CommandSelection,
) -> Sequence[tuple[SyncRequest, RequestStatus]]:
    """Return the parked requests of a selection, the longest parked first."""
    found = []
    for request, status in process.statuses.troubles():
        if status.state is RequestState.PARKED and chosen.has(request):
            found.append((request, status))
    return sorted(found, key=_age)


def _shown(process: Process, request: SyncRequest, status: RequestStatus) -> dict[str, Any]:
    now = process.clock()
    due = process.queue.delayed().get(request, now)
    return {
        "cluster": request.cluster,
        "syncer": request.syncer,
        "key": str(request.key),
        **_times(process, status.since),
        "tried": status.tried,
        "state": status.state.value,
        "class": status.error,
        "code": status.reason.code.name,
        "reason": status.reason,
        "wayOut": status.reason.way_out,
        "wakes": ["a change of the object or its copy", *process.workers.wakeups.reasons(request)],
        "nextTry": round(due - now),
    }


async def explain(process: Process, *, cluster: str, kind: str, key: str) -> list[dict[str, Any]]:
    """Return the explanations of an object, by its name on either side: one for each syncer of the
    kind that knows it, or those of an object that isn't there, with what can't be looked into.

    Raises:
        Refused: No virtual cluster or synced kind has this name.
    """
    pairs = selection(process, cluster=cluster).pairs
    wanted = Key.parse(key)
    waiting = list(waiting_syncers(process, pairs, kind, wanted))
    waits_in = {each["cluster"] for each in waiting}
    begun = [pair for pair in pairs if pair.name not in waits_in]
    unserved: list[dict[str, Any]] = []
    if not cluster:
        unserved = list(unserved_clusters(process, kind, wanted))
    try:
        names = _syncers(process, begun, kind)
    except Refused:
        if begun and not waiting:
            raise
        if not waiting and not unserved:
            raise
        return [*waiting, *unserved]
    absent: list[tuple[ClusterPair, BoundSyncer, SyncRequest]] = []
    found: list[tuple[ClusterPair, BoundSyncer, SyncRequest]] = []
    for pair in begun:
        for name in sorted(names & pair.controllers.keys()):
            controller = pair.controllers[name]
            request = find(controller, wanted)
            if request is not None:
                found.append((pair, controller, request))
            else:
                absent.append((pair, controller, controller.request(wanted)))
    rows: list[dict[str, Any]] = []
    for each in found or absent:
        rows.append(await explained(process, *each))
        await asyncio.sleep(0)  # each virtual cluster of a fleet may have a row
    if found:
        return [*rows, *waiting]
    return [*rows, *waiting, *unserved]


async def listed(process: Process, given: Mapping[str, Any], *, most: int = PAGE) -> ListPage:
    """Return a page of the list that a query asks for, with ``most`` objects at most.

    Raises:
        Refused: No virtual cluster, synced kind or state has this name, or the limit is wrong.
    """
    kind = str(given.get("kind") or "")
    pairs = selection(process, cluster=str(given.get("cluster") or "")).pairs
    syncers = _known_syncers(process, pairs, kind)
    states = str(given.get("states") or ",".join(STATES)).split(",")
    for state in states:
        if state not in STATES:
            raise Refused(f"there is no state {state!r}; there are {', '.join(STATES)}")
    wanted = ObjectFilter(
        states,
        namespace=str(given.get("namespace") or ""),
        selector=_selector(str(given.get("selector") or "")),
    )
    begin = str(given.get("begin") or "")
    most = limit_of(given, most)
    return await page(process, pairs, syncers, wanted, begin=begin, most=most)


def _known_syncers(process: Process, pairs: Collection[ClusterPair], kind: str) -> frozenset[str]:
    """Return the syncers of a kind, ``""`` for all, with those that have not begun.

    Raises:
        Refused: No synced kind has this name.
    """
    waiting = {name for pair in pairs for name in process.served[pair.name].waiting()}
    if not kind:
        return _syncers(process, pairs, kind) | waiting
    named = {name for name in waiting if is_called(name, kind)}
    if named:
        return frozenset(named)
    return _syncers(process, pairs, kind)


def _selector(text: str) -> Obj | None:
    try:
        return selectors.parsed(text) if text else None
    except ValueError as error:
        raise Refused(str(error)) from None


def thaw(process: Process, chosen: CommandSelection) -> list[dict[str, Any]]:
    """Thaw the frozen fields of a selection, and return them."""
    found: list[dict[str, Any]] = []

    def is_chosen(one: Frozen) -> bool:
        return chosen.has(one.request)

    for pair in chosen.pairs:
        for one in pair.policies.contention.thaw(is_chosen):
            process.queue.add(one.request)
            thawed = {
                "cluster": one.request.cluster,
                "syncer": one.request.syncer,
                "key": str(one.request.key),
                "side": str(one.ref.side),
                "field": one.field or "(all of it)",
            }
            found.append(thawed)
    return found


def add(control: Control, process: Process) -> None:
    """Register the handlers for this process.

    A request may name a virtual cluster (``cluster``); otherwise it is about all of them.
    """

    def objects(given: Mapping[str, Any]) -> CommandSelection:
        cluster = str(given.get("cluster") or "")
        kind = str(given.get("kind") or "")
        key = str(given.get("key") or "")
        return selection(process, cluster=cluster, kinds=(kind,), key=key)

    async def answer_clusters(given: Mapping[str, Any]) -> Any:
        wanted = str(given.get("cluster") or "")
        return [asdict(each) for each in clusters(process) if wanted in ("", each.cluster)]

    async def answer_status(given: Mapping[str, Any]) -> Any:
        return mapped_rows(process, objects(given).pairs)

    async def answer_parked(given: Mapping[str, Any]) -> Any:
        return parked(process, objects(given))

    async def answer_explain(given: Mapping[str, Any]) -> Any:
        cluster = str(given.get("cluster") or "")
        kind = str(given.get("kind") or "")
        return await explain(process, cluster=cluster, kind=kind, key=str(given.get("key") or ""))

    async def answer_list(given: Mapping[str, Any]) -> Any:
        return asdict(await listed(process, given))

    async def answer_retry(given: Mapping[str, Any]) -> Any:
        return retry(process, objects(given))

    async def answer_thaw(given: Mapping[str, Any]) -> Any:
        return thaw(process, objects(given))

    async def answer_patrol(given: Mapping[str, Any]) -> Any:
        kinds = str(given.get("kinds") or "").split(",")
        chosen = selection(process, cluster=str(given.get("cluster") or ""), kinds=kinds)
        reports = []

        def is_chosen(name: str) -> bool:
            return name in chosen.syncers

        for pair in chosen.pairs:
            patroller = process.served[pair.name].patroller
            if patroller is not None:
                reports.append(report(pair, patroller, is_chosen))
        return reports

    async def answer_confirm(given: Mapping[str, Any]) -> Any:
        kinds = [str(kind) for kind in given.get("kinds") or [""]]
        cluster = str(given.get("cluster") or "")
        if not cluster and len(process.pairs) > 1:
            raise Refused("a confirmation is for one virtual cluster: name it")
        chosen = selection(process, cluster=cluster, kinds=kinds)
        confirmed = confirm(process, chosen.pairs, lambda name: name in chosen.syncers)
        return [
            {
                "cluster": cluster,
                "syncer": one.syncer,
                "side": str(one.side),
                "deletions": len(one.objects),
            }
            for cluster, one in confirmed
        ]

    control.add("GET", "/clusters", answer_clusters)
    control.add("GET", "/status", answer_status)
    control.add("GET", "/parked", answer_parked)
    control.add("GET", "/explain", answer_explain)
    control.add("GET", "/list", answer_list)
    control.add("POST", "/retry", answer_retry)
    control.add("POST", "/thaw", answer_thaw)
    control.add("GET", "/patrol", answer_patrol)
    control.add("POST", "/confirm", answer_confirm)
