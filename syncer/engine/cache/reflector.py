"""List, then watch, into an informer. A state machine that always comes back.

::

    Empty ──> Listing ──> Listed ──> Watching ──┐
                ^           ^           │       │ the watch ended: from the last resourceVersion
                │           └───────────┼───────┘
                └───────────────────────┘  410, as a status or in the stream; versions went back: list anew

Every way back waits: a little after a watch that lived, exponentially longer after failures, always with jitter.
The rules are those of client-go's Reflector (bookmarks, ``timeoutSeconds`` at random, relist on 410), and one more. An
API server whose etcd was restored from a snapshot shows nothing to a watch from a version that it has yet to reach,
and says nothing of it. So before a watch that was cut short is opened again, the version is compared.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from syncer.api.errors import ClusterError, Expired, Forbidden, Missing, SyncerError, Unreachable
from syncer.api.objects import Key
from syncer.clusters import codec
from syncer.clusters.client import Cluster
from syncer.clusters.errors import Where, from_status
from syncer.engine.cache.informer import Informer, Page
from syncer.engine.cache.versions import WentBack, is_later

#: Objects a page of a LIST.
PAGE = 500
#: Objects after which a long page lets other tasks run, so that a lease is renewed in time.
BREATH = 100
#: Seconds that a watch is asked to live, chosen at random so that not all watches end at once.
WATCH_SECONDS = (300.0, 600.0)
#: Seconds without a byte (bookmarks come about every minute) after which a watch counts as dead.
SILENCE_SECONDS = 150.0
#: Seconds before a reconnect: after a watch that lived, and the bound of the exponential growth.
FIRST_WAIT, LAST_WAIT = 0.05, 30.0
#: Seconds within which a watch that ends without having brought anything counts as a failure.
SHORT_SECONDS = 1.0
#: Seconds by which a watch may end before its time without having been cut short.
EARLY_SECONDS = 5.0
#: Seconds between attempts where a right or the resource is missing.
SLOW_WAIT = 20.0


class State(StrEnum):
    """Where a reflector is."""

    EMPTY = "empty"
    LISTING = "listing"
    LISTED = "listed"
    WATCHING = "watching"


class Listener(Protocol):
    """What the flow hears from its reflectors."""

    def synced(self, reflector: "Reflector") -> None:
        """The first list is complete."""
        ...

    def watching(self, reflector: "Reflector") -> None:
        """A watch has been opened, for the first time or anew."""
        ...

    def failed(self, reflector: "Reflector", error: SyncerError) -> None:
        """The list or the watch did not work; it will be tried again."""
        ...

    def went_back(self, reflector: "Reflector") -> None:
        """A list was taken that is older than what was seen before: etcd was restored, or a cache is behind."""
        ...

    def working(self, reflector: "Reflector") -> None:
        """The watch stands after a failure."""
        ...


class Reflector:
    """Keeps one store like one collection of one API server."""

    def __init__(
        self,
        cluster: Cluster,
        store: Informer,
        listener: Listener,
        *,
        namespace: str = "",
        selector: str = "",
        rng: random.Random | None = None,
    ) -> None:
        self.cluster, self.store, self.listener = cluster, store, listener
        self.namespace, self.selector = namespace, selector
        self.state = State.EMPTY
        #: Why it doesn't work at the moment, or None.
        self.error: SyncerError | None = None
        #: How often a watch was opened.
        self.restarts = 0
        self._rng = rng or random.Random()  # noqa: S311 — jitter, not a secret
        self._failures = 0
        self._hurry = asyncio.Event()
        self._listing = asyncio.Lock()
        #: Whether the latest watch ended before its time, so that the API server may be another one by now.
        self._cut_short = False
        #: Ends the watch that is open when it is rescheduled.
        self._watching = asyncio.timeout(None)
        self._unwatched = asyncio.Event()
        self._unwatched.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                await self._step()
            except (Expired, WentBack):
                self.store.left_behind()
                self.state = State.EMPTY
                self._failures += 1
            except ClusterError as error:
                self._fail(error)
            except (
                codec.DecodeError,
                RecursionError,
            ) as error:  # what could just be read may be too deep to be written
                self._fail(SyncerError(f"{self}: the API server sent what can't be read: {error}"))
            await self._pause()

    async def relist(self, wrong: Callable[[Key], None]) -> bool:
        """List anew, beside the running watch where versions are ordered; False where the first list isn't complete.

        ``wrong`` gets the keys of what the store had otherwise than the API server, though the watch had come past it.
        Where versions can't be compared, or the list is older than what the watch has shown, the watch is ended and
        all is listed from the beginning. Raises what a list raises; nothing is taken for gone then.
        """
        async with self._listing:
            if self.state in (State.EMPTY, State.LISTING):
                return False
            if not await self._compare(wrong):
                await self._end_watch()
                await self._replace()
        self.listener.synced(self)
        return True

    def hurry(self) -> None:
        """Try again at once: the cluster is back."""
        self._failures = 0
        self._hurry.set()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._wait()):
                await self._hurry.wait()
        except TimeoutError:
            return
        self._hurry.clear()

    async def _step(self) -> None:
        """List where that is needed, then watch until the watch ends."""
        if self.state in (State.EMPTY, State.LISTING):
            await self._list()
        elif self._cut_short and self.store.is_ordered:
            await self._check_version()
        await self._watch()

    async def _list(self) -> None:
        async with self._listing:
            if self.state is State.LISTED:
                return  # somebody has had all listed anew meanwhile
            await self._replace()
        self.listener.synced(self)

    async def _replace(self) -> None:
        """Read a whole list in place of all that is kept."""
        self.state = State.LISTING
        has_begun = False
        with self.store.replacing() as page:

            def page_or_older(items: Iterable[codec.Raw], version: str) -> None:
                nonlocal has_begun
                page(items, version)
                if self.store.went_back and not has_begun:
                    self.listener.went_back(self)  # before any decision is made from the older state
                has_begun = True

            await self._pages(page_or_older)
        self.state, self._cut_short = State.LISTED, False
        self._works()

    async def _compare(self, wrong: Callable[[Key], None]) -> bool:
        """Read a whole list beside the watch; return False if it says nothing about what the watch has shown."""
        if not self.store.is_ordered:
            return False
        try:
            with self.store.comparing(wrong) as page:
                await self._pages(page)
        except WentBack:
            return False
        return True

    async def _check_version(self) -> None:
        """Raise :class:`WentBack` where the API server is at an older version than the watch has shown."""
        async for page in self.cluster.list_pages(self.store.resource, namespace=self.namespace, limit=1):
            if is_later(self.store.version, page.resource_version):
                raise WentBack
            break

    async def _pages(self, page: Page) -> None:
        async for part in self.cluster.list_pages(
            self.store.resource, namespace=self.namespace, selector=self.selector, limit=PAGE
        ):
            for start in range(0, len(part.items) or 1, BREATH):
                page(part.items[start : start + BREATH], part.resource_version)
                await asyncio.sleep(0)

    async def _watch(self) -> None:
        """Watch until the watch ends, unless all is to be listed anew."""
        if self.state is not State.LISTED:
            return
        seconds, loop = int(self._rng.uniform(*WATCH_SECONDS)), asyncio.get_running_loop()
        self._watching, self._cut_short = asyncio.timeout(None), True
        self._unwatched.clear()
        try:
            async with (
                self._watching,
                self.cluster.watch(
                    self.store.resource,
                    namespace=self.namespace,
                    selector=self.selector,
                    resource_version=self.store.version,
                    timeout_seconds=seconds,
                    idle_timeout=SILENCE_SECONDS,
                ) as events,
            ):
                self.state = State.WATCHING
                self.restarts += 1
                self.listener.watching(self)
                self._works()
                self._failures += 1  # unless it brings something, or lives
                begun = loop.time()
                try:
                    async for batch in events:
                        self._take(batch)
                        self._failures = 0
                finally:
                    if loop.time() - begun > SHORT_SECONDS:
                        self._failures = 0
                self._cut_short = loop.time() - begun < seconds - EARLY_SECONDS
            self.state = State.LISTED
        except TimeoutError:
            if not self._watching.expired():
                raise
        finally:
            self._unwatched.set()

    async def _end_watch(self) -> None:
        """End the watch, so that all can be listed anew."""
        self.state = State.EMPTY
        if not self._unwatched.is_set():
            self._watching.reschedule(asyncio.get_running_loop().time())
            await self._unwatched.wait()

    def _take(self, batch: Sequence[codec.WatchEvent]) -> None:
        for event in batch:
            if event.type == "ERROR":
                raise self._error(event)
            if event.type == "BOOKMARK":
                self.store.bookmark(codec.head(event.object).resource_version)
            else:
                self.store.event(event.type, event.object)

    def _error(self, event: codec.WatchEvent) -> ClusterError:
        where = Where(self.cluster.name, self.cluster.side, "watch", self.store.resource)
        return from_status(codec.decode(event.object), where, self.cluster.origin)

    def _works(self) -> None:
        if self.error is not None:
            self.error = None
            self.listener.working(self)

    def _fail(self, error: SyncerError) -> None:
        """Count the failure, and tell it unless it is only that a watch was cut: every watch is, one day."""
        if self.state is State.WATCHING and isinstance(error, Unreachable):
            self.state = State.LISTED
            return
        self._failures += 1
        self.state = State.LISTED if self.state is State.WATCHING else self.state
        self.error = error
        self.listener.failed(self, error)

    def _wait(self) -> float:
        if isinstance(self.error, Forbidden | Missing):
            return SLOW_WAIT * self._rng.uniform(0.75, 1.25)
        grown: float = FIRST_WAIT * 2 ** min(self._failures, 30)
        return min(grown, LAST_WAIT) * self._rng.uniform(0.75, 1.25)

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.store.side} {self.store.resource}{place}"
