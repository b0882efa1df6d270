"""The host deletion policy, for virtual objects after their copy is deleted on the host.

Once the copy exists, a mark on the virtual object records it. If a recorded copy is missing,
someone else has deleted it, even while no daemon ran: before we delete a copy ourselves, we remove
the mark.
"""

from dataclasses import dataclass, replace

from syncer.api import (
    Decision,
    Marks,
    Obj,
    ObjectRef,
    Outcome,
    Precondition,
    Refused,
    Side,
    Verb,
    Write,
    annotations_of,
    is_deleting,
    reasons,
    skip,
    uid_of,
)

#: The form of the mark: the UID of the copy, that of its virtual object, and the time at which the
#: copy was created.
_FORM = "{} of {} since {}"


@dataclass(frozen=True, slots=True)
class Deletions:
    """The host deletion policy of a syncer, if it is ``propagate`` or ``report``."""

    policy: str
    #: The section in which the policy is set.
    section: str
    marks: Marks
    #: True if copies stay while their originals are being deleted.
    outlasts_mark: bool = False

    def ruled(
        self,
        decision: Decision,
        *,
        virtual: Obj,
        host: Obj | None,
        copy: ObjectRef,
    ) -> Decision:
        """Apply the policy to a decision.

        ``host`` is the copy of this virtual object, or of an earlier one of its name, or None.

        Raises:
            Refused: The copy was deleted, and the policy is ``report``.
        """
        if is_deleting(virtual) and not self.outlasts_mark:
            return decision
        if host is None:
            return self._without_copy(decision, virtual, copy)
        if _writes_to_host(decision, Verb.DELETE):
            return self._unmarked(decision, virtual)
        if is_deleting(host) or annotations_of(host).get(self.marks.uid) != uid_of(virtual):
            return decision

        created = host["metadata"].get("creationTimestamp", "")
        mark = _FORM.format(uid_of(host), uid_of(virtual), created)
        if annotations_of(virtual).get(self.marks.copied) == mark:
            return decision
        return replace(decision, writes=(*decision.writes, self._marking(virtual, mark)))

    def _without_copy(self, decision: Decision, virtual: Obj, copy: ObjectRef) -> Decision:
        since = copied_since(self.marks, virtual)
        if since is None:
            return decision
        if decision.outcome is Outcome.SKIPPED:
            return self._unmarked(decision, virtual)
        if not _writes_to_host(decision, Verb.APPLY):
            return decision

        option = f"sync.{self.section}.onHostDeletion"
        gone = f"the copy {copy.key} was deleted on the host, and {option} is {self.policy}"
        if self.policy == "report":
            way_out = f"take the annotation {self.marks.copied} off this object"
            why = f"{gone}; to have it made again, {way_out}"
            raise Refused(why, reason="HostCopyDeleted")
        if is_deleting(virtual):
            return skip(reasons.COPY_DELETED(copy.key, option, self.policy))

        precondition = Precondition(copy, since=since)
        delete = Write(Side.VIRTUAL, Verb.DELETE, virtual, precondition=precondition)
        return Decision((delete,), gone)

    def _unmarked(self, decision: Decision, virtual: Obj) -> Decision:
        """Return the decision with a write that removes the mark first."""
        if self.marks.copied not in annotations_of(virtual):
            return decision
        return replace(decision, writes=(self._marking(virtual, None), *decision.writes))

    def _marking(self, virtual: Obj, mark: str | None) -> Write:
        """Return the write that sets the mark, or removes it for None."""
        own = virtual["metadata"]
        metadata = {name: own[name] for name in ("name", "namespace", "uid") if name in own}
        metadata["annotations"] = {self.marks.copied: mark}
        obj = {
            "apiVersion": virtual["apiVersion"],
            "kind": virtual["kind"],
            "metadata": metadata,
        }
        return Write(Side.VIRTUAL, Verb.NOTE, obj)


def copied_since(marks: Marks, virtual: Obj) -> str | None:
    """Return when this object's last copy was created (RFC 3339).

    None if no copy of it is known. Only the policies ``propagate`` and ``report`` record it.
    """
    words = annotations_of(virtual).get(marks.copied, "").split(" ")
    if len(words) != len(_FORM.split(" ")):
        return None
    # The mark of an earlier object can come along in a manifest that is applied again.
    if words[2] != uid_of(virtual):
        return None
    return words[-1]


def _writes_to_host(decision: Decision, verb: Verb) -> bool:
    return any(write.side is Side.HOST and write.verb is verb for write in decision.writes)
