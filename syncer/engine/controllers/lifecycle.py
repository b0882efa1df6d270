"""Syncers join and leave a running pair: each works while both sides serve its resources."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Resource, Side
from syncer.api.optional_roles import Initialize, Live, Refers
from syncer.api.roles import Syncer
from syncer.cache.reflector import Reflector, ReflectorEvents
from syncer.cache.shared import SharedWatches
from syncer.clusters.discovery import Discovery
from syncer.directions import resources_of
from syncer.engine.controllers.builder import join, leave
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.stores.informers import SideInformer, StoreKey, WatchedSelection
from syncer.observe.logs import get_logger
from syncer.resources.custom.entry import FindServed
from syncer.rights.rbac import sources

log = get_logger(__name__)

#: The beginning of the reason why a syncer waits after its ``init`` raised; the error's message may
#: name addresses, users and files.
INIT_RAISED = "its init raised"


class LateSyncers(Protocol):
    """A part of the configuration that becomes syncers once the clusters serve its resources."""

    @property
    def name(self) -> str:
        """The name in logs and reports."""
        ...

    def sections(self) -> Mapping[str, Config]:
        """Return the options of its syncers, by name."""
        ...

    def syncers(self, find: FindServed) -> Sequence[Syncer] | str:
        """Return the syncers, or the reason why they must wait."""
        ...

    def assumed(self) -> Sequence[Syncer]:
        """Return the syncers as if everything was served."""
        ...


@dataclass(slots=True)
class Roster:
    """The syncers of a virtual cluster: those that can work, and those that must wait."""

    settings: Settings
    #: Syncers whose resources are known from the start.
    fixed: Sequence[tuple[Syncer, Config]]
    entries: Sequence[LateSyncers]
    virtual: Discovery
    host: Discovery
    #: The reason why a syncer must wait, by its name.
    waiting: dict[str, str] = field(default_factory=dict)

    def able(self) -> Mapping[str, tuple[Syncer, Config]]:
        """Return the syncers that can work, by name, and set ``waiting`` for the others."""
        self.waiting.clear()
        return {syncer.name: (syncer, config) for syncer, config in self._served()}

    def referred_to(self, names: Collection[str]) -> frozenset[Resource]:
        """Return the resources that waiting syncers of these names may refer to.

        Only those are returned that are known before the syncers work.
        """
        waiting = [syncer for syncer, _ in self.fixed if syncer.name in names]
        for entry in self.entries:
            if entry.name in names:
                waiting += entry.assumed()
        resources = set[Resource]()
        for syncer in waiting:
            if isinstance(syncer, Refers):
                resources.update(syncer.refers_to, syncer.owns)
        return frozenset(resources)

    def _served(self) -> Iterable[tuple[Syncer, Config]]:
        for syncer, config in (*self.fixed, *self._of_entries()):
            missing = self._missing(syncer)
            if missing:
                self.waiting[syncer.name] = missing
            else:
                yield syncer, config

    def _of_entries(self) -> Iterable[tuple[Syncer, Config]]:
        for entry in self.entries:
            found = entry.syncers(self._find)
            if isinstance(found, str):
                self.waiting[entry.name] = found
                continue
            sections = entry.sections()
            for syncer in found:
                yield syncer, sections[syncer.name]

    def _missing(self, syncer: Syncer) -> str:
        """Return the reason why a syncer can't work, or ``""``. Optional sources don't count."""
        lacking = []
        for source in sources(syncer, self.settings.sections, self.settings):
            if source.optional_with:
                continue
            if self._discovery(source.side).served(source.resource) is None:
                lacking.append(f"the {source.side} cluster does not serve {source.resource}")
        if not lacking:
            return ""
        return f"waits: {'; '.join(sorted(lacking))}"

    def _find(self, side: Side, name: str) -> Resource | None:
        """Return the resource of a name.

        With a group it must be the plural, since any other kind may have it as its short name.
        """
        plain, _, version = name.partition("/")
        discovery = self._discovery(side)
        if "." in plain:
            for resource in discovery.resources():
                if str(resource) == plain and version in ("", resource.version):
                    return resource
            return None
        try:
            return discovery.find(name)
        except NotFound:
            return None

    def _discovery(self, side: Side) -> Discovery:
        return self.virtual if side is Side.VIRTUAL else self.host


#: Seconds during which a kind that isn't served may still appear: a starting control plane serves
#: custom resources last. Until then, nothing that its objects may refer to counts as unused.
DOUBT_SECONDS = 60.0


class Lifecycle:
    """Adds and removes the syncers of a pair, and runs the reflectors that they need."""

    def __init__(
        self,
        pair: ClusterPair,
        roster: Roster,
        listener: ReflectorEvents,
        *,
        watches: SharedWatches,
        live: Callable[[str], Live],
        rng: random.Random,
        left: Callable[[str], None],
    ) -> None:
        """``watches`` are those of the host, which all pairs share.

        ``live`` returns a syncer's live clients; ``left`` receives the names of removed syncers.
        """
        self.pair = pair
        self.roster = roster
        self._listener = listener
        self._watches = watches
        self._live = live
        self._rng = rng
        self._left = left
        #: The group of the reflectors' tasks, while they run.
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[StoreKey, asyncio.Task[None]] = {}
        #: Set once all copies and originals are known that can be.
        self._copies_known = asyncio.Event()
        #: Notifies many objects of a change in steps.
        self._notifying: asyncio.Task[None] | None = None
        #: Why the ``init`` of a syncer failed last, by its name.
        self._failed: dict[str, str] = {}
        #: The time since when a syncer has had to wait, by name.
        self._waiting: dict[str, float] = {}

    async def update(self) -> bool:
        """Add the syncers that can work now, and remove those that can't.

        Return True if that changed anything.

        Called after each discovery. A syncer whose ``init`` raises waits, and is retried at the
        next discovery.
        """
        able = self.roster.able()
        controllers = self.pair.controllers
        leaving = []
        for name, controller in controllers.items():
            if self._must_leave(controller, able.get(name)):
                leaving.append(name)
        for name in leaving:
            reason = self.roster.waiting.get(name, "its resource has changed")
            log.warning("a syncer stops", cluster=self.pair.name, syncer=name, reason=reason)
            for store_key in leave(self.pair, name):
                self._end(store_key)
            self._left(name)
        for name in controllers:
            self.roster.waiting.pop(name, None)  # missing in this discovery, but its watches work

        has_changed = bool(leaving)
        for name, (syncer, config) in able.items():
            if name not in controllers:
                has_joined = await self._join(syncer, config)
                has_changed = has_changed or has_joined
        self._run_reflectors(self.pair.informers)
        self._doubt(asyncio.get_running_loop().time())
        return has_changed

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the reflectors, also those of later syncers, in this group."""
        self._tasks = tasks
        self._notifying = tasks.create_task(self.pair.fan_out.run())
        self._run_reflectors(self.pair.informers)

    def filled(self) -> None:
        """Handle a store that was filled or given up."""
        if not self._copies_known.is_set() and self._knows_copies():
            self._copies_known.set()

    def stop(self) -> None:
        """Stop the reflectors."""
        self._tasks = None
        for task in (*self._running.values(), self._notifying):
            if task:
                task.cancel()
        self._running.clear()

    # -- inside ------------------------------------------------------------------------------------

    def _doubt(self, now: float) -> None:
        """Treat references of recently waiting syncers as unknown.

        Requeue the objects that depended on references which are known now.
        """
        self._waiting = {name: self._waiting.get(name, now) for name in self.roster.waiting}
        short = {name for name, since in self._waiting.items() if now - since < DOUBT_SECONDS}
        certain = self.pair.references.doubt(self.roster.referred_to(short))
        for controller in self.pair.controllers.values():
            syncer = controller.syncer
            if controller.ready and syncer.when_used and syncer.resource in certain:
                self.pair.ask_all(controller)

    def _must_leave(self, controller: BoundSyncer, now: tuple[Syncer, Config] | None) -> bool:
        """Return True if the served resource changed or is gone.

        A missing resource must be confirmed by a 404 from its watch: a single discovery may be
        incomplete.
        """
        if now is not None:
            return self._used_by(controller.syncer) != self._used_by(now[0])
        for store in controller.stores:
            reflector = self.pair.reflectors[store.store_key]
            if isinstance(reflector.error, NotFound):
                return True
        return False

    def _used_by(self, syncer: Syncer) -> object:
        """Return the resources that a syncer uses, with their versions."""
        settings = self.pair.settings
        watched = sources(syncer, settings.sections, settings)
        if isinstance(syncer, Refers):
            return resources_of(syncer), watched, syncer.refers_to, syncer.owns
        return resources_of(syncer), watched

    async def _join(self, syncer: Syncer, config: Config) -> bool:
        """Add a syncer, unless its ``init`` fails. Return True if it was added."""
        if isinstance(syncer, Initialize):
            try:
                await syncer.init(self._live(syncer.name))
            except Exception as error:  # noqa: BLE001 — it is logged, with its traceback
                self._init_failed(syncer.name, error)
                return False
        joined = join(self.pair, syncer, config)
        # Before the first await: a store is unfilled while its selection grows.
        self._run_reflectors((*joined.stores, *joined.extras))
        for controller in self.pair.controllers.values():
            if controller.ready:
                # Its decisions without the optional stores that aren't filled now are made again.
                unfilled = {store for store in self.pair.extras(controller) if not store.synced}
                controller.missed |= unfilled
        for store in self.pair.informers:
            if store.newcomers:
                await store.newcomers.catch_up()

        # Objects that refer to the syncer's resources may have waited for it.
        resources = set(resources_of(syncer))
        for controller in self.pair.controllers.values():
            referring = controller.syncer
            if not controller.ready or not isinstance(referring, Refers):
                continue
            if resources.intersection(referring.refers_to):
                self.pair.ask_all(controller)
        return True

    def _init_failed(self, name: str, error: Exception) -> None:
        """Let a syncer wait, and log why, once and not at each discovery."""
        reason = f"{INIT_RAISED} {type(error).__name__}: {error}"
        self.roster.waiting[name] = reason
        if self._failed.get(name) == reason:
            return
        self._failed[name] = reason
        keys: dict[str, Any] = {"cluster": self.pair.name, "syncer": name}
        if isinstance(error, ClusterError):
            # It is no fault of the syncer, so no traceback is needed.
            log.warning("a syncer can't start yet", **keys, error=str(error))
        else:
            log.error("a syncer can't start", **keys, exc_info=error)

    def _run_reflectors(self, stores: Iterable[SideInformer]) -> None:
        """Run a reflector for each of these stores, with the selection that it needs now."""
        for store in stores:
            store_key = store.store_key
            selection = self.pair.informers.selection(store)
            known = self.pair.reflectors.get(store_key)
            before = None
            selects_the_same = (
                known is not None
                and known.namespace == selection.namespace
                and known.selector == selection.selector
                and known.about_copies == selection.about_copies
            )
            if known and selects_the_same:
                if isinstance(known.error, NotFound):
                    known.hurry()
            else:
                if known and not selection.is_within(
                    known.namespace, known.selector, about_copies=known.about_copies
                ):
                    # Objects that the store lacks so far must not count as deleted.
                    store.synced = False
                before = self._end(store_key)
                self.pair.reflectors[store_key] = self._reflector(store, selection)
            if self._tasks and store_key not in self._running:
                reflector = self.pair.reflectors[store_key]
                task = self._tasks.create_task(self._run(reflector, before))
                self._running[store_key] = task

    async def _run(self, reflector: Reflector, before: "asyncio.Task[None] | None") -> None:
        """Run a reflector after the former one of its store has ended.

        One that keeps only the Events about copies begins once the copies are known.
        """
        if before:
            await asyncio.wait({before})
        if reflector.about_copies:
            await self._copies_known.wait()
        await reflector.run()

    def _knows_copies(self) -> bool:
        """Return True if all copies and originals are known that can be."""
        copies = self.pair.reconciler.view.copies()
        return all(store.synced or self.pair.given_up(store) for store in copies)

    def _reflector(self, store: SideInformer, selection: WatchedSelection) -> Reflector:
        """Return a new reflector of a store.

        On the host, it shares the watch of all virtual clusters.
        """
        if store.side is Side.HOST:
            settings = self.pair.settings
            is_wanted = self.pair.reconciler.view.has_copy if selection.about_copies else None
            return self._watches.reflector(
                store,
                self._listener,
                mark=(settings.marks.cluster, settings.identity),
                namespace=selection.namespace,
                selector=selection.selector,
                fields=store.part.fields if store.part is not None else "",
                rng=self._rng,
                is_wanted=is_wanted,
            )
        return Reflector(
            self.pair.virtual,
            store,
            self._listener,
            namespace=selection.namespace,
            selector=selection.selector,
            rng=self._rng,
        )

    def _end(self, store_key: StoreKey) -> "asyncio.Task[None] | None":
        """Stop the reflector of a store, if there is one.

        Return its task, which may take a moment to end.
        """
        self.pair.reflectors.pop(store_key, None)
        task = self._running.pop(store_key, None)
        if task:
            task.cancel()
        return task


#: Seconds between discoveries while a syncer waits for its resource: the first delay, doubled up to
#: the last.
FIRST_LOOK = 0.25
LAST_LOOK = 30.0
#: Minimum seconds between discoveries, so that many changes cause a single one.
LOOK_PAUSE = 0.25


class DiscoveryLoop:
    """Repeats the discoveries of a virtual cluster.

    These are its own, and that of the host, which it shares with other virtual clusters.
    ``looked`` is called after each; ``waiting`` returns True while a syncer waits.
    """

    def __init__(
        self,
        discoveries: Sequence[Discovery],
        *,
        waiting: Callable[[], bool],
        looked: Callable[[], Awaitable[None]],
    ) -> None:
        self._discoveries = discoveries
        self._waiting = waiting
        self._looked = looked
        self._wanted = asyncio.Event()
        #: The time of the first change that no discovery covers yet.
        self._since = 0.0

    def soon(self) -> None:
        """Discover soon, because the served resources may have changed."""
        if not self._wanted.is_set():
            self._since = asyncio.get_running_loop().time()
        self._wanted.set()

    async def run(self) -> None:
        """Run until cancelled."""
        clock = asyncio.get_running_loop().time
        wait = FIRST_LOOK
        while True:
            timeout = wait if self._waiting() else None
            try:
                async with asyncio.timeout(timeout):
                    await self._wanted.wait()
                shared = clock() - self._since
                wait = FIRST_LOOK
            except TimeoutError:
                shared = wait / 2
                wait = min(wait * 2, LAST_LOOK)
            self._wanted.clear()
            await self._discover(shared)
            await asyncio.sleep(LOOK_PAUSE)

    async def _discover(self, shared: float) -> None:
        """Discover both sides.

        A discovery that began for another virtual cluster within so many seconds is used instead.
        """
        for discovery in self._discoveries:
            cluster = discovery.cluster.virtual_cluster
            try:
                await discovery.refresh(shared=shared)
            except ClusterError as error:
                log.warning("discovery failed", cluster=cluster, error=str(error))
            except Exception:  # a document of an aggregated API server may contain anything
                log.exception("discovery returned a malformed document", cluster=cluster)
        await self._looked()
