"""The status of a running process: degraded syncers, objects in step, and when nothing is left to do."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.api.errors import NameTaken, TooMany
from syncer.api.objects import Key
from syncer.clusters.patient import PATIENCE
from syncer.daemon.process import Process
from syncer.daemon.served_cluster import LOOK
from syncer.daemon.unserved import NOT_BEGUN
from syncer.engine.controllers.lifecycle import INIT_RAISED
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestState
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.stores.informers import SideInformer

#: The state of objects that are as they should be on both sides.
IN_STEP = "in_step"


def degraded(process: Process, *, details: bool = True) -> Mapping[tuple[str, str], str]:
    """Return the syncers and other parts that can't do all their work, by virtual cluster and name,
    with the reasons.

    Without ``details``, a reason that is an error is its class alone: its message may name addresses,
    users and files.
    """
    conditions = {
        (pair.name, part): condition.message if details else condition.public
        for pair in list(process.pairs.values())
        for part, condition in list(pair.conditions.items())
    }
    return conditions | hindered(process, details=details)


def hindered(process: Process, *, details: bool = True) -> dict[tuple[str, str], str]:
    """Return the syncers that can't get their objects in step, as :func:`degraded`. A condition of a
    pair hinders none.
    """
    broken = {
        (cluster, syncer): why if details else "it could not be started"
        for cluster, served in list(process.served.items())
        for syncer, why in list(served.own_controllers.broken.items())
    }
    waits = {
        place: why if details else why.partition(": ")[0] if why.startswith(INIT_RAISED) else why
        for place, why in waiting(process).items()
    }
    found = {**waits, **broken}
    for pair in list(process.pairs.values()):
        for controller in list(pair.controllers.values()):
            reflectors = [pair.reflectors.get((store.side, store.resource)) for store in controller.stores]
            errors = [
                reflector.error for reflector in reflectors if reflector is not None and reflector.error is not None
            ]
            reasons = {str(error) if details else type(error).__name__ for error in errors}
            reasons |= {why for store in controller.stores if (why := unreadable(store))}
            if reasons:
                found[pair.name, controller.syncer.name] = "; ".join(sorted(reasons))
        found |= {(pair.name, held.syncer): str(held) for held in list(pair.policies.breaker.held.values())}
        for (syncer,), number in kept_by_pauses(pair).items():
            why = f"copies of deleted objects that a pause on the host keeps: {number}"
            found.setdefault((pair.name, syncer), why)
        for (syncer,), number in pair.policies.contention.numbers().items():
            if number:
                why = f"fields left alone because somebody else sets them back each time: {number}"
                found.setdefault((pair.name, syncer), why)
    return found


def kept_by_pauses(pair: ClusterPair) -> Mapping[tuple[str, ...], int]:
    """Count the copies that only a pause on the host keeps, by syncer."""
    return Counter((request.syncer,) for request in list(pair.policies.pause.kept))


def failed(store: SideInformer) -> frozenset[Key]:
    """Return the keys of the objects about which an index or a watch of a syncer raised; the log says why."""
    indexes, watches = list(store.indexer.indexes), list(store.handlers.map_functions)
    keys = frozenset[Key]().union(*(index.failed for index in indexes), *(watch.failed for watch in watches))
    return keys - store.quarantined.keys()


def unreadable(store: SideInformer) -> str:
    """Return a sentence about the objects of a store that can't be used; ``""`` if there are none."""
    counts = {
        "without their contents": len(store.quarantined),
        "whose names can't be found, as they are malformed or nested too deep": store.nameless,
        "by an index or a watch of a syncer": len(failed(store)),
    }
    said = ", ".join(f"{count} {how}" for how, count in counts.items() if count)
    return f"{store.side} {store.resource} that can't be read: {said}" if said else ""


def quarantined(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects that can't be used, by virtual cluster, side and resource."""
    return {
        (pair.name, store.side.value, str(store.resource)): len(store.quarantined) + store.nameless
        for pair in list(process.pairs.values())
        for store in pair.informers
    }


def waiting(process: Process) -> dict[tuple[str, str], str]:
    """Return the syncers whose resource isn't served yet, by virtual cluster and name, with the reasons."""
    return {
        (cluster, syncer): reason
        for cluster, served in list(process.served.items())
        for syncer, reason in served.waiting().items()
    }


def unfilled(process: Process) -> Mapping[str, list[str]]:
    """Return the stores that are neither filled nor given up, in words without names, by virtual cluster."""
    found = {cluster: served.unfilled() for cluster, served in list(process.served.items())}
    return {cluster: stores for cluster, stores in found.items() if stores}


class ClusterState(StrEnum):
    """The state of a virtual cluster, as a daemon serves it."""

    SERVED = "served"
    #: Its caches aren't filled yet, or its start waits for something.
    STARTING = "starting"
    #: It, or the host, doesn't answer, or doesn't accept the daemon's credentials.
    SILENT = "silent"
    #: It can't be served, and is begun anew after a while.
    FAILING = "failing"
    #: A Secret of the host, as namespace/name, that is no virtual cluster, or not as it is now.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """A virtual cluster of a daemon: its state, with the reason, and the number of its syncers and objects."""

    cluster: str
    state: ClusterState
    #: True if this replica leads it; a standby only keeps its caches filled.
    leads: bool = True
    syncers: int = 0
    ready: int = 0
    objects: int = 0
    parked: int = 0
    reason: str = ""


def clusters(process: Process) -> list[ClusterStanding]:
    """Return all virtual clusters, also those that can't be served at present, by name."""
    parked = Counter[str]()
    empty = unfilled(process)
    absent = process.unserved.clusters
    for (cluster, *_), number in process.statuses.parked().items():
        parked[cluster] += number
    found = [
        ClusterStanding(
            cluster,
            ClusterState.STARTING if why is NOT_BEGUN else ClusterState.FAILING,
            process.leads(cluster),
            reason=why.message,
        )
        for cluster, why in absent.items()
        if cluster not in process.served
    ]
    found += [
        ClusterStanding(f"{namespace}/{secret}", ClusterState.REFUSED, reason=why.message)
        for (namespace, secret), why in process.unserved.secrets.items()
    ]
    for name, served in process.served.items():
        controllers = list(served.pair.controllers.values())
        lost = served.lost_connection() if served.prepared else None
        silent = f"{lost.trouble}: {lost.error}" if lost else ""
        waits = "; ".join(empty.get(name, ()))
        state = ClusterState.SILENT if silent else ClusterState.STARTING if waits else ClusterState.SERVED
        found.append(
            ClusterStanding(
                name,
                state,
                process.leads(name),
                syncers=len(controllers) + len(served.waiting()),
                ready=sum(each.ready for each in controllers),
                objects=sum(len(each.virtual) for each in controllers if each.virtual is not None),
                parked=parked[name],
                reason=silent or waits or (absent[name].message if name in absent else ""),
            )
        )
    return sorted(found, key=lambda each: each.cluster)


def states(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects by virtual cluster, syncer and state."""
    counts = Counter(process.statuses.count())
    others = Counter[tuple[str, ...]]()
    for (cluster, syncer, _), number in counts.items():
        others[cluster, syncer] += number
    for pair in list(process.pairs.values()):
        for controller in list(pair.controllers.values()):
            place = (pair.name, controller.syncer.name)
            total = len(controller.virtual) if controller.virtual is not None else 0
            counts[*place, IN_STEP] = max(total - others[place], 0)
    return counts


def collisions(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects that wait because another one has their name, by virtual cluster and syncer."""
    counts: dict[tuple[str, ...], int] = {
        (pair.name, name): 0 for pair in list(process.pairs.values()) for name in list(pair.controllers)
    }
    for (cluster, syncer, error), number in process.statuses.parked().items():
        if error == NameTaken.__name__:
            counts[cluster, syncer] = number
    return counts


def mappings(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects with a counterpart on the other side, by virtual cluster and syncer.

    Syncers that create nothing on the other side are left out.
    """
    return {
        (pair.name, controller.name): number
        for pair in list(process.pairs.values())
        for controller in list(pair.controllers.values())
        if (number := mapped(pair, controller)) is not None
    }


def mapped(pair: ClusterPair, controller: BoundSyncer) -> int | None:
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


def _made(controller: BoundSyncer) -> SideInformer | None:
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


def syncers(process: Process, pairs: Iterable[ClusterPair]) -> Iterator[SyncerStatus]:
    """Yield the state of each syncer of these pairs, of each paused name that no syncer has, and of
    each other part with a condition.
    """
    counts, taken, troubles, absent = states(process), collisions(process), degraded(process), waiting(process)
    for pair in pairs:
        names = {*pair.controllers, *(name for cluster, name in absent if cluster == pair.name)}
        for name in sorted(names):
            place, controller = (pair.name, name), pair.controllers.get(name)
            yield SyncerStatus(
                *place,
                *_standing(controller, troubles.get(place, ""), is_paused=pair.policies.pause.is_paused(name)),
                mapped(pair, controller) if controller is not None else None,
                {state: counts.get((*place, state), 0) for state in (IN_STEP, *RequestState)},
                taken.get(place, 0),
            )
        for name in sorted(pair.policies.pause.syncers - names):
            yield SyncerStatus(pair.name, name, Standing.UNKNOWN, "a pause names it, and no syncer is called so")
        for part in sorted(pair.conditions.keys() - names):
            yield SyncerStatus(pair.name, part, Standing.DEGRADED, pair.conditions[part].message)


def _standing(controller: BoundSyncer | None, trouble: str, *, is_paused: bool) -> tuple[Standing, str]:
    if controller is None:
        return Standing.WAITING, trouble
    if is_paused:
        return Standing.PAUSED, trouble
    if trouble:
        return Standing.DEGRADED, trouble
    return (Standing.READY, "") if controller.ready else (Standing.STARTING, "its caches are being filled")


async def settle(process: Process, *, quiet: float = 0.5, patience: float = 5.0) -> None:
    """Return when both sides are in step, or can't get there.

    That is when every store is filled or given up and, for ``quiet`` seconds, there was nothing to
    do; failing and waiting requests get ``patience`` seconds, and what an API server asks to come back for
    :data:`PATIENCE`. Nothing is awaited of a virtual cluster that has been lost for as long.
    """
    come_back_until = process.clock() + PATIENCE
    lost = _Lost(process)
    while unfilled(process).keys() - lost.names() or (process.clock() < come_back_until and _must_come_back(process)):  # noqa: ASYNC110
        await asyncio.sleep(LOOK)
    deadline = process.clock() + patience
    calm_since = process.clock()
    while process.clock() - calm_since < quiet:
        await asyncio.sleep(LOOK)
        hopeful = process.clock() < deadline and _undecided(process)
        hopeful = hopeful or (process.clock() < come_back_until and _must_come_back(process))
        if hopeful or _is_busy(process, lost.names()):
            calm_since = process.clock()


class _Lost:
    """The virtual clusters that have been lost for a while, or the host has been."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._since: dict[str, float] = {}

    def names(self) -> set[str]:
        """Return them as of now; it must be asked at least every few seconds."""
        now = self._process.clock()
        lost = [name for name, served in self._process.served.items() if served.lost_connection()]
        self._since = {name: self._since.get(name, now) for name in lost}
        return {name for name, since in self._since.items() if now - since >= PATIENCE}


def _is_busy(process: Process, lost: set[str]) -> bool:
    """Return True if there is something to do in other virtual clusters than those that are lost."""
    if any(served.pair.fan_out for name, served in process.served.items() if name not in lost):
        return True
    if not lost:
        return not process.queue.is_idle()
    ready = {name for name, number in process.queue.depths().items() if number}
    return bool((ready | {request.cluster for request in process.queue.running()}) - lost)


def _must_come_back(process: Process) -> bool:
    """Return True if an API server asks to come back for a list or a watch, or for what a request needs."""
    if any(status.error == TooMany.__name__ for _, status in process.statuses.troubles()):
        return True
    reflectors = (each for pair in list(process.pairs.values()) for each in list(pair.reflectors.values()))
    return any(isinstance(each.error, TooMany) for each in reflectors)


def _undecided(process: Process) -> bool:
    """Return True if a failing or waiting request may still come right by itself."""
    failing = any(status.state is RequestState.FAILING for _, status in process.statuses.troubles())
    return failing or bool(waiting(process)) or any(True for _ in process.statuses.pending())
