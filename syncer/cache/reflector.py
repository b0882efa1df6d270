"""List, then watch, into an informer: a state machine that recovers from every failure.

::

    Empty ──> Listing ──> Listed ──> Watching ──┐
                ^           ^           │       │ the watch ended: from the last resourceVersion
                │           └───────────┼───────┘
                └───────────────────────┘ 410, as a status or in the stream; or an older state: list

Before each retry there is a wait: a short one after a watch that worked, an exponentially longer
one after failures, always with jitter. The rules are those of client-go's Reflector (bookmarks,
``timeoutSeconds`` at random, relist on 410), and one more. After etcd was restored from a snapshot,
a watch from a later version gets no events and no error. So before a watch that was cut short is
opened again, the version is compared.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from functools import partial
from typing import Protocol, TypeVar

from syncer.api.errors import ClusterError, Expired, Forbidden, NotFound, SyncerError, Unreachable
from syncer.api.objects import Key
from syncer.cache.informer import Informer, TakePage
from syncer.cache.versions import WentBack, is_later
from syncer.clusters import codec
from syncer.clusters.client import Client
from syncer.observe.logs import get_logger
from syncer.steps import STEP_BYTES, STEP_OBJECTS, next_turn

#: Requested lifetime of a watch in seconds, random so that not all watches end at once.
WATCH_SECONDS = (300.0, 600.0)
#: Seconds without a byte after which a watch counts as dead: API servers send a bookmark about each
#: minute, so two are missing. A peer that has vanished is noticed sooner, by the kernel
#: (``clusters/sockets.py``).
SILENCE_SECONDS = 130.0
#: Seconds before a reconnect after a watch that worked.
FIRST_WAIT = 0.05
#: Most seconds before a reconnect; after failures, they grow exponentially up to it.
LAST_WAIT = 30.0
#: A watch that ends sooner without an event counts as a failure, in seconds.
SHORT_SECONDS = 1.0
#: Seconds by which a watch may end early without counting as cut short.
EARLY_SECONDS = 5.0
#: Seconds after the requested end of a watch of our own at which it is ended here: an API server
#: may send bytes for ever that are no event.
LATE_SECONDS = 60.0
#: The types of events about an object.
CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))
#: Seconds between attempts if a right or the resource is missing.
SLOW_WAIT = 20.0

#: The events of a watch, in batches that have arrived together.
Batches = AsyncIterator[list[codec.WatchEvent]]

log = get_logger(__name__)
T = TypeVar("T")


class ReflectorState(StrEnum):
    """The state of a reflector."""

    EMPTY = "empty"
    LISTING = "listing"
    LISTED = "listed"
    WATCHING = "watching"


class ReflectorEvents(Protocol):
    """Receives the notifications of reflectors."""

    def synced(self, reflector: "Reflector") -> None:
        """Handle the completion of the first list."""
        ...

    def watching(self, reflector: "Reflector") -> None:
        """Handle a newly opened watch."""
        ...

    def failed(self, reflector: "Reflector", error: SyncerError) -> None:
        """Handle a failed list or watch, which will be retried."""
        ...

    def went_back(self, reflector: "Reflector") -> None:
        """Handle a list that is older than an earlier one: etcd was restored, or a cache is old."""
        ...

    def working(self, reflector: "Reflector") -> None:
        """Handle a watch that works after a failure."""
        ...


class Reflector:
    """Keeps a store in sync with a collection of an API server."""

    def __init__(
        self,
        cluster: Client,
        store: Informer,
        listener: ReflectorEvents,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        rng: random.Random | None = None,
    ) -> None:
        self.cluster = cluster
        self.store = store
        self.listener = listener
        self.namespace = namespace
        self.selector = selector
        self.fields = fields
        #: True if it keeps only the Events that are about certain objects.
        self.about_copies = False
        self.state = ReflectorState.EMPTY
        #: The reason why it doesn't work at present, or None.
        self.error: SyncerError | None = None
        #: Number of opened watches.
        self.restarts = 0
        self._rng = rng or random.Random()  # noqa: S311 — jitter, not a secret
        #: Failures in succession.
        self.failures = 0
        self._hurry = asyncio.Event()
        self._listing = asyncio.Lock()
        #: True if the latest watch ended early, so that the API server may have changed.
        self._cut_short = False
        #: Ends the open watch when it is rescheduled.
        self._watching = asyncio.timeout(None)
        #: When the watch was begun, or has brought something, in seconds of the loop's clock.
        self._heard = 0.0
        self._unwatched = asyncio.Event()
        self._unwatched.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                await self._step()
            except (Expired, WentBack):
                self.failures += 1
                self._start_over()
            except ClusterError as error:
                self._fail(error)
            except (codec.DecodeError, RecursionError) as error:
                self._fail(SyncerError(f"{self}: the API server sent what can't be read: {error}"))
            except Exception as error:  # noqa: BLE001 — it is logged
                # A bug of ours must end neither the other reflectors nor the process.
                self._log_bug()
                self._fail(SyncerError(f"{self}: {type(error).__name__}: {error}"))
                self._start_over()
            await self._pause()

    async def relist(self, wrong: Callable[[Key], None]) -> bool:
        """List again, beside the running watch if versions are ordered.

        Return False if the first list isn't complete. ``wrong`` is called with the key of each
        object that was wrong in the cache, although the watch had passed its version. If versions
        can't be compared, or the list is older than the watch, the watch is ended and the cache is
        replaced.

        Raises:
            ClusterError: The list failed; no object counts as deleted then.
        """
        async with self._listing:
            if self.state in (ReflectorState.EMPTY, ReflectorState.LISTING):
                return False
            if not await self._compare(wrong):
                await self._end_watch()
                await self._replace()
        self.listener.synced(self)
        return True

    def hurry(self) -> None:
        """Retry at once: the cluster is back."""
        self.failures = 0
        self._hurry.set()

    def silence(self, now: float) -> float:
        """Return for how many seconds a watch that is open, or is being opened, has brought
        nothing; 0 without one. ``now`` is the time of the loop's clock.
        """
        return 0.0 if self._unwatched.is_set() else now - self._heard

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._wait()):
                await self._hurry.wait()
        except TimeoutError:
            return
        self._hurry.clear()

    async def _step(self) -> None:
        """List if needed, then watch until the watch ends."""
        if self.state in (ReflectorState.EMPTY, ReflectorState.LISTING):
            await self._list()
        elif self._cut_short and self.store.is_ordered:
            await self._check_version()
        await self._watch()

    async def _list(self) -> None:
        async with self._listing:
            if self.state is ReflectorState.LISTED:
                return  # everything was listed again in the meantime
            await self._replace()
        self.listener.synced(self)

    async def _replace(self) -> None:
        """Read a whole list, and replace the cache by it."""
        self.state = ReflectorState.LISTING
        has_begun = False
        with self.store.replacing() as page:

            def page_or_older(items: Iterable[codec.Undecoded], version: str) -> None:
                nonlocal has_begun
                page(items, version)
                if self.store.went_back and not has_begun:
                    # Before any decision is made from the older state.
                    self.listener.went_back(self)
                has_begun = True

            await self._pages(page_or_older)
        self.state = ReflectorState.LISTED
        self._cut_short = False
        self._works()

    async def _compare(self, wrong: Callable[[Key], None]) -> bool:
        """Read a whole list beside the watch; return False if they can't be compared."""
        if not self.store.is_ordered:
            return False
        try:
            with self.store.comparing(wrong) as page:
                await self._pages(page)
        except WentBack:
            return False
        return True

    async def _check_version(self) -> None:
        """Compare the API server's version with that of the watch.

        Raises:
            WentBack: The server's version is older.
        """
        async for page in self.cluster.list_pages(
            self.store.resource,
            namespace=self.namespace,
            limit=1,
        ):
            if is_later(self.store.version, page.resource_version):
                raise WentBack
            break

    async def _pages(self, page: TakePage) -> None:
        async for part in self.cluster.list_pages(
            self.store.resource,
            namespace=self.namespace,
            selector=self.selector,
            fields=self.fields,
        ):
            for start in range(0, len(part.items) or 1, STEP_OBJECTS):
                items = part.items[start : start + STEP_OBJECTS]
                process = partial(page, items, part.resource_version)
                # A large item comes last in a part, or alone.
                if items and codec.size(items[-1]) > STEP_BYTES:
                    await self._in_two_steps(items[-1], process)
                else:
                    process()
                await next_turn()

    async def _in_two_steps(self, large: codec.Undecoded, process: Callable[[], T]) -> T:
        """Process a large item after it was decoded in a step of its own.

        An item that is stored already isn't decoded.
        """
        if not self.store.has_stored(large):
            await next_turn()
            self.store.items.read_ahead(large)
        await next_turn()
        try:
            return process()
        finally:
            self.store.items.forget_ahead()

    async def _watch(self) -> None:
        """Watch until the watch ends, unless everything is to be listed again."""
        if self.state is not ReflectorState.LISTED:
            return
        seconds = int(self._rng.uniform(*WATCH_SECONDS))
        loop = asyncio.get_running_loop()
        self._watching = asyncio.timeout(self._latest_end(seconds))
        self._cut_short = True
        self._heard = loop.time()
        self._unwatched.clear()
        try:
            async with self._watching, self._open(seconds) as events:
                self.state = ReflectorState.WATCHING
                self.restarts += 1
                self.listener.watching(self)
                self._works()
                self.failures += 1  # unless it brings an event, or lives
                begun = loop.time()
                try:
                    async for batch in events:
                        if _is_large(batch):
                            known = await self._in_two_steps(
                                batch[0].object,
                                partial(self._take, batch),
                            )
                        else:
                            known = self._take(batch)
                        if known:
                            self.failures = 0
                        del batch  # so that it is freed before the next one comes
                finally:
                    if loop.time() - begun > SHORT_SECONDS:
                        self.failures = 0
                self._cut_short = loop.time() - begun < seconds - EARLY_SECONDS
            self.state = ReflectorState.LISTED
        except TimeoutError:
            if not self._watching.expired():
                raise
            if self.state is ReflectorState.WATCHING:  # it isn't to be listed again
                self.state = ReflectorState.LISTED
        finally:
            self._unwatched.set()

    def _latest_end(self, seconds: int) -> float | None:
        """Return after how many seconds a watch ends with this requested lifetime; None: with the
        server's end.
        """
        return seconds + LATE_SECONDS

    def _open(self, seconds: int) -> AbstractAsyncContextManager[Batches]:
        """Return a watch from the store's version on, with a requested lifetime in seconds."""
        return self.cluster.watch(
            self.store.resource,
            namespace=self.namespace,
            selector=self.selector,
            fields=self.fields,
            resource_version=self.store.version,
            timeout_seconds=seconds,
            idle_timeout=SILENCE_SECONDS,
        )

    async def _end_watch(self) -> None:
        """End the watch, so that everything can be listed again."""
        self.state = ReflectorState.EMPTY
        if not self._unwatched.is_set():
            self._watching.reschedule(asyncio.get_running_loop().time())
            await self._unwatched.wait()

    def _take(self, batch: Sequence[codec.WatchEvent]) -> bool:
        """Process events; return True if any of them was of a known type."""
        self._heard = asyncio.get_running_loop().time()
        known = False
        for event in batch:
            if event.type == "ERROR":
                raise self.cluster.error_of(event, self.store.resource)
            if event.type in CHANGES:
                self.store.event(event.type, event.object, event.head)
            elif event.type == "BOOKMARK":
                self._bookmark(event)
            else:
                self.store.ignore("a line of the watch is no event")
                continue
            known = True
        return known

    def _bookmark(self, event: codec.WatchEvent) -> None:
        try:
            self.store.bookmark(codec.version(event.object))
        except codec.DecodeError as error:
            self.store.ignore(f"a bookmark can't be read: {error}")

    def _works(self) -> None:
        if self.error is not None:
            self.error = None
            self.listener.working(self)

    def _fail(self, error: SyncerError) -> None:
        """Count a failure, and report it unless a watch was merely cut, as every watch is one day.

        The error is kept without the frames that raised it, which hold the pages that were read.
        """
        if self.state is ReflectorState.WATCHING and isinstance(error, Unreachable):
            self.state = ReflectorState.LISTED
            return
        self.failures += 1
        if self.state is ReflectorState.WATCHING:
            self.state = ReflectorState.LISTED
        error.__cause__ = None
        error.__context__ = None
        self.error = error.with_traceback(None)
        self.listener.failed(self, error)

    def _start_over(self) -> None:
        """List again next: events may be missing."""
        self.store.left_behind()
        self.state = ReflectorState.EMPTY

    def _log_bug(self) -> None:
        """Log the exception that is being handled, which nothing that a server sends may raise."""
        log.exception(
            "a list or watch raised; listing again",
            cluster=self.cluster.virtual_cluster,
            what=self,
        )

    def _wait(self) -> float:
        if isinstance(self.error, Forbidden | NotFound):
            return SLOW_WAIT * self._rng.uniform(0.75, 1.25)
        grown: float = FIRST_WAIT * 2 ** min(self.failures, 30)
        return min(grown, LAST_WAIT) * self._rng.uniform(0.75, 1.25)

    def __str__(self) -> str:
        named = str(self.store)
        if self.namespace:
            named = f"{named} in {self.namespace}"
        if self.fields:
            named = f"{named} with {self.fields}"
        return named


def _is_large(batch: Sequence[codec.WatchEvent]) -> bool:
    """Return True for a single large object, which is decoded in a step of its own."""
    if len(batch) != 1:
        return False
    event = batch[0]
    return event.type != "DELETED" and codec.size(event.object) > STEP_BYTES
