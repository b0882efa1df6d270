"""How a syncer joins and leaves a link: the stores that it needs, and what of them wakes it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.optional_roles import Indexes, Refers, Watches
from syncer.api.roles import FakeSyncUp, SyncDown, Syncer, SyncUp
from syncer.api.sources import Index, Source, Watch
from syncer.clusters.client import Cluster
from syncer.engine.apply.applier import Carrier
from syncer.engine.cache.informers import Informers, Place, Selection
from syncer.engine.cache.references import References
from syncer.engine.cache.store import Store
from syncer.engine.controllers.pair import Link
from syncer.engine.reconcile.controller import Part, safely
from syncer.engine.reconcile.policies.contention import OFF, Fights, Rules
from syncer.engine.reconcile.policies.drift_policy import Tolerance, policies
from syncer.engine.reconcile.policies.ownership import rules_of
from syncer.engine.reconcile.policies.pause import Pause
from syncer.engine.workqueue.queue import Queue
from syncer.rbac import sources
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS, KNOWN
from syncer.translate.named import named
from syncer.translate.patches import Patcher

#: How many patches that changed nothing are remembered; there should be none.
FUTILE = 1024
#: How many Pods are remembered to be bound; it matters until the watch shows them so.
BOUND = 4096


def link(
    settings: Settings,
    enabled: Iterable[tuple[Syncer[Any], Config]],
    *,
    virtual: Cluster,
    host: Cluster,
    queue: Queue,
    clock: Callable[[], float],
    utcnow: Callable[[], datetime],
    has_status: Callable[[Side, Resource], bool],
    may_write: Callable[[], bool],
    rules: Rules = OFF,
) -> Link:
    """Wire the syncers of one virtual cluster to the stores that they read and the queue that they are asked from."""
    informers = Informers(clock=clock)
    carrier = Carrier(
        identity=settings.identity,
        marks=settings.marks,
        names=settings.names,
        virtual=virtual,
        host=host,
        informers=informers,
        has_status=has_status,
        may_write=may_write,
        futile=LRUCache(FUTILE),
        bound=LRUCache(BOUND),
        fights=Fights(rules, settings.marks, clock=clock, utcnow=utcnow),
        tolerance=Tolerance(settings.marks, lambda syncer: policies(settings, syncer)),
    )
    references = References(informers)
    pause = Pause(settings, informers)
    made = Link(settings, virtual, host, queue, informers, references, carrier, utcnow, pause)
    references.wake, references.ask = made.may_be_used, made.ask
    pause.watch(made.pause_changed)
    for syncer, config in enabled:
        join(made, syncer, config)
    return made


def join(made: Link, syncer: Syncer[Any], config: Config) -> Part:
    """Let a syncer take part; it is asked nothing before its stores are filled and :meth:`Link.begin` is called."""
    wanted = sources(syncer, made.settings.sections, made.settings)
    extras = _extras(wanted)
    stores, others = (tuple(_want(made, syncer, source) for source in each) for each in (wanted - extras, extras))
    part = made.parts[syncer.name] = Part(
        syncer,
        config,
        Patcher(config.patches, section=syncer.section, find=_find(made)),
        rules_of(syncer, config, made.settings),
        safely(syncer, lambda obj: [syncer.predicate(obj)]),
        stores,
        others,
    )
    if isinstance(syncer, Indexes):
        _add_indexes(made, syncer, [index for index in syncer.indexes() if made.is_on(index.optional_with)])
    if isinstance(syncer, Watches):
        _add_watches(made, part, made.watches_of(syncer))
    if isinstance(syncer, SyncDown | FakeSyncUp) or (isinstance(syncer, SyncUp) and syncer.reverts_virtual_changes):
        store = made.informers.store(Side.VIRTUAL, syncer.resource)
        store.add_listener(lambda key, obj: made.virtual_changed(part, key, obj), owner=syncer.name)
    if isinstance(syncer, SyncDown):
        made.pause.follow(made.informers.store(Side.VIRTUAL, syncer.resource), syncer.name)
    if isinstance(syncer, SyncDown | SyncUp):
        changed = safely(syncer, lambda key, obj: made.host_changed(part, key, obj))
        made.informers.store(Side.HOST, syncer.host_resource).add_listener(changed, owner=syncer.name)
    if isinstance(syncer, Refers):
        made.references.add(syncer, syncer, lambda function: safely(syncer, function))
    made.references.tie()
    return part


def leave(made: Link, name: str) -> list[Place]:
    """Let a syncer take part no more; gives the stores that nobody needs any longer, whose informers are to end."""
    del made.parts[name]
    made.references.remove(name)
    return made.informers.leave(name)


def _find(made: Link) -> Callable[[str], Resource | None]:
    """Finds what a patch means by a kind: what is synced, else what is known to every cluster."""

    def find(name: str) -> Resource | None:
        synced = [part.syncer.resource for part in made.parts.values()]
        return named(name, [*synced, *KNOWN])

    return find


def _want(made: Link, syncer: Syncer[Any], source: Source) -> Store:
    fresh = not made.informers.has(source.side, source.resource)
    store = made.informers.want(source, _selection(made.settings, source), owner=syncer.name)
    if fresh and source.resource == CUSTOM_RESOURCE_DEFINITIONS:
        store.add_listener(lambda key, obj: made.definitions_changed())
    return store


def _selection(settings: Settings, source: Source) -> Selection:
    """The namespaces and the label selector with which a source is to be watched."""
    marked = settings.marks.selector(settings.identity) if source.marked else ""
    selector = ",".join(filter(None, (marked, source.selector)))
    if source.side is Side.VIRTUAL or not source.resource.namespaced:
        return Selection(None, selector)
    return Selection(source.namespaces or settings.names.host_namespaces(), selector)


def _extras(wanted: Iterable[Source]) -> frozenset[Source]:
    """What a syncer reads of another one's objects, and can do the rest of its work without."""
    firm = {(source.side, source.resource) for source in wanted if not source.optional_with}
    return frozenset(source for source in wanted if source.optional_with and (source.side, source.resource) not in firm)


def _add_indexes(made: Link, syncer: Syncer[Any], indexes: Sequence[Index]) -> None:
    for index in indexes:
        store = made.informers.store(index.source.side, index.source.resource)
        store.add_index(index.name, safely(syncer, index.values), owner=syncer.name)


def _add_watches(made: Link, part: Part, watches: Sequence[Watch]) -> None:
    for watch in watches:

        def keys(obj: Obj, watch: Watch = watch) -> Iterable[Key]:
            return watch.keys(obj, made.settings)

        store = made.informers.store(watch.source.side, watch.source.resource)
        store.add_watcher(
            safely(part.syncer, keys), watch.when, lambda found: made.watched(part, found), owner=part.syncer.name
        )
