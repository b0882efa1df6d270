"""List objects by their state, a page at a time."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from syncer.api import reasons, selectors
from syncer.api.errors import Refused
from syncer.api.objects import Key, Obj, SyncRequest, labels_of
from syncer.api.reasons import RequestState
from syncer.daemon.pages.explain import not_running, row, status_of
from syncer.daemon.pages.status import IN_STEP, lost, unlisted
from syncer.daemon.process import Process
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.verified import VerifiedPairs
from syncer.engine.reconcile.controller import BoundSyncer

#: Objects of a page.
PAGE = 500
#: Objects that are looked at before other tasks run.
STEP = 50
#: Objects that are sorted before other tasks run.
SORTED = 1000
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
    #: On the last page: the reasons of syncers whose objects aren't known, as ``cluster/syncer``,
    #: and of virtual clusters of which a side doesn't answer, by name.
    unlisted: Mapping[str, str] = field(default_factory=dict)


def limit_of(given: Mapping[str, Any], most: int = PAGE) -> int:
    """Return the number of objects of a page that a query asks for: ``most`` at most.

    Raises:
        Refused: It is no number from 1 on.
    """
    text = str(given.get("limit") or "")
    if not text:
        return most
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise Refused(f"limit: {text!r} is no number from 1 to {most}")
    return min(int(text), most)


async def page(
    process: Process,
    pairs: Sequence[ClusterPair],
    syncers: AbstractSet[str],
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
    return ListPage(items, "", _unlisted(process, pairs, syncers))


def _unlisted(
    process: Process, pairs: Sequence[ClusterPair], syncers: AbstractSet[str]
) -> dict[str, str]:
    """Return why objects of these syncers, and of those that have not begun, aren't known, or as
    they were; by the name of the virtual cluster alone if a side of it doesn't answer.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        for name, why in process.served[pair.name].waiting().items():
            if name in syncers:
                found[f"{pair.name}/{name}"] = why
        silent = lost(process, pair.name)
        if silent:
            found[pair.name] = str(reasons.NOT_SEEN(silent))
        for name in sorted(syncers & pair.controllers.keys()):
            controller = pair.controllers[name]
            unseen = set[str]()
            if not silent:
                unseen = unlisted(pair, controller)
            if not controller.ready:
                found[f"{pair.name}/{name}"] = str(not_running(pair, controller))
            elif unseen:
                found[f"{pair.name}/{name}"] = str(reasons.NOT_SEEN("; ".join(sorted(unseen))))
    return found


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
    controller = pair.controllers.get(name)
    if controller is None:
        return
    parts: list[list[SyncRequest]] = []
    if process.is_working:
        looks = _looks(process, controller, wanted)
    else:
        looks = _undecided(pair, controller, wanted)
    while part := list(islice(looks, SORTED)):
        found = [each for each in part if each is not None and _order(each) > after]
        parts.append(sorted(found, key=_order))
        await asyncio.sleep(0)
    last = None
    for looked, request in enumerate(heapq.merge(*parts, key=_order), start=1):
        if pair.controllers.get(name) is not controller:
            return
        if request != last:
            yield controller, request
        last = request
        if looked % STEP == 0:
            await asyncio.sleep(0)


def _looks(
    process: Process, controller: BoundSyncer, wanted: ObjectFilter
) -> Iterator[SyncRequest | None]:
    """Yield the requests of a syncer that may be in the chosen states and namespace, some of them
    twice, and None for each other one that was looked at.

    Those of all virtual objects are among them only where each may be: if those in step are wanted,
    or the syncer doesn't work on any.
    """
    cluster = controller.settings.cluster
    shown = set[Key]()
    for request, state in process.statuses.of_syncer(cluster, controller.name):
        shown.add(request.key)
        is_wanted = state.value in wanted.states and wanted.has_namespace(request.key)
        yield request if is_wanted else None
    if controller.ready and RequestState.PENDING.value in wanted.states:
        for request in process.queue.held():
            is_of_syncer = (request.cluster, request.syncer) == (cluster, controller.name)
            yield request if is_of_syncer and wanted.has_namespace(request.key) else None
    if controller.virtual is not None and (not controller.ready or IN_STEP in wanted.states):
        for key in list(controller.virtual.keys()):
            is_wanted = key not in shown and wanted.has_namespace(key)
            yield controller.request(key) if is_wanted else None


def _undecided(
    pair: ClusterPair, controller: BoundSyncer, wanted: ObjectFilter
) -> Iterator[SyncRequest | None]:
    """Yield all requests of a syncer in the chosen namespace, and None for each other one.

    No state is known in a process without workers: each is decided when it is looked at.
    """
    if not controller.direction.syncs:
        return
    for request in VerifiedPairs(pair, controller).changed(everything=True):
        is_wanted = request is not None and wanted.has_namespace(request.key)
        yield request if is_wanted else None


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
        host_key = controller.host_key_of(request)
        host = controller.host_at(host_key)
        outline = None if host is None else host.outline(host_key)
    return outline is not None and selectors.matches(selector, labels_of(outline))
