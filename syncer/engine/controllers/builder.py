"""Build controllers: the stores that a syncer needs, and the changes that notify it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.decision import Decision
from syncer.api.objects import Key, Obj, Resource, Side, SyncRequest
from syncer.api.optional_roles import Indexes, Refers, Watches
from syncer.api.roles import Syncer
from syncer.api.sources import Index, Source, SourcePart, Watch
from syncer.byte_budget import ByteBudget
from syncer.clusters.client import SideClient
from syncer.directions import direction_of, resources_of
from syncer.engine.apply.applier import Applier
from syncer.engine.apply.namespace_owners import NamespaceOwners
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.reference_requests import ReferenceRequests
from syncer.engine.reconcile.controller import BoundSyncer, View, safely
from syncer.engine.reconcile.pipeline import Policies, pipelines
from syncer.engine.reconcile.policies.bound_pods import BoundPods
from syncer.engine.reconcile.policies.breaker import CircuitBreaker
from syncer.engine.reconcile.policies.confirmation_pace import ConfirmationPace
from syncer.engine.reconcile.policies.contention import OFF, Contention, ContentionRules
from syncer.engine.reconcile.policies.drift_policy import DriftPolicy
from syncer.engine.reconcile.policies.drift_policy import policies as drift_policies
from syncer.engine.reconcile.policies.futile import FutilePatches
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.reconcile.policies.ownership import ownership_of
from syncer.engine.reconcile.policies.pause import Pause
from syncer.engine.reconcile.policies.refusals import Refusals
from syncer.engine.reconcile.policies.room import Room
from syncer.engine.reconcile.policies.write_pace import WritePace
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.engine.stores.fan_out import FanOut
from syncer.engine.stores.informers import (
    Informers,
    SideInformer,
    StoreKey,
    WatchedSelection,
)
from syncer.engine.stores.references import References
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS, KNOWN
from syncer.rights.rbac import sources
from syncer.translate.named import named
from syncer.translate.patches import Patcher
from syncer.workqueue.queue import Queue


def _nothing() -> None:
    """Do nothing about a change."""


def _unordered(side: Side) -> bool:
    """Claim no order of versions."""
    return False


def _unknown_minor(side: Side) -> int:
    """Claim no version of an API server."""
    return 0


def build_pair(
    settings: Settings,
    enabled: Iterable[tuple[Syncer, Config]],
    *,
    virtual: SideClient,
    host: SideClient,
    queue: Queue,
    clock: Callable[[], float],
    utcnow: Callable[[], datetime],
    has_status: Callable[[Side, Resource], bool],
    ordered: Callable[[Side], bool] = _unordered,
    minor: Callable[[Side], int] = _unknown_minor,
    rules: ContentionRules = OFF,
    homes: Callable[[Settings, Informers], HostNamespaces] = HostNamespaces,
    budget: ByteBudget | None = None,
    definitions_changed: Callable[[], None] = _nothing,
    paused_or_not: Callable[[], None] = _nothing,
) -> ClusterPair:
    """Build the pair of a virtual cluster and the host, with controllers for these syncers.

    ``definitions_changed`` and ``paused_or_not`` are as in :class:`.ClusterPair`; ``budget`` is for
    the objects of both sides, None without a limit.
    """
    informers = Informers(clock=clock, ordered=ordered, budget=budget)
    fan_out = FanOut()
    controllers: dict[str, BoundSyncer] = {}
    requests = ReferenceRequests(controllers, queue)
    references = References(informers, fan_out, used_or_not=requests.may_be_used, ask=requests.ask)
    view = View(settings, informers, references, utcnow, controllers, minor)
    host_namespaces = homes(settings, informers)
    reconciler = Reconciler(view, host_namespaces, has_status)

    def decide(controller: BoundSyncer, request: SyncRequest) -> Decision:
        return reconciler.scan(controller, request).decision

    limits = settings.patrol.breaker if settings.patrol else None
    policies = Policies(
        pause=Pause(settings, informers),
        breaker=CircuitBreaker(settings, controllers, decide, limits),
        drift=DriftPolicy(settings.marks, partial(drift_policies, settings)),
        contention=Contention(rules, settings.marks, clock=clock, utcnow=utcnow),
        futile=FutilePatches(settings.marks, clock),
        refusals=Refusals(clock),
        homes=host_namespaces,
        room=Room(queue.may_hold),
        write_pace=WritePace(clock),
        bound_pods=BoundPods(),
        confirmations=ConfirmationPace(clock),
    )
    applier = Applier(
        identity=settings.identity,
        marks=settings.marks,
        virtual=virtual,
        host=host,
        informers=informers,
        homes=host_namespaces,
        owners=NamespaceOwners(host, host_namespaces, clock),
    )
    pair = ClusterPair(
        settings,
        virtual,
        host,
        queue,
        informers,
        references,
        reconciler,
        policies,
        applier,
        fan_out,
        controllers,
        definitions_changed,
        paused_or_not,
    )
    policies.pause.watch(pair.pause_changed, pair.syncer_pause_changed)
    for syncer, config in enabled:
        join(pair, syncer, config)
    return pair


def join(pair: ClusterPair, syncer: Syncer, config: Config) -> BoundSyncer:
    """Add a syncer to a pair.

    It is called only after its stores are filled and ``ClusterPair.begin`` was called.
    """
    wanted = sources(syncer, pair.settings.sections, pair.settings)
    extras = _extras(wanted)
    stores = tuple(_want(pair, syncer, wanted - extras))
    others = tuple(_want(pair, syncer, extras))

    def may_have_copy(obj: Obj) -> list[bool]:
        return [syncer.predicate(obj)]

    predicate = None
    if type(syncer).predicate is not Syncer.predicate:
        predicate = safely(pair.name, syncer, may_have_copy)
    ownership = ownership_of(syncer, config, pair.settings)
    controller = BoundSyncer(
        syncer,
        config,
        pair.reconciler.view,
        predicate,
        ownership is not None,
        direction_of(syncer),
        stores,
        others,
    )
    pair.controllers[syncer.name] = controller
    concurrency = 1 if syncer.counts_copies else config.concurrency
    if concurrency or config.writes_per_second:
        pair.queue.limit(
            pair.name,
            syncer.name,
            concurrency=concurrency,
            writes_per_second=config.writes_per_second,
        )
    patcher = Patcher(config.patches, section=syncer.section, find=_find(pair))
    pair.reconciler.pipelines[syncer.name] = pipelines(
        controller, pair.policies, patcher, ownership, pair.reconciler.has_status
    )
    if isinstance(syncer, Indexes):
        for index in syncer.indexes_with(pair.settings):
            if pair.is_on(index.optional_with):
                _add_index(pair, controller, index)
    if isinstance(syncer, Watches):
        _add_watches(pair, controller, pair.watches_of(syncer))
    _listen(pair, controller)
    if isinstance(syncer, Refers) and (syncer.refers_to or syncer.owns):
        pair.references.add(syncer, syncer, config.selector)
    pair.references.tie()
    return controller


def _listen(pair: ClusterPair, controller: BoundSyncer) -> None:
    """Turn changes of the syncer's own objects into requests."""
    direction = controller.direction
    name = controller.name
    if direction.by_virtual and controller.virtual is not None:
        controller.virtual.add_handler(partial(pair.changed, controller, Side.VIRTUAL), owner=name)
    if direction.by_host:
        for host in controller.hosts:
            host.add_handler(partial(pair.changed, controller, Side.HOST), owner=name)


def leave(pair: ClusterPair, name: str) -> list[StoreKey]:
    """Remove a syncer. Return the stores that no other syncer needs, whose reflectors must end."""
    del pair.controllers[name]
    del pair.reconciler.pipelines[name]
    pair.references.remove(name)
    return pair.informers.leave(name)


def _find(pair: ClusterPair) -> Callable[[str], Resource | None]:
    """Return a function that finds the resource of a kind.

    It searches the synced resources first, then the well-known ones.
    """

    def find(name: str) -> Resource | None:
        synced: list[Resource] = []
        for controller in pair.controllers.values():
            synced += resources_of(controller.syncer)[:1]
        return named(name, [*synced, *KNOWN])

    return find


def _want(pair: ClusterPair, syncer: Syncer, wanted: Iterable[Source]) -> Iterator[SideInformer]:
    """Yield the stores of sources, created if need be."""
    for source in wanted:
        is_new = not pair.informers.has(source.side, source.resource)
        for part in source.parts or (None,):
            selection = _selection(pair.settings, source, part)
            store = pair.informers.want(source, selection, owner=syncer.name, part=part)
            if is_new and source.resource == CUSTOM_RESOURCE_DEFINITIONS:
                store.add_handler(partial(_definition_changed, pair))
            yield store


def _definition_changed(pair: ClusterPair, key: Key, obj: Obj) -> None:
    pair.definitions_changed()


def _selection(settings: Settings, source: Source, part: SourcePart | None) -> WatchedSelection:
    """Return the namespaces and the label selector with which to watch a source, or its part."""
    selectors = []
    if source.marked:
        selectors.append(settings.marks.selector(settings.identity))
    if source.selector:
        selectors.append(source.selector)
    selector = ",".join(selectors)
    if source.side is Side.VIRTUAL or not source.resource.namespaced:
        return WatchedSelection(None, selector)
    namespaces = settings.names.host_namespaces() if part is None else (part.namespace,)
    return WatchedSelection(namespaces, selector, source.about_copies)


def _extras(wanted: Iterable[Source]) -> frozenset[Source]:
    """Return the sources of other syncers' objects that the syncer can work without."""
    firm = {(source.side, source.resource) for source in wanted if not source.optional_with}
    extras = set()
    for source in wanted:
        if source.optional_with and (source.side, source.resource) not in firm:
            extras.add(source)
    return frozenset(extras)


def _add_index(pair: ClusterPair, controller: BoundSyncer, index: Index) -> None:
    values = _of_copies(pair.settings, index) if index.copies_only else index.values
    notify = None
    if index.requeues:
        notify = partial(pair.values_changed, controller, index.requeues)
    for store in _stores(pair, controller, index.source):
        store.add_index(
            index.name,
            values,
            owner=controller.name,
            notify=notify,
            when=index.when,
            keeps=index.keeps,
        )


def _stores(pair: ClusterPair, controller: BoundSyncer, source: Source) -> Sequence[SideInformer]:
    """Return the stores of a source that a syncer reads."""
    if source.parts:
        return pair.informers.parts(source.side, source.resource, controller.name)
    return [pair.informers.store(source.side, source.resource)]


def _of_copies(settings: Settings, index: Index) -> Callable[[Obj], Iterable[str]]:
    """Return the function of an index, without values for objects that are not our copies."""
    marks = settings.marks
    identity = settings.identity
    resource = index.source.resource

    def values(obj: Obj) -> Iterable[str]:
        found = index.values(obj)
        if found and marks.is_ours(obj, cluster=identity, resource=resource):
            return found
        return ()

    return values


def _add_watches(pair: ClusterPair, controller: BoundSyncer, watches: Sequence[Watch]) -> None:
    for watch in watches:

        def keys(obj: Obj, watch: Watch = watch) -> Iterable[Key]:
            return watch.keys(obj, pair.settings)

        watched = partial(pair.watched, controller)
        for store in _stores(pair, controller, watch.source):
            store.add_map_function(keys, watch.when, watched, owner=controller.syncer.name)
