"""A patroller beside the workers of an engine, and one that repairs by itself where there are none."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from syncer.api.objects import Request
from syncer.engine.controllers.pair import Link
from syncer.engine.controllers.request_status import Ledger, State
from syncer.engine.patrol.patroller import Patroller, Ways
from syncer.engine.reconcile.policies.breaker import Held
from syncer.engine.workqueue.queue import Queue

#: Seconds between looks at what becomes of repairs, and after how many it is left to the next scan.
LOOK, PATIENCE = 0.1, 60.0
#: How often a request is looked at where no worker does it, and the seconds in between.
ROUNDS, PAUSE = 5, 0.5
#: How many requests are looked at beside each other there.
BESIDE = 16

_TROUBLED = (State.PENDING, State.FAILING, State.PARKED)


class Flow(Protocol):
    """What a patroller needs of an engine."""

    queue: Queue
    ledger: Ledger
    clock: Callable[[], float]
    utcnow: Callable[[], datetime]
    rng: random.Random
    links: dict[str, Link]

    def silent(self, made: Link) -> str | None:
        """Which cluster of a link doesn't answer at the moment, or None."""
        ...


def beside_workers(flow: Flow, made: Link) -> Patroller | None:
    """A patroller whose repairs go through the queue, after all else; None where the settings say nothing of one."""

    async def repair(requests: Sequence[Request]) -> None:
        for request in requests:
            flow.queue.add(request, low=True)
        deadline = flow.clock() + PATIENCE
        while any(_is_under_way(flow, request) for request in requests):
            if flow.clock() > deadline:
                return
            await asyncio.sleep(LOOK)

    def busy(request: Request) -> bool:
        standing = flow.ledger.of(request)
        return flow.queue.holds(request) or (standing is not None and standing.state in _TROUBLED)

    return _patroller(flow, made, Ways(lambda: flow.silent(made), busy, repair, lambda one: _reason(flow, one)))


def alone(
    flow: Flow,
    made: Link,
    handle: Callable[[Request, float], Awaitable[None]],
    hands_off: Callable[[], str | None],
) -> Patroller | None:
    """A patroller that has its repairs made by ``handle`` at once, or makes none where ``hands_off`` says why."""

    async def look(request: Request, room: asyncio.Semaphore) -> None:
        async with room:
            for _ in range(ROUNDS):
                await handle(request, flow.clock())
                standing = flow.ledger.of(request)
                if standing is None or standing.state is not State.FAILING:
                    return
                await asyncio.sleep(PAUSE)

    async def repair(requests: Sequence[Request]) -> None:
        room = asyncio.Semaphore(BESIDE)
        await asyncio.gather(*(look(request, room) for request in requests))

    ways = Ways(
        trouble=lambda: flow.silent(made),
        busy=lambda request: False,
        repair=repair,
        reason=lambda request: _reason(flow, request),
        hands_off=hands_off,
    )
    return _patroller(flow, made, ways)


def _patroller(flow: Flow, made: Link, ways: Ways) -> Patroller | None:
    options = made.settings.patrol
    if options is None:
        return None
    return Patroller(made, options, ways, clock=flow.clock, utcnow=flow.utcnow, rng=flow.rng)


def _is_under_way(flow: Flow, request: Request) -> bool:
    standing = flow.ledger.of(request)
    return flow.queue.holds(request) or (standing is not None and standing.state is State.FAILING)


def _reason(flow: Flow, request: Request) -> str:
    standing = flow.ledger.of(request)
    if standing is not None:
        return standing.reason
    return "it waits still" if flow.queue.holds(request) else ""


# -- what is shown -----------------------------------------------------------------------------------------------------


def readings(patrols: Iterable[Patroller]) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    """The numbers of all patrollers, by metric."""
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for each in list(patrols):
        tally = each.tally
        for name, numbers in (
            ("syncer_drift", tally.drift),
            ("syncer_drift_objects", tally.objects),
            ("syncer_patrol_pairs", tally.pairs),
            ("syncer_store_corrections", tally.corrections),
        ):
            found.setdefault(name, Counter()).update(dict(numbers))
        seconds = found.setdefault("syncer_patrol_seconds", Counter())
        for labels, taken in list(tally.seconds.items()):
            seconds[labels] = max(seconds[labels], taken)  # type: ignore[assignment]
    return found


def held(links: Iterable[Link]) -> Mapping[tuple[str, ...], int]:
    """How many deletions are held, by syncer and side."""
    found: Counter[tuple[str, ...]] = Counter()
    for made in list(links):
        for (syncer, side), each in list(made.breaker.held.items()):
            found[syncer, side.value] += len(each.objects)
    return found


def report(made: Link, patroller: Patroller, chosen: Callable[[str], bool] = lambda syncer: True) -> dict[str, Any]:
    """The latest scan of each chosen kind, and what of it is held, as JSON."""
    prefix = made.settings.marks.prefix
    return {
        "cluster": made.name,
        "kinds": [scan.json(prefix) for name, scan in patroller.reports.items() if chosen(name)],
        "held": [str(each) for each in made.breaker.held.values() if chosen(each.syncer)],
    }


def confirm(flow: Flow, chosen: Callable[[str], bool]) -> list[Held]:
    """Let held deletions be made."""
    confirmed = []
    for made in flow.links.values():
        for each in made.breaker.confirm(chosen):
            confirmed.append(each)
            for request in each.objects.values():
                flow.queue.add(request)
    return confirmed
