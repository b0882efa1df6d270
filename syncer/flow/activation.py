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
from syncer.flow.caches import Place
from syncer.flow.link import Link, Part
from syncer.flow.roster import Roster
from syncer.flow.watch import Informer, Listener
from syncer.flow.wiring import join, leave
from syncer.observe.logs import get_logger
from syncer.rbac import sources

log = get_logger(__name__)


class Activation:
    """Lets syncers join a link and leave it, and runs the informers that those which are there need."""

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
        return bool(leaving) or any(joined)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the informers, those of later syncers too, in this group."""
        self._tasks = tasks
        self._inform()

    def stop(self) -> None:
        """End the informers."""
        self._tasks = None
        for task in self._running.values():
            task.cancel()
        self._running.clear()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _must_leave(self, part: Part, now: tuple[Syncer[Any], Config] | None) -> bool:
        """Whether its resource is another one now, or gone: one look may be wrong, a watch that says so too isn't."""
        if now is not None:
            return self._looks_at(part.syncer) != self._looks_at(now[0])
        informers = [self.link.informers[store.side, store.resource] for store in part.stores]
        return any(isinstance(informer.error, Missing) for informer in informers)

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
        return True

    def _leave(self, name: str) -> None:
        log.warning("a syncer stops", syncer=name, reason=self.roster.waiting.get(name, "its resource has changed"))
        for place in leave(self.link, name):
            self._end(place)
        self._left(name)

    def _inform(self) -> None:
        """An informer for each store, with what it is to hold now."""
        for store in self.link.caches:
            place, selection = (store.side, store.resource), self.link.caches.selection(store)
            known = self.link.informers.get(place)
            if known and (known.namespace, known.selector) == (selection.namespace, selection.selector):
                if isinstance(known.error, Missing):
                    known.hurry()
            else:
                self._end(place)
                cluster = self.link.virtual if store.side is Side.VIRTUAL else self.link.host
                self.link.informers[place] = Informer(
                    cluster,
                    store,
                    self._listener,
                    namespace=selection.namespace,
                    selector=selection.selector,
                    rng=self._rng,
                )
            if self._tasks and place not in self._running:
                self._running[place] = self._tasks.create_task(self.link.informers[place].run())

    def _end(self, place: Place) -> None:
        self.link.informers.pop(place, None)
        task = self._running.pop(place, None)
        if task:
            task.cancel()
