"""Contention: fields that another manager keeps reverting are found, frozen for a while, then tried
again.

It is contention if the same change, from the same value to the same value of the same field of an
object, is made again and again without another value being wanted in between: then someone reverts
it each time. Edits back and forth on the virtual side change the wanted value each time, and never
count. An object that is created and deleted again each time is contention over the whole object,
whichever of the two is ours; a deletion counts if the object bears our mark, which it has from us
unless somebody makes objects with it.

A contended field is frozen: it is left out of the writes, while the rest of the object is synced as
usual. It thaws after a time, by command, or as soon as another value is wanted; if the contention
goes on, the next revert freezes it again.

Only hashes of values are kept, for a bounded number of objects, and in memory alone: after a
restart, contention has to be found again.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from syncer.api.decision import Decision, Outcome
from syncer.api.marks import Marks
from syncer.api.objects import Obj, ObjectRef, SyncRequest, annotations_of, labels_of
from syncer.api.reasons import FIELDS_FROZEN
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.config import VirtualCluster
from syncer.engine.reconcile import merge_base as base
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.patch_paths import (
    ABSENT,
    FIELDS,
    GONE,
    UNKNOWN,
    ChangedField,
    Path,
    changes,
    wanted,
    without,
)
from syncer.engine.reconcile.plan import Frozen, PlannedWrite, PostponedFields, ServerAnswer
from syncer.translate.times import written

#: Number of objects whose changes are remembered; the oldest are forgotten.
REMEMBERED = 10_000
#: Number of objects with frozen fields; the oldest are forgotten.
FROZEN = 10_000
#: Integers for a remembered change: the hashes of path, new value and old value, and the time in
#: milliseconds, which differs for each write of an object.
WIDTH = 4


@dataclass(frozen=True, slots=True)
class ContentionRules:
    """The rules of contention: how many equal changes (0: contention is ignored), within how many
    seconds, and how many seconds a field stays frozen.
    """

    times: int = 5
    window: float = 600.0
    thaw: float = 600.0


OFF = ContentionRules(times=0)


def contention_rules(cluster: VirtualCluster) -> ContentionRules:
    """Return the rules from the configuration of a virtual cluster."""
    return ContentionRules(cluster.fights.times, cluster.fights.window, cluster.fights.thaw)


class Contention:
    """The recent changes of a pair, and the frozen fields of its objects."""

    def __init__(
        self,
        rules: ContentionRules,
        marks: Marks,
        *,
        clock: Callable[[], float],
        utcnow: Callable[[], datetime],
    ) -> None:
        self.rules = rules
        self._marks = marks
        self._clock = clock
        self._utcnow = utcnow
        self._past: dict[ObjectRef, array[int]] = {}
        self._frozen: dict[ObjectRef, dict[Path, Frozen]] = {}
        #: Number of fields frozen so far, by syncer.
        self.count: Counter[str] = Counter()

    @property
    def is_on(self) -> bool:
        """True if contention is detected."""
        return self.rules.times > 0

    # -- before a write ----------------------------------------------------------------------------

    def drop_frozen(self, planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
        """Return the write without its frozen fields."""
        if planned.ref not in self._frozen:
            return planned
        return self._without_frozen(planned, self._frozen_now(planned.ref))

    def drop_contended(self, planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
        """Return the write without fields that are frozen, or that it would set once too often.

        The latter are frozen when the write is made (:meth:`freeze`). A revocation stays whole.
        """
        ref = planned.ref
        if not self._may_hold(ref) or planned.write.revokes:
            return planned
        due = {one.path: one for one in self._due(planned, request)}
        frozen = [one for one in self._frozen_now(ref) if one.path not in due]
        return self._without_frozen(planned, [*frozen, *due.values()])

    def _may_hold(self, ref: ObjectRef) -> bool:
        """Return True if a field of an object was frozen, or was written so often as to be."""
        if self._frozen and ref in self._frozen:
            return True
        past = self._past.get(ref)
        return past is not None and _writes(past) >= self.rules.times

    def _frozen_now(self, ref: ObjectRef) -> list[Frozen]:
        now = self._clock()
        return [one for one in self._frozen.get(ref, {}).values() if one.until > now]

    def _without_frozen(self, planned: PlannedWrite, frozen: Sequence[Frozen]) -> PlannedWrite:
        if not frozen:
            return planned
        calls: list[Call] = []
        frozen_fields: list[Frozen] = []
        for call in planned.calls:
            left_out = [one for one in frozen if wanted(call, one.path, self._marks) == one.ours]
            frozen_fields += left_out
            rest: Call | None = call
            if left_out:
                rest = self._without(call, [one.path for one in left_out], planned.live)
            if rest is not None:
                calls.append(rest)
        return planned._replace(calls=calls, frozen=frozen_fields)

    def _without(self, call: Call, paths: Sequence[Path], live: Obj | None) -> Call | None:
        """Return the call without these fields, and without recording them in the merge base."""
        base_mark = self._marks.base
        rest = without(call, [*paths, ("metadata", "annotations", base_mark)])
        annotations = (call.body.get("metadata") or {}).get("annotations") or {}
        before = annotations_of(live).get(base_mark) if live else None
        kept = base.without(annotations.get(base_mark), before, paths)
        if rest is None or kept is None or kept == before:
            return rest

        metadata = rest.body.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), base_mark: kept}
        return Call(rest.kind, {**rest.body, "metadata": {**metadata, "annotations": annotations}})

    def _due(self, planned: PlannedWrite, request: SyncRequest) -> Iterator[Frozen]:
        """Yield the fields that the write would set once too often."""
        ref = planned.ref
        past = self._past.get(ref)
        if not past:
            return
        now = self._clock()
        begin = now - self.rules.window
        until = now + self.rules.thaw
        for call in planned.calls:
            for change in changes(call, planned.live, self._marks):
                most = self._most(ref, change.path)
                # The cheaper count of all changes of the field comes first.
                if (
                    past[::WIDTH].count(hash(change.path)) >= most
                    and _times(past, change, begin) >= most
                ):
                    ends = written(self._utcnow() + timedelta(seconds=self.rules.thaw))
                    yield Frozen(ref, change.path, request, change.ours, until, ends)

    def freeze(self, frozen_fields: Iterable[Frozen]) -> None:
        """Freeze the fields that :meth:`drop_contended` has left out."""
        for one in frozen_fields:
            fields = self._frozen.get(one.ref, {})
            if fields.get(one.path) is not one:
                self._frozen.pop(one.ref, None)
                self._frozen[one.ref] = {**fields, one.path: one}
                self._past[one.ref] = _others(self._past[one.ref], one.path)
                self.count[one.request.syncer] += 1

        now = self._clock()
        while self._frozen:
            oldest, fields = next(iter(self._frozen.items()))
            if len(self._frozen) <= FROZEN and not self._is_over(fields, now):
                break
            del self._frozen[oldest]

    def _most(self, ref: ObjectRef, path: Path) -> int:
        """Return how often a change may be made; once if the field was frozen recently."""
        before = self._frozen.get(ref, {}).get(path)
        again = before is not None and self._clock() < before.until + self.rules.window
        return 1 if again else self.rules.times

    def _is_over(self, fields: Mapping[Path, Frozen], now: float) -> bool:
        return all(one.until + self.rules.window <= now for one in fields.values())

    # -- after a write -----------------------------------------------------------------------------

    def sent(self, planned: PlannedWrite, call: Call, answer: ServerAnswer | None) -> None:
        """Record a call.

        A call that failed or changed nothing still shows the wanted value.
        """
        ref = planned.ref
        live = planned.live
        changed = answer is not None and answer.changed
        if call.kind is Operation.DELETE:
            self._deleted(ref, live, changed=changed)
            return
        made = changes(call, live, self._marks) if self.is_on else []
        if not made:
            return

        now = self._clock()
        frozen = self._frozen.get(ref) if self._frozen else None
        past = self._past.pop(ref, None)
        at = int(now * 1000)
        if past:
            past = _since(past, now - self.rules.window)
            at = max(at, past[-1] + 1 if past else 0)
        else:
            past = array("q")
        for path, ours, theirs in made:
            past.extend((hash(path), ours, theirs if changed else UNKNOWN, at))
            if frozen and path in frozen and frozen[path].ours != ours:
                frozen[path].until = min(now, frozen[path].until)
        most = WIDTH * FIELDS * (self.rules.times + 1)
        self._remember(ref, past if len(past) <= most else past[-most:])

    def _deleted(self, ref: ObjectRef, live: Obj | None, *, changed: bool) -> None:
        """Forget an object that we deleted, but for how often that was since we last made it."""
        past = self._past.pop(ref, None)
        frozen = self._frozen.pop(ref, {})
        ended = {path: one for path, one in frozen.items() if one.ours == GONE}
        if ended:
            self._frozen[ref] = ended
        if not (
            changed and self.is_on and live is not None and self._marks.cluster in labels_of(live)
        ):
            return

        now = self._clock()
        whole = hash(())
        rows = []
        if past and GONE in past[1::WIDTH]:
            rows = [row for row in _rows(_since(past, now - self.rules.window)) if row[0] == whole]
            if any(row[1] != GONE for row in rows):
                rows = []
        at = max(int(now * 1000), rows[-1][-1] + 1 if rows else 0)
        kept = array("q")
        for row in rows[-self.rules.times :]:
            kept.extend(row)
        kept.extend((whole, GONE, ABSENT, at))
        self._remember(ref, kept)

    def _remember(self, ref: ObjectRef, past: "array[int]") -> None:
        self._past[ref] = past
        if len(self._past) > REMEMBERED:
            del self._past[next(iter(self._past))]

    # -- for people --------------------------------------------------------------------------------

    def thaw(self, is_meant: Callable[[Frozen], bool]) -> list[Frozen]:
        """Thaw the chosen fields, and return them."""
        now = self._clock()
        found = [one for one in self.frozen() if is_meant(one)]
        for one in found:
            one.until = now
        return found

    def frozen(self) -> list[Frozen]:
        """Return the frozen fields. Thread-safe."""
        now = self._clock()
        return [
            one
            for fields in list(self._frozen.values())
            for one in list(fields.values())
            if one.until > now
        ]

    def counted(self) -> Mapping[tuple[str, ...], int]:
        """Count how often fields were frozen, by syncer."""
        return {(syncer,): count for syncer, count in list(self.count.items())}

    def numbers(self) -> Mapping[tuple[str, ...], int]:
        """Count the frozen fields by syncer, with 0 for syncers that had any."""
        found = Counter(one.request.syncer for one in self.frozen())
        return {(syncer,): found[syncer] for syncer in list(self.count)}

    def report(self, frozen: Sequence[Frozen]) -> PostponedFields:
        """Return the report about frozen fields of an object; each field is news only once."""
        new = [one for one in frozen if not one.announced]
        for one in new:
            one.announced = True
        reasons = dict.fromkeys(_reason(one, frozen) for one in frozen)
        after = min(one.until for one in frozen) - self._clock()
        return PostponedFields(FIELDS_FROZEN, "; ".join(reasons), max(after, 0.0), bool(new))


def waiting(decision: Decision, postponed: Sequence[PostponedFields]) -> Decision:
    """Return the decision as pending, because parts of it are held back."""
    if not postponed:
        return decision
    times = [one.after for one in postponed]
    if decision.after is not None:
        times.append(decision.after)
    code = postponed[0].code
    reason = code("; ".join(dict.fromkeys(one.reason for one in postponed)))
    return replace(decision, reason=reason, outcome=Outcome.PENDING, after=min(times))


# -- remembered changes ----------------------------------------------------------------------------


def _writes(past: "array[int]") -> int:
    return len(set(past[WIDTH - 1 :: WIDTH]))


def _rows(past: "array[int]") -> list[Sequence[int]]:
    return [past[start : start + WIDTH] for start in range(0, len(past), WIDTH)]


def _times(past: "array[int]", change: ChangedField, since: float) -> int:
    """Count how often this change was made recently, since another value was last wanted."""
    number = 0
    path_hash = hash(change.path)
    for path, ours, theirs, at in reversed(_rows(past)):
        if path != path_hash:
            continue
        if ours != change.ours or at < since * 1000:
            break
        number += theirs == change.theirs
    return number


def _since(past: "array[int]", since: float) -> "array[int]":
    """Drop the changes that are too old to count."""
    if not past or past[WIDTH - 1] >= since * 1000:
        return past
    row = bisect_left(past[WIDTH - 1 :: WIDTH], since * 1000)
    return past[row * WIDTH :]


def _others(past: "array[int]", path: Path) -> "array[int]":
    """Drop the changes of a field."""
    path_hash = hash(path)
    others = array("q")
    for row in _rows(past):
        if row[0] != path_hash:
            others.extend(row)
    return others


# -- words -----------------------------------------------------------------------------------------


def _reason(one: Frozen, among: Iterable[Frozen]) -> str:
    """Return the sentence about a field and those that are frozen for the same reason."""
    side, resource, _ = one.ref
    thaw = f"syncer thaw {one.request.syncer} {one.request.key}"
    end = f"frozen until {one.ends}; to try again now: {thaw}"
    others = f"somebody else each time; {end}"
    if one.ours == GONE:
        return f"the {side} {resource.kind} is deleted by {FIELD_MANAGER} and made by {others}"
    if not one.path:
        return f"the {side} {resource.kind} is made by {FIELD_MANAGER} and deleted by {others}"
    alike = [
        each.field
        for each in among
        if each.path and (each.other, each.ends) == (one.other, one.ends)
    ]
    flips = "flips" if len(alike) == 1 else "flip"
    who = f"{FIELD_MANAGER} and {one.other or 'somebody else'} write"
    return f"{', '.join(alike)} of the {side} {resource.kind} {flips} between what {who}; {end}"
