"""Delete our objects in steps, or only remove our marks: exactly the objects that were found, while
they are ours.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from syncer.api.errors import (
    ClusterError,
    Conflict,
    Expired,
    Invalid,
    NotConnected,
    NotFound,
    TooMany,
    Unreachable,
)
from syncer.api.objects import Obj, Side, uid_of
from syncer.daemon.uninstall.containers import CONTAINERS, others_in
from syncer.daemon.uninstall.inventory import (
    GRACE,
    Item,
    Lister,
    bounded_grace,
    is_namespace,
    owners_of,
)
from syncer.engine.reconcile.calls import needed
from syncer.resources.kinds import NODES, PERSISTENT_VOLUMES, PODS, SERVICES
from syncer.resources.service_addresses import Note, is_being_changed, undo
from syncer.resources.volumes import RELEASED

#: Number of concurrent writes.
WRITES = 16
#: How often a write is tried that got no answer, or a conflict.
TRIES = 6
#: Seconds between checks whether deleted objects are gone.
LOOK = 2.0
#: Seconds that an object may take beyond its grace period, of which at most :data:`GRACE` counts.
PATIENCE = 60.0

#: Kinds that keep our labels when the marks are removed: Services and others select them by these.
_SELECTED = frozenset({str(PODS), str(SERVICES)})


class Sweep:
    """Deletes the objects of an inventory, or removes their marks."""

    def __init__(self, lister: Lister, may_write: Callable[[], bool]) -> None:
        self._lister = lister
        self._may_write = may_write
        #: Failures, in words.
        self.problems: list[str] = []

    async def forget(self, noted: Sequence[Item]) -> None:
        """Remove our annotations from the tenant's objects.

        Otherwise their missing copies would look deleted by someone else. A Service gets its
        address again if that is being changed.
        """
        await self._all(self._forget(item) for item in noted)

    async def strip(self, items: Sequence[Item]) -> None:
        """Remove our marks, and keep the objects."""

        async def strip(item: Item) -> None:
            await self._strip(item, labels=_unselected(item), annotations=item.annotations)

        await self._all(strip(item) for item in items)

    async def delete(self, items: Sequence[Item]) -> Mapping[Item, str]:
        """Delete the objects in steps.

        Return those that stay because they contain objects of others, with the reason.
        """
        left: dict[Item, str] = {}
        for step in sorted({_step(item) for item in items}):
            deleted: list[Item] = []
            for item in items:
                if _step(item) != step:
                    continue
                if why := await others_in(self._lister, item, frozenset()):
                    left[item] = why
                else:
                    deleted.append(item)
            await self._all(self._delete_one(item) for item in deleted)
            if self.problems or not await self._gone(deleted):
                break
        return left

    async def _all(self, coroutines: Iterator[Coroutine[Any, Any, None]]) -> None:
        """Run all coroutines, a bounded number at a time: the tasks take them from one iterator."""

        async def take() -> None:
            for coroutine in coroutines:
                try:
                    await coroutine
                except ClusterError as error:
                    self.problems.append(str(error))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITES):
                tasks.create_task(take())

    async def _gone(self, items: Sequence[Item]) -> bool:
        """Wait until deleted objects are gone. Return True if they are."""
        clock = asyncio.get_running_loop().time
        deadline = None
        while remaining := await self._still_there(items):
            if deadline is None:
                grace = 0
                for obj in remaining.values():
                    own = obj["metadata"].get("deletionGracePeriodSeconds") or 0
                    grace = max(grace, own)
                deadline = clock() + PATIENCE + min(grace, GRACE)
            if clock() > deadline:
                self.problems += [_unfinished(item, obj) for item, obj in remaining.items()]
                return False
            await asyncio.sleep(LOOK)
        return True

    async def _still_there(self, items: Sequence[Item]) -> Mapping[Item, Obj]:
        """Return the items that still exist; retry while they can't be read."""
        passing = retry_if_exception_type((TooMany, Unreachable, Expired))
        return await _retrying(passing)(self._lister.still_there, items)

    # -- a single object ---------------------------------------------------------------------------

    async def _delete_one(self, item: Item) -> None:
        """Delete this very object while it is ours.

        A stand-in of a volume is marked as released first, or its protection holds it.
        """

        async def send(live: Obj | None) -> None:
            version = item.version
            grace = item.grace
            if live is not None:
                if not self._lister.known.is_ours(item.side, item.resource, live):
                    return
                version = live["metadata"]["resourceVersion"]
                grace = bounded_grace(item.resource, live)
            cluster = self._lister.clusters[item.side]
            if item.resource == PERSISTENT_VOLUMES:
                metadata = {"uid": item.uid, "resourceVersion": version}
                status = {"metadata": metadata, "status": RELEASED}
                freed = await cluster.patch(item.resource, item.key, status, subresource="status")
                version = freed["metadata"]["resourceVersion"]
            await cluster.delete(
                item.resource,
                item.key,
                uid=item.uid,
                resource_version=version,
                grace=grace,
                propagation="Background",
            )

        await self._insist(item, send)

    async def _forget(self, item: Item) -> None:
        if self._lister.known.marks.address in item.annotations:
            await self._insist(item, partial(self._give_back, item))
        await self._strip(item, annotations=self._lister.known.notes.intersection(item.annotations))

    async def _give_back(self, item: Item, live: Obj | None) -> None:
        """Give a virtual Service its address again if it is an ExternalName while that changes."""
        marks = self._lister.known.marks
        cluster = self._lister.clusters[item.side]
        service = live or await cluster.get(item.resource, item.key)
        note = Note.of(marks, service)
        write = None
        if is_being_changed(service, note):
            write = undo(marks, service, note).writes[0]
        while write is not None:
            [call] = needed(write, service, exact=write.exact or (), marks=marks)
            try:
                await cluster.patch(item.resource, item.key, call.body)
                return
            except Invalid:
                if write.otherwise is None:
                    raise
                write = write.otherwise(write, ())

    async def _strip(
        self,
        item: Item,
        *,
        labels: Iterable[str] = (),
        annotations: Iterable[str] = (),
    ) -> None:
        """Remove marks from this very object, and the host namespace as its controller."""
        cluster = self._lister.clusters[item.side]
        metadata: dict[str, Any] = {"uid": item.uid, "annotations": dict.fromkeys(annotations)}
        if names := dict.fromkeys(labels):
            metadata["labels"] = names

        async def send(live: Obj | None) -> None:
            if item.is_controlled:
                found = live or await cluster.get(item.resource, item.key)
                left = [owner for owner in owners_of(found) if not is_namespace(owner)]
                metadata["ownerReferences"] = left
                metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
            await cluster.patch(item.resource, item.key, {"metadata": metadata})

        await self._insist(item, send)

    async def _insist(
        self,
        item: Item,
        send: Callable[[Obj | None], Coroutine[Any, Any, None]],
    ) -> None:
        """Send a request until it succeeds or the object is gone.

        It is repeated if it got no answer or a conflict. It is sent first for the object as it was
        listed (``send`` gets None), later for the live object.
        """
        async for attempt in _retrying(_may_pass):
            with attempt, contextlib.suppress(NotFound):
                live = None
                if attempt.retry_state.attempt_number > 1:
                    live = await self._lister.clusters[item.side].get(item.resource, item.key)
                if live is not None and uid_of(live) != item.uid:
                    return
                if not self._may_write():
                    raise NotConnected("the Lease is no longer held; nothing more is written")
                await send(live)


def _step(item: Item) -> int:
    """Return the step in which an object is deleted.

    First Pods, then the other objects on the host, those that Pods use last; then virtual objects,
    and at the end containers.
    """
    kind = str(item.resource)
    if kind in CONTAINERS:
        return 5
    if item.side is Side.VIRTUAL:
        return 4 if kind == str(NODES) else 3
    if kind == str(PODS):
        return 0
    return 1 if item.resource.group else 2


def _unselected(item: Item) -> tuple[str, ...]:
    """Return the labels that can be removed without breaking a selector on the host."""
    if item.side is Side.HOST and str(item.resource) in _SELECTED:
        return ()
    return item.labels


def _unfinished(item: Item, live: Obj) -> str:
    metadata = live["metadata"]
    spec = live.get("spec") or {}
    finalizers = [*(metadata.get("finalizers") or ()), *(spec.get("finalizers") or ())]
    why = f"waits for the finalizers {', '.join(finalizers)}" if finalizers else "is not gone yet"
    return f"{item} is being deleted and {why}; run the uninstall again when it is gone"


def _retrying(passing: Callable[[RetryCallState], bool]) -> AsyncRetrying:
    return AsyncRetrying(retry=passing, wait=_wait, stop=stop_after_attempt(TRIES), reraise=True)


def _may_pass(state: RetryCallState) -> bool:
    """Return True if a write may succeed now; after an Invalid once, with the live object."""
    error = _error_of(state)
    if isinstance(error, Invalid):
        return state.attempt_number == 1
    return isinstance(error, Conflict | TooMany | Unreachable)


def _wait(state: RetryCallState) -> float:
    """Return the seconds before the next attempt."""
    error = _error_of(state)
    if isinstance(error, TooMany):
        return error.retry_after
    return float(0.1 * 2 ** (state.attempt_number - 1))


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
