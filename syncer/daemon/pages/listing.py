"""List objects by their state, a page at a time."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncer.api import selectors
from syncer.api.objects import Obj, SyncRequest, labels_of
from syncer.api.reasons import RequestState
from syncer.daemon.pages.explain import row
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
    looked = 0
    after = tuple(begin.split("\n")) if begin else ()
    last: tuple[str, ...] = ()
    for pair, controller in _controllers(pairs, syncers):
        place = (pair.name, controller.name)
        if place < after[:2]:
            continue
        for request in _requests(process, controller, wanted):
            at = (*place, *_order(request))
            if at <= after:
                continue
            looked += 1
            if looked % STEP == 0:
                await asyncio.sleep(0)
            if not _has_labels(controller, request, wanted.selector):
                continue
            if len(items) == most:
                return ListPage(items, "\n".join(last))
            found = row(process, pair, controller, request)
            if found["state"] in wanted.states:
                items.append(found)
                last = at
    return ListPage(items, "")


def _controllers(
    pairs: Iterable[ClusterPair], syncers: Collection[str]
) -> Iterator[tuple[ClusterPair, BoundSyncer]]:
    for pair in sorted(pairs, key=lambda each: each.name):
        for name in sorted(pair.controllers):
            if name in syncers:
                yield pair, pair.controllers[name]


def _requests(process: Process, controller: BoundSyncer, wanted: ObjectFilter) -> list[SyncRequest]:
    """Return the requests of a syncer in the chosen states and namespace, in order.

    The states are those of the latest attempts: an object that a worker has is among those in step.
    """
    cluster = controller.settings.cluster
    known: dict[SyncRequest, str] = {}
    for request, state in process.statuses.of_syncer(cluster, controller.name):
        known[request] = state.value
    found = [request for request, state in known.items() if state in wanted.states]
    others = {IN_STEP, RequestState.PENDING.value}
    if not process.is_working:
        others = set(STATES)
    if not others.isdisjoint(wanted.states) and controller.virtual is not None:
        shown = {request.key for request in known}
        keys = [key for key in list(controller.virtual.keys()) if key not in shown]
        found += [controller.request(key) for key in keys]
    if wanted.namespace:
        found = [each for each in found if each.key.namespace == wanted.namespace]
    return sorted(found, key=_order)


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
