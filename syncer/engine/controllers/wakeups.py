"""Wake parked and waiting requests when a condition that they wait for may be met.

A change of an object that a decision read wakes its request at once, a parked one with low
priority. Quotas and rights can't be watched, and objects without our mark aren't: while a request
waits for one, and only then, it is polled every few seconds. A missed change is caught by the slow
timer, which every parked request has in the queue.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from syncer.api.errors import (
    ClusterError,
    Forbidden,
    MissingRight,
    NotFound,
    QuotaExceeded,
    Refused,
)
from syncer.api.objects import Key, Obj, Resource, Side, SyncRequest
from syncer.clusters.client import SideClient
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import Read
from syncer.observe.logs import get_logger
from syncer.resources.kinds import SELF_ACCESS_REVIEWS
from syncer.rights.rbac import QUOTAS
from syncer.translate.quantities import quantity
from syncer.workqueue.queue import Queue

#: Seconds between polls of quotas, rights and names.
LOOK_SECONDS = 5.0
#: Maximum number of names of a virtual cluster that a poll looks up, each by a request; if there
#: are more, polls take turns. A tenant may choose many names that others have.
NAMES_AT_ONCE = 20
#: Seconds until a request is retried that read an object which has changed since. Our own writes
#: may be the reason each time.
CHANGED_SECONDS = 0.05


log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterRight:
    """A missing right on a cluster."""

    cluster: SideClient
    missing: MissingRight

    def __str__(self) -> str:
        verb, group, resource, namespace = self.missing
        right = f"{verb} {resource}"
        if group:
            right += f".{group}"
        if namespace:
            right += f" in {namespace}"
        return f"the right to {right} on the {self.cluster.side} cluster"


@dataclass(frozen=True, slots=True)
class QuotaRoom:
    """Room in the quotas of a namespace."""

    cluster: SideClient
    namespace: str

    def __str__(self) -> str:
        where = f"namespace {self.namespace} on the {self.cluster.side} cluster"
        return f"room in the quotas of {where}"


@dataclass(frozen=True, slots=True)
class FreeName:
    """A name that a virtual cluster needs, taken by an object that isn't ours and isn't watched."""

    virtual_cluster: str
    cluster: SideClient
    resource: Resource
    key: Key

    def __str__(self) -> str:
        named = f"{self.resource.kind} {self.key}"
        return f"the deletion of the {named} on the {self.cluster.side} cluster"


#: A condition that is polled.
Want = ClusterRight | QuotaRoom | FreeName


class _Need(NamedTuple):
    """A quota that refused a request, and the amount of each resource that the request needs."""

    quota: str
    amounts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The conditions that a request waits for.

    It has no exception, whose traceback would hold the whole attempt.
    """

    reads: tuple[Read, ...]
    want: Want | None = None
    need: _Need | None = None


class Wakeups:
    """Wakes requests, through the queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._waiting: dict[SyncRequest, _Waiting] = {}
        #: The requests by the condition that they wait for; the condition that was polled longest
        #: ago comes first.
        self._wants: defaultdict[Want, dict[SyncRequest, None]] = defaultdict(dict)
        self._wanted = asyncio.Event()

    # -- waiting -----------------------------------------------------------------------------------

    def wait(self, request: SyncRequest, reads: Iterable[Read]) -> None:
        """Wake a request when one of these objects changes.

        If one has changed since it was read, wake the request soon.
        """
        add_soon = partial(self._queue.add, request, after=CHANGED_SECONDS)
        self._wait(request, _Waiting(tuple(reads)), add_soon)

    def park(
        self, pair: ClusterPair, request: SyncRequest, reads: Iterable[Read], error: Exception
    ) -> None:
        """Like :meth:`wait`, and also wake the request when the error's cause may be gone.

        The cause is a quota, a right or a name. The request is woken with low priority: a tenant
        may have thousands parked on one object, and change that at will. An object that has changed
        already may have been changed by this very attempt: then the request backs off.
        """
        want = _want(pair, error)
        need = None
        if isinstance(error, QuotaExceeded):
            need = _Need(error.quota, error.requested)
        waiting = _Waiting(tuple(reads), want, need)
        back_off = partial(self._queue.retry, request)
        self._wait(request, waiting, back_off, low=True)
        if want is not None:
            self._wants[want][request] = None
            self._wanted.set()

    def forget(self, request: SyncRequest) -> None:
        """Forget a request."""
        known = self._waiting.pop(request, None)
        if known is None:
            return
        for store, key, _ in known.reads:
            store.waiters.remove(key, request)
        if known.want is not None:
            self._no_longer_wanted(known.want, request)

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        for request in list(self._waiting):
            if request.cluster == cluster and request.syncer == syncer:
                self.forget(request)

    def clear(self) -> None:
        """Forget everything."""
        for request in list(self._waiting):
            self.forget(request)

    def reasons(self, request: SyncRequest) -> list[str]:
        """Return the events that a request waits for, in words."""
        known = self._waiting.get(request)
        if known is None:
            return []
        reasons: dict[str, None] = {}  # without repetitions
        if known.want is not None and request in self._wants.get(known.want, ()):
            reasons[str(known.want)] = None
        for store, key, _ in known.reads:
            reasons[f"a change of the {store.side} {store.resource.kind} {key}"] = None
        return list(reasons)

    # -- polling -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Poll the quotas, rights and names that requests wait for, until cancelled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(self._queue.around(LOOK_SECONDS))
            for want in self._next():
                if want in self._wants:
                    await self._poll(want)

    def _next(self) -> list[Want]:
        """Return the conditions to poll now.

        These are all quotas and rights, and some names of each virtual cluster by turns.
        """
        chosen: list[Want] = []
        names: Counter[str] = Counter()
        for want in list(self._wants):
            if isinstance(want, FreeName):
                names[want.virtual_cluster] += 1
                if names[want.virtual_cluster] > NAMES_AT_ONCE:
                    continue
                self._wants[want] = self._wants.pop(want)
            chosen.append(want)
        return chosen

    async def _poll(self, want: Want) -> None:
        """Wake the requests whose quota, right or name is available.

        If it can't be read, only the slow timer wakes them.
        """
        virtual_cluster = want.cluster.virtual_cluster
        try:
            match want:
                case ClusterRight():
                    found = await self._if_allowed(want)
                case QuotaRoom():
                    found = await self._that_fit(want)
                case FreeName():
                    found = await self._if_free(want)
        except Forbidden as error:
            failure = "no right to read it; its requests retry on the slow timer"
            log.debug(failure, cluster=virtual_cluster, what=want, error=str(error))
            for request in list(self._wants.get(want, ())):
                self._no_longer_wanted(want, request)
        except ClusterError as error:
            log.debug("poll failed; retrying", cluster=virtual_cluster, what=want, error=str(error))
        except Exception:
            log.exception("poll failed; retrying", cluster=virtual_cluster, what=want)
        else:
            for request in found:
                self._no_longer_wanted(want, request)
                self._queue.add(request, low=True)

    async def _if_allowed(self, right: ClusterRight) -> list[SyncRequest]:
        verb, group, resource, namespace = right.missing
        plural, _, part = resource.partition("/")
        attributes = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": part,
            "namespace": namespace,
        }
        review = {
            "apiVersion": SELF_ACCESS_REVIEWS.api_version,
            "kind": SELF_ACCESS_REVIEWS.kind,
            "spec": {"resourceAttributes": attributes},
        }
        answer = await right.cluster.create(SELF_ACCESS_REVIEWS, review)
        if not answer["status"].get("allowed"):
            return []
        return list(self._wants.get(right, ()))

    async def _if_free(self, name: FreeName) -> list[SyncRequest]:
        try:
            await name.cluster.get(name.resource, name.key)
        except NotFound:
            return list(self._wants.get(name, ()))
        return []

    async def _that_fit(self, room: QuotaRoom) -> list[SyncRequest]:
        """Return the requests that fit into a quota, in order.

        Each must fit into the room that the earlier ones leave.
        """
        quotas = await room.cluster.list(QUOTAS, namespace=room.namespace)
        left = {quota["metadata"]["name"]: _left(quota) for quota in quotas}
        return [request for request in self._wants.get(room, ()) if self._fits(request, left)]

    def _fits(self, request: SyncRequest, left: Mapping[str, dict[str, Decimal]]) -> bool:
        need = self._waiting[request].need
        assert need is not None
        if need.quota not in left:
            return True  # the quota is gone
        room = left[need.quota]
        amounts: dict[str, Decimal] = {}
        for name, text in need.amounts.items():
            amount = quantity(text)
            if amount is None or amount > room.get(name, amount):
                return False
            amounts[name] = amount
        for name, amount in amounts.items():
            if name in room:
                room[name] -= amount
        return bool(amounts)

    # -- inside ------------------------------------------------------------------------------------

    def _wait(
        self,
        request: SyncRequest,
        waiting: _Waiting,
        changed: Callable[[], object],
        *,
        low: bool = False,
    ) -> None:
        self.forget(request)
        if not waiting.reads and waiting.want is None:
            return
        self._waiting[request] = waiting
        wake = partial(self._queue.add, request, low=low)
        for store, key, _ in waiting.reads:
            store.waiters.add(key, request, wake)
        if not all(read.is_current() for read in waiting.reads):
            changed()

    def _no_longer_wanted(self, want: Want, request: SyncRequest) -> None:
        self._wants[want].pop(request, None)
        if not self._wants[want]:
            del self._wants[want]
        if not self._wants:
            self._wanted.clear()


def _want(pair: ClusterPair, error: Exception) -> Want | None:
    """Return the quota, right or name that an error is about; None without any."""
    if isinstance(error, Refused) and error.in_the_way is not None:
        side, resource, key = error.in_the_way
        cluster = pair.virtual if side is Side.VIRTUAL else pair.host
        return FreeName(pair.name, cluster, resource, key)
    if not isinstance(error, ClusterError) or error.side is None:
        return None
    cluster = pair.virtual if error.side is Side.VIRTUAL else pair.host
    match error:
        case Forbidden(right=MissingRight() as missing):
            return ClusterRight(cluster, missing)
        case QuotaExceeded() if error.key is not None:
            return QuotaRoom(cluster, error.key.namespace)
        case _:
            return None


def _left(quota: Obj) -> dict[str, Decimal]:
    """Return the remaining amount of each resource that a quota limits."""
    status = quota.get("status") or {}
    used = status.get("used") or {}
    left: dict[str, Decimal] = {}
    for name, limit in (status.get("hard") or {}).items():
        hard = quantity(limit)
        taken = quantity(used.get(name, 0))
        if hard is not None and taken is not None:
            left[name] = hard - taken
    return left
