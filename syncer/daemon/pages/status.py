"""The status of a running process: degraded syncers, objects in step, and what is left to do."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.api.errors import NameTaken, TooMany
from syncer.api.objects import Key, annotations_of
from syncer.api.reasons import RequestState
from syncer.clusters.patient import PATIENCE
from syncer.daemon.process import Process
from syncer.daemon.served_cluster import LOOK, ServedCluster
from syncer.daemon.unserved import NOT_BEGUN
from syncer.engine.controllers.lifecycle import INIT_RAISED
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.stores.informers import SideInformer
from syncer.resources.custom.contents import MADE_FOR

#: The state of objects that are as they should be on both sides.
IN_STEP = "in_step"


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
    for labels, why in waiting(process).items():
        if not details and why.startswith(INIT_RAISED):
            why = why.partition(": ")[0]  # the rest is the message of the error
        found[labels] = why
    for cluster, served in list(process.served.items()):
        for name, why in list(served.own_controllers.broken.items()):
            found[cluster, name] = why if details else "it could not be started"
    for pair, controller in _controllers(process):
        if reasons := _unread(pair, controller, details=details):
            found[pair.name, controller.name] = "; ".join(sorted(reasons))
    for pair in list(process.pairs.values()):
        for deletions in list(pair.policies.breaker.stopped.values()):
            found[pair.name, deletions.syncer] = str(deletions)
        # What hinders a syncer more has been named.
        kept = "copies of deleted objects that a pause on the host keeps"
        frozen = "fields left alone because somebody else sets them back each time"
        for what, counts in (
            (kept, kept_by_pauses(pair)),
            (frozen, pair.policies.contention.numbers()),
        ):
            for (name,), number in counts.items():
                if number:
                    found.setdefault((pair.name, name), f"{what}: {number}")
    return found


def _unread(pair: ClusterPair, controller: BoundSyncer, *, details: bool) -> set[str]:
    """Return why a syncer can't read its stores, or objects in them."""
    reasons = set[str]()
    for store in controller.stores:
        reflector = pair.reflectors.get(store.store_key)
        if reflector is not None and reflector.error is not None:
            reasons.add(str(reflector.error) if details else type(reflector.error).__name__)
        if why := unreadable(store):
            reasons.add(why)
    return reasons


def _controllers(process: Process) -> Iterator[tuple[ClusterPair, BoundSyncer]]:
    """Yield all controllers with their pairs.

    They are taken from copies, as syncers may join and leave while another thread reads them.
    """
    for pair in list(process.pairs.values()):
        for controller in list(pair.controllers.values()):
            yield pair, controller


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
class ClusterStanding:
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


def clusters(process: Process) -> list[ClusterStanding]:
    """Return all virtual clusters, also those that can't be served at present, by name."""
    found: list[ClusterStanding] = []
    absent = process.unserved.clusters
    for cluster, why in absent.items():
        if cluster not in process.served:
            state = ClusterState.STARTING if why is NOT_BEGUN else ClusterState.FAILING
            leads = process.leads(cluster)
            found.append(ClusterStanding(cluster, state, leads, reason=why.message))
    for (namespace, secret), why in process.unserved.secrets.items():
        name = f"{namespace}/{secret}"
        found.append(ClusterStanding(name, ClusterState.REFUSED, reason=why.message))

    parked = Counter[str]()
    for (cluster, *_), number in process.statuses.parked().items():
        parked[cluster] += number
    empty = unfilled(process)
    for name, served in process.served.items():
        state, reason = _state_of(served, empty.get(name, ()))
        if not reason and name in absent:
            reason = absent[name].message
        controllers = list(served.pair.controllers.values())
        standing = ClusterStanding(
            name,
            state,
            process.leads(name),
            syncers=len(controllers) + len(served.waiting()),
            ready=sum(each.ready for each in controllers),
            objects=sum(_objects(each) for each in controllers),
            parked=parked[name],
            reason=reason,
        )
        found.append(standing)
    return sorted(found, key=lambda each: each.cluster)


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
        return None
    makers = [each for each in list(pair.controllers.values()) if _made(each) is made]
    others = [each for each in makers if each is not controller]
    if not others and pair.informers.is_marked(made):
        return len(made)
    if controller.direction.goes_down:
        virtual = controller.virtual.keys() if controller.virtual is not None else ()
        return sum(controller.host_key(key) in made for key in list(virtual))
    settings = pair.settings
    note = f"{settings.marks.prefix}/{MADE_FOR}"
    number = 0
    for key in list(made.keys()):
        shown = made.outline(key)
        if shown is None or not settings.marks.is_from_here(shown, cluster=settings.identity):
            continue
        made_for = annotations_of(shown).get(note, controller.name)
        if made_for == controller.name:
            number += 1
    return number


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
    """Yield the state of each syncer of these pairs, and of each other part with a condition.

    Yield also each paused name that no syncer has.
    """
    counts = states(process)
    taken = collisions(process)
    troubles = degraded(process)
    absent = waiting(process)
    for pair in pairs:
        names = {*pair.controllers, *(name for cluster, name in absent if cluster == pair.name)}
        for name in sorted(names):
            controller = pair.controllers.get(name)
            trouble = troubles.get((pair.name, name), "")
            standing, reason = _standing(
                controller,
                trouble,
                is_paused=pair.policies.pause.is_paused(name),
            )
            number = mapped(pair, controller) if controller is not None else None
            objects: dict[str, int] = {}
            for state in (IN_STEP, *RequestState):
                objects[state] = counts.get((pair.name, name, state), 0)
            yield SyncerStatus(
                pair.name,
                name,
                standing,
                reason,
                number,
                objects,
                taken.get((pair.name, name), 0),
            )
        for name in sorted(pair.policies.pause.syncers - names):
            why = "a pause names it, and no syncer is called so"
            yield SyncerStatus(pair.name, name, Standing.UNKNOWN, why)
        for part in sorted(pair.conditions.keys() - names):
            yield SyncerStatus(pair.name, part, Standing.DEGRADED, pair.conditions[part].message)


def _standing(
    controller: BoundSyncer | None,
    trouble: str,
    *,
    is_paused: bool,
) -> tuple[Standing, str]:
    if controller is None:
        return Standing.WAITING, trouble
    if is_paused:
        return Standing.PAUSED, trouble
    if trouble:
        return Standing.DEGRADED, trouble
    if not controller.ready:
        return Standing.STARTING, "its caches are being filled"
    return Standing.READY, ""


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
