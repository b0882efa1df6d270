"""Handlers of the control API, for an operator's commands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from syncer.api.errors import Refused
from syncer.api.objects import Request
from syncer.directions import resources_of
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatus, State
from syncer.engine.engine import Engine
from syncer.engine.patrol.patrollers import confirm, report
from syncer.engine.reconcile.controller import Controller
from syncer.engine.status import IN_STEP, syncers
from syncer.observe.control import Control
from syncer.translate.times import written


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of a command: cluster pairs, names of syncers, and a key (``""`` for every key)."""

    pairs: Sequence[ClusterPair]
    syncers: frozenset[str]
    key: str = ""

    def has(self, request: Request) -> bool:
        """Return True if a request is selected."""
        meant = request.syncer in self.syncers and self.key in ("", str(request.key))
        return meant and any(pair.name == request.cluster for pair in self.pairs)


def selection(engine: Engine, *, cluster: str = "", kinds: Iterable[str] = ("",), key: str = "") -> Selection:
    """Return the selection for these words; ``""`` selects every virtual cluster, kind or key.

    A kind is the name of a syncer, a kind, or a plural.

    Raises:
        Refused: No virtual cluster or synced kind has this name.
    """
    pairs = [pair for pair in engine.pairs.values() if cluster in ("", pair.name)]
    if not pairs:
        raise Refused(f"this daemon serves no virtual cluster {cluster!r}; it serves {', '.join(sorted(engine.pairs))}")
    names: frozenset[str] = frozenset()
    return Selection(pairs, names.union(*(_syncers(pairs, kind) for kind in kinds)), key)


def _syncers(pairs: Iterable[ClusterPair], kind: str) -> frozenset[str]:
    controllers = [controller for pair in pairs for controller in pair.controllers.values()]
    found = frozenset(each.syncer.name for each in controllers if not kind or kind.lower() in _names(each))
    if not found and kind:
        known = ", ".join(sorted({each.syncer.name for each in controllers}))
        raise Refused(f"nothing that is synced is called {kind!r}; there are {known}")
    return found


def _names(controller: Controller) -> Iterable[str]:
    for resource in resources_of(controller.syncer):
        yield from (str(resource).lower(), resource.plural.lower(), resource.kind.lower())
    yield controller.syncer.name.lower()


def parked(engine: Engine, chosen: Selection) -> list[dict[str, Any]]:
    """Return the parked requests of a selection, the longest parked first."""
    found = sorted(_parked(engine, chosen), key=lambda each: (each[1].since, each[0].syncer, each[0].key))
    return [_said(engine, request, status) for request, status in found]


def standing(engine: Engine, pairs: Iterable[ClusterPair]) -> list[dict[str, Any]]:
    """Return the state and the counts of each syncer of these pairs."""
    return [
        {
            "cluster": one.cluster,
            "syncer": one.syncer,
            "standing": one.standing.value,
            "mapped": one.mapped,
            "inStep": one.objects.get(IN_STEP, 0),
            **{state.value: one.objects.get(state, 0) for state in State},
            "collisions": one.collisions,
            "reason": one.reason,
        }
        for one in syncers(engine, pairs)
    ]


def retry(engine: Engine, chosen: Selection) -> list[dict[str, Any]]:
    """Retry the parked requests of a selection now, and return them like :func:`parked`."""
    found = parked(engine, chosen)
    for request, _ in list(_parked(engine, chosen)):
        engine.queue.add(request)
    return found


def _parked(engine: Engine, chosen: Selection) -> Iterator[tuple[Request, RequestStatus]]:
    for request, status in engine.statuses.troubles():
        if status.state is State.PARKED and chosen.has(request):
            yield request, status


def _said(engine: Engine, request: Request, status: RequestStatus) -> dict[str, Any]:
    now = engine.clock()
    seconds, due = max(now - status.since, 0.0), engine.queue.delayed().get(request, now)
    return {
        "cluster": request.cluster,
        "syncer": request.syncer,
        "key": str(request.key),
        "since": written(engine.utcnow() - timedelta(seconds=seconds)),
        "seconds": round(seconds),
        "tried": status.tried,
        "class": status.error,
        "reason": status.reason,
        "wakes": ["a change of the object or its copy", *engine.workers.wakeups.reasons(request)],
        "nextTry": round(due - now),
    }


def thaw(engine: Engine, chosen: Selection) -> list[dict[str, Any]]:
    """Thaw the frozen fields of a selection, and return them."""
    found = []
    for pair in chosen.pairs:
        for one in pair.policies.contention.thaw(lambda one: chosen.has(one.request)):
            engine.queue.add(one.request)
            found.append(one)
    return [
        {
            "cluster": one.request.cluster,
            "syncer": one.request.syncer,
            "key": str(one.request.key),
            "side": str(one.place[0]),
            "field": one.field or "(all of it)",
        }
        for one in found
    ]


def add(control: Control, engine: Engine) -> None:
    """Register the handlers for this engine.

    A request may name a virtual cluster (``cluster``); otherwise it is about all of them.
    """

    def objects(given: Mapping[str, Any]) -> Selection:
        cluster, kind, key = (str(given.get(word) or "") for word in ("cluster", "kind", "key"))
        return selection(engine, cluster=cluster, kinds=(kind,), key=key)

    async def answer_status(given: Mapping[str, Any]) -> Any:
        return standing(engine, objects(given).pairs)

    async def answer_parked(given: Mapping[str, Any]) -> Any:
        return parked(engine, objects(given))

    async def answer_retry(given: Mapping[str, Any]) -> Any:
        return retry(engine, objects(given))

    async def answer_thaw(given: Mapping[str, Any]) -> Any:
        return thaw(engine, objects(given))

    async def answer_patrol(given: Mapping[str, Any]) -> Any:
        kinds = str(given.get("kinds") or "").split(",")
        chosen = selection(engine, cluster=str(given.get("cluster") or ""), kinds=kinds)
        patrolled = [(pair, engine.served[pair.name].patroller) for pair in chosen.pairs]
        return [report(pair, each, lambda name: name in chosen.syncers) for pair, each in patrolled if each is not None]

    async def answer_confirm(given: Mapping[str, Any]) -> Any:
        kinds = [str(kind) for kind in given.get("kinds") or [""]]
        chosen = selection(engine, cluster=str(given.get("cluster") or ""), kinds=kinds)
        held = confirm(engine, chosen.pairs, lambda name: name in chosen.syncers)
        return [
            {"cluster": cluster, "syncer": one.syncer, "side": str(one.side), "deletions": len(one.objects)}
            for cluster, one in held
        ]

    control.add("GET", "/status", answer_status)
    control.add("GET", "/parked", answer_parked)
    control.add("POST", "/retry", answer_retry)
    control.add("POST", "/thaw", answer_thaw)
    control.add("GET", "/patrol", answer_patrol)
    control.add("POST", "/confirm", answer_confirm)
