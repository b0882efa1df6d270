"""Build patrollers: beside the workers of an engine, or alone, repairing by itself."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from syncer.api.objects import SyncRequest
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestState, RequestStatuses
from syncer.engine.patrol.patroller import PatrolHooks, Patroller
from syncer.engine.patrol.report import Tally
from syncer.engine.reconcile.policies.breaker import HeldDeletions
from syncer.workqueue.queue import Queue

#: Seconds between checks of a repair, and after how many it is left to the next scan.
LOOK, PATIENCE = 0.1, 60.0
#: Attempts to repair a request without workers, and the seconds between them.
ROUNDS, PAUSE = 5, 0.5
#: Requests that are repaired concurrently there.
BESIDE = 16

_TROUBLED = (RequestState.PENDING, RequestState.FAILING, RequestState.PARKED)


class PatrolEngine(Protocol):
    """The parts of an engine that a patroller needs."""

    queue: Queue
    statuses: RequestStatuses
    clock: Callable[[], float]
    utcnow: Callable[[], datetime]
    rng: random.Random


def beside_workers(flow: PatrolEngine, pair: ClusterPair, silent: Callable[[], str | None]) -> Patroller | None:
    """Return a patroller whose repairs go through the queue, at low priority.

    ``silent`` returns which cluster of the pair doesn't answer; None if both do.

    None if the settings disable it.
    """

    async def repair(requests: Sequence[SyncRequest]) -> None:
        for request in requests:
            flow.queue.add(request, low=True)
        deadline = flow.clock() + PATIENCE
        while any(_is_under_way(flow, request) for request in requests):
            if flow.clock() > deadline:
                return
            await asyncio.sleep(LOOK)

    def busy(request: SyncRequest) -> bool:
        status = flow.statuses.of(request)
        return flow.queue.holds(request) or (status is not None and status.state in _TROUBLED)

    return _patroller(flow, pair, PatrolHooks(silent, busy, repair, lambda one: _reason(flow, one)))


def alone(
    flow: PatrolEngine,
    pair: ClusterPair,
    silent: Callable[[], str | None],
    handle: Callable[[SyncRequest, float], Awaitable[object]],
    hands_off: Callable[[], str | None],
) -> Patroller | None:
    """Return a patroller that repairs through ``handle`` at once, or not at all while ``hands_off``
    returns a reason. ``silent`` is as for :func:`beside_workers`.
    """

    async def look(request: SyncRequest, room: asyncio.Semaphore) -> None:
        async with room:
            for _ in range(ROUNDS):
                await handle(request, flow.clock())
                status = flow.statuses.of(request)
                if status is None or status.state is not RequestState.FAILING:
                    return
                await asyncio.sleep(PAUSE)

    async def repair(requests: Sequence[SyncRequest]) -> None:
        room = asyncio.Semaphore(BESIDE)
        await asyncio.gather(*(look(request, room) for request in requests))

    ways = PatrolHooks(
        trouble=silent,
        busy=lambda request: False,
        repair=repair,
        reason=lambda request: _reason(flow, request),
        hands_off=hands_off,
    )
    return _patroller(flow, pair, ways)


def _patroller(flow: PatrolEngine, pair: ClusterPair, ways: PatrolHooks) -> Patroller | None:
    options = pair.settings.patrol
    if options is None:
        return None
    return Patroller(pair, options, ways, clock=flow.clock, utcnow=flow.utcnow, rng=flow.rng)


def _is_under_way(flow: PatrolEngine, request: SyncRequest) -> bool:
    status = flow.statuses.of(request)
    return flow.queue.holds(request) or (status is not None and status.state is RequestState.FAILING)


def _reason(flow: PatrolEngine, request: SyncRequest) -> str:
    status = flow.statuses.of(request)
    if status is not None:
        return status.reason
    return "it waits still" if flow.queue.holds(request) else ""


# -- output ----------------------------------------------------------------------------------------


#: The metrics of a patroller.
METRICS: Mapping[str, Callable[[Tally], Mapping[tuple[str, ...], float]]] = {
    "syncer_drift": lambda tally: tally.drift,
    "syncer_drift_objects": lambda tally: tally.objects,
    "syncer_patrol_pairs": lambda tally: tally.pairs,
    "syncer_store_corrections": lambda tally: tally.corrections,
    "syncer_patrol_seconds": lambda tally: tally.seconds,
}


def readings(patrols: Iterable[Patroller], metric: str) -> Mapping[tuple[str, ...], float]:
    """Return a metric of :data:`METRICS` for all patrollers, by virtual cluster and labels."""
    return {
        (each.cluster, *labels): number
        for each in list(patrols)
        for labels, number in list(METRICS[metric](each.tally).items())
    }


def held(pairs: Iterable[ClusterPair]) -> Mapping[tuple[str, ...], int]:
    """Count the held deletions, by virtual cluster, syncer and side."""
    return {
        (pair.name, syncer, side.value): len(each.objects)
        for pair in list(pairs)
        for (syncer, side), each in list(pair.policies.breaker.held.items())
    }


def report(
    pair: ClusterPair, patroller: Patroller, chosen: Callable[[str], bool] = lambda syncer: True
) -> dict[str, Any]:
    """Return the latest scan of each chosen kind with its held deletions, as JSON."""
    prefix = pair.settings.marks.prefix
    return {
        "cluster": pair.name,
        "kinds": [
            {"cluster": pair.name} | scan.json(prefix) for name, scan in patroller.reports.items() if chosen(name)
        ],
        "held": [str(each) for each in pair.policies.breaker.held.values() if chosen(each.syncer)],
    }


def confirm(
    flow: PatrolEngine, pairs: Iterable[ClusterPair], chosen: Callable[[str], bool]
) -> list[tuple[str, HeldDeletions]]:
    """Release the held deletions of the chosen syncers; return them, each with its virtual cluster."""
    confirmed = []
    for pair in pairs:
        for each in pair.policies.breaker.confirm(chosen):
            confirmed.append((pair.name, each))
            for request in each.objects.values():
                flow.queue.add(request)
    return confirmed
