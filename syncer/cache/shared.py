"""One watch of a collection for the reflectors of many virtual clusters.

Each cluster keeps a reflector and an informer of its own, and lists its own objects, which the API
server selects by their mark. The watch alone is shared: it selects all objects with a mark, and the
label of an object names the cluster to whose reflector its events go, as the same bytes; no other
reflector gets them. While the watch serves a single cluster, the API server selects that cluster's
objects. Sources without a mark are the same for all, so each event goes to each reflector.

A watch with a label selector shows the object that loses its label as deleted. Here that is done
for each cluster that knows an object which now bears another cluster's mark; the event carries
only the identity of the object.

No event is missed::

    join ──> list ──> watch ──┐
              ^         ^     │
              │         └─────┤ the watch ended: resume at its version
              └───────────────┘ 410, or too many events wait: list again

The events since the join wait in the seat. Those that the list included are left out; without
ordered versions they are processed again, with the same result. While the watch is closed, the seat
keeps the events that it got.

A join begins where the watch is, or where the first list of all is, as a list is never older than a
state shown before it was requested. If one is, etcd was restored, and every reflector lists again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import NamedTuple

from syncer.api.errors import ClusterError, Expired
from syncer.api.objects import Key, Resource
from syncer.cache.informer import Informer, TakePage
from syncer.cache.reflector import (
    CHANGES,
    SILENCE_SECONDS,
    Batches,
    Reflector,
    ReflectorEvents,
    ReflectorState,
)
from syncer.cache.versions import is_later
from syncer.clusters import codec
from syncer.clusters.client import Client
from syncer.observe.logs import get_logger
from syncer.steps import STEP_BYTES

#: Bytes of events that may wait for a reflector before it has to list again.
MOST_WAITING = 32 << 20
#: Bytes of events that may wait for a reflector while a large one is read.
ENOUGH_WAITING = 1 << 20
#: Number of objects with a remembered owner, 0.2 KB each.
MOST_OWNERS = 50_000

log = get_logger(__name__)


#: Returns True for an object if the Events about it are wanted.
IsWanted = Callable[[codec.InvolvedObject], bool]


class WatchedPart(NamedTuple):
    """The part of a collection that is watched.

    It is a namespace (``""``: all), objects with a label of the name ``mark`` (``""``: all), and
    with these labels and fields.
    """

    resource: Resource
    namespace: str
    mark: str
    selector: str
    fields: str = ""


class Lost(NamedTuple):
    """The identity of an object that may no longer be its cluster's."""

    key: Key
    uid: str


class Seat:
    """The seat of a reflector at a shared watch, with the events that it has yet to process.

    ``cluster`` is the identity of the virtual cluster, or ``""`` where objects have no mark.

    ``take`` processes a small event at once where no other one waits, which spares two steps of the
    event loop. It is for objects with a mark alone: an event of another concerns every reflector,
    and each processes it in a step of its own.

    ``is_wanted`` is None, or returns True for what Events of the reflector are about.
    """

    def __init__(
        self,
        store: Informer,
        cluster: str,
        take: Callable[[codec.WatchEvent], None] | None = None,
        is_wanted: IsWanted | None = None,
    ) -> None:
        self.store = store
        self.cluster = cluster
        self.is_wanted = is_wanted
        self._take = take if cluster else None
        #: True while the reflector processes a batch.
        self._is_busy = False
        #: The version of the watch when the seat was taken.
        self.since = ""
        #: True if events may be missing, so that a list is needed.
        self.is_behind = True
        #: True while the reflector takes the events.
        self.is_open = False
        #: The error that ended the watch; None if the server ended it in time.
        self.reason: Exception | None = None
        self.has_ended = False
        self._waiting: deque[tuple[codec.WatchEvent, Lost | None]] = deque()
        self._size = 0
        #: The version up to which events are left out; ``""`` for none.
        self._floor = ""
        self._woken = asyncio.Event()

    def begin(self, version: str) -> None:
        """Keep all events from now on; the watch is at this version."""
        self._clear()
        self.since = version
        self.is_behind = False

    def open(self, version: str, *, ordered: bool) -> None:
        """Begin to take events; with ordered versions, those after this one."""
        self._floor = ""
        if ordered:
            self._floor = version
        self._is_busy = False
        self.is_open = True
        self.has_ended = False
        self.reason = None

    def end(self, reason: Exception | None) -> None:
        """End the watch of the reflector, after the waiting events."""
        self.has_ended = True
        self.reason = reason
        self.wake()

    def fall_behind(self, reason: Exception) -> None:
        """Forget all events, so that a list is needed."""
        self._clear()
        self.is_behind = True
        self.end(reason)

    def add(self, event: codec.WatchEvent, lost: Lost | None = None) -> None:
        """Add an event. With ``lost``, it counts only if the store knows this object."""
        if self.is_behind:
            return
        size = codec.size(event.object)
        if self._take is not None and size <= STEP_BYTES and self._is_up_to_date():
            if lost is None or self.store.knows(*lost):
                self._take(event)
            return
        self._waiting.append((event, lost))
        self._size += size
        if self._size > MOST_WAITING:
            self.fall_behind(
                Expired(f"{self.store}: more than {MOST_WAITING >> 20} MiB of events wait"),
            )
        self.wake()

    def _is_up_to_date(self) -> bool:
        """Return True if the reflector takes events, and has processed all before the next one."""
        if not self.is_open or self.has_ended or self._floor:
            return False
        return not (self._waiting or self._is_busy)

    async def room(self) -> None:
        """Wait until the reflector, if it takes events, has processed most of the waiting ones."""
        # Each round of the event loop processes some of them.
        while self.is_open and self._size > ENOUGH_WAITING:  # noqa: ASYNC110
            await asyncio.sleep(0)

    def may_know(self, lost: Lost) -> bool:
        """Return True if the store knows this object, or may know it after the waiting events."""
        if self.is_open and not self._waiting:
            return self.store.knows(*lost)
        return not self.is_behind

    def concerns(self, about: codec.InvolvedObject, kind: str, head: codec.Head) -> bool:
        """Return True if a change of an Event is wanted, or the store has the Event already."""
        if self.is_wanted is None:
            return True
        if kind == "DELETED":
            return self.may_know(Lost(head.key, head.uid))
        return head.key in self.store or self.is_wanted(about)

    def wake(self) -> None:
        """Let the reflector check its state again."""
        self._woken.set()

    async def woken(self) -> None:
        """Wait for :meth:`wake`."""
        await self._woken.wait()
        self._woken.clear()

    async def batches(self) -> Batches:
        """Yield the events as they come, each large one by itself, until the watch ends.

        Raises:
            Exception: The error that ended the watch.
        """
        while True:
            if self._waiting:
                batch = self._next()
                if batch:
                    self._is_busy = True
                    yield batch
                    self._is_busy = False
                del batch  # so that it is freed before the next one comes
                if self._waiting:
                    await asyncio.sleep(0)
            elif self.has_ended:
                if self.reason is not None:
                    raise self.reason.with_traceback(None)
                return
            else:
                await self.woken()

    def _next(self) -> list[codec.WatchEvent]:
        batch: list[codec.WatchEvent] = []
        room = STEP_BYTES
        while self._waiting and room > 0:
            event, lost = self._waiting[0]
            size = codec.size(event.object)
            # The store must have processed the events before it.
            is_alone = lost is not None or size > STEP_BYTES
            if is_alone and batch:
                break
            self._waiting.popleft()
            self._size -= size
            if self._floor and self._is_known(event):
                continue
            if lost is not None and not self.store.knows(*lost):
                continue
            batch.append(event)
            room -= size
            if is_alone:
                break
        return batch

    def _is_known(self, event: codec.WatchEvent) -> bool:
        """Return True for an event that the list has included."""
        try:
            version = codec.version(event.object)
        except codec.DecodeError:
            return False
        if version == self._floor or is_later(self._floor, version):
            return True
        self._floor = ""
        return False

    def _clear(self) -> None:
        self._waiting.clear()
        self._size = 0


#: The seats of a cluster that isn't served here.
NO_SEATS: Sequence[Seat] = ()


class SharedWatch:
    """A watch that is open while any reflector takes its events."""

    def __init__(self, client: Client, part: WatchedPart) -> None:
        self.client = client
        self.part = part
        #: The version up to which all events were passed on; ``""`` if all reflectors have to list.
        self.version = ""
        self._seats: dict[str, list[Seat]] = {}
        #: While the version is unknown, and a list was begun that will give it: done with the first
        #: page of the list, or with its error, which all other lists raise, too.
        self._first: asyncio.Future[ClusterError | None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._is_open = False
        #: The only cluster that the open watch selects; None: all.
        self._only: str | None = None
        self._seconds = 0
        #: The seats that an object belonged to when it was last shown to the present ones, by uid.
        self._owners: dict[str, Sequence[Seat]] = {}

    def __bool__(self) -> bool:
        """Return True while any reflector has a seat."""
        return bool(self._seats)

    # -- reflectors --------------------------------------------------------------------------------

    @asynccontextmanager
    async def joining(self, seat: Seat) -> AsyncIterator[Callable[[str], None]]:
        """Surround the list of a reflector: the watch that follows gets all events since then.

        The block calls the function with the version of the first page.
        """
        seats = self._seats.setdefault(seat.cluster, [])
        if seat not in seats:
            seats.append(seat)
        while self._first is not None and not self.version:
            failure = await asyncio.shield(self._first)
            if failure is not None:
                raise failure.with_traceback(None)
        first: asyncio.Future[ClusterError | None] | None = None
        if not self.version:
            first = asyncio.get_running_loop().create_future()
            self._first = first

        def resolve(error: ClusterError | None = None) -> None:
            if first and not first.done():
                self._first = None
                first.set_result(error)

        def begun(version: str) -> None:
            if first and not first.done():
                self.version = version
                seat.since = version
                resolve()

        try:
            seat.begin(self.version)
            self._owners.clear()
            if self._reader and self._only not in (None, seat.cluster):
                self._open()
            yield begun
        except ClusterError as error:
            seat.is_behind = True
            resolve(error)
            raise
        except BaseException:
            seat.is_behind = True
            resolve()
            raise

    @asynccontextmanager
    async def watching(self, seat: Seat, *, seconds: int) -> AsyncIterator[Batches]:
        """Yield the events after the version of the seat's store.

        If the watch has to be opened for that, it lives for so many ``seconds``.

        Raises:
            ClusterError: The watch is refused, or must be preceded by a list.
        """
        store = seat.store
        if seat.is_behind:
            raise Expired(f"{store}: the events since its list are lost")
        if store.is_ordered and is_later(seat.since, store.version):
            self._restart(Expired(f"{store}: the API server shows an older state than before"))
            self.version = store.version
            seat.begin(self.version)
        seat.open(store.version, ordered=store.is_ordered)
        try:
            if self._reader is None:
                self._seconds = seconds
                self._open()
            while not (self._is_open or seat.has_ended):
                await seat.woken()
            if seat.has_ended and seat.reason is not None:
                raise seat.reason.with_traceback(None)
            yield seat.batches()
        finally:
            seat.is_open = False
            if not any(each.is_open for each in self._all()):
                await self._close()

    def leave(self, seat: Seat) -> None:
        """Give up a seat."""
        seats = self._seats.get(seat.cluster, [])
        if seat in seats:
            seats.remove(seat)
        if not seats:
            self._seats.pop(seat.cluster, None)

    # -- the watch ---------------------------------------------------------------------------------

    def _all(self) -> Iterator[Seat]:
        for seats in self._seats.values():
            yield from seats

    def _open(self) -> None:
        """Open the watch at the present version, after the open one has been closed."""
        before = self._reader
        if before:
            before.cancel()
        self._only = None
        if self.part.mark and len(self._seats) == 1:
            self._only = next(iter(self._seats))
        self._reader = asyncio.create_task(self._read(before))

    async def _close(self) -> None:
        reader = self._reader
        self._reader = None
        self._is_open = False
        if reader:
            reader.cancel()
            await asyncio.wait({reader})

    async def _read(self, before: "asyncio.Task[None] | None") -> None:
        """Pass the events on until the watch ends."""
        reason = None
        try:
            if before:
                await asyncio.wait({before})
            async with self.client.watch(
                self.part.resource,
                namespace=self.part.namespace,
                selector=self._selector(),
                fields=self.part.fields,
                resource_version=self.version,
                timeout_seconds=self._seconds,
                idle_timeout=SILENCE_SECONDS,
            ) as events:
                self._is_open = True
                for seat in self._all():
                    seat.wake()
                async for batch in events:
                    await self._pass_all_on(batch)
                    del batch  # so that it is freed before the next one comes
        except Exception as error:  # noqa: BLE001 — each reflector raises it as its own
            reason = error
        if self._reader is not asyncio.current_task():
            return  # it was closed in the meantime
        self._reader = None
        self._is_open = False
        if isinstance(reason, Expired):
            self._restart(reason)
        for seat in self._all():
            if seat.is_open:
                seat.end(reason)

    def _selector(self) -> str:
        """Return the label selector: of the only cluster's mark, or of any mark."""
        marked = self.part.mark
        if self._only is not None:
            marked = f"{self.part.mark}={self._only}"
        return ",".join(filter(None, (marked, self.part.selector)))

    def _restart(self, reason: Expired) -> None:
        """Let all reflectors list again, and end the watch."""
        self.version = ""
        if self._reader:
            self._reader.cancel()
            self._reader = None
            self._is_open = False
        for seat in self._all():
            seat.fall_behind(reason)

    # -- events ------------------------------------------------------------------------------------

    async def _pass_all_on(self, batch: Iterable[codec.WatchEvent]) -> None:
        for event in batch:
            self._pass_on(event)
            if codec.size(event.object) > STEP_BYTES:
                # A reflector takes longer for it than the next one takes to be read.
                for seat in tuple(self._all()):
                    await seat.room()

    def _pass_on(self, event: codec.WatchEvent) -> None:
        """Add an event to the seats that it concerns.

        Raises:
            ClusterError: The event is an error.
        """
        if event.type == "ERROR":
            raise self.client.error_of(event, self.part.resource)
        try:
            if event.type in CHANGES:
                head = codec.head(event.object)
                self.version = head.resource_version or self.version
                self._change(codec.WatchEvent(event.type, event.object, head), head)
                return
            if event.type == "BOOKMARK":
                self.version = codec.version(event.object) or self.version
        except codec.DecodeError:
            pass  # each informer counts it
        for seat in self._all():
            seat.add(event)

    def _change(self, event: codec.WatchEvent, head: codec.Head) -> None:
        """Give an event about an object to its cluster, and its end to the clusters that had it.

        No cluster had an object before it was added, and only one has it after it was shown with
        that cluster's mark. If the labels can't be read, the event goes to the clusters that know
        the object.
        """
        if self._only is not None:
            for seat in self._seats.get(self._only, ()):
                seat.add(event)
            return
        if not self.part.mark:
            self._show_all(event, head)
            return
        end = None
        try:
            owner = self._seats.get(codec.label(event.object, self.part.mark) or "", NO_SEATS)
        except codec.DecodeError as error:
            log.warning(
                "the labels of an object can't be read",
                of=str(self.part.resource),
                error=str(error),
            )
            owner = NO_SEATS
            end = event
        for seat in owner:
            seat.add(event)
        before = self._owners.pop(head.uid, None)
        if event.type != "DELETED" and head.uid and end is None:
            if len(self._owners) >= MOST_OWNERS:
                self._owners.clear()
            self._owners[head.uid] = owner
        if end is None and (before is owner or event.type == "ADDED"):
            return
        lost = Lost(head.key, head.uid)
        for seats in self._seats.values():
            if seats is owner:
                continue
            for seat in seats:
                if seat.may_know(lost):
                    end = end or _deleted(head)
                    seat.add(end, lost)

    def _show_all(self, event: codec.WatchEvent, head: codec.Head) -> None:
        """Give an event about an object without a mark to every cluster.

        An Event goes only to those that it concerns, and to those that have it already.
        """
        seats = self._seats.get("", NO_SEATS)
        about = None
        if any(seat.is_wanted for seat in seats):
            about = codec.involved_object(event.object)
        for seat in seats:
            if about is None or seat.concerns(about, event.type, head):
                seat.add(event)


def _deleted(head: codec.Head) -> codec.WatchEvent:
    """Return the event of a deletion that carries only the identity of the object."""
    key = head.key
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "uid": head.uid,
        "resourceVersion": head.resource_version,
    }
    return codec.WatchEvent(
        "DELETED",
        codec.Raw(codec.encode({"kind": head.kind, "metadata": metadata})),
    )


class SharedReflector(Reflector):
    """A reflector that shares its watch with other clusters; its lists are its own."""

    def __init__(
        self,
        watches: "SharedWatches",
        part: WatchedPart,
        cluster: str,
        store: Informer,
        listener: ReflectorEvents,
        *,
        selector: str,
        rng: Random,
        is_wanted: IsWanted | None = None,
    ) -> None:
        super().__init__(
            watches.client,
            store,
            listener,
            namespace=part.namespace,
            selector=selector,
            fields=part.fields,
            rng=rng,
        )
        self.about_copies = is_wanted is not None
        self._watches = watches
        self._part = part
        self._is_wanted = is_wanted
        self._seat = Seat(store, cluster, self._take_one, is_wanted)

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            await super().run()
        finally:
            self._watches.leave(self._part, self._seat)

    async def _pages(self, page: TakePage) -> None:
        if self._is_wanted is not None:
            page = self._wanted(page)
        if self.state is not ReflectorState.LISTING:  # beside the watch
            await super()._pages(page)
            return
        async with self._watches.at(self._part).joining(self._seat) as begun:

            def first(items: Iterable[codec.Undecoded], version: str) -> None:
                begun(version)
                page(items, version)

            await super()._pages(first)

    def _wanted(self, page: TakePage) -> TakePage:
        """Return what takes those Events of a page that are wanted, or stored.

        Beside the watch, one that the watch has shown before isn't taken if it wasn't wanted then:
        the store isn't wrong without it.
        """
        is_wanted = self._is_wanted
        assert is_wanted is not None
        passed = ""
        if self.state is not ReflectorState.LISTING:
            passed = self.store.version

        def is_taken(item: codec.Undecoded) -> bool:
            try:
                head = codec.head(item)
            except codec.DecodeError:
                return True  # the informer counts it
            if head.key in self.store:
                return True
            about = codec.involved_object(item)
            if about is not None and not is_wanted(about):
                return False
            return not passed or is_later(head.resource_version, passed)

        def take(items: Iterable[codec.Undecoded], version: str) -> None:
            page([item for item in items if is_taken(item)], version)

        return take

    def _latest_end(self, seconds: int) -> float | None:
        return None  # the watch of all goes on

    def _take_one(self, event: codec.WatchEvent) -> None:
        """Process an event in the task that reads the watch for all clusters."""
        try:
            known = self._take((event,))
        except Exception:  # noqa: BLE001 — a bug of ours must end no other cluster's watch
            self._log_bug()
            self._seat.fall_behind(Expired(f"{self}: an event could not be processed"))
            return
        if known:
            self.failures = 0

    def _open(self, seconds: int) -> AbstractAsyncContextManager[Batches]:
        return self._watches.at(self._part).watching(self._seat, seconds=seconds)


class SharedWatches:
    """The shared watches of a cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._watches: dict[WatchedPart, SharedWatch] = {}

    def reflector(
        self,
        store: Informer,
        listener: ReflectorEvents,
        *,
        mark: tuple[str, str],
        namespace: str,
        selector: str,
        rng: Random,
        fields: str = "",
        is_wanted: IsWanted | None = None,
    ) -> SharedReflector:
        """Return a reflector for a store.

        ``mark`` is the label on the objects of a cluster, and the identity of the cluster. With
        ``is_wanted`` the objects are Events, and those that aren't wanted are not kept.
        """
        label, cluster = mark
        first, _, rest = selector.partition(",")
        if first != f"{label}={cluster}":
            label = ""
            cluster = ""
            rest = selector
        part = WatchedPart(store.resource, namespace, label, rest, fields)
        return SharedReflector(
            self,
            part,
            cluster,
            store,
            listener,
            selector=selector,
            rng=rng,
            is_wanted=is_wanted,
        )

    def at(self, part: WatchedPart) -> SharedWatch:
        """Return the watch of a part."""
        if part not in self._watches:
            self._watches[part] = SharedWatch(self.client, part)
        return self._watches[part]

    def leave(self, part: WatchedPart, seat: Seat) -> None:
        """Give up a seat, and forget the watch with the last one."""
        watch = self._watches.get(part)
        if watch is not None:
            watch.leave(seat)
            if not watch:
                del self._watches[part]
