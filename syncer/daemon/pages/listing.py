"""List objects by their state, a page at a time."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncer.api import selectors
from syncer.api.objects import Key, Obj, SyncRequest, labels_of
from syncer.api.reasons import RequestState
from syncer.daemon.pages.explain import row, status_of
from syncer.daemon.pages.status import IN_STEP
from syncer.daemon.process import Process
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import BoundSyncer

#: Objects of a page.
PAGE = 500
#: Objects that are looked at before other tasks run.
STEP = 50
#: All states, in the order of a table.
STATES = (IN_STEP, *[state.value for state in RequestState])


@dataclass(frozen=True, slots=True)
class ObjectFilter:
    """The objects that a list has."""

    #: Of :data:`STATES`.
    states: Collection[str]
    #: The namespace on the virtual side; ``""`` for all.
    namespace: str = ""
    #: The LabelSelector for the labels of the virtual object, or of the host's where there is none;
    #: None for all.
    selector: Obj | None = None

    def has_namespace(self, key: Key) -> bool:
        """Return True if a virtual key is in the chosen namespace."""
        return self.namespace in ("", key.namespace)


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list."""

    items: list[dict[str, Any]]
    #: Where the next page begins; ``""`` if there is none.
    next: str


async def page(
    process: Process,
    pairs: Iterable[ClusterPair],
    syncers: Collection[str],
    wanted: ObjectFilter,
    *,
    begin: str = "",
    most: int = PAGE,
) -> ListPage:
    """Return the objects of a list that come after ``begin``.

    They are in the order of virtual clusters, syncers and keys.

    Args:
        process: The process.
        pairs: The virtual clusters.
        syncers: The names of the syncers.
        wanted: The objects.
        begin: :attr:`ListPage.next` of the page before.
        most: The number of objects.
    """
    items: list[dict[str, Any]] = []
    after = tuple(begin.split("\n")) if begin else ()
    last: tuple[str, ...] = ()
    for pair, name in _places(pairs, syncers):
        place = (pair.name, name)
        if place < after[:2]:
            continue
        behind = after[2:] if place == after[:2] else ()
        async for controller, request in _requests(process, pair, name, wanted, behind):
            if not _has_labels(controller, request, wanted.selector):
                continue
            status = status_of(process, pair, controller, request)
            state = IN_STEP if status is None else status.state.value
            if state not in wanted.states:
                continue
            if len(items) == most:
                return ListPage(items, "\n".join(last))
            items.append(row(process, controller, request, status))
            last = (*place, *_order(request))
    return ListPage(items, "")


def _places(
    pairs: Iterable[ClusterPair], syncers: Collection[str]
) -> Iterator[tuple[ClusterPair, str]]:
    """Yield each virtual cluster with each of these syncers that it has, in order."""
    for pair in sorted(pairs, key=lambda each: each.name):
        for name in sorted(pair.controllers):
            if name in syncers:
                yield pair, name


async def _requests(
    process: Process, pair: ClusterPair, name: str, wanted: ObjectFilter, after: tuple[str, ...]
) -> AsyncIterator[tuple[BoundSyncer, SyncRequest]]:
    """Yield the requests of a syncer that come after ``after``, in order, while it runs.

    Other tasks run in between, and may stop it.
    """
    most = PAGE
    looked = 0
    while (controller := pair.controllers.get(name)) is not None:
        found = _first(process, controller, wanted, after, most)
        for request in found:
            if pair.controllers.get(name) is not controller:
                return
            yield controller, request
            looked += 1
            if looked % STEP == 0:
                await asyncio.sleep(0)
        if len(found) < most:
            return
        after = _order(found[-1])
        most *= 2  # so that few looks are enough where most objects are left out
        await asyncio.sleep(0)


def _first(
    process: Process,
    controller: BoundSyncer,
    wanted: ObjectFilter,
    after: tuple[str, ...],
    most: int,
) -> list[SyncRequest]:
    """Return the first requests of a syncer in the chosen states and namespace after ``after``.

    The states are those of the latest attempts: an object that a worker has is among those in step.
    """
    cluster = controller.settings.cluster
    known = dict(process.statuses.of_syncer(cluster, controller.name))
    found: list[SyncRequest] = []
    for request, state in known.items():
        is_wanted = state.value in wanted.states and wanted.has_namespace(request.key)
        if is_wanted and _order(request) > after:
            found.append(request)
    others = {IN_STEP, RequestState.PENDING.value}
    if not process.is_working:
        others = set(STATES)
    if not others.isdisjoint(wanted.states) and controller.virtual is not None:
        shown = {request.key for request in known}
        keys = [
            key
            for key in list(controller.virtual.keys())
            if wanted.has_namespace(key) and key not in shown and (*key, "", "") > after
        ]
        found += [controller.request(key) for key in heapq.nsmallest(most, keys)]
    return heapq.nsmallest(most, found, key=_order)


def _order(request: SyncRequest) -> tuple[str, ...]:
    return (*request.key, *(request.host_key or ("", "")))


def _has_labels(
    controller: BoundSyncer, request: SyncRequest, selector: Mapping[str, Any] | None
) -> bool:
    if selector is None:
        return True
    outline = None
    if controller.virtual is not None:
        outline = controller.virtual.outline(request.key)
    if outline is None:
        host_key = request.host_key or controller.host_key(request.key)
        host = controller.host_at(host_key)
        outline = None if host is None else host.outline(host_key)
    return outline is not None and selectors.matches(selector, labels_of(outline))
