"""The patroller reconciles every key at intervals, and reports and repairs drift.

An object that then needs a write has drifted. A scan goes kind by kind. Pairs whose versions
haven't changed since they were found in step are skipped. At longer intervals both API servers are
listed again first, and everything is reconciled. Requests that wait, are in work or fail already
are known trouble, not drift, unless their copies grant more than they may; and a write must still
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

from syncer.api.drift import Policy
from syncer.api.errors import SyncerError
from syncer.api.objects import Key, Obj, Resource, Side, SyncRequest
from syncer.api.optional_roles import Grants, Indexes
from syncer.api.patrol import Patrol
from syncer.clusters import codec
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.findings import Finding, FindingOutcome, Scan
from syncer.engine.patrol.report import Tally, log_scan
from syncer.engine.patrol.verified import VerifiedPairs
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.drift import Drift, changed_by, drifts, other_owner, repair_text
from syncer.engine.reconcile.managed_fields import FieldManager, PathStep
from syncer.engine.reconcile.policies.breaker import STEP, PlannedDeletion
from syncer.engine.reconcile.policies.drift_policy import policies
from syncer.engine.stores.informers import SideInformer
from syncer.observe.logs import get_logger
from syncer.translate import times

#: Skipped pairs before other tasks get the event loop.
SLICE = 500
#: A reconciled pair counts as so many skipped ones.
LOOK_WEIGHT = 25
#: Seconds after which a write must still be needed to count as drift.
GRACE_SECONDS = 3.0
#: Number of findings of a scan whose manager is looked up; each takes a request.
BLAMED = 100
#: Random variation of the time between two scans, as a fraction.
JITTER = 0.1
#: Number of repairs of a scan of which the owners of the objects are notified.
NOTIFIED = 50
#: Number of findings of a scan that are kept for a report.
KEPT = 1000

log = get_logger(__name__)

_T = TypeVar("_T")


def _no_objection() -> None:
    """Return no reason against repairs."""


def _notify_nobody(request: SyncRequest, message: str) -> None:
    """Notify nobody."""


def _every(syncer: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class PatrolHooks:
    """The functions that a patroller needs from its environment."""

    #: Returns why no scan is possible, or None: a cluster doesn't answer, for example.
    trouble: Callable[[], str | None]
    #: Returns True if a request is known trouble, or in work.
    busy: Callable[[SyncRequest], bool]
    #: Reconciles requests, and returns when their outcome is known.
    repair: Callable[[Sequence[SyncRequest]], Awaitable[None]]
    #: Returns why a request is not in step, as far as known.
    reason: Callable[[SyncRequest], str]
    #: Returns why nothing may be repaired, or None.
    hands_off: Callable[[], str | None] = _no_objection
    #: Notifies the owner of a virtual object of a repair.
    notify: Callable[[SyncRequest, str], None] = _notify_nobody


class Patroller:
    """Patrols a cluster pair."""

    def __init__(
        self,
        pair: ClusterPair,
        options: Patrol,
        hooks: PatrolHooks,
        *,
        clock: Callable[[], float],
        utcnow: Callable[[], datetime],
        rng: random.Random,
    ) -> None:
        self.options = options
        self.tally = Tally()
        #: The latest scan of each syncer.
        self.reports: dict[str, Scan] = {}
        self._pair = pair
        self._hooks = hooks
        self._clock = clock
        self._utcnow = utcnow
        self._rng = rng
        self._verified: dict[str, VerifiedPairs] = {}
        #: When a store was last listed by a scan.
        self._listed: dict[SideInformer, float] = {}
        self._begun = clock()
        #: Held by the round that scans.
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
        own: dict[str, float] = {}
        for name, section in sections.items():
            if section.patrol_interval:
                own[name] = section.patrol_interval

        def has_no_own(syncer: str) -> bool:
            return syncer not in own

        async with asyncio.TaskGroup() as rounds:
            rounds.create_task(self._round(self.options.interval, has_no_own))
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
                log.exception("scan failed; retrying at the next interval", cluster=self.cluster)

    async def scan_all(self, chosen: Callable[[str], bool] = _every) -> list[Scan]:
        """Scan the chosen kinds, one after the other."""
        began = self._clock()
        controllers = [
            controller
            for controller in self._pair.controllers.values()
            if chosen(controller.name) and controller.direction.syncs
        ]
        return [await self.scan(controller, since=began) for controller in controllers]

    async def scan(
        self, controller: BoundSyncer, *, fresh: bool | None = None, since: float | None = None
    ) -> Scan:
        """Scan a kind.

        Args:
            controller: The controller of the kind.
            fresh: True to list both sides first, False to use the cache, None to list them when
                that is due.
            since: Stores listed since then, for another kind, are not listed again; None for now.
        """
        begun = self._clock()
        for store in controller.stores:
            # The metric is there from the first scan on, as any value but 0 is a bug.
            self._count_wrong(store, 0)
        if fresh is None:
            listed = [self._listed.get(store, self._begun) for store in controller.stores]
            oldest = min(listed, default=self._begun)
            fresh = self._clock() - oldest >= self.options.fresh * (1 - JITTER)
        scan = Scan(controller.syncer.name, times.written(self._utcnow()), fresh=fresh)
        scan.problem = self._why_not(controller)
        if scan.fresh and not scan.problem:
            if since is None:
                since = begun
            scan.problem = await self._list_again(controller, scan, since)
        if not scan.problem:
            await self._patrol(controller, scan)
        scan.seconds = self._clock() - begun
        self.tally.add(scan, self._utcnow())
        log_scan(scan, self.cluster)
        self.reports[scan.syncer] = scan
        scan.keep(KEPT)
        return scan

    async def try_again(self, scan: Scan) -> None:
        """Reconcile once more the findings that could not be repaired.

        They may have waited for others.
        """
        controller = self._pair.controllers.get(scan.syncer)
        if controller is None:
            return
        if any(finding.outcome is FindingOutcome.FAILED for finding in scan.findings):
            await self._repair(controller, scan)

    # -- the steps of a scan -----------------------------------------------------------------------

    def _why_not(self, controller: BoundSyncer) -> str:
        """Return why a kind can't be scanned at present; ``""`` if it can."""
        trouble = self._hooks.trouble()
        if trouble:
            return trouble
        has_left = self._pair.controllers.get(controller.syncer.name) is not controller
        if has_left or not controller.ready:
            return "the syncer is not at work"
        unfilled = [str(store) for store in controller.stores if not store.synced]
        if unfilled:
            return f"caches are not filled: {', '.join(unfilled)}"
        return ""

    async def _list_again(self, controller: BoundSyncer, scan: Scan, since: float) -> str:
        """List the stores of a kind again. Return why that failed, or ``""``."""
        for store in controller.stores:
            if self._listed.get(store, since - 1) > since:
                continue
            reflector = self._pair.reflectors.get(store.store_key)
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
        """Report objects of a store that differed from the list, which has corrected them."""
        if not wrong:
            return
        warning = "cache error: corrected from a fresh list"
        log.warning(warning, cluster=self.cluster, what=str(store), number=len(wrong))
        self._count_wrong(store, len(wrong))
        scan.corrected += [f"{store} {key}" for key in wrong]

    def _count_wrong(self, store: SideInformer, number: int) -> None:
        self.tally.corrections[store.side.value, str(store.resource)] += number

    async def _patrol(self, controller: BoundSyncer, scan: Scan) -> None:
        suspects = await self._suspects(controller, scan)
        if suspects and not scan.problem:
            await asyncio.sleep(GRACE_SECONDS)
            scan.problem = self._why_not(controller)
        if scan.problem:
            return
        async for request in in_steps(suspects):
            scan.findings += self._findings(controller, request)
        await self._hold(controller, scan.findings)
        await self._blame(scan.findings)
        await self._repair(controller, scan)

    async def _suspects(self, controller: BoundSyncer, scan: Scan) -> list[SyncRequest]:
        """Reconcile everything that has changed since it was found in step.

        Return the requests that need a write.
        """
        verified = self._verified_of(controller)
        suspects: list[SyncRequest] = []
        done = 0
        # Facts on which a grant depends may change while both objects stay as they are.
        syncer = controller.syncer
        is_by_facts = isinstance(syncer, Grants) and isinstance(syncer, Indexes)
        for request in verified.changed(everything=scan.fresh or is_by_facts):
            if request is not None and self._has_drifted(controller, scan, request):
                suspects.append(request)
            if request is None:
                done += 1
            else:
                done += LOOK_WEIGHT
            if done >= SLICE:
                done = 0
                await asyncio.sleep(0)
                scan.problem = self._why_not(controller)
                if scan.problem:
                    break
        scan.skipped = verified.unchanged
        return suspects

    def _verified_of(self, controller: BoundSyncer) -> VerifiedPairs:
        name = controller.syncer.name
        verified = self._verified.get(name)
        if verified is None or verified.controller is not controller:
            verified = VerifiedPairs(self._pair, controller)
            self._verified[name] = verified
        return verified

    def _has_drifted(self, controller: BoundSyncer, scan: Scan, request: SyncRequest) -> bool:
        """Reconcile a request, and count it. Return True if it has drifted."""
        try:
            found = self._drift_unless_trouble(controller, request)
        except Exception as error:  # noqa: BLE001 — the worker of the request reports it
            # It is refused, or the syncer has a bug.
            scan.verified += 1
            scan.troubles[request] = f"{type(error).__name__}: {error}"
            return False
        if found is None:
            scan.busy += 1
            return False
        scan.verified += 1
        if found:
            return True
        self._verified_of(controller).add(request)
        return False

    def _drift_unless_trouble(
        self, controller: BoundSyncer, request: SyncRequest
    ) -> list[Drift] | None:
        """Return the drift of a request; None if it waits, is in work or fails already.

        If its copy grants more than it may, that is drift in any case.
        """
        if not self._hooks.busy(request) or self._pair.policies.breaker.holds(request):
            return list(self._drifts(controller, request))
        if not isinstance(controller.syncer, Grants):
            return None
        try:
            found = list(self._drifts(controller, request))
        except Exception:  # noqa: BLE001 — as for the worker, which has reported it
            return None
        return found if any(drift.revokes for drift in found) else None

    def _drifts(self, controller: BoundSyncer, request: SyncRequest) -> Iterator[Drift]:
        """Yield the drift of a request, including drift that a policy leaves alone."""
        marks = self._pair.settings.marks
        notes = (marks.fields, marks.base)
        plan = self._pair.reconciler.scan(controller, request)
        owner = other_owner(plan.observed.virtual, plan.observed.host, uid_mark=marks.uid)
        for planned in plan.writes:
            if planned.calls:
                yield from drifts(
                    planned.write,
                    planned.calls,
                    planned.live,
                    resource=planned.ref.resource,
                    owner=owner,
                    notes=notes,
                )
            elif not planned.frozen:
                for settle in plan.results.settled:
                    settle(planned)

    def _findings(self, controller: BoundSyncer, request: SyncRequest) -> list[Finding]:
        try:
            found = self._drift_unless_trouble(controller, request) or []
        except Exception:  # noqa: BLE001 — as above; the request could be decided some seconds ago
            return []
        rules = policies(self._pair.settings, controller.syncer.name)
        outcomes = {"report": FindingOutcome.REPORTED, "ignore": FindingOutcome.IGNORED}
        findings = []
        for drift in found:
            policy: Policy = rules.of(drift.kind) or "repair"
            if drift.revokes:
                policy = "repair"
            outcome = outcomes.get(policy, FindingOutcome.FAILED)
            findings.append(Finding(request, drift, policy, outcome))
        return findings

    async def _hold(self, controller: BoundSyncer, findings: Iterable[Finding]) -> None:
        """Let the breaker count the deletions, and mark those that it holds."""
        doomed: list[Finding] = []
        deletions: list[PlannedDeletion] = []
        for finding in findings:
            drift = finding.drift
            if drift.deletes and finding.policy == "repair" and not drift.revokes:
                doomed.append(finding)
                deletion = PlannedDeletion(drift.side, drift.key, drift.uid, finding.request)
                deletions.append(deletion)

        breaker = self._pair.policies.breaker
        room = STEP
        for cost in breaker.scanned(controller, deletions):
            room -= cost
            if room <= 0:
                room = STEP
                await asyncio.sleep(0)

        for finding in doomed:
            drift = finding.drift
            stopped = breaker.stopped.get((controller.syncer.name, drift.side))
            if stopped and (drift.key, drift.uid) in stopped.objects:
                finding.outcome = FindingOutcome.HELD
                finding.reason = str(stopped)

    async def _blame(self, findings: Iterable[Finding]) -> None:
        """Look up the managers of the drifted fields.

        The cache doesn't keep managedFields, so the objects are read.
        """
        read: dict[tuple[Side, Resource, Key], Obj | None] = {}
        for finding in findings:
            drift = finding.drift
            drifted = (drift.side, drift.resource, drift.key)
            if not drift.changes or (drifted not in read and len(read) >= BLAMED):
                continue
            if drifted not in read:
                read[drifted] = await self._live(*drifted)
            live = read[drifted] or {}
            managers: dict[tuple[PathStep, ...], FieldManager] = {}
            for change in drift.changes:
                manager = changed_by(live, change.path)
                if manager is not None:
                    managers[change.path] = manager
            finding.by = managers

    async def _live(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Read an object from the API server; None if that fails."""
        cluster = self._pair.virtual if side is Side.VIRTUAL else self._pair.host
        try:
            return await cluster.get(resource, key)
        except SyncerError:
            return None

    async def _repair(self, controller: BoundSyncer, scan: Scan) -> None:
        """Repair the findings, and record the outcomes."""
        todo = [finding for finding in scan.findings if finding.policy == "repair"]
        objection = self._hooks.hands_off()
        if objection:
            for finding in todo:
                finding.outcome = FindingOutcome.REPORTED
                finding.reason = objection
            return

        drifted = [finding.request for finding in todo]
        requests = list(dict.fromkeys([*drifted, *scan.troubles]))
        if requests:
            await self._hooks.repair(requests)

        left: dict[SyncRequest, str] = {}
        async for finding in in_steps(todo):
            left[finding.request] = self._left(controller, finding.request)
        for finding in todo:
            if finding.outcome is FindingOutcome.HELD:
                continue
            finding.reason = left[finding.request]
            if finding.reason:
                finding.outcome = FindingOutcome.FAILED
            else:
                finding.outcome = FindingOutcome.REPAIRED
        await self._notify(scan)
        for request, why in list(scan.troubles.items()):
            scan.troubles[request] = self._hooks.reason(request) or why

    async def _notify(self, scan: Scan) -> None:
        """Notify the owners of the objects that were repaired."""
        repaired = [each for each in scan.findings if each.outcome is FindingOutcome.REPAIRED]
        async for finding in in_steps(repaired[:NOTIFIED]):
            self._hooks.notify(finding.request, repair_text(finding.drift))

    def _left(self, controller: BoundSyncer, request: SyncRequest) -> str:
        """Return why a request is not in step after its repair; ``""`` if it is."""
        rules = policies(self._pair.settings, controller.syncer.name)
        try:
            found = list(self._drifts(controller, request))
        except Exception as error:  # noqa: BLE001 — as above
            return self._hooks.reason(request) or f"{type(error).__name__}: {error}"
        if not found:
            self._verified_of(controller).add(request)
        for drift in found:
            policy = rules.of(drift.kind) or "repair"
            if drift.revokes or policy == "repair":
                return self._hooks.reason(request) or "a write is still needed"
        return ""


async def in_steps(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield items, each of which takes a decision, and let other tasks run in between."""
    for number, item in enumerate(items, 1):
        yield item
        if number % (SLICE // LOOK_WEIGHT) == 0:
            await asyncio.sleep(0)
