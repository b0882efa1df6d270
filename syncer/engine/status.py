"""The status of a running engine: degraded syncers, objects in step, and when nothing is left to do."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.api.errors import NameTaken
from syncer.engine.cache.informer import Informer
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import State
from syncer.engine.engine import Engine
from syncer.engine.reconcile.controller import Controller

#: The state of objects that are as they should be on both sides.
IN_STEP = "in_step"
#: Seconds between checks of :func:`settle`.
LOOK = 0.02


def degraded(engine: Engine) -> Mapping[tuple[str, str], str]:
    """Return the syncers that can't do all their work, by virtual cluster and name, with the reasons."""
    found = {**waiting(engine), **dict(list(engine.broken.items()))}
    for pair in list(engine.pairs.values()):
        for controller in list(pair.controllers.values()):
            reflectors = [pair.reflectors[store.side, store.resource] for store in controller.stores]
            reasons = {str(reflector.error) for reflector in reflectors if reflector.error is not None}
            if reasons:
                found[pair.name, controller.syncer.name] = "; ".join(sorted(reasons))
        found |= {(pair.name, held.syncer): str(held) for held in list(pair.policies.breaker.held.values())}
        for (syncer,), number in pair.policies.contention.numbers().items():
            if number:
                why = f"fields left alone because somebody else sets them back each time: {number}"
                found.setdefault((pair.name, syncer), why)
    return found


def waiting(engine: Engine) -> dict[tuple[str, str], str]:
    """Return the syncers whose resource isn't served yet, by virtual cluster and name, with the reasons."""
    return {
        (cluster, syncer): reason
        for cluster, served in list(engine.served.items())
        for syncer, reason in list(served.activation.roster.waiting.items())
    }


def unfilled(engine: Engine) -> Mapping[str, list[str]]:
    """Return the stores that are neither filled nor given up, in words, by virtual cluster."""
    if not engine.prepared:
        return {cluster: ["what the clusters serve is not known yet"] for cluster in list(engine.served)}
    found = {pair.name: _unfilled(pair) for pair in list(engine.pairs.values())}
    return {cluster: stores for cluster, stores in found.items() if stores}


def _unfilled(pair: ClusterPair) -> list[str]:
    reflectors = list(pair.reflectors.values())
    return [str(one) for one in reflectors if not one.store.synced and not pair.given_up(one.store)]


def states(engine: Engine) -> Mapping[tuple[str, ...], int]:
    """Count the objects by virtual cluster, syncer and state."""
    counts = Counter(engine.statuses.count())
    others = Counter[tuple[str, ...]]()
    for (cluster, syncer, _), number in counts.items():
        others[cluster, syncer] += number
    for pair in list(engine.pairs.values()):
        for controller in list(pair.controllers.values()):
            place = (pair.name, controller.syncer.name)
            total = len(controller.virtual) if controller.virtual is not None else 0
            counts[*place, IN_STEP] = max(total - others[place], 0)
    return counts


def collisions(engine: Engine) -> Mapping[tuple[str, ...], int]:
    """Count the objects that wait because another one has their name, by virtual cluster and syncer."""
    counts: dict[tuple[str, ...], int] = {
        (pair.name, name): 0 for pair in list(engine.pairs.values()) for name in list(pair.controllers)
    }
    for (cluster, syncer, error), number in engine.statuses.parked().items():
        if error == NameTaken.__name__:
            counts[cluster, syncer] = number
    return counts


def mappings(engine: Engine) -> Mapping[tuple[str, ...], int]:
    """Count the objects with a counterpart on the other side, by virtual cluster and syncer.

    Syncers that create nothing on the other side are left out.
    """
    return {
        (pair.name, controller.name): number
        for pair in list(engine.pairs.values())
        for controller in list(pair.controllers.values())
        if (number := mapped(pair, controller)) is not None
    }


def mapped(pair: ClusterPair, controller: Controller) -> int | None:
    """Count a syncer's objects with a counterpart; None if it creates nothing on the other side.

    That is the size of the store of the syncer's own objects, unless it contains objects of others.
    """
    made = _made(controller)
    if made is None:
        return None
    others = [each for each in list(pair.controllers.values()) if each is not controller and _made(each) is made]
    if not others and pair.informers.is_marked(made.side, made.resource):
        return len(made)
    if controller.direction.goes_down:
        virtual = controller.virtual.keys() if controller.virtual is not None else ()
        return sum(controller.place(key) in made for key in list(virtual))
    settings, objects = pair.settings, map(made.get, list(made.keys()))
    return sum(settings.marks.is_from_here(obj, cluster=settings.identity) for obj in objects if obj is not None)


def _made(controller: Controller) -> Informer | None:
    """Return the store of the side on which a syncer creates objects; None if it creates none."""
    if controller.direction.goes_down:
        return controller.host
    return controller.virtual if controller.direction.comes_up else None


class Standing(StrEnum):
    """The state of a syncer as a whole."""

    READY = "ready"
    STARTING = "starting"
    WAITING = "waiting"
    DEGRADED = "degraded"
    PAUSED = "paused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SyncerStatus:
    """The state of a syncer of a virtual cluster, and the counts of its objects.

    ``mapped`` is None for a syncer that creates nothing on the other side, and before it has begun.
    ``objects`` are counted by state.
    """

    cluster: str
    syncer: str
    standing: Standing
    reason: str = ""
    mapped: int | None = None
    objects: Mapping[str, int] = field(default_factory=dict)
    collisions: int = 0


def syncers(engine: Engine, pairs: Iterable[ClusterPair]) -> Iterator[SyncerStatus]:
    """Yield the state of each syncer of these pairs, and of each paused name that no syncer has."""
    counts, taken, troubles, absent = states(engine), collisions(engine), degraded(engine), waiting(engine)
    for pair in pairs:
        names = {*pair.controllers, *(name for cluster, name in absent if cluster == pair.name)}
        for name in sorted(names):
            place, controller = (pair.name, name), pair.controllers.get(name)
            yield SyncerStatus(
                *place,
                *_standing(controller, troubles.get(place, ""), is_paused=pair.policies.pause.is_paused(name)),
                mapped(pair, controller) if controller is not None else None,
                {state: counts.get((*place, state), 0) for state in (IN_STEP, *State)},
                taken.get(place, 0),
            )
        for name in sorted(pair.policies.pause.syncers - names):
            yield SyncerStatus(pair.name, name, Standing.UNKNOWN, "a pause names it, and no syncer is called so")


def _standing(controller: Controller | None, trouble: str, *, is_paused: bool) -> tuple[Standing, str]:
    if controller is None:
        return Standing.WAITING, trouble
    if is_paused:
        return Standing.PAUSED, trouble
    if trouble:
        return Standing.DEGRADED, trouble
    return (Standing.READY, "") if controller.ready else (Standing.STARTING, "its caches are being filled")


async def settle(engine: Engine, *, quiet: float = 0.5, patience: float = 5.0) -> None:
    """Return when both sides are in step, or can't get there.

    That is when every store is filled or given up and, for ``quiet`` seconds, there was nothing to
    do; failing and waiting requests get ``patience`` seconds.
    """
    while unfilled(engine):  # noqa: ASYNC110 — many states, no one event
        await asyncio.sleep(LOOK)
    deadline = engine.clock() + patience
    calm_since = engine.clock()
    while engine.clock() - calm_since < quiet:
        await asyncio.sleep(LOOK)
        hopeful = engine.clock() < deadline and _undecided(engine)
        if hopeful or not engine.queue.is_idle():
            calm_since = engine.clock()


def _undecided(engine: Engine) -> bool:
    """Return True if a failing or waiting request may still come right by itself."""
    failing = any(status.state is State.FAILING for _, status in engine.statuses.troubles())
    return failing or bool(waiting(engine)) or any(True for _ in engine.statuses.pending())
