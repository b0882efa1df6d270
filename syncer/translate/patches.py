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
from syncer.translate.patch_rules import FindResource, PatchRule, narrowing, renaming
from syncer.translate.pointers import MISSING, Unfit, ValuePath, at
from syncer.translate.quantities import canonical
from syncer.translate.writing import Writing, writing

#: Returns the patched object; the same object if the patch doesn't concern this write.
ApplyPatch = Callable[[Obj, Writing], Obj]

_PATCHED = (Verb.APPLY, Verb.MERGE, Verb.REVOKE)
_MAPS = (("metadata", "labels"), ("metadata", "annotations"))
#: By kind of the core group, the paths of quantities, or of maps of them: API servers rewrite them.
_QUANTITIES = {
    "Pod": (
        "spec.resources.limits",
        "spec.resources.requests",
        "spec.containers[].resources.limits",
        "spec.containers[].resources.requests",
        "spec.initContainers[].resources.limits",
        "spec.initContainers[].resources.requests",
        "spec.ephemeralContainers[].resources.limits",
        "spec.ephemeralContainers[].resources.requests",
        "spec.overhead",
        "spec.volumes[].emptyDir.sizeLimit",
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.limits",
        "spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests",
    ),
    "PersistentVolumeClaim": ("spec.resources.limits", "spec.resources.requests"),
    "Node": ("status.capacity", "status.allocatable"),
}


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled patch, and its place in the configuration."""

    where: str
    change: ApplyPatch
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

    def __init__(self, patches: Patches, *, section: str, find: FindResource) -> None:
        """Compile the patches.

        Args:
            patches: The patches of the syncer's section.
            section: The path of the section, such as ``toHost.pods``.
            find: Returns the resource that a ``rename`` names.

        Raises:
            ConfigError: An expression can't be compiled.
        """
        self._down: list[_Compiled] = []
        for number, patch in enumerate(patches.down):
            where = f"sync.{section}.patches.down[{number}]"
            self._down.append(_compiled(patch, where, find))

        self._up: list[_Compiled] = []
        for number, patch in enumerate(patches.up):
            where = f"sync.{section}.patches.up[{number}]"
            self._up.append(_compiled(patch, where, find))

    @property
    def has_any(self) -> bool:
        """True if there is a patch in either direction."""
        return bool(self._down or self._up)

    def apply(
        self,
        decision: Decision,
        *,
        ctx: Context,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Return the decision with its writes patched.

        It is the same decision if there is nothing to patch.
        ``virtual`` and ``host`` are the objects that the syncer decided about.

        Raises:
            Refused: A patch can't be applied.
        """
        if not self.has_any or not decision.writes:
            return decision
        has_changed = False
        writes: list[Write] = []
        for write in decision.writes:
            patched = self._patched(write, ctx, virtual, host)
            if patched is not write:
                has_changed = True
            writes.append(patched)
        if not has_changed:
            return decision
        return replace(decision, writes=tuple(writes))

    def _patched(
        self,
        write: Write,
        ctx: Context,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Write:
        patches = self._down if write.side is Side.HOST else self._up
        if not patches or write.verb not in _PATCHED or write.resource is not None:
            return write

        context = writing(write, ctx=ctx, virtual=virtual, host=host)
        obj = write.obj
        for patch in patches:
            # A merge goes through a subresource, which sets no labels and annotations.
            if write.verb is not Verb.MERGE or not patch.metadata:
                obj = patch.made(obj, context)
        if obj is write.obj:
            return write
        with suppress(Unfit):  # of another type than the kind's, which the API server refuses
            obj = _with_canonical_quantities(obj)
        return replace(write, obj=obj)


def _compiled(patch: Patch, where: str, find: FindResource) -> _Compiled:
    name: str
    if patch.op:
        name = patch.op
        change = _operation(patch)
    elif patch.rename:
        name = "rename"
        change = _everywhere(patch.steps, renaming(patch.rename, find))
    elif patch.labels:
        name = "labels"
        change = _everywhere(patch.steps, narrowing(patch.labels))
    else:
        name = "cel"
        change = _everywhere(patch.steps, _evaluating(patch.cel, f"{where}.cel"))

    metadata = patch.steps[0] == "metadata"
    if patch.from_ and patch.from_steps[0] == "metadata":
        metadata = True
    return _Compiled(f"{where} ({name} {patch.path})", change, metadata)


def _with_canonical_quantities(obj: Obj) -> Obj:
    """Return a patched object with its quantities as an API server writes them.

    Otherwise the live object would differ from it forever. Only a patch can bring in other ones:
    those of the virtual object come from an API server.
    """
    if obj["apiVersion"] != "v1":
        return obj
    for pattern in _QUANTITIES.get(obj["kind"], ()):
        for path in pointers.paths(obj, path_steps(pattern)):
            found = at(obj, path)
            if found is MISSING:
                continue
            if isinstance(found, dict):
                written = {name: _canonical(amount) for name, amount in found.items()}
            else:
                written = _canonical(found)
            if not same(written, found):
                obj = pointers.replaced(obj, path, written)
    return obj


def _canonical(amount: Any) -> Any:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return amount
    return canonical(amount)


# -- RFC 6902 --------------------------------------------------------------------------------------


def _operation(patch: Patch) -> ApplyPatch:
    path = patch.steps
    source = patch.from_steps if patch.from_ else path

    def change(obj: Obj, write: Writing) -> Obj:
        if not (write.concerns(obj, path) and write.concerns(obj, source)):
            return obj
        if write.live is not None and path[0] != "metadata":
            # Lists of a running Pod were patched when it was created.
            in_list = isinstance(at(obj, path[:-1]), list)
            if in_list and patch.op in ("add", "move", "copy"):
                return obj
        return operation(patch, obj, path, source)

    return change


def operation(patch: Patch, obj: Obj, path: ValuePath, source: ValuePath) -> Obj:
    """Apply an operation of RFC 6902.

    Raises:
        Unfit: It can't be applied to this object.
    """
    match patch.op:
        case "test":
            if not same(pointers.found(obj, path), patch.value):
                raise Unfit("the test does not hold")
            return obj
        case "remove":
            return pointers.removed(obj, path)
        case "replace":
            return pointers.replaced(obj, path, patch.value)
        case "add":
            return _added(obj, path, patch.value)
        case "copy":
            return _added(obj, path, pointers.found(obj, source))
        case _:
            value = pointers.found(obj, source)
            return _added(pointers.removed(obj, source), path, value)


def _added(obj: Obj, path: ValuePath, value: Any) -> Obj:
    """Apply ``add``.

    Missing and empty labels mean the same, so their difference in RFC 6902 must not matter.
    """
    if path[:-1] in _MAPS and at(obj, path[:-1]) in (MISSING, None):
        obj = pointers.put(obj, path[:-1], {})
    return pointers.added(obj, path, value)


# -- at a path -------------------------------------------------------------------------------------


def _everywhere(steps: ValuePath, rule: PatchRule) -> ApplyPatch:
    """Return the change that applies a rule at each place that a path leads to.

    All values are computed from the original object.
    """

    def change(obj: Obj, write: Writing) -> Obj:
        result = obj
        # From the end, so that a removal doesn't shift the remaining places.
        for path in reversed(list(pointers.paths(obj, steps))):
            if not write.concerns(obj, path):
                continue
            old = at(obj, path)
            new = rule(old, obj, path, write)
            if new is MISSING and old is not MISSING:
                result = pointers.removed(result, path)
            elif new is not old:
                result = pointers.put(result, path, new)
        return result

    return change


def _evaluating(text: str, where: str) -> PatchRule:
    """Return the rule of a CEL expression.

    Raises:
        ConfigError: The expression can't be compiled; the problems have the path ``where``.
    """
    try:
        expression = Expression(text)
    except ConfigError as error:
        problems = [Problem(problem.message, path=where) for problem in error.problems]
        raise ConfigError(*problems) from None

    def rule(value: Any, obj: Obj, path: ValuePath, write: Writing) -> Any:
        present = None if value is MISSING else value
        variables = {
            "value": present,
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
        if result is None:
            return MISSING
        return result

    return rule


# -- limits of patches -----------------------------------------------------------------------------


def _refuse_other_marks(before: Obj, after: Obj, marks: Marks) -> None:
    """Refuse a patch that changes a mark or makes labels or annotations invalid.

    Raises:
        Unfit: The patch does so.
    """
    for path in _MAPS:
        found = at(after, path)
        is_text = isinstance(found, dict) and all(isinstance(text, str) for text in found.values())
        if found is not MISSING and found is not None and not is_text:
            raise Unfit(f"{pointers.written(path)} would not be a mapping of text to text")
        if _marks_in(before, path, marks) != _marks_in(after, path, marks):
            raise Unfit(f"it would change a mark below {marks.prefix}/ in {pointers.written(path)}")


def _marks_in(obj: Obj, path: ValuePath, marks: Marks) -> Obj:
    found = at(obj, path)
    if not isinstance(found, dict):
        return {}
    return {key: text for key, text in found.items() if marks.is_mark(key)}
