"""The patroller: reconciles every key at intervals; what then needs a write has drifted, and is
reported and repaired.

A scan goes kind by kind. Pairs whose versions haven't changed since they were found in step are
skipped. At longer intervals both API servers are listed anew first, and everything is reconciled.
Requests that wait, are in work or fail already are known trouble, not drift; and a write must still
be needed a little later.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import eq
from typing import TypeVar

from syncer.api.errors import SyncerError
from syncer.api.objects import Key, Obj, Resource, Side, SyncRequest
from syncer.api.patrol import Patrol
from syncer.clusters import codec
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.findings import Finding, FindingOutcome, Scan
from syncer.engine.patrol.report import Tally, tell
from syncer.engine.patrol.verified import VerifiedPairs
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.drift import Drift, changed_by, drifts, other_owner
from syncer.engine.reconcile.policies.breaker import STEP, PlannedDeletion
from syncer.engine.reconcile.policies.drift_policy import policies
from syncer.engine.stores.informers import SideInformer
from syncer.observe.logs import get_logger
from syncer.translate import times

#: Skipped pairs before others get the event loop; reconciling a pair counts as so many skipped
#: ones.
SLICE, LOOK_WEIGHT = 500, 25
#: Seconds after which a write must still be needed to count as drift.
GRACE_SECONDS = 3.0
#: Number of findings of a scan whose manager is looked up; each takes a request.
BLAMED = 100
#: Random variation of the time between two scans, as a fraction.
JITTER = 0.1
#: Number of findings of a scan that are kept for a report.
KEPT = 1000

log = get_logger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PatrolHooks:
    """The functions that a patroller needs from its environment."""

    #: Returns why no scan is possible, or None: a cluster doesn't answer, for example.
    trouble: Callable[[], str | None]
    #: Returns True if a request is known trouble, or in work.
    busy: Callable[[SyncRequest], bool]
    #: Reconciles requests, and returns when their outcome is known.
    repair: Callable[[Sequence[SyncRequest]], Awaitable[None]]
    #: Returns why a request is not in step, as far as is known.
    reason: Callable[[SyncRequest], str]
    #: Returns why nothing may be repaired, or None.
    hands_off: Callable[[], str | None] = lambda: None


class Patroller:
    """Patrols a cluster pair."""

    def __init__(
        self,
        pair: ClusterPair,
        options: Patrol,
        ways: PatrolHooks,
        *,
        clock: Callable[[], float],
        utcnow: Callable[[], datetime],
        rng: random.Random,
    ) -> None:
        self.options, self.tally = options, Tally()
        #: The latest scan of each syncer.
        self.reports: dict[str, Scan] = {}
        self._pair, self._ways = pair, ways
        self._clock, self._utcnow, self._rng = clock, utcnow, rng
        self._verified: dict[str, VerifiedPairs] = {}
        self._listed: dict[SideInformer, float] = {}
        self._begun = clock()
        self._turn = asyncio.Lock()

    @property
    def cluster(self) -> str:
        """The virtual cluster's name."""
        return self._pair.name

    async def run(self) -> None:
        """Scan at intervals until cancelled.

        Kinds with an interval of their own have rounds of their own.
        """
        sections = self._pair.settings.sections
        own = {name: section.patrol_interval for name, section in sections.items() if section.patrol_interval}
        async with asyncio.TaskGroup() as rounds:
            rounds.create_task(self._round(self.options.interval, lambda syncer: syncer not in own))
            for name, interval in own.items():
                rounds.create_task(self._round(interval, partial(eq, name)))

    async def _round(self, interval: float, chosen: Callable[[str], bool]) -> None:
        """Scan the chosen kinds at intervals, but never two rounds at a time."""
        while True:
            await asyncio.sleep(interval * self._rng.uniform(1 - JITTER, 1 + JITTER))
            try:
                async with self._turn:
                    await self.scan_all(chosen)
            except Exception:
                log.exception("a scan failed; the next one comes in its time", cluster=self.cluster)

    async def scan_all(self, chosen: Callable[[str], bool] = lambda syncer: True) -> list[Scan]:
        """Scan the chosen kinds, one after the other."""
        controllers = [each for each in self._pair.controllers.values() if chosen(each.name) and each.direction.syncs]
        began = self._clock()
        return [await self.scan(controller, since=began) for controller in controllers]

    async def scan(self, controller: BoundSyncer, *, fresh: bool | None = None, since: float | None = None) -> Scan:
        """Scan a kind.

        Args:
            controller: The controller of the kind.
            fresh: True to list anew first, False to use the cache; None: list anew when that is
                due.
            since: Stores listed since then, for another kind, are not listed again; None for now.
        """
        begun = self._clock()
        for store in controller.stores:
            self._count_wrong(store, 0)  # shown from the first scan on, as any value but 0 is a bug
        scan = Scan(
            controller.syncer.name,
            times.written(self._utcnow()),
            fresh=self._is_due(controller) if fresh is None else fresh,
        )
        scan.problem = self._why_not(controller) or (
            await self._list_anew(controller, scan, begun if since is None else since) if scan.fresh else ""
        )
        if not scan.problem:
            await self._patrol(controller, scan)
        scan.seconds = self._clock() - begun
        self.tally.add(scan)
        tell(scan, self.cluster)
        self.reports[scan.syncer] = scan
        scan.keep(KEPT)
        return scan

    async def try_again(self, scan: Scan) -> None:
        """Reconcile once more the findings that could not be repaired: they may have waited for others."""
        controller = self._pair.controllers.get(scan.syncer)
        if controller is not None and any(one.outcome is FindingOutcome.FAILED for one in scan.findings):
            await self._repair(controller, scan)

    # -- the steps of a scan -----------------------------------------------------------------------

    def _why_not(self, controller: BoundSyncer) -> str:
        """Return why a kind can't be scanned at present; ``""`` if it can."""
        if trouble := self._ways.trouble():
            return trouble
        if self._pair.controllers.get(controller.syncer.name) is not controller or not controller.ready:
            return "it is not at work"
        unfilled = [store for store in controller.stores if not store.synced]
        return f"not all is known: {', '.join(f'{one.side} {one.resource}' for one in unfilled)}" if unfilled else ""

    def _is_due(self, controller: BoundSyncer) -> bool:
        oldest = min((self._listed.get(store, self._begun) for store in controller.stores), default=self._begun)
        return self._clock() - oldest >= self.options.fresh * (1 - JITTER)

    async def _list_anew(self, controller: BoundSyncer, scan: Scan, since: float) -> str:
        """List anew everything that a kind is decided from. Return why that failed, or ``""``."""
        for store in controller.stores:
            if self._listed.get(store, since - 1) > since:
                continue
            reflector = self._pair.reflectors.get((store.side, store.resource))
            wrong: list[Key] = []
            try:
                if reflector is None or not await reflector.relist(wrong.append):
                    return f"{store.side} {store.resource} is being listed"
            except (SyncerError, codec.DecodeError, RecursionError) as error:
                return f"{store.side} {store.resource} can't be listed: {error}"
            finally:
                self._pair.policies.breaker.listed(store)  # also after a list that was broken off
                self._correct(store, wrong, scan)
            self._listed[store] = self._clock()
        return self._why_not(controller)

    def _correct(self, store: SideInformer, wrong: Sequence[Key], scan: Scan) -> None:
        if wrong:
            what = f"{store.side} {store.resource}"
            said = "a store had gone wrong; it is mended from a list"
            log.warning(said, cluster=self.cluster, what=what, number=len(wrong))
            self._count_wrong(store, len(wrong))
            scan.corrected += [f"{what} {key}" for key in wrong]

    def _count_wrong(self, store: SideInformer, number: int) -> None:
        self.tally.corrections[store.side.value, str(store.resource)] += number

    async def _patrol(self, controller: BoundSyncer, scan: Scan) -> None:
        suspects = await self._suspects(controller, scan)
        if suspects and not scan.problem:
            await asyncio.sleep(GRACE_SECONDS)
            scan.problem = self._why_not(controller)
        if scan.problem:
            return
        async for request in _in_steps(suspects):
            if not self._is_busy(request):
                scan.findings += self._findings(controller, request)
        await self._hold(controller, scan.findings)
        await self._blame(scan.findings)
        await self._repair(controller, scan)

    async def _suspects(self, controller: BoundSyncer, scan: Scan) -> list[SyncRequest]:
        """Reconcile everything that has changed since it was found in step.

        Return the requests that need a write.
        """
        verified, done = self._verified_of(controller), 0
        suspects: list[SyncRequest] = []
        for request in verified.look(everything=scan.fresh):
            if request is None:
                scan.skipped += 1
            elif self._is_busy(request):
                scan.busy += 1
            else:
                scan.verified += 1
                if self._has_drifted(controller, scan, request):
                    suspects.append(request)
            done += 1 if request is None else LOOK_WEIGHT
            if done >= SLICE:
                done = 0
                await asyncio.sleep(0)
                scan.problem = self._why_not(controller)
                if scan.problem:
                    break
        return suspects

    def _verified_of(self, controller: BoundSyncer) -> VerifiedPairs:
        verified = self._verified.get(controller.syncer.name)
        if verified is None or verified.controller is not controller:
            verified = self._verified[controller.syncer.name] = VerifiedPairs(self._pair, controller)
        return verified

    def _is_busy(self, request: SyncRequest) -> bool:
        return self._ways.busy(request) and not self._pair.policies.breaker.holds(request)

    def _has_drifted(self, controller: BoundSyncer, scan: Scan, request: SyncRequest) -> bool:
        try:
            if any(self._drifts(controller, request)):
                return True
        except Exception as error:  # noqa: BLE001 — refused, or the syncer's bug: whoever works on it says so
            scan.troubles[request] = f"{type(error).__name__}: {error}"
            return False
        self._verified_of(controller).right(request)
        return False

    def _drifts(self, controller: BoundSyncer, request: SyncRequest) -> Iterator[Drift]:
        """Yield the drift of a request, including drift that a policy leaves alone."""
        pair, marks = self._pair, self._pair.settings.marks
        plan = pair.reconciler.scan(controller, request)
        owner = other_owner(plan.observed.virtual, plan.observed.host, uid_mark=marks.uid)
        for planned in plan.writes:
            if planned.calls:
                resource, notes = planned.ref.resource, (marks.fields, marks.base)
                write, live = planned.write, planned.live
                yield from drifts(write, planned.calls, live, resource=resource, owner=owner, notes=notes)
            elif not planned.held:
                for settle in plan.results.settled:
                    settle(planned)

    def _findings(self, controller: BoundSyncer, request: SyncRequest) -> list[Finding]:
        try:
            found = list(self._drifts(controller, request))
        except Exception:  # noqa: BLE001 — as above; it could be looked at some seconds ago
            return []
        rules = policies(self._pair.settings, controller.syncer.name)
        outcomes = {"report": FindingOutcome.REPORTED, "ignore": FindingOutcome.IGNORED}
        made = []
        for drift in found:
            policy = rules.of(drift.kind) or "repair"
            made.append(Finding(request, drift, policy, outcomes.get(policy, FindingOutcome.FAILED)))
        return made

    async def _hold(self, controller: BoundSyncer, findings: Iterable[Finding]) -> None:
        """Let the breaker count the deletions, and mark those that it holds."""
        doomed = [one for one in findings if one.drift.deletes and one.policy == "repair"]
        breaker = self._pair.policies.breaker
        room = STEP
        for cost in breaker.scanned(
            controller, (PlannedDeletion(one.drift.side, one.drift.key, one.drift.uid, one.request) for one in doomed)
        ):
            room -= cost
            if room <= 0:
                room = STEP
                await asyncio.sleep(0)
        for one in doomed:
            held = breaker.held.get((controller.syncer.name, one.drift.side))
            if held and (one.drift.key, one.drift.uid) in held.objects:
                one.outcome, one.reason = FindingOutcome.HELD, str(held)

    async def _blame(self, findings: Iterable[Finding]) -> None:
        """Look up who wrote the drifted fields.

        The cache doesn't keep managedFields, so the objects are read.
        """
        asked: dict[tuple[Side, Resource, Key], Obj | None] = {}
        for one in findings:
            drift = one.drift
            place = (drift.side, drift.resource, drift.key)
            if not drift.changes or (place not in asked and len(asked) >= BLAMED):
                continue
            if place not in asked:
                asked[place] = await self._live(*place)
            live = asked[place] or {}
            by = {change.path: changed_by(live, change.path) for change in drift.changes}
            one.by = {path: manager for path, manager in by.items() if manager is not None}

    async def _live(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        try:
            return await (self._pair.virtual if side is Side.VIRTUAL else self._pair.host).get(resource, key)
        except SyncerError:
            return None

    async def _repair(self, controller: BoundSyncer, scan: Scan) -> None:
        """Repair the findings, and record the outcomes."""
        todo = [one for one in scan.findings if one.policy == "repair"]
        why = self._ways.hands_off()
        if why:
            for one in todo:
                one.outcome, one.reason = FindingOutcome.REPORTED, why
            return
        requests = list(dict.fromkeys([*(one.request for one in todo), *scan.troubles]))
        if requests:
            await self._ways.repair(requests)
        left = {one.request: self._left(controller, one.request) async for one in _in_steps(todo)}
        for one in todo:
            why = left[one.request]
            if one.outcome is not FindingOutcome.HELD:
                one.outcome, one.reason = (FindingOutcome.FAILED, why) if why else (FindingOutcome.REPAIRED, "")
        scan.troubles = {request: self._ways.reason(request) or why for request, why in scan.troubles.items()}

    def _left(self, controller: BoundSyncer, request: SyncRequest) -> str:
        """Return why a request is not in step after its repair; ``""`` if it is."""
        rules = policies(self._pair.settings, controller.syncer.name)
        try:
            found = list(self._drifts(controller, request))
        except Exception as error:  # noqa: BLE001 — as above
            return self._ways.reason(request) or f"{type(error).__name__}: {error}"
        if not found:
            self._verified_of(controller).right(request)
        if all((rules.of(drift.kind) or "repair") != "repair" for drift in found):
            return ""
        return self._ways.reason(request) or "it needs a write still"


async def _in_steps(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield items, each of which takes a decision, and let other tasks run in between."""
    for number, item in enumerate(items, 1):
        yield item
        if number % (SLICE // LOOK_WEIGHT) == 0:
            await asyncio.sleep(0)
