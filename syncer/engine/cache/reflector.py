"""Step 1: list, then watch, into a store. A state machine that always comes back.

::

    Empty ──> Listing ──> Listed ──> Watching ──┐
                ^           ^           │       │ the watch ended: from the last resourceVersion
                │           └───────────┼───────┘
                └───────────────────────┘  410, as a status or in the stream: list anew

Every way back waits: a little after a watch that lived, exponentially longer after failures, always with jitter.
The rules are those of client-go's Reflector (bookmarks, ``timeoutSeconds`` at random, relist on 410 only).
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
from syncer.engine.cache.store import Store

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

    def working(self, reflector: "Reflector") -> None:
        """The watch stands after a failure."""
        ...


class Reflector:
    """Keeps one store like one collection of one API server."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
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
        self._version = ""
        self._failures = 0
        self._hurry = asyncio.Event()
        self._listing = asyncio.Lock()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                await self._step()
            except Expired:
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
        """List anew beside the running watch; False where the first list isn't complete.

        ``wrong`` hears of what the store had otherwise than the API server, though the watch had come past it. Raises
        what a list raises; nothing is taken for gone then.
        """
        async with self._listing:
            if self.state in (State.EMPTY, State.LISTING):
                return False
            with self.store.replacing(watched=lambda: self._version, wrong=wrong) as page:
                await self._pages(page)
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
        await self._watch()

    async def _list(self) -> None:
        self.state = State.LISTING
        async with self._listing:
            with self.store.replacing() as page:
                self._version = await self._pages(page)
        self.state = State.LISTED
        self._works()
        self.listener.synced(self)

    async def _pages(self, page: Callable[[Iterable[codec.Raw], str], None]) -> str:
        """Read a whole list; gives its version."""
        version = ""
        async for part in self.cluster.list_pages(
            self.store.resource, namespace=self.namespace, selector=self.selector, limit=PAGE
        ):
            for start in range(0, len(part.items) or 1, BREATH):
                page(part.items[start : start + BREATH], part.resource_version)
                await asyncio.sleep(0)
            version = part.resource_version
        return version

    async def _watch(self) -> None:
        seconds = self._rng.uniform(*WATCH_SECONDS)
        async with self.cluster.watch(
            self.store.resource,
            namespace=self.namespace,
            selector=self.selector,
            resource_version=self._version,
            timeout_seconds=int(seconds),
            idle_timeout=SILENCE_SECONDS,
        ) as events:
            self.state = State.WATCHING
            self.restarts += 1
            self.listener.watching(self)
            self._works()
            self._failures += 1  # unless it brings something, or lives
            begun = asyncio.get_running_loop().time()
            try:
                async for batch in events:
                    self._take(batch)
                    self._failures = 0
            finally:
                if asyncio.get_running_loop().time() - begun > SHORT_SECONDS:
                    self._failures = 0
        self.state = State.LISTED

    def _take(self, batch: Sequence[codec.WatchEvent]) -> None:
        for event in batch:
            if event.type == "ERROR":
                raise self._error(event)
            if event.type == "BOOKMARK":
                version = codec.head(event.object).resource_version
            else:
                version = self.store.event(event.type, event.object)
            self._version = version or self._version

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
