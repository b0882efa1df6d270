"""The context of a write for patches: its objects, and the part of the object that it sets."""

from dataclasses import dataclass, field

from syncer.api import Context, Key, Obj, Side, Write, key_of, labels_of
from syncer.translate.alike import same
from syncer.translate.cel_cost import CostBudget
from syncer.translate.pointers import MISSING, ValuePath, at


@dataclass(frozen=True, slots=True)
class Writing:
    """A write with the keys of its object, and the object on the other side."""

    ctx: Context
    side: Side
    #: The virtual key of the object.
    key: Key
    #: The host namespace of the object.
    host_namespace: str
    #: The object on the other side, that the write is made from; None if there is none.
    other: Obj | None
    #: The virtual object that the decision was made from.
    virtual: Obj | None
    #: True if the write sets all our fields, and therefore bears our mark; False if it only reports
    #: a part, such as ``status``.
    whole: bool
    #: The live object, if the write only sets the fields that change; otherwise None.
    live: Obj | None
    #: The cost that its expressions may have together.
    budget: CostBudget = field(default_factory=CostBudget)

    def concerns(self, obj: Obj, path: ValuePath) -> bool:
        """Return True if the value at a place is part of this write.

        Labels and annotations always are.

        A write of ``status`` alone must not gain a ``spec``. A change of a single field of a
        running Pod repeats whole lists of the host pod, which were patched when the pod was created
        and must not be patched again.
        """
        if path[0] == "metadata":
            return True
        if self.live is not None:
            value = at(obj, path)
            return value is not MISSING and not same(value, at(self.live, path))
        return self.whole or path[0] in obj


def writing(write: Write, *, ctx: Context, virtual: Obj | None, host: Obj | None) -> Writing:
    """Return the context of a write of the syncer's own resource."""
    on_host: Obj | None
    if write.side is Side.HOST:
        other = virtual
        there = host
        on_host = write.obj
    else:
        other = host
        there = virtual
        on_host = host

    if virtual is not None:
        key = key_of(virtual)
    elif write.side is Side.VIRTUAL:
        key = key_of(write.obj)
    else:
        key = ctx.marks.virtual_key(write.obj) or Key("", "")

    host_namespace = key_of(on_host).namespace if on_host else ctx.settings.host_namespace
    live = there if write.partial else None
    return Writing(
        ctx=ctx,
        side=write.side,
        key=key,
        host_namespace=host_namespace,
        other=other,
        virtual=virtual,
        whole=ctx.marks.cluster in labels_of(write.obj),
        live=live,
    )
