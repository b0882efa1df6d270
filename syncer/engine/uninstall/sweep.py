"""Takes what is ours away step by step, or only our marks on it: exactly what was found, and only while it is ours."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any

from syncer.api.errors import ClusterError, Conflict, Expired, Invalid, Missing, NotConnected, TooMany, Unreachable
from syncer.api.objects import Obj, Side, uid_of
from syncer.engine.uninstall.containers import CONTAINERS, others_in
from syncer.engine.uninstall.inventory import Item, Lister
from syncer.resources.kinds import NODES, PODS, SERVICES

#: Objects that are worked on at the same time.
WRITES = 16
#: How often a write is tried that was not answered, or that met another change.
TRIES = 6
#: Seconds between looks at whether what was deleted is gone.
LOOK = 2.0
#: Seconds that an object may take to go beyond the grace period that it has.
PATIENCE = 60.0

#: What keeps the labels of ours when the marks are taken away: Services and the like select it by them.
_SELECTED = frozenset({str(PODS), str(SERVICES)})


class Sweep:
    """Takes away what was found, or the marks on it."""

    def __init__(self, lister: Lister, may_write: Callable[[], bool]) -> None:
        self._lister, self._may_write = lister, may_write
        #: What could not be done.
        self.problems: list[str] = []

    async def forget(self, noted: Sequence[Item]) -> None:
        """Take our notes off objects of the tenant's: by them a copy that is gone would seem to have been deleted."""
        await self._all(self._strip(item, annotations=(self._lister.known.marks.copied,)) for item in noted)

    async def strip(self, items: Sequence[Item]) -> None:
        """Take our marks away, and leave the objects."""
        await self._all(self._strip(item, labels=_unselected(item), annotations=item.annotations) for item in items)

    async def delete(self, items: Sequence[Item]) -> Mapping[Item, str]:
        """Delete step by step; gives what stays since there is something of others in it."""
        left: dict[Item, str] = {}
        for step in sorted({_step(item) for item in items}):
            mine = [item for item in items if _step(item) == step]
            left |= {item: why for item in mine if (why := await others_in(self._lister, item, frozenset()))}
            going = [item for item in mine if item not in left]
            await self._all(self._delete_one(item) for item in going)
            if self.problems or not await self._gone(going):
                break
        return left

    async def _all(self, works: Iterator[Coroutine[Any, Any, None]]) -> None:
        """Do it all, a bounded number at a time."""

        async def some() -> None:
            for work in works:
                try:
                    await work
                except ClusterError as error:
                    self.problems.append(str(error))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITES):
                tasks.create_task(some())

    async def _gone(self, items: Sequence[Item]) -> bool:
        """Wait until what was deleted is gone; whether it is."""
        clock, deadline = asyncio.get_running_loop().time, None
        while there := await self._still_there(items):
            graces = (obj["metadata"].get("deletionGracePeriodSeconds") or 0 for obj in there.values())
            deadline = deadline or clock() + PATIENCE + max(graces)
            if clock() > deadline:
                self.problems += [_unfinished(item, obj) for item, obj in there.items()]
                return False
            await asyncio.sleep(LOOK)
        return True

    async def _still_there(self, items: Sequence[Item]) -> Mapping[Item, Obj]:
        """Return what is still there of the items; where that can't be seen just now, ask again."""
        for attempt in range(TRIES):
            try:
                return await self._lister.still_there(items)
            except (TooMany, Unreachable, Expired) as error:
                if attempt == TRIES - 1:
                    raise
                await asyncio.sleep(_pause(error, attempt))
        raise AssertionError("every try returns, raises or is followed by another")

    # -- one object ------------------------------------------------------------------------------------------------

    async def _delete_one(self, item: Item) -> None:
        """Delete exactly this object, as long as it is ours."""

        async def send(live: Obj | None) -> None:
            ours = self._lister.known.is_ours(item.side, item.resource, live) if live else True
            if not ours:
                return
            version = live["metadata"]["resourceVersion"] if live else item.version
            cluster = self._lister.clusters[item.side]
            await cluster.delete(
                item.resource, item.key, uid=item.uid, resource_version=version, propagation="Background"
            )

        await self._insist(item, send)

    async def _strip(self, item: Item, *, labels: Iterable[str] = (), annotations: Iterable[str] = ()) -> None:
        """Take marks off exactly this object."""
        metadata: dict[str, Any] = {"uid": item.uid, "annotations": dict.fromkeys(annotations)}
        if names := dict.fromkeys(labels):
            metadata["labels"] = names

        async def send(live: Obj | None) -> None:
            await self._lister.clusters[item.side].patch(item.resource, item.key, {"metadata": metadata})

        await self._insist(item, send)

    async def _insist(self, item: Item, send: Callable[[Obj | None], Coroutine[Any, Any, None]]) -> None:
        """Send a request, and again where it was not answered or the object had changed, until it is gone or done.

        It is sent first for the object as it was listed, later for the object as it is (given to ``send``).
        """
        for attempt in range(TRIES):
            try:
                live = await self._lister.clusters[item.side].get(item.resource, item.key) if attempt else None
                if live is not None and uid_of(live) != item.uid:
                    return
                if not self._may_write():
                    raise NotConnected("the Lease is no longer held; nothing more is written")
                await send(live)
            except Missing:
                return
            except (Conflict, Invalid, TooMany, Unreachable) as error:
                if attempt == TRIES - 1 or (attempt and isinstance(error, Invalid)):
                    raise
                await asyncio.sleep(_pause(error, attempt))
            else:
                return


def _step(item: Item) -> int:
    """When an object is deleted: what runs, what is made of other kinds, what these need, and what holds others."""
    kind = str(item.resource)
    if kind in CONTAINERS:
        return 5
    if item.side is Side.VIRTUAL:
        return 4 if kind == str(NODES) else 3
    if kind == str(PODS):
        return 0
    return 1 if item.resource.group else 2


def _unselected(item: Item) -> tuple[str, ...]:
    """Return the labels that can be taken away without anything on the host losing what it selects."""
    return () if item.side is Side.HOST and str(item.resource) in _SELECTED else item.labels


def _unfinished(item: Item, live: Obj) -> str:
    metadata, spec = live["metadata"], live.get("spec") or {}
    holders = [*(metadata.get("finalizers") or ()), *(spec.get("finalizers") or ())]
    why = f"waits for the finalizers {', '.join(holders)}" if holders else "is not gone yet"
    return f"{item} is being deleted and {why}; run it again when it is gone"


def _pause(error: ClusterError, attempt: int) -> float:
    """Seconds before the next try."""
    return error.retry_after if isinstance(error, TooMany) else float(0.1 * 2**attempt)
