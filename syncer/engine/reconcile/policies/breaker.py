"""The circuit breaker holds mass deletions: an API server that comes back empty must not cost all
copies.

It counts the deletions of a scan of the patroller, and objects that a list shows to be missing
although no watch reported their deletion. Held deletions are parked until a person confirms them,
or until they are no longer due. They are kept in memory only: the next process lists everything,
and finds the same.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from syncer.api import reasons
from syncer.api.context import Settings
from syncer.api.decision import Decision, Outcome, Verb, Write, wait
from syncer.api.errors import Refused
from syncer.api.objects import Key, Obj, Side, SyncRequest, key_of, uid_of
from syncer.clusters import codec
from syncer.engine.reconcile.controller import BoundSyncer, safely
from syncer.engine.reconcile.drift import other_owner
from syncer.engine.reconcile.plan import Observed
from syncer.engine.reconcile.policies.drift_policy import policies
from syncer.engine.stores.informers import SideInformer
from syncer.observe.logs import get_logger

#: Seconds between checks whether a list is complete.
LOOK = 1.0
#: Seconds until a request that waits for a count counts its next step.
NEXT = 0.01
#: Deletions are counted in steps of so many bytes of JSON, up to 15 ms: the sizes of the objects
#: that are decided about. A text that is only searched, or whose metadata alone is decoded, takes
#: an eighth of its size.
STEP = 1 << 20
#: So many bytes more are counted for each decision, for each copy whose original is missing, and
#: for each key.
DECIDED = 4 << 10
ORPHAN = 1 << 10
LOOKED_AT = 256

log = get_logger(__name__)


class Limits(Protocol):
    """The limits of the breaker: deletions that exceed both are held."""

    @property
    def count(self) -> int:
        """The number of objects."""
        ...

    @property
    def percent(self) -> float:
        """The percentage of objects."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedDeletion:
    """An object that would be deleted, and its request."""

    side: Side
    key: Key
    uid: str
    request: SyncRequest


@dataclass(frozen=True, slots=True)
class StoppedDeletions:
    """The held deletions of a kind on a side."""

    syncer: str
    side: Side
    total: int
    objects: Mapping[tuple[Key, str], SyncRequest]
    requests: frozenset[SyncRequest] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "requests", frozenset(self.objects.values()))

    def __str__(self) -> str:
        number = f"{len(self.objects)} of {self.total} {self.syncer} on the {self.side} side"
        check = "see that both clusters are the right ones and complete"
        way_out = f"{check}, then run `syncer patrol --confirm`"
        return f"{number} would be deleted, and none is: {way_out}"


class CircuitBreaker:
    """The held deletions of a pair. ``limits`` None disables the breaker."""

    def __init__(
        self,
        settings: Settings,
        controllers: Mapping[str, BoundSyncer],
        decide: Callable[[BoundSyncer, SyncRequest], Decision],
        limits: Limits | None,
    ) -> None:
        """``decide`` returns the decision about a request as a scan of the patroller makes it."""
        self._settings = settings
        self._controllers = controllers
        self._decide = decide
        self.limits = limits
        self.stopped: dict[tuple[str, Side], StoppedDeletions] = {}
        self._confirmed: set[tuple[str, Side, Key, str]] = set()
        #: Syncers with a new list since deletions were last counted.
        self._listed: set[str] = set()
        #: The counts under way, by syncer.
        self._counts: dict[str, Iterator[int]] = {}

    def listed(self, store: SideInformer) -> None:
        """Handle a store that was filled by a list: missing objects are counted before any
        counterpart is deleted.
        """
        for name, controller in self._controllers.items():
            if store in controller.own_stores():
                self._listed.add(name)

    def recount(self) -> None:
        """Count again: a pause has ended, so that waiting requests may go on and delete objects."""
        self._listed |= self._controllers.keys()

    def admit(self, observed: Observed, decision: Decision) -> Decision:
        """Return the decision without the deletions that a drift policy leaves alone.

        Raises:
            Refused: A deletion is held.
        """
        controller = observed.controller
        unseen = [
            write
            for write in decision.writes
            if write.verb is Verb.DELETE and self._is_unseen(observed, write)
        ]
        if not unseen and not self.stopped:
            return decision
        if unseen and any(store.is_in_part for store in controller.own_stores()):
            # Counting waits for the complete list, as each page may show hundreds.
            return wait(reasons.LIST_IN_PART(decision.reason), after=LOOK)

        alone = [write for write in unseen if self._is_left_alone(observed, write)]
        if len(alone) < len(unseen) and not self._is_counted(controller):
            return wait(reasons.DELETIONS_COUNTED(decision.reason), after=NEXT)

        left = tuple(write for write in decision.writes if not any(write is one for one in alone))
        for write in left:
            stopped = (
                self.stopped.get((controller.name, write.side))
                if write.verb is Verb.DELETE
                else None
            )
            if stopped and (key_of(write.obj), uid_of(write.obj)) in stopped.objects:
                raise Refused(
                    f"held by the deletion breaker: {stopped}", reason=reasons.DELETIONS_HELD.name
                )
        if not alone:
            return decision
        why = reasons.NOT_REPAIRED(decision.reason)
        outcome = Outcome.IN_STEP if left else Outcome.SKIPPED
        return replace(decision, writes=left, reason=why, outcome=outcome)

    def scanned(self, controller: BoundSyncer, doomed: Iterable[PlannedDeletion]) -> Iterator[int]:
        """Hold the deletions of a whole kind that a scan found, if they are too many.

        Yield the cost of each step, as :data:`STEP` measures it. Deletions that are held already
        stay held while they are due: a list may have come since the scan.
        """
        found = {(one.side, one.key, one.uid): one for one in doomed}
        for request in self.requests(controller.syncer.name):
            found |= {
                (one.side, one.key, one.uid): one for one in self._doomed_by(controller, request)
            }
            yield self._weight(controller, request)
        for side in Side:
            yield from self._judge(
                controller, side, [one for one in found.values() if one.side is side]
            )

    def confirm(self, chosen: Callable[[str], bool]) -> list[StoppedDeletions]:
        """Release the held deletions of the chosen syncers, and return them, so that their requests
        can be queued.
        """
        confirmed = [stopped for stopped in self.stopped.values() if chosen(stopped.syncer)]
        for stopped in confirmed:
            del self.stopped[stopped.syncer, stopped.side]
            self._confirmed |= {
                (stopped.syncer, stopped.side, key, uid) for key, uid in stopped.objects
            }
            about = {
                "cluster": self._settings.cluster,
                "syncer": stopped.syncer,
                "side": stopped.side,
            }
            log.warning("deletions are confirmed", **about, number=len(stopped.objects))
        return confirmed

    def requests(self, syncer: str) -> Collection[SyncRequest]:
        """Return the requests whose deletions are held."""
        found: set[SyncRequest] = set()
        for (name, _), stopped in self.stopped.items():
            if name == syncer:
                found |= stopped.requests
        return found

    def holds(self, request: SyncRequest) -> bool:
        """Return True if a deletion of this request is held."""
        return any(
            request in stopped.requests
            for (name, _), stopped in self.stopped.items()
            if name == request.syncer
        )

    def drop(self, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        self._counts.pop(syncer, None)
        for side in Side:
            self.stopped.pop((syncer, side), None)

    # -- inside ------------------------------------------------------------------------------------

    def _is_left_alone(self, observed: Observed, write: Write) -> bool:
        """Return True if a drift policy leaves alone an object whose counterpart went unseen."""
        is_orphan = observed.on(write.side.other) is None
        return is_orphan and policies(self._settings, observed.controller.name).of(
            "orphan"
        ) not in (None, "repair")

    def _is_counted(self, controller: BoundSyncer) -> bool:
        """Count for a step.

        Return True once all deletions that the latest list makes due are counted.


        Each request that waits for that counts a step, so a large count needs no task of its own.
        """
        name = controller.name
        if name in self._listed:
            self._listed.discard(name)
            self._counts[name] = self._count(controller)
        room = STEP
        try:
            for cost in self._counts.get(name, ()):
                room -= cost
                if room <= 0:
                    return False
        except BaseException:
            self._listed.add(name)  # else what is not counted would be deleted
            raise
        self._counts.pop(name, None)
        return True

    def _count(self, controller: BoundSyncer) -> Iterator[int]:
        """Hold the deletions of objects whose counterpart went unseen, if they are too many.

        Yield the cost of each step.
        """
        for side in Side:
            suspects: list[SyncRequest] = []
            for request, cost in self._suspects(controller, side):
                if request is not None:
                    suspects.append(request)
                yield cost
            doomed: list[PlannedDeletion] = []
            may_be_many = self.limits is not None and len(suspects) > self.limits.count
            if may_be_many:
                for request in suspects:
                    doomed += [
                        one for one in self._doomed_by(controller, request) if one.side is side
                    ]
                    yield self._weight(controller, request)
            yield from self._judge(controller, side, doomed)

    @staticmethod
    def _weight(controller: BoundSyncer, request: SyncRequest) -> int:
        """Return the cost of a decision about a request."""
        weight = DECIDED
        for store in controller.own_stores():
            host_key = request.host_key or controller.host_key(request.key)
            entry = store.entry(host_key if store.side is Side.HOST else request.key)
            if entry is not None:
                weight += entry.size
        return weight

    def _is_unseen(self, observed: Observed, write: Write) -> bool:
        """Return True if a deletion follows from a missing or different object whose deletion no
        watch reported.
        """
        other = write.side.other
        key = observed.request.key if other is Side.VIRTUAL else observed.host_key
        store = observed.controller.store(other, key)
        if store is None:
            return False
        if observed.on(other) is None:
            return not store.saw_go(key)
        return (
            other_owner(observed.virtual, observed.host, uid_mark=self._settings.marks.uid)
            is not None
        )

    def _judge(
        self, controller: BoundSyncer, side: Side, doomed: list[PlannedDeletion]
    ) -> Iterator[int]:
        """Hold these deletions if they are too many, otherwise release them.

        Yield the cost of each step.
        """
        name = controller.syncer.name
        total = 0
        if self.limits is not None and len(doomed) > self.limits.count:
            total = yield from self._total(controller, side)

        confirmed = {one for one in self._confirmed if one[:2] == (name, side)}
        due = {(name, side, one.key, one.uid) for one in doomed}
        unconfirmed: dict[tuple[Key, str], SyncRequest] = {}
        for one in doomed:
            if (name, side, one.key, one.uid) not in confirmed:
                unconfirmed[one.key, one.uid] = one.request
        self._confirmed -= confirmed - due

        before = self.stopped.pop((name, side), None)
        if self.limits is None or len(unconfirmed) <= self.limits.count:
            return
        if len(unconfirmed) * 100 <= self.limits.percent * total:
            return
        stopped = StoppedDeletions(name, side, total, unconfirmed)
        self.stopped[name, side] = stopped
        if before is None or before.objects.keys() != unconfirmed.keys():
            about = {"cluster": self._settings.cluster, "syncer": name, "side": side}
            log.error("too many deletions at once, they are held", **about, what=stopped)

    def _total(self, controller: BoundSyncer, side: Side) -> Generator[int, None, int]:
        """Count the objects of a kind on a side, without those of others among them.

        Yield the cost of each step.
        """
        virtual = controller.virtual
        if side is Side.VIRTUAL:
            if virtual is None:
                return 0
            only_shown = controller.direction.comes_up and not controller.direction.goes_down
            if only_shown and not controller.view.informers.is_marked(virtual):
                return (yield from self._shown(controller, virtual))
            return len(virtual)
        if virtual is None or not controller.direction.goes_down:
            return len(controller.host) if controller.host is not None else 0
        expected = set()
        total = 0
        for key in list(virtual.keys()):
            host_key = controller.host_key(key)
            expected.add(host_key)
            total += controller.has(Side.HOST, host_key)
            yield LOOKED_AT
        for store in controller.hosts:
            for request, cost in self._orphans(controller, store, expected):
                total += request is not None
                yield cost
        return total

    def _shown(self, controller: BoundSyncer, virtual: SideInformer) -> Generator[int, None, int]:
        """Count the virtual objects that show those of the host, among the tenant's own.

        Yield the cost of each step.
        """
        marks = self._settings.marks
        total = 0
        for key in list(virtual.keys()):
            cost = LOOKED_AT
            entry = virtual.entry(key)
            if entry is not None and controller.host_at(controller.host_key(key)) is not None:
                cost += entry.size // 8
                outline = codec.outline(entry.raw)
                total += marks.is_from_here(outline, cluster=self._settings.identity)
            yield cost
        return total

    def _doomed_by(
        self, controller: BoundSyncer, request: SyncRequest
    ) -> Iterator[PlannedDeletion]:
        try:
            decision = self._decide(controller, request)
        except Exception:  # noqa: BLE001 — it deletes nothing either, and its own request reports it
            return
        for write in decision.writes:
            if write.verb is Verb.DELETE and not write.revokes:
                yield PlannedDeletion(write.side, key_of(write.obj), uid_of(write.obj), request)

    def _suspects(
        self, controller: BoundSyncer, side: Side
    ) -> Iterator[tuple[SyncRequest | None, int]]:
        """Yield the requests of objects on a side whose counterpart went missing unseen, or is
        another one, and None for other objects; each with its cost.
        """
        direction = controller.direction
        virtual = controller.virtual
        if not (direction.by_virtual and direction.by_host):
            return
        assert virtual is not None
        expected = set()
        for key in list(virtual.keys()):
            host_key = controller.host_key(key)
            expected.add(host_key)
            cost = LOOKED_AT
            host = controller.host_at(host_key)
            if host is None:
                is_lost = False
            elif side is Side.VIRTUAL:
                is_lost = host.entry(host_key) is None and not host.saw_go(host_key)
            else:
                is_lost = self._is_of_another(virtual, key, host, host_key)
                searched = host.entry(host_key)
                if searched is not None:
                    cost += searched.size // 8
            yield controller.request(key) if is_lost else None, cost

        if side is Side.VIRTUAL or not direction.goes_down:
            return
        for copies in controller.hosts:
            for request, cost in self._orphans(controller, copies, expected):
                yield None if request is None or virtual.saw_go(request.key) else request, cost

    @staticmethod
    def _is_of_another(virtual: SideInformer, key: Key, host: SideInformer, host_key: Key) -> bool:
        """Return True if the copy is of another virtual object, and no watch reported the change.

        Searching the copy's text for the uid takes a tenth of the time of reading the mark.
        """
        copy = host.entry(host_key)
        original = virtual.entry(key)
        if copy is None or original is None or virtual.saw_replaced(key):
            return False
        return original.uid.encode() not in copy.raw

    def _orphans(
        self, controller: BoundSyncer, host: SideInformer, expected: Collection[Key]
    ) -> Iterator[tuple[SyncRequest | None, int]]:
        """Yield the requests of copies of this kind that have no original, each with its cost.

        For other objects it yields None.
        """

        def requests_for(key: Key, obj: Obj | None) -> list[SyncRequest | None]:
            return [controller.request_for(Side.HOST, key, obj)]

        requests_or_none = safely(self._settings.cluster, controller.syncer, requests_for)
        is_marked = controller.direction.marked
        read = host.outline if is_marked else host.get
        for key in set(host.keys()) - set(expected):
            entry = host.entry(key)
            if entry is not None:
                [request] = requests_or_none(key, read(key)) or [None]
                yield request, ORPHAN + entry.size // (8 if is_marked else 1)
