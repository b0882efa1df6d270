"""The generations in a status that comes up are those of the virtual object.

An API server counts the changes of an object in its ``metadata.generation``, and a controller
writes into ``observedGeneration`` which of them a status, or a condition in it, is about. A
controller of the host counts the changes of the copy, while those who read the virtual object
compare with its own: ``kubectl wait``, ``kubectl rollout status``, Argo CD, the tenant's
controllers.

A part of a status is about the present generation if the host's controller has observed the copy as
it is, and the copy has all of the original: no change of its contents is planned, or held back by a
policy. Otherwise the part is about an earlier generation; the one before the present stands for all
of them.

By the conventions of the Kubernetes API the field means this in a status and in its conditions,
also where a part of the status or an item of its lists has conditions (``parents[].conditions[]``
of the Gateway API). Elsewhere in a status it may be about another object, such as one that the
controller makes for this one: it stays.

While contents of the copy are sent, the status stays as it is on the virtual side, and is written
by the look that follows. Whoever waits sees each version of the virtual object: a report about a
drifted copy must never be there beside the present generation, however short the time.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from syncer.api.decision import Decision, Outcome, Verb, Write
from syncer.api.objects import Obj, Resource, Side, key_of
from syncer.api.paths import path_steps
from syncer.api.roles import Syncer
from syncer.engine.reconcile.plan import Observed, PlannedWrite

_FIELD = "observedGeneration"
#: A generation as text: at most the digits of 64 bits.
_TEXT = re.compile("[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Generations:
    """Translates the generations in the statuses of a syncer's virtual objects.

    ``has_status`` returns True if a resource has the status subresource on a side. Without it each
    write of a status is a change that the API server counts, so that no status could ever be about
    the present generation: it stays as it is.
    """

    syncer: Syncer
    has_status: Callable[[Side, Resource], bool]

    def concern(self, observed: Observed, decision: Decision) -> bool:
        """Return True if a decision writes a status with a generation of the copy."""
        if _generation(observed.virtual) is None or _generation(observed.host) is None:
            return False
        for write in decision.writes:
            if _is_status_of(observed, write) and _is_in(write.obj["status"]):
                break
        else:
            return False
        syncer = self.syncer
        return self.has_status(Side.VIRTUAL, syncer.resource) and self.has_status(
            Side.HOST, syncer.host_resource
        )

    def translate(
        self, observed: Observed, decision: Decision, on_host: Iterable[PlannedWrite]
    ) -> Decision:
        """Return a decision that they concern, with the generations of the virtual object.

        ``on_host`` are the decision's writes to the host with their calls.
        """
        assert observed.virtual is not None
        virtual = observed.virtual
        generation = _generation(virtual)
        latest = _generation(observed.host)
        assert generation is not None
        assert latest is not None
        before = max(generation - 1, 0)

        copies = [planned for planned in on_host if _is_own(observed, planned.write)]
        is_changed = any(planned.changes_contents for planned in copies)
        if copies:
            is_in_step = not is_changed and not any(_is_held_back(planned) for planned in copies)
        else:
            # A syncer that waits may have held back the write of the copy.
            is_in_step = decision.outcome is not Outcome.PENDING

        def shown(reported: int, there: int | None) -> int:
            """Return the generation for the host's one, where the virtual status has another."""
            if is_in_step and reported >= latest:
                return generation
            if there is not None and there <= before:
                return there
            return before

        writes = []
        for write in decision.writes:
            if _is_status_of(observed, write):
                obj = dict(write.obj)
                status = obj.pop("status")
                if not is_changed or decision.deletes:
                    obj["status"] = _translated(status, virtual.get("status"), shown)
                elif "status" in virtual:
                    # The look that follows the change knows more, and may find the copy in step.
                    obj["status"] = virtual["status"]
                write = replace(write, obj=obj)
            writes.append(write)
        return replace(decision, writes=tuple(writes))

    def followed(
        self, observed: Observed, decision: Decision, writes: Iterable[PlannedWrite]
    ) -> Decision:
        """Return a translated decision as a step if its writes may change a generation.

        Whether they do, only the answers show: an API server may drop what it is sent. Then nobody
        else changes the copy, and its status would never come up. A deletion is followed by another
        look anyway.
        """
        if decision.deletes:
            return decision
        for planned in writes:
            if _is_own(observed, planned.write) and planned.changes_contents:
                return replace(decision, is_step=True)
        return decision


def brings_up_status(syncer: Syncer) -> bool:
    """Return True if the status of a syncer's copies comes up, or a part of it, as on the host."""
    if syncer.own_generations:
        return False
    return any(path_steps(path)[0] == "status" for path in syncer.up)


def _generation(obj: Obj | None) -> int | None:
    """Return the generation of an object; None if its API server counts no changes."""
    if obj is None:
        return None
    generation = obj["metadata"].get("generation")
    return generation if type(generation) is int else None


def _is_own(observed: Observed, write: Write) -> bool:
    """Return True if a write is to one of the two objects of the request."""
    return write.resource is None and key_of(write.obj) == observed.key_on(write.side)


def _is_status_of(observed: Observed, write: Write) -> bool:
    """Return True if a write sets the status of the virtual object."""
    if write.side is not Side.VIRTUAL or write.verb is not Verb.APPLY:
        return False
    return isinstance(write.obj.get("status"), dict) and _is_own(observed, write)


def _is_held_back(planned: PlannedWrite) -> bool:
    """Return True if a policy leaves contents of a copy out of its write.

    A value that the API server makes another one of isn't held back: no controller of the host will
    ever observe it as it was sent.
    """
    if planned.tolerates or planned.refused is not None:
        return True
    return any(field.path[:1] != ("metadata",) for field in planned.frozen)


def _is_in(status: Obj) -> bool:
    """Return True if a status has a generation."""
    found: list[int] = []

    def note(reported: int, there: int | None) -> int:
        found.append(reported)
        return reported

    _translated(status, None, note)
    return bool(found)


def _translated(status: Obj, there: Any, shown: Callable[[int, int | None], int]) -> Obj:
    """Return a copy of a status with other generations.

    Args:
        status: The status, of any shape.
        there: The status that the virtual object has, of any shape.
        shown: Returns the generation for one in the status, and for the one at the same place there
            if there is any.
    """

    def with_own(holder: Any, beside: Any) -> Any:
        """Return a status or a condition with its generation."""
        found = holder.get(_FIELD) if isinstance(holder, dict) else None
        reported = _number(found)
        if reported is None:
            return holder
        own: int | str = shown(reported, _number(_at(beside, _FIELD)))
        if isinstance(found, str):
            own = str(own)
        return {**holder, _FIELD: own}

    def with_conditions(part: Any, beside: Any) -> Any:
        """Return a status, or a part of it, with the generations of its conditions."""
        conditions = part.get("conditions") if isinstance(part, dict) else None
        if not isinstance(conditions, list):
            return part
        return {**part, "conditions": _each(conditions, _at(beside, "conditions"), with_own)}

    result = dict(status)
    for name, value in status.items():
        beside = _at(there, name)
        if isinstance(value, list):
            result[name] = _each(value, beside, with_conditions)
        else:
            result[name] = with_conditions(value, beside)
    translated: Obj = with_own(with_conditions(result, there), there)
    return translated


def _number(value: Any) -> int | None:
    """Return a generation as a number; None if it is none.

    Argo Rollouts writes it as text.
    """
    if type(value) is str and _TEXT.fullmatch(value):
        return int(value)
    return value if type(value) is int and value >= 0 else None


def _each(items: list[Any], there: Any, change: Callable[[Any, Any], Any]) -> list[Any]:
    """Return the changed items of a list; ``change`` also gets the item at the same place there."""
    return [change(item, _at(there, number)) for number, item in enumerate(items)]


def _at(value: Any, step: str | int) -> Any:
    """Return the value of a field or an item; None if there is none."""
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None
