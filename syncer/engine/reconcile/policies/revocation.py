"""Revocation: what a copy gives to the tenant, and is no longer allowed, is taken out of it before all else.

It is judged from the copy and the configuration alone, so nothing that a tenant does to the virtual
object delays it: a pause, an exclusion, a refusal, a size, contents that can't be read. Only the
host's operator stops it, by a pause on the copy.
"""

from collections.abc import Callable

from syncer.api.decision import Decision, Precondition, Verb, Warned, Write
from syncer.api.errors import Refused
from syncer.api.objects import Obj, ObjectRef, Side, annotations_of, key_of, labels_of, uid_of
from syncer.api.optional_roles import Grants
from syncer.engine.reconcile.plan import Observed
from syncer.translate.patches import Patcher

#: The reason of the event for the tenant.
EVENT = "GrantRevoked"


class Revocation:
    """Takes out of the copies of a syncer what is no longer granted.

    ``is_paused`` returns True for a copy that the host's operator has paused.
    """

    def __init__(self, syncer: Grants, patcher: Patcher, is_paused: Callable[[Obj], bool]) -> None:
        self._syncer = syncer
        self._patcher = patcher
        self._is_paused = is_paused

    def revoked(self, observed: Observed) -> Decision | None:
        """Return the decision that takes it out of the copy, or deletes the copy; None if all is granted.

        A copy without contents, as it can't be read, is deleted.
        """
        host = observed.host
        if host is None or self._is_paused(host) or not observed.controller.direction.is_real(observed.ctx, host):
            return None
        if observed.unreadable_host:
            why = "its copy on the host can't be read, so the access that it grants isn't known"
            return _deleted(observed, host, why)
        left = self._syncer.still_granted(observed.ctx, host)
        if left is None:
            why = "its copy on the host grants access that this virtual cluster may no longer have"
            return _deleted(observed, host, why)
        if left == host:
            return None
        parts = ", ".join(_parts(left, host))
        why = f"its copy on the host had what this virtual cluster may no longer have, in {parts}: it was taken out"
        decision = Decision((Write(Side.HOST, Verb.REVOKE, left),), why, warning=Warned(EVENT, why), is_step=True)
        return self._patched(observed, decision)

    def _patched(self, observed: Observed, decision: Decision) -> Decision:
        """Return the decision with the operator's own patches, which may put in what a tenant may not have.

        Where they can't be applied, nothing is put in.
        """
        try:
            return self._patcher.apply(decision, ctx=observed.ctx, virtual=observed.virtual, host=observed.host)
        except Refused:
            return decision


def _deleted(observed: Observed, host: Obj, why: str) -> Decision:
    """Return the deletion of a copy as it is now."""
    ref = ObjectRef(Side.HOST, observed.controller.syncer.host_resource, key_of(host))
    as_it_is = Precondition(ref, uid_of(host), version=host["metadata"].get("resourceVersion", ""))
    write = Write(Side.HOST, Verb.DELETE, host, precondition=as_it_is)
    return Decision((write,), why, warning=Warned(EVENT, why), is_step=True)


def _parts(left: Obj, host: Obj) -> list[str]:
    """Return the names of the fields, and of labels and annotations, that differ."""
    parts = {name for name in left.keys() | host.keys() if name != "metadata" and left.get(name) != host.get(name)}
    of_metadata = {"labels": labels_of, "annotations": annotations_of}
    return sorted(parts | {name for name, part in of_metadata.items() if part(left) != part(host)})
