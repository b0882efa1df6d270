"""Build patrollers: one beside the workers of a process, or one that repairs without workers."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

from syncer.api.objects import SyncRequest
from syncer.api.reasons import RequestState
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.patrol.patroller import PatrolHooks, Patroller
from syncer.engine.patrol.report import Tally
from syncer.engine.reconcile.policies.breaker import StoppedDeletions
from syncer.observe.events import NotifyOwner
from syncer.workqueue.queue import Queue

#: Seconds between checks of a repair.
LOOK = 0.1
#: Seconds after which a repair is left to the next scan.
PATIENCE = 60.0
#: Attempts to repair a request without workers.
ROUNDS = 5
#: Seconds between these attempts.
PAUSE = 0.5
#: Requests that are repaired concurrently there.
BESIDE = 16

_TROUBLED = frozenset(RequestState) - {RequestState.SKIPPED}


class PatrolEngine(Protocol):
    """The parts of a process that a patroller needs."""

    queue: Queue
    statuses: RequestStatuses
    clock: Callable[[], float]
    utcnow: Callable[[], datetime]
    rng: random.Random


def beside_workers(
    engine: PatrolEngine,
    pair: ClusterPair,
    silent: Callable[[], str | None],
    notify: NotifyOwner,
) -> Patroller | None:
    """Return a patroller that repairs through the queue, at low priority.

    ``silent`` returns which cluster of the pair doesn't answer; None if both do. ``notify`` records
    an event for the owner of an object. The result is None if the settings disable the patroller.
    """

    def is_under_way(request: SyncRequest) -> bool:
        status = engine.statuses.of(request)
        is_failing = status is not None and status.state is RequestState.FAILING
        return is_failing or engine.queue.holds(request)

    async def repair(requests: Sequence[SyncRequest]) -> None:
        for request in requests:
            engine.queue.add(request, low=True)
        deadline = engine.clock() + PATIENCE
        while any(map(is_under_way, requests)):
            if engine.clock() > deadline:
                return
            await asyncio.sleep(LOOK)

    def busy(request: SyncRequest) -> bool:
        status = engine.statuses.of(request)
        is_troubled = status is not None and status.state in _TROUBLED
        return is_troubled or engine.queue.holds(request)

    def notify_of_repair(request: SyncRequest, message: str) -> None:
        with contextlib.suppress(Exception):  # a name translator may raise
            notify(request, "DriftRepaired", message, level="Normal")

    hooks = PatrolHooks(silent, busy, repair, partial(_reason, engine), notify=notify_of_repair)
    return _patroller(engine, pair, hooks)


def alone(
    engine: PatrolEngine,
    pair: ClusterPair,
    silent: Callable[[], str | None],
    handle: Callable[[SyncRequest, float], Awaitable[object]],
    hands_off: Callable[[], str | None],
) -> Patroller | None:
    """Return a patroller that repairs through ``handle`` at once.

    While ``hands_off`` returns a reason, it repairs nothing. ``silent`` is as for
    :func:`beside_workers`.
    """

    async def handle_until_decided(request: SyncRequest, room: asyncio.Semaphore) -> None:
        async with room:
            for _ in range(ROUNDS):
                await handle(request, engine.clock())
                status = engine.statuses.of(request)
                if status is None or status.state is not RequestState.FAILING:
                    return
                await asyncio.sleep(PAUSE)

    async def repair(requests: Sequence[SyncRequest]) -> None:
        room = asyncio.Semaphore(BESIDE)
        await asyncio.gather(*[handle_until_decided(request, room) for request in requests])

    def busy(request: SyncRequest) -> bool:
        return False  # no worker takes requests

    hooks = PatrolHooks(silent, busy, repair, partial(_reason, engine), hands_off)
    return _patroller(engine, pair, hooks)


def _patroller(engine: PatrolEngine, pair: ClusterPair, hooks: PatrolHooks) -> Patroller | None:
    options = pair.settings.patrol
    if options is None:
        return None
    return Patroller(pair, options, hooks, clock=engine.clock, utcnow=engine.utcnow, rng=engine.rng)


def _reason(engine: PatrolEngine, request: SyncRequest) -> str:
    status = engine.statuses.of(request)
    if status is not None:
        return status.reason
    if engine.queue.holds(request):
        return "the request still waits"
    return ""


# -- output ----------------------------------------------------------------------------------------


#: The metrics of a patroller.
METRICS: Mapping[str, Callable[[Tally], Mapping[tuple[str, ...], float]]] = {
    "syncer_drift": attrgetter("drift"),
    "syncer_drift_objects": attrgetter("objects"),
    "syncer_patrol_pairs": attrgetter("pairs"),
    "syncer_store_corrections": attrgetter("corrections"),
    "syncer_patrol_seconds": attrgetter("seconds"),
    "syncer_patrol_last_success_timestamp_seconds": attrgetter("completed"),
}


def readings(patrols: Iterable[Patroller], metric: str) -> Mapping[tuple[str, ...], float]:
    """Return a metric of :data:`METRICS` for all patrollers, by virtual cluster and labels."""
    found: dict[tuple[str, ...], float] = {}
    for patroller in list(patrols):
        for labels, number in list(METRICS[metric](patroller.tally).items()):
            found[patroller.cluster, *labels] = number
    return found


def stopped_deletions(pairs: Iterable[ClusterPair]) -> Mapping[tuple[str, ...], int]:
    """Count the held deletions, by virtual cluster, syncer and side."""
    counts: dict[tuple[str, ...], int] = {}
    for pair in list(pairs):
        for (syncer, side), deletions in list(pair.policies.breaker.stopped.items()):
            counts[pair.name, syncer, side.value] = len(deletions.objects)
    return counts


def _every(syncer: str) -> bool:
    return True


def report(
    pair: ClusterPair, patroller: Patroller, chosen: Callable[[str], bool] = _every
) -> dict[str, Any]:
    """Return the latest scan of each chosen kind with its held deletions, as JSON."""
    prefix = pair.settings.marks.prefix
    kinds = []
    for name, scan in patroller.reports.items():
        if chosen(name):
            kinds.append({"cluster": pair.name} | scan.json(prefix))
    stopped = pair.policies.breaker.stopped.values()
    return {
        "cluster": pair.name,
        "kinds": kinds,
        "held": [str(deletions) for deletions in stopped if chosen(deletions.syncer)],
    }


def confirm(
    engine: PatrolEngine, pairs: Iterable[ClusterPair], chosen: Callable[[str], bool]
) -> list[tuple[str, StoppedDeletions]]:
    """Release the held deletions of the chosen syncers.

    Return them, each with its virtual cluster.
    """
    confirmed = []
    for pair in pairs:
        for deletions in pair.policies.breaker.confirm(chosen):
            confirmed.append((pair.name, deletions))
            for request in deletions.objects.values():
                engine.queue.add(request)
    return confirmed
