"""The ownership policy: applies ``authority`` and ``onHostDeletion`` to a syncer's decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from syncer.api.config import Config
from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, Verb, Write
from syncer.api.errors import Refused
from syncer.api.marks import Marks
from syncer.api.objects import Obj, ObjectRef, Side
from syncer.api.paths import FieldPath
from syncer.api.roles import Syncer
from syncer.directions import direction_of
from syncer.engine.reconcile.calls import exact_paths
from syncer.engine.reconcile.merge_base import Base, read, want_of, written
from syncer.engine.reconcile.plan import Observed
from syncer.translate.authority import Authority, authority_of
from syncer.translate.host_deletion import Deletions
from syncer.translate.three_way import Tree, overlaid

#: Maximum size of a merge base in bytes; an API server accepts 256 KiB of annotations, including
#: the tenant's.
LARGEST_BASE = 128 * 1024


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership rules for a syncer in a virtual cluster."""

    syncer: Syncer
    marks: Marks
    authority: Authority
    #: True if copies store a merge base.
    keeps_base: bool
    #: The host deletion policy; None: a deleted copy is created again.
    deletions: Deletions | None

    def apply_owners(self, observed: Observed, decision: Decision) -> Decision:
        """Apply the rules to a decision.

        Raises:
            Refused: A rule forbids it.
        """
        virtual = observed.virtual
        host = observed.host
        if virtual is None or self.marks.is_from_here(
            virtual, cluster=observed.ctx.settings.identity
        ):
            return decision  # the object came from the host
        if self.authority.owners or self.keeps_base:
            decision = self._owned(observed.ctx, decision, virtual, host)
        if self.deletions is not None:
            copy = ObjectRef(Side.HOST, self.syncer.host_resource, observed.host_key)
            decision = self.deletions.ruled(decision, virtual=virtual, host=host, copy=copy)
        return decision

    def _owned(self, ctx: Context, decision: Decision, virtual: Obj, host: Obj | None) -> Decision:
        on_host = read(host, self.marks)
        risen = read(virtual, self.marks) or Base()
        ups = max(on_host.ups if on_host else 0, risen.ups)
        ruling = self.authority.ruled(
            ctx,
            decision,
            virtual=virtual,
            host=host,
            base=_known(on_host, risen),
            exact=self._exact,
        )
        writes: list[Write] = []
        for write in ruling.decision.writes:
            is_copy = (
                write.side is Side.HOST and write.verb is Verb.APPLY and write.resource is None
            )
            if is_copy and self.keeps_base:
                base = Base(want_of(write, virtual, self.marks), ruling.kept, ups)
                write = replace(write, obj=self._with_base(write.obj, base))
            writes.append(write)
            if is_copy and ruling.up is not None:
                before = Base(both=_pending(on_host, risen), ups=ups)
                writes.append(self._up(ruling.up, ruling.risen, before))
        return replace(ruling.decision, writes=tuple(writes))

    def _exact(self, write: Write) -> tuple[FieldPath, ...]:
        return exact_paths(self.syncer, write.side) if write.exact is None else write.exact

    def _up(self, write: Write, risen: Mapping[str, Tree], before: Base) -> Write:
        """Return the write that goes up, with the base of shared fields for the virtual object."""
        if not risen:
            return write
        base = Base(both=risen, ups=before.ups + 1, earlier=before.both)
        return replace(write, obj=self._with_base(write.obj, base))

    def _with_base(self, obj: Obj, base: Base) -> Obj:
        result = written(obj, base, self.marks)
        size = len(result["metadata"]["annotations"][self.marks.base])
        if size > LARGEST_BASE:
            bytes_taken = f"{size} bytes, at most {LARGEST_BASE}"
            why = f"its fields that both sides own are too many to be remembered ({bytes_taken})"
            raise Refused(
                f"{why}; leave some out of the authority of this kind", reason="TooManyFields"
            )
        return result


def ownership_of(syncer: Syncer, config: Config, settings: Settings) -> Ownership | None:
    """Return the rules for a syncer; None if all have their defaults."""
    authority = authority_of(syncer, config)
    drift = config.drift if settings.patrol is None else config.drift.over(settings.patrol.drift)
    keeps_base = bool(authority.shared) or not {"field", "metadata"}.isdisjoint(drift.lenient())
    direction = direction_of(syncer)
    policy = config.on_host_deletion if direction.remakes else "recreate"
    deletions = None
    if policy != "recreate":
        deletions = Deletions(
            policy, syncer.section, settings.marks, outlasts_mark=direction.outlasts_mark
        )
    if not (authority.owners or keeps_base or deletions):
        return None
    return Ownership(syncer, settings.marks, authority, keeps_base, deletions)


def _known(on_host: Base | None, risen: Base) -> Mapping[str, Tree] | None:
    """Return the base of shared fields.

    Values that went up and that the copy doesn't record yet win.
    """
    if on_host is None:
        return None
    return _laid(on_host.both, _pending(on_host, risen))


def _pending(on_host: Base | None, risen: Base) -> Mapping[str, Tree]:
    """Return the base of values that went up and that the copy doesn't record yet."""
    if on_host is None or on_host.ups >= risen.ups:
        return {}
    if on_host.ups == risen.ups - 1:
        return risen.both
    return _laid(risen.earlier, risen.both)


def _laid(below: Mapping[str, Tree], risen: Mapping[str, Tree]) -> Mapping[str, Tree]:
    return {**below, **{path: overlaid(below.get(path, ""), tree) for path, tree in risen.items()}}
