"""The status of a running process: degraded syncers, objects in step, and what is left to do."""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.api.errors import NameTaken, TooMany
from syncer.api.objects import Key, Side, annotations_of
from syncer.api.reasons import RequestState, StateReason
from syncer.clusters.patient import PATIENCE
from syncer.daemon.process import Process
from syncer.daemon.served_cluster import LOOK, ServedCluster
from syncer.daemon.unserved import NOT_BEGUN
from syncer.engine.controllers.lifecycle import INIT_RAISED
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.stores.informers import SideInformer

#: The state of objects that are as they should be on both sides.
IN_STEP = "in_step"
_LIST_PAUSED = "syncer list --state paused"


def degraded(process: Process, *, details: bool = True) -> Mapping[tuple[str, str], str]:
    """Return the syncers and other parts that can't do all their work, by virtual cluster and name,
    with the reasons.

    Without ``details``, a reason that is an error is its class alone: its message may name
    addresses, users and files.
    """
    conditions: dict[tuple[str, str], str] = {}
    for pair in list(process.pairs.values()):
        for part, condition in list(pair.conditions.items()):
            conditions[pair.name, part] = condition.message if details else condition.public
    return conditions | hindered(process, details=details)


def hindered(process: Process, *, details: bool = True) -> dict[tuple[str, str], str]:
    """Return the syncers that can't get their objects in step, as :func:`degraded`.

    A condition of a pair hinders none.
    """
    found: dict[tuple[str, str], str] = {}
    for cluster, served in list(process.served.items()):
        for part, why in _hindered(served, details=details).items():
            found[cluster, part] = why
    return found


def _hindered(served: ServedCluster, *, details: bool = True) -> dict[str, str]:
    """Return the hindered syncers of a virtual cluster, with the reasons."""
    pair = served.pair
    found: dict[str, str] = {}
    for name, why in served.waiting().items():
        if not details and why.startswith(INIT_RAISED):
            why = why.partition(": ")[0]  # the rest is the message of the error
        found[name] = why
    for name, why in list(served.own_controllers.broken.items()):
        found[name] = why if details else "it could not be started"
    for controller in list(pair.controllers.values()):
        if reasons := unread(pair, controller, details=details):
            found[controller.name] = "; ".join(sorted(reasons))
    for deletions in list(pair.policies.breaker.stopped.values()):
        found[deletions.syncer] = str(deletions)
    # What hinders a syncer more has been named.
    kept = "copies of deleted objects that a pause on the host keeps"
    frozen = "fields left alone because somebody else sets them back each time"
    for what, counts in (
        (kept, kept_by_pauses(pair)),
        (frozen, pair.policies.contention.numbers()),
    ):
        for (name,), number in counts.items():
            if number:
                found.setdefault(name, f"{what}: {number}")
    return found


def unread(pair: ClusterPair, controller: BoundSyncer, *, details: bool = True) -> set[str]:
    """Return why a syncer can't read its stores, or objects in them."""
    reasons = unlisted(pair, controller, details=details)
    for store in controller.stores:
        if why := unreadable(store):
            reasons.add(why)
    return reasons


def unlisted(pair: ClusterPair, controller: BoundSyncer, *, details: bool = True) -> set[str]:
    """Return why stores of a syncer can't be listed or watched at present."""
    reasons = set[str]()
    for store in controller.stores:
        reflector = pair.reflectors.get(store.store_key)
        if reflector is not None and reflector.error is not None:
            reasons.add(str(reflector.error) if details else type(reflector.error).__name__)
    return reasons


def lost(process: Process, cluster: str) -> str:
    """Return why a side of a virtual cluster doesn't answer; ``""`` if both do."""
    served = process.served.get(cluster)
    connections = served.connections.values() if served else (process.host_connection,)
    return "; ".join(str(each.error) for each in connections if each.error)


def _controllers(process: Process) -> Iterator[tuple[ClusterPair, BoundSyncer]]:
    """Yield all controllers with their pairs.

    They are taken from copies, as syncers may join and leave while another thread reads them.
    """
    for pair in list(process.pairs.values()):
        for controller in list(pair.controllers.values()):
            yield pair, controller


def paused(process: Process) -> dict[tuple[str, ...], str]:
    """Return what pauses stop, each with the way to go on.

    These are whole virtual clusters, by name, and syncers, by virtual cluster and name.
    """
    found: dict[tuple[str, ...], str] = {}
    for pair, controller in _controllers(process):
        why = pair.policies.pause.reason(controller.name)
        if why is not None and pair.policies.pause.is_on:
            found[pair.name,] = why.way_out
        elif why is not None:
            found[pair.name, controller.name] = why.way_out
    for (cluster, syncer, state), number in process.statuses.count().items():
        if state == RequestState.PAUSED and not {(cluster,), (cluster, syncer)} & found.keys():
            found[cluster, syncer] = f"{number} of its objects; see which: {_LIST_PAUSED}"
    return found


def kept_by_pauses(pair: ClusterPair) -> Mapping[tuple[str, ...], int]:
    """Count the copies that only a pause on the host keeps, by syncer."""
    return Counter((request.syncer,) for request in list(pair.policies.pause.kept))


def failed(store: SideInformer) -> frozenset[Key]:
    """Return the keys of the objects about which an index or a watch of a syncer raised.

    The log says why.
    """
    keys = set[Key]()
    for index in list(store.indexer.indexes):
        keys |= index.failed
    for watch in list(store.handlers.map_functions):
        keys |= watch.failed
    return frozenset(keys - store.quarantined.keys())


def unreadable(store: SideInformer) -> str:
    """Return a sentence about objects of a store that can't be used; ``""`` if there are none."""
    counts = {
        "without their contents": len(store.quarantined),
        "whose names can't be found, as they are malformed or nested too deep": store.nameless,
        "by an index or a watch of a syncer": len(failed(store)),
    }
    parts = [f"{count} {how}" for how, count in counts.items() if count]
    if not parts:
        return ""
    return f"{store.side} {store.resource} that can't be read: {', '.join(parts)}"


def quarantined(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects that can't be used, by virtual cluster, side and resource."""
    counts: dict[tuple[str, ...], int] = {}
    for pair in list(process.pairs.values()):
        for store in pair.informers:
            labels = (pair.name, store.side.value, str(store.resource))
            counts[labels] = len(store.quarantined) + store.nameless
    return counts


def waiting(process: Process) -> dict[tuple[str, str], str]:
    """Return the syncers without their resource, by virtual cluster and name, with the reasons."""
    reasons: dict[tuple[str, str], str] = {}
    for cluster, served in list(process.served.items()):
        for syncer, reason in served.waiting().items():
            reasons[cluster, syncer] = reason
    return reasons


def unfilled(process: Process) -> Mapping[str, list[str]]:
    """Return the stores that are neither filled nor given up, without names, by virtual cluster."""
    found = {cluster: served.unfilled() for cluster, served in list(process.served.items())}
    return {cluster: stores for cluster, stores in found.items() if stores}


class ClusterState(StrEnum):
    """The state of a virtual cluster, as a daemon serves it."""

    SERVED = "served"
    #: Its caches aren't filled yet, or its start waits for something.
    STARTING = "starting"
    #: It, or the host, doesn't answer, or doesn't accept the daemon's credentials.
    SILENT = "silent"
    #: It can't be served; the daemon starts it again after a while.
    FAILING = "failing"
    #: A Secret of the host, as namespace/name, that is no virtual cluster, or not as it is now.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A virtual cluster of a daemon: its state, and the numbers of its syncers and objects."""

    cluster: str
    state: ClusterState
    #: True if this replica leads it; a standby only keeps its caches filled.
    leads: bool = True
    syncers: int = 0
    ready: int = 0
    objects: int = 0
    parked: int = 0
    reason: str = ""


def clusters(process: Process, begin: str = "", most: int | None = None) -> list[ClusterRow]:
    """Return all virtual clusters, also those that can't be served at present, by name: those after
    ``begin``, and so many at most.
    """
    parked = Counter[str]()
    for (cluster, *_), number in process.statuses.parked().items():
        parked[cluster] += number
    refused: dict[str, tuple[str, str]] = {}
    for namespace, secret in process.unserved.secrets:
        refused[f"{namespace}/{secret}"] = (namespace, secret)
    absent = process.unserved.clusters
    names = sorted({*process.served, *absent, *refused})
    found: list[ClusterRow] = []
    for name in names[bisect_right(names, begin) :][:most]:
        if name in process.served:
            trouble = absent[name].message if name in absent else ""
            found.append(_served_row(process, name, parked[name], trouble))
        elif name in refused:
            why = process.unserved.secrets[refused[name]]
            found.append(ClusterRow(name, ClusterState.REFUSED, reason=why.message))
        else:
            why = absent[name]
            state = ClusterState.STARTING if why is NOT_BEGUN else ClusterState.FAILING
            leads = process.leads(name)
            found.append(ClusterRow(name, state, leads, reason=why.message))
    return found


def _served_row(process: Process, name: str, parked: int, trouble: str) -> ClusterRow:
    served = process.served[name]
    state, reason = _state_of(served, served.unfilled())
    controllers = list(served.pair.controllers.values())
    return ClusterRow(
        name,
        state,
        process.leads(name),
        syncers=len(controllers) + len(served.waiting()),
        ready=sum(each.ready for each in controllers),
        objects=sum(_objects(each) for each in controllers),
        parked=parked,
        reason=reason or trouble,
    )


def _state_of(served: ServedCluster, empty: Collection[str]) -> tuple[ClusterState, str]:
    """Return the state of a virtual cluster with these unfilled stores, and the reason."""
    lost = served.lost_connection() if served.prepared else None
    if lost is not None:
        return ClusterState.SILENT, lost.reason
    if empty:
        return ClusterState.STARTING, "; ".join(empty)
    return ClusterState.SERVED, ""


def _objects(controller: BoundSyncer) -> int:
    """Count the virtual objects of a syncer."""
    return len(controller.virtual) if controller.virtual is not None else 0


def states(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects by virtual cluster, syncer and state."""
    counts = Counter(process.statuses.count())
    others = Counter[tuple[str, ...]]()
    for (cluster, syncer, _), number in counts.items():
        others[cluster, syncer] += number
    for pair, controller in _controllers(process):
        in_step = _objects(controller) - others[pair.name, controller.name]
        counts[pair.name, controller.name, IN_STEP] = max(in_step, 0)
    return counts


def collisions(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects with a name that another one has, by virtual cluster and syncer."""
    counts: dict[tuple[str, ...], int] = {}
    for pair, controller in _controllers(process):
        counts[pair.name, controller.name] = 0
    for (cluster, syncer, error), number in process.statuses.parked().items():
        if error == NameTaken.__name__:
            counts[cluster, syncer] = number
    return counts


def mappings(process: Process) -> Mapping[tuple[str, ...], int]:
    """Count the objects with a counterpart on the other side, by virtual cluster and syncer.

    Syncers that create nothing on the other side are left out.
    """
    counts: dict[tuple[str, ...], int] = {}
    for pair, controller in _controllers(process):
        number = mapped(pair, controller)
        if number is not None:
            counts[pair.name, controller.name] = number
    return counts


def mapped(pair: ClusterPair, controller: BoundSyncer) -> int | None:
    """Count a syncer's objects with a counterpart; None if it creates nothing on the other side.

    That is the size of the store of the syncer's own objects, unless it contains objects of others.
    """
    made = _made(controller)
    if made is None:
        if not controller.direction.goes_down or controller.virtual is None:
            return None
        return sum(
            controller.has(Side.HOST, controller.host_key(key))
            for key in list(controller.virtual.keys())
        )
    makers = [each for each in list(pair.controllers.values()) if _made(each) is made]
    others = [each for each in makers if each is not controller]
    if not others and pair.informers.is_marked(made):
        return len(made)
    if controller.direction.goes_down:
        virtual = controller.virtual.keys() if controller.virtual is not None else ()
        return sum(controller.host_key(key) in made for key in list(virtual))
    settings = pair.settings
    number = 0
    for key in list(made.keys()):
        shown = made.outline(key)
        if shown is None or not settings.marks.is_from_here(shown, cluster=settings.identity):
            continue
        made_for = annotations_of(shown).get(settings.marks.made_for, controller.name)
        if made_for == controller.name:
            number += 1
    return number


def _made(controller: BoundSyncer) -> SideInformer | None:
    """Return the store of the side on which a syncer creates objects.

    None if it creates none, or creates them in several stores.
    """
    if controller.direction.goes_down:
        return controller.host
    return controller.virtual if controller.direction.comes_up else None


class SyncerState(StrEnum):
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

    ``objects`` are counted by state.
    """

    cluster: str
    syncer: str
    state: SyncerState
    reason: str = ""
    objects: Mapping[str, int] = field(default_factory=dict)
    collisions: int = 0


def syncers(process: Process, pairs: Iterable[ClusterPair]) -> Iterator[SyncerStatus]:
    """Yield the state of each syncer of these pairs, and of each other part with a condition.

    Yield also each paused name that no syncer has.
    """
    counts = process.statuses.count()
    parked = process.statuses.parked()
    for pair in pairs:
        served = process.served[pair.name]
        troubles = {part: condition.message for part, condition in pair.conditions.items()}
        troubles |= _hindered(served)
        names = {*pair.controllers, *served.waiting()}
        for name in sorted(names):
            controller = pair.controllers.get(name)
            state, reason = _syncer_state(
                controller, troubles.get(name, ""), paused=pair.policies.pause.reason(name)
            )
            objects: dict[str, int] = {}
            for of_objects in RequestState:
                objects[of_objects] = counts.get((pair.name, name, of_objects), 0)
            if controller is not None:
                objects[IN_STEP] = max(_objects(controller) - sum(objects.values()), 0)
            collided = parked.get((pair.name, name, NameTaken.__name__), 0)
            yield SyncerStatus(pair.name, name, state, reason, objects, collided)
        for name in sorted(pair.policies.pause.syncers - names):
            why = "a pause names it, and no syncer is called so"
            yield SyncerStatus(pair.name, name, SyncerState.UNKNOWN, why)
        for part in sorted(pair.conditions.keys() - names):
            yield SyncerStatus(pair.name, part, SyncerState.DEGRADED, pair.conditions[part].message)


def _syncer_state(
    controller: BoundSyncer | None, trouble: str, *, paused: StateReason | None
) -> tuple[SyncerState, str]:
    if controller is None:
        return SyncerState.WAITING, trouble
    if paused is not None:
        return SyncerState.PAUSED, trouble or paused
    if trouble:
        return SyncerState.DEGRADED, trouble
    if not controller.ready:
        return SyncerState.STARTING, "its caches are being filled"
    return SyncerState.READY, ""


async def settle(process: Process, *, quiet: float = 0.5, patience: float = 5.0) -> None:
    """Return when both sides are in step, or can't get there.

    That is when every store is filled or given up and, for ``quiet`` seconds, there was nothing to
    do; failing and waiting requests get ``patience`` seconds, and what an API server asks to come
    back for :data:`PATIENCE`. Nothing is awaited of a virtual cluster that has been lost for as
    long.
    """
    clock = process.clock
    come_back_until = clock() + PATIENCE
    lost = _Lost(process)

    def comes_back() -> bool:
        return clock() < come_back_until and _must_come_back(process)

    while unfilled(process).keys() - lost.names() or comes_back():  # noqa: ASYNC110
        await asyncio.sleep(LOOK)

    deadline = clock() + patience
    calm_since = clock()
    while clock() - calm_since < quiet:
        await asyncio.sleep(LOOK)
        is_hopeful = (clock() < deadline and _undecided(process)) or comes_back()
        if is_hopeful or _is_busy(process, lost.names()):
            calm_since = clock()


class _Lost:
    """The virtual clusters that have been lost for a while, or the host has been."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._since: dict[str, float] = {}

    def names(self) -> set[str]:
        """Return the lost virtual clusters. Call this at least every few seconds."""
        now = self._process.clock()
        lost = [name for name, served in self._process.served.items() if served.lost_connection()]
        self._since = {name: self._since.get(name, now) for name in lost}
        return {name for name, since in self._since.items() if now - since >= PATIENCE}


def _is_busy(process: Process, lost: set[str]) -> bool:
    """Return True if there is something to do in virtual clusters other than the lost ones."""
    for name, served in process.served.items():
        if name not in lost and served.pair.fan_out:
            return True
    if not lost:
        return not process.queue.is_idle()
    ready = {name for name, number in process.queue.depths().items() if number}
    return bool((ready | {request.cluster for request in process.queue.running()}) - lost)


def _must_come_back(process: Process) -> bool:
    """Return True if an API server answered a request, a list or a watch with "too many"."""
    if any(status.error == TooMany.__name__ for _, status in process.statuses.troubles()):
        return True
    for pair in list(process.pairs.values()):
        for reflector in list(pair.reflectors.values()):
            if isinstance(reflector.error, TooMany):
                return True
    return False


def _undecided(process: Process) -> bool:
    """Return True if a failing or waiting request may still come right by itself."""
    failing = any(status.state is RequestState.FAILING for _, status in process.statuses.troubles())
    return failing or bool(waiting(process)) or any(True for _ in process.statuses.pending())
