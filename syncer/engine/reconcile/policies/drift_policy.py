"""The drift policy: leave out those changes of a write that would repair drift which the policy
leaves alone.

The last wanted state tells a manual edit from a change that we want. For a host copy it is stored
on the copy, and so survives a restart; for fields that go up it is known while this process runs.
"""

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from syncer.api.context import Settings
from syncer.api.decision import Verb, Write
from syncer.api.drift import DriftClass, DriftPolicies
from syncer.api.marks import Marks
from syncer.api.objects import Obj, ObjectRef, Side, SyncRequest
from syncer.engine.reconcile import merge_base as base
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.drift import patch_of
from syncer.engine.reconcile.plan import PlannedWrite
from syncer.translate.three_way import digest

#: Number of virtual objects whose last wanted state is remembered.
REMEMBERED = 20_000
_PATCHES = (Operation.PATCH, Operation.PATCH_STATUS, Operation.CONDITIONS)


def policies(settings: Settings, syncer: str) -> DriftPolicies:
    """Return the drift policies of a syncer's kind."""
    section = settings.sections.get(syncer)
    defaults: DriftPolicies = settings.patrol.drift if settings.patrol else DriftPolicies()
    return section.drift.over(defaults) if section else defaults


@dataclass(frozen=True, slots=True)
class DriftPolicy:
    """The drift policies of a virtual cluster, applied to writes.

    ``policies`` returns those of a syncer.
    """

    marks: Marks
    policies: Callable[[str], DriftPolicies] = lambda syncer: DriftPolicies()
    _lenient: dict[str, frozenset[DriftClass]] = field(default_factory=dict)
    _wanted: MutableMapping[ObjectRef, Any] = field(default_factory=lambda: LRUCache(REMEMBERED))

    def lenient(self, syncer: str) -> frozenset[DriftClass]:
        """Return the classes of drift that are not repaired for a syncer's kind."""
        classes = self._lenient.get(syncer)
        if classes is None:
            classes = frozenset(self.policies(syncer).lenient())
            self._lenient[syncer] = classes
        return classes

    def drop_tolerated(self, planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
        """Return the write without the changes that a drift policy leaves alone.

        A revocation repairs no drift.
        """
        if planned.live is None or planned.write.revokes:
            return planned
        lenient = self.lenient(request.syncer)
        left = planned._replace(calls=list(self._left(planned, planned.live, lenient)))
        tolerates = planned.changes_contents and not left.changes_contents
        return left._replace(tolerates=tolerates)

    def settled(self, planned: PlannedWrite) -> None:
        """Record the wanted state of a write that was made, or that needed no call."""
        write = planned.write
        if write.verb in (Verb.APPLY, Verb.CONDITIONS):
            self._wanted[planned.ref] = _hash(write)

    def _left(
        self, planned: PlannedWrite, live: Obj, lenient: frozenset[DriftClass]
    ) -> Iterator[Call]:
        for call in planned.calls:
            is_patch = call.kind in _PATCHES
            if not is_patch or not self._wanted_before(
                planned.write, call, ref=planned.ref, live=live
            ):
                yield call
                continue
            body = _without(call, lenient)
            if body is not None:
                yield Call(call.kind, body)

    def _wanted_before(self, write: Write, call: Call, *, ref: ObjectRef, live: Obj) -> bool:
        if write.side is Side.VIRTUAL or call.kind is not Operation.PATCH:
            return self._wanted.get(ref) == _hash(write)
        now = base.read(write.obj, self.marks)
        before = base.read(live, self.marks)
        return now is not None and before is not None and now.want == before.want


def _hash(write: Write) -> str:
    metadata = {
        name: value for name, value in write.obj["metadata"].items() if name != "resourceVersion"
    }
    return digest({**write.obj, "metadata": metadata})


def _without(call: Call, lenient: frozenset[DriftClass]) -> Obj | None:
    """Return a patch without fields of these classes; None if nothing is left."""
    kept = {
        name: part
        for name, part in call.body.items()
        if name == "metadata" or _class_of(name) not in lenient
    }
    metadata = kept["metadata"]
    if "metadata" in lenient:
        metadata = {
            name: part for name, part in metadata.items() if name not in ("labels", "annotations")
        }
    left = {**kept, "metadata": metadata}
    return left if patch_of(left) else None


def _class_of(part: str) -> DriftClass:
    return "status" if part == "status" else "field"
