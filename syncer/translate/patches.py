"""Configured patches, compiled once, and applied to each write of their kind.

A patch is applied to a private copy just before the write is made: the syncer's decision is
unchanged, and the patched object is compared with the live one. If a patch fails, its object is
parked with the patch's place in the configuration and the reason, but never with the object's
contents.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from syncer.api import (
    ConfigError,
    Context,
    Decision,
    Marks,
    Obj,
    Patch,
    Patches,
    Problem,
    Refused,
    Side,
    Verb,
    Write,
    path_steps,
)
from syncer.translate import pointers
from syncer.translate.alike import same
from syncer.translate.cel import Expression
from syncer.translate.patch_rules import Find, Rule, narrowing, renaming
from syncer.translate.pointers import MISSING, Place, Unfit, at
from syncer.translate.quantities import canonical
from syncer.translate.writing import Writing, writing

#: Returns the patched object; the same object if the patch doesn't concern this write.
Change = Callable[[Obj, Writing], Obj]

_PATCHED = (Verb.APPLY, Verb.MERGE, Verb.REVOKE)
_MAPS = (("metadata", "labels"), ("metadata", "annotations"))
_CONTAINERS = ("spec", *(f"spec.{part}[]" for part in ("containers", "initContainers", "ephemeralContainers")))
#: By kind of the core group, where quantities are, or maps of them, which API servers rewrite.
_QUANTITIES = {
    "Pod": (
        *(f"{part}.resources.{side}" for part in _CONTAINERS for side in ("limits", "requests")),
        "spec.overhead",
        "spec.volumes[].emptyDir.sizeLimit",
        *(f"spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.{side}" for side in ("limits", "requests")),
    ),
    "PersistentVolumeClaim": ("spec.resources.limits", "spec.resources.requests"),
    "Node": ("status.capacity", "status.allocatable"),
}


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled patch, and its place in the configuration."""

    where: str
    change: Change
    #: True if it changes labels or annotations, which include our marks.
    metadata: bool

    def made(self, obj: Obj, write: Writing) -> Obj:
        try:
            changed = self.change(obj, write)
            if self.metadata and changed is not obj:
                _refuse_other_marks(obj, changed, write.ctx.marks)
        except Unfit as reason:
            raise Refused(f"{self.where}: {reason}", reason="PatchFailed") from None
        except Refused as error:  # the name translator refuses
            raise Refused(f"{self.where}: {error}", reason="PatchFailed") from None
        return changed


class Patcher:
    """The patches of a syncer."""

    def __init__(self, patches: Patches, *, section: str, find: Find) -> None:
        """Compile the patches.

        Args:
            patches: The patches of the syncer's section.
            section: The path of the section, such as ``toHost.pods``.
            find: Returns the resource that a ``rename`` names.

        Raises:
            ConfigError: An expression can't be compiled.
        """
        place = f"sync.{section}.patches"
        self._down = [_compiled(patch, f"{place}.down[{number}]", find) for number, patch in enumerate(patches.down)]
        self._up = [_compiled(patch, f"{place}.up[{number}]", find) for number, patch in enumerate(patches.up)]

    @property
    def has_any(self) -> bool:
        """True if there is a patch in either direction."""
        return bool(self._down or self._up)

    def apply(self, decision: Decision, *, ctx: Context, virtual: Obj | None, host: Obj | None) -> Decision:
        """Return the decision with its writes patched; the same decision if there is nothing to patch.

        ``virtual`` and ``host`` are the objects that the syncer decided about.

        Raises:
            Refused: A patch can't be applied.
        """
        if not self.has_any or not decision.writes:
            return decision
        writes = [self._patched(write, ctx, virtual, host) for write in decision.writes]
        same = all(map(lambda one, other: one is other, writes, decision.writes))
        return decision if same else replace(decision, writes=tuple(writes))

    def _patched(self, write: Write, ctx: Context, virtual: Obj | None, host: Obj | None) -> Write:
        patches = self._down if write.side is Side.HOST else self._up
        if not patches or write.verb not in _PATCHED or write.resource is not None:
            return write
        seen, obj = writing(write, ctx=ctx, virtual=virtual, host=host), write.obj
        for patch in patches:
            if write.verb is not Verb.MERGE or not patch.metadata:
                obj = patch.made(obj, seen)
        if obj is write.obj:
            return write
        with suppress(Unfit):  # of another type than the kind's, which the API server refuses
            obj = _with_canonical_quantities(obj)
        return replace(write, obj=obj)


def _compiled(patch: Patch, where: str, find: Find) -> _Compiled:
    what = patch.op or ("rename" if patch.rename else "labels" if patch.labels else "cel")
    steps = (patch.steps, patch.from_steps) if patch.from_ else (patch.steps,)
    metadata = any(place[0] == "metadata" for place in steps)
    return _Compiled(f"{where} ({what} {patch.path})", _change(patch, where, find), metadata)


def _change(patch: Patch, where: str, find: Find) -> Change:
    if patch.op:
        return _operation(patch)
    if patch.rename:
        return _everywhere(patch.steps, renaming(patch.rename, find))
    if patch.labels:
        return _everywhere(patch.steps, narrowing(patch.labels))
    return _everywhere(patch.steps, _evaluating(patch.cel, f"{where}.cel"))


def _with_canonical_quantities(obj: Obj) -> Obj:
    """Return a patched object with its quantities as an API server writes them, so that they are found equal there.

    All others come from an API server.
    """
    for path in _QUANTITIES.get(obj["kind"], ()) if obj["apiVersion"] == "v1" else ():
        for place in pointers.places(obj, path_steps(path)):
            found = at(obj, place)
            is_map = isinstance(found, dict)
            written = {name: _canonical(amount) for name, amount in found.items()} if is_map else _canonical(found)
            if found is not MISSING and not same(written, found):
                obj = pointers.replaced(obj, place, written)
    return obj


def _canonical(amount: Any) -> Any:
    is_amount = isinstance(amount, str | int | float) and not isinstance(amount, bool)
    return canonical(amount) if is_amount else amount


# -- RFC 6902 --------------------------------------------------------------------------------------


def _operation(patch: Patch) -> Change:
    place = patch.steps
    source = patch.from_steps if patch.from_ else place

    def change(obj: Obj, write: Writing) -> Obj:
        if not (write.concerns(obj, place) and write.concerns(obj, source)):
            return obj
        if write.live is not None and place[0] != "metadata" and isinstance(at(obj, place[:-1]), list):
            return obj if patch.op in ("add", "move", "copy") else operation(patch, obj, place, source)
        return operation(patch, obj, place, source)

    return change


def operation(patch: Patch, obj: Obj, place: Place, source: Place) -> Obj:
    """Apply an operation of RFC 6902.

    Raises:
        Unfit: It can't be applied to this object.
    """
    match patch.op:
        case "test":
            if not same(pointers.found(obj, place), patch.value):
                raise Unfit("the test does not hold")
            return obj
        case "remove":
            return pointers.removed(obj, place)
        case "replace":
            return pointers.replaced(obj, place, patch.value)
        case "add":
            return _added(obj, place, patch.value)
        case "copy":
            return _added(obj, place, pointers.found(obj, source))
        case _:
            return _added(pointers.removed(obj, source), place, pointers.found(obj, source))


def _added(obj: Obj, place: Place, value: Any) -> Obj:
    """Apply ``add``.

    Missing and empty labels mean the same, so their difference in RFC 6902 must not matter.
    """
    if place[:-1] in _MAPS and at(obj, place[:-1]) in (MISSING, None):
        obj = pointers.put(obj, place[:-1], {})
    return pointers.added(obj, place, value)


# -- at a path -------------------------------------------------------------------------------------


def _everywhere(steps: Place, rule: Rule) -> Change:
    """Return the change that applies a rule at each place that a path leads to, all computed from
    the original object.
    """

    def change(obj: Obj, write: Writing) -> Obj:
        result = obj
        # From the end, so that a removal doesn't shift the remaining places.
        for place in reversed(list(pointers.places(obj, steps))):
            if write.concerns(obj, place):
                result = _set(result, place, at(obj, place), rule(at(obj, place), obj, place, write))
        return result

    return change


def _set(obj: Obj, place: Place, old: Any, new: Any) -> Obj:
    if new is old:
        return obj
    return pointers.removed(obj, place) if new is MISSING else pointers.put(obj, place, new)


def _evaluating(text: str, where: str) -> Rule:
    try:
        expression = Expression(text)
    except ConfigError as error:
        raise ConfigError(*(Problem(problem.message, path=where) for problem in error.problems)) from None

    def rule(value: Any, obj: Obj, place: Place, write: Writing) -> Any:
        variables = {
            "value": None if value is MISSING else value,
            "self": obj,
            "other": write.other,
            "context": {
                "cluster": write.ctx.cluster,
                "identity": write.ctx.identity,
                "hostNamespace": write.host_namespace,
                "namespace": write.key.namespace,
                "name": write.key.name,
            },
        }
        result = expression.result(variables, write.budget)
        return MISSING if result is None else result

    return rule


# -- limits of patches -----------------------------------------------------------------------------


def _refuse_other_marks(before: Obj, after: Obj, marks: Marks) -> None:
    """Refuse a patch that changes a mark or makes labels or annotations invalid.

    Raises:
        Unfit: The patch does so.
    """
    for place in _MAPS:
        found = at(after, place)
        texts = isinstance(found, dict) and all(isinstance(text, str) for text in found.values())
        if found is not MISSING and found is not None and not texts:
            raise Unfit(f"{pointers.written(place)} would not be a mapping of text to text")
        if _marks_in(before, place, marks) != _marks_in(after, place, marks):
            raise Unfit(f"it would change a mark below {marks.prefix}/ in {pointers.written(place)}")


def _marks_in(obj: Obj, place: Place, marks: Marks) -> Obj:
    found = at(obj, place)
    return {key: text for key, text in found.items() if marks.is_mark(key)} if isinstance(found, dict) else {}
