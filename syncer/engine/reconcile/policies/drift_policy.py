"""What of a write is left out because the drift policy of its kind leaves that drift alone.

Somebody's edit is told from a change of what we want by what we wanted before. Of a host copy that is kept on the copy
itself, and so outlives a restart; of what flows up it is known for as long as this process runs.
"""

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from syncer.api.context import Settings
from syncer.api.decision import Verb, Write
from syncer.api.drift import DriftClass, DriftPolicies
from syncer.api.marks import Marks
from syncer.api.objects import Obj, Request, Side
from syncer.engine.reconcile import merge_base as base
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.drift import patch_of
from syncer.engine.reconcile.plan import Place, PlannedWrite
from syncer.translate.three_way import digest

#: Of how many objects on the virtual side it is remembered what was wanted last.
REMEMBERED = 20_000
_PATCHES = (Operation.PATCH, Operation.PATCH_STATUS, Operation.CONDITIONS)


def policies(settings: Settings, syncer: str) -> DriftPolicies:
    """Return what is done about drift of a syncer's kind."""
    section = settings.sections.get(syncer)
    defaults: DriftPolicies = settings.patrol.drift if settings.patrol else DriftPolicies()
    return section.drift.over(defaults) if section else defaults


@dataclass(frozen=True, slots=True)
class DriftPolicy:
    """The drift policies of one virtual cluster, applied to writes; ``policies`` gives those of a syncer."""

    marks: Marks
    policies: Callable[[str], DriftPolicies] = lambda syncer: DriftPolicies()
    _lenient: dict[str, frozenset[DriftClass]] = field(default_factory=dict)
    _wanted: MutableMapping[Place, Any] = field(default_factory=lambda: LRUCache(REMEMBERED))

    def lenient(self, syncer: str) -> frozenset[DriftClass]:
        """Return the classes of drift of a syncer's kind that aren't repaired."""
        found = self._lenient.get(syncer)
        if found is None:
            found = self._lenient[syncer] = frozenset(self.policies(syncer).lenient())
        return found

    def left_alone(self, planned: PlannedWrite, request: Request) -> PlannedWrite:
        """Return the write without what is to be left as another manager has made it."""
        if planned.live is None:
            return planned
        return planned._replace(calls=list(self._left(planned, planned.live, self.lenient(request.syncer))))

    def settled(self, syncer: str, planned: PlannedWrite) -> None:
        """Remember that a write has been made, or that it took no call: it is what was wanted last."""
        write = planned.write
        if write.verb in (Verb.APPLY, Verb.CONDITIONS) and self.lenient(syncer):
            self._wanted[planned.place] = _hash(write)

    def _left(self, planned: PlannedWrite, live: Obj, lenient: frozenset[DriftClass]) -> Iterator[Call]:
        for call in planned.calls:
            is_patch = call.kind in _PATCHES
            if not is_patch or not self._wanted_before(planned.write, call, place=planned.place, live=live):
                yield call
            elif (body := _without(call, lenient)) is not None:
                yield Call(call.kind, body)

    def _wanted_before(self, write: Write, call: Call, *, place: Place, live: Obj) -> bool:
        if write.side is Side.VIRTUAL or call.kind is not Operation.PATCH:
            return self._wanted.get(place) == _hash(write)
        now, then = base.read(write.obj, self.marks), base.read(live, self.marks)
        return now is not None and then is not None and now.want == then.want


def _hash(write: Write) -> str:
    metadata = {name: value for name, value in write.obj["metadata"].items() if name != "resourceVersion"}
    return digest({**write.obj, "metadata": metadata})


def _without(call: Call, lenient: frozenset[DriftClass]) -> Obj | None:
    """Return a patch without what is of these classes; None where nothing is left of it."""
    kept = {name: part for name, part in call.body.items() if name == "metadata" or _class_of(name) not in lenient}
    metadata = kept["metadata"]
    if "metadata" in lenient:
        metadata = {name: part for name, part in metadata.items() if name not in ("labels", "annotations")}
    left = {**kept, "metadata": metadata}
    return left if patch_of(left) else None


def _class_of(part: str) -> DriftClass:
    return "status" if part == "status" else "field"
