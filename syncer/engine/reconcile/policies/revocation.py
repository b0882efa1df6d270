"""Revocation: what a copy gives to the tenant, and is no longer allowed, is taken out first.

It is judged from the copy and the configuration alone, so nothing that a tenant does to the virtual
object delays it: a pause, an exclusion, a refusal, a size, contents that can't be read. Only the
host's operator stops it, by a pause on the copy.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from syncer.api.decision import Decision, Precondition, Verb, Warned, Write
from syncer.api.errors import Refused
from syncer.api.objects import (
    Obj,
    ObjectRef,
    Side,
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    uid_of,
)
from syncer.api.optional_roles import Grants
from syncer.api.paths import EACH, Steps, path_steps
from syncer.engine.reconcile.calls import fields_before
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.plan import Observed
from syncer.translate.alike import same
from syncer.translate.patches import Patcher
from syncer.translate.pointers import MISSING, at, put, removed

#: The reason of the event for the tenant.
EVENT = "GrantRevoked"
_PARTS = ("labels", "annotations")


class Revocation:
    """Takes out of the copies of a controller what is no longer granted.

    ``is_paused`` returns True for a copy that the host's operator has paused.
    """

    def __init__(
        self, controller: BoundSyncer, patcher: Patcher, is_paused: Callable[[Obj], bool]
    ) -> None:
        syncer = controller.syncer
        self._syncer = syncer if isinstance(syncer, Grants) else None
        self._patcher = patcher
        self._is_paused = is_paused
        self._fixed: list[Steps] = []
        self._operators: list[Steps] = []
        self._is_rewritten = False
        if self._syncer is not None:
            self._fixed = [path_steps(path) for path in self._syncer.fixed_grants]
            grants = [path_steps(path) for path in self._syncer.grants]
            self._operators = list(_rewritten(controller, [("metadata",), *grants]))
            self._is_rewritten = any(_rewritten(controller, grants))

    def revoked(self, observed: Observed) -> Decision | None:
        """Return the decision that takes it out of the copy, or deletes the copy.

        None if all is granted.

        A copy without contents, as it can't be read, is deleted. So is that of an original that
        can't be read, and isn't selected.
        """
        host = observed.host
        if (
            host is None
            or self._is_paused(host)
            or not observed.controller.direction.is_real(observed.ctx, host)
        ):
            return None
        if observed.error is not None and not _is_selected(observed):
            section = f"sync.{observed.controller.syncer.section}.selector"
            return _deleted(
                observed, host, f"the labels of the original are not those of {section}"
            )
        if self._syncer is None:
            return None
        if observed.unreadable_host:
            why = "its copy on the host can't be read, so the access that it grants isn't known"
            return _deleted(observed, host, why)
        return self._judged(observed, host, self._syncer)

    def _judged(self, observed: Observed, host: Obj, syncer: Grants) -> Decision | None:
        """Return the decision about a copy that can be read; None if all of it is granted."""
        ctx = observed.ctx
        left = syncer.still_granted(ctx, _crossing(observed, host))
        if left is None:
            if self._is_rewritten:
                return None
            return _deleted(
                observed,
                host,
                "its copy on the host grants access that this virtual cluster may not have",
            )

        decision = Decision()
        if left is not host and left != host:
            decision = self._taken_out(observed, host, left)
            if decision.deletes:
                return decision
        if not is_deleting(host):
            decision = decision.then(_revoking(syncer.beside(ctx, host)))
        return replace(decision, is_step=True) if decision.writes else None

    def _taken_out(self, observed: Observed, host: Obj, left: Obj) -> Decision:
        """Return the decision that leaves of a copy what is granted.

        The operator's own patches are applied, and may put in what a tenant may not have. Where
        they can't be applied, nothing is put in.
        """
        for path in self._operators:
            value = at(host, path)
            if value is not MISSING:
                left = put(left, path, value)
            elif at(left, path) is not MISSING:
                left = removed(left, path)
        parts = ", ".join(_parts(left, host))
        had = "its copy on the host had what this virtual cluster may no longer have"
        why = f"{had}, in {parts}: it was taken out"
        write = Write(Side.HOST, Verb.REVOKE, left, revokes=True)
        decision = Decision((write,), why, warning=Warned(EVENT, why))
        with suppress(Refused):
            decision = self._patcher.apply(
                decision, ctx=observed.ctx, virtual=observed.virtual, host=host
            )
        [write] = decision.writes
        for path in self._fixed:
            if not same(at(write.obj, path), at(host, path)):
                has = "its copy on the host has what this virtual cluster may no longer have"
                why = f"{has}, in {'.'.join(path)}, which can't be taken out"
                return _deleted(observed, host, why)
        return decision


def _rewritten(controller: BoundSyncer, grants: Iterable[Steps]) -> Iterable[Steps]:
    """Yield the paths of these grants that patches of the operator's rewrite.

    Each ends at the first list in it. What they add is added again to what is granted; what they
    make of another value can't be judged by it.
    """
    for patch in controller.config.patches.down:
        if patch.op in ("add", "test"):
            continue
        steps = patch.steps
        for number, step in enumerate(steps):
            if step == EACH or step.isdigit():
                steps = steps[:number]
                break
        if any(steps[: len(grant)] == grant[: len(steps)] for grant in grants):
            yield steps


def _is_selected(observed: Observed) -> bool:
    """Return True unless its kind's selector leaves out an original that can't be read.

    The labels of such an original are known.
    """
    controller = observed.controller
    selector = controller.config.selector
    if not selector.narrows or controller.virtual is None:
        return True
    outline = controller.virtual.outline(observed.request.key)
    return outline is None or selector.selects(outline)


def _crossing(observed: Observed, host: Obj) -> Obj:
    """Return a copy without labels and annotations of ours that may no longer cross."""
    ctx = observed.ctx
    metadata = host["metadata"]
    ours = fields_before(host, ctx.marks).get("metadata") or {}
    left = metadata
    for part in _PARTS:
        names = ours.get(part)
        if not names:
            continue
        there = metadata.get(part) or {}
        gone = [
            name
            for name in names
            if name in there
            and not ctx.metadata.crosses(part, name)
            and not ctx.marks.is_mark(name)
        ]
        if gone:
            left = {
                **left,
                part: {name: value for name, value in there.items() if name not in gone},
            }
    return host if left is metadata else {**host, "metadata": left}


def _revoking(decision: Decision) -> Decision:
    """Return a decision of which no policy holds back the writes."""
    return replace(
        decision, writes=tuple([replace(write, revokes=True) for write in decision.writes])
    )


def _deleted(observed: Observed, host: Obj, why: str) -> Decision:
    """Return the deletion of a copy as it is now."""
    ref = ObjectRef(Side.HOST, observed.controller.syncer.host_resource, key_of(host))
    as_it_is = Precondition(ref, uid_of(host), version=host["metadata"].get("resourceVersion", ""))
    write = Write(Side.HOST, Verb.DELETE, host, precondition=as_it_is, revokes=True)
    return Decision((write,), why, warning=Warned(EVENT, why), is_step=True)


def _parts(left: Obj, host: Obj) -> list[str]:
    """Return the names of the fields, and of labels and annotations, that differ."""
    parts = {
        name
        for name in left.keys() | host.keys()
        if name != "metadata" and left.get(name) != host.get(name)
    }
    of_metadata = {"labels": labels_of, "annotations": annotations_of}
    return sorted(parts | {name for name, part in of_metadata.items() if part(left) != part(host)})
