"""Keeps the syncers of one link at work for exactly as long as both sides serve what they sync."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from syncer.api.config import Config
from syncer.api.errors import Missing
from syncer.api.objects import Side
from syncer.api.optional_roles import Initialize, Live, Refers
from syncer.api.roles import Syncer
from syncer.engine.cache.informers import Place, Selection
from syncer.engine.cache.reflector import Listener, Reflector
from syncer.engine.cache.store import Store
from syncer.engine.controllers.builder import join, leave
from syncer.engine.controllers.pair import Link
from syncer.engine.controllers.roster import Roster
from syncer.engine.reconcile.controller import Part
from syncer.observe.logs import get_logger
from syncer.rbac import sources

#: Seconds for which a kind that isn't served may yet turn out to be: a control plane that starts serves those of
#: CustomResourceDefinitions last. Until then nothing that its objects may use is called unused.
DOUBT_SECONDS = 60.0

log = get_logger(__name__)


class Activation:
    """Lets syncers join a link and leave it, and runs the reflectors that those which are there need."""

    def __init__(
        self,
        made: Link,
        roster: Roster,
        listener: Listener,
        *,
        live: Callable[[str], Live],
        rng: random.Random,
        left: Callable[[str], None],
    ) -> None:
        """``live`` gives a syncer's live clients, ``left`` hears the names of those that have left."""
        self.link, self.roster = made, roster
        self._listener, self._live, self._rng, self._left = listener, live, rng, left
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[Place, asyncio.Task[None]] = {}
        self._failed: dict[str, str] = {}
        #: Since when syncers have had to wait, by name.
        self._waiting: dict[str, float] = {}

    async def update(self) -> bool:
        """After a look at what is served: who can work joins, who can't any more leaves. Whether that changed anything.

        Raises nothing: a syncer whose ``init`` raises waits, and is tried again at the next look.
        """
        able = self.roster.able()
        parts = self.link.parts
        leaving = [name for name, part in parts.items() if self._must_leave(part, able.get(name))]
        for name in leaving:
            self._leave(name)
        for name in parts:
            self.roster.waiting.pop(name, None)  # not seen this time, but its watches work
        joined = [await self._join(syncer, config) for name, (syncer, config) in able.items() if name not in parts]
        self._inform()
        self._doubt(asyncio.get_running_loop().time())
        return bool(leaving) or any(joined)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the reflectors, those of later syncers too, in this group."""
        self._tasks = tasks
        self._inform()

    def stop(self) -> None:
        """End the reflectors."""
        self._tasks = None
        for task in self._running.values():
            task.cancel()
        self._running.clear()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _doubt(self, now: float) -> None:
        """Hold in doubt what those who wait only since a short time may refer to, and ask about what no longer is."""
        self._waiting = {name: self._waiting.get(name, now) for name in self.roster.waiting}
        short = {name for name, since in self._waiting.items() if now - since < DOUBT_SECONDS}
        before, references = self.link.references.doubted, self.link.references
        references.doubted = self.roster.referred_to(short)
        for part in self.link.parts.values():
            if part.ready and part.syncer.when_used and part.syncer.resource in before - references.doubted:
                self.link.ask_all(part)

    def _must_leave(self, part: Part, now: tuple[Syncer[Any], Config] | None) -> bool:
        """Whether its resource is another one now, or gone: one look may be wrong, a watch that says so too isn't."""
        if now is not None:
            return self._looks_at(part.syncer) != self._looks_at(now[0])
        reflectors = [self.link.reflectors[store.side, store.resource] for store in part.stores]
        return any(isinstance(reflector.error, Missing) for reflector in reflectors)

    def _looks_at(self, syncer: Syncer[Any]) -> object:
        """The resources that a syncer has to do with, versions and all."""
        refers = (syncer.refers_to, syncer.owns) if isinstance(syncer, Refers) else ()
        return syncer.resource, syncer.host_resource, sources(syncer, self.link.settings.sections), refers

    async def _join(self, syncer: Syncer[Any], config: Config) -> bool:
        if isinstance(syncer, Initialize):
            try:
                await syncer.init(self._live(syncer.name))
            except Exception as error:
                reason = f"its init raised {type(error).__name__}: {error}"
                if self._failed.get(syncer.name) != reason:  # not at each look
                    log.exception("a syncer can't start", syncer=syncer.name)
                self.roster.waiting[syncer.name] = self._failed[syncer.name] = reason
                return False
        join(self.link, syncer, config)
        self._inform()  # before anything is awaited: a store that is to hold more isn't filled any longer
        for part in self.link.parts.values():
            if part.ready:  # what it has decided without the extras that aren't filled now, it decides again
                part.missed |= {store for store in self.link.extras(part) if not store.synced}
        return True

    def _leave(self, name: str) -> None:
        log.warning("a syncer stops", syncer=name, reason=self.roster.waiting.get(name, "its resource has changed"))
        for place in leave(self.link, name):
            self._end(place)
        self._left(name)

    def _inform(self) -> None:
        """A reflector for each store, with what it is to hold now."""
        for store in self.link.informers:
            place, selection = (store.side, store.resource), self.link.informers.selection(store)
            known, before = self.link.reflectors.get(place), None
            if known and (known.namespace, known.selector) == (selection.namespace, selection.selector):
                if isinstance(known.error, Missing):
                    known.hurry()
            else:
                if known and not selection.is_within(known.namespace, known.selector):
                    store.synced = False  # what it doesn't have yet must not be taken for gone
                before = self._end(place)
                self.link.reflectors[place] = self._made(store, selection)
            if self._tasks and place not in self._running:
                self._running[place] = self._tasks.create_task(_run(self.link.reflectors[place], before))

    def _made(self, store: Store, selection: Selection) -> Reflector:
        return Reflector(
            self.link.virtual if store.side is Side.VIRTUAL else self.link.host,
            store,
            self._listener,
            namespace=selection.namespace,
            selector=selection.selector,
            rng=self._rng,
        )

    def _end(self, place: Place) -> "asyncio.Task[None] | None":
        """End the reflector of a store, if there is one; gives the task, which may take a moment to end."""
        self.link.reflectors.pop(place, None)
        task = self._running.pop(place, None)
        if task:
            task.cancel()
        return task


async def _run(reflector: Reflector, before: "asyncio.Task[None] | None") -> None:
    """Run a reflector when the one before it has let go of their store."""
    if before:
        await asyncio.wait({before})
    await reflector.run()
