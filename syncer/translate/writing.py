"""One write as its patches see it: what it is about, and how much of the object it says."""

from dataclasses import dataclass

from syncer.api import Context, Key, Obj, Side, Write, key_of, labels_of
from syncer.translate.pointers import MISSING, Place, at


@dataclass(frozen=True, slots=True)
class Writing:
    """A write, the virtual key and the host namespace of what it is about, and the object on the other side."""

    ctx: Context
    side: Side
    key: Key
    host_namespace: str
    #: The object on the side that it comes from; None where there is none.
    other: Obj | None
    #: The virtual object as it was seen.
    virtual: Obj | None
    #: Whether the write says all that is ours to say: it then bears our mark. Else it reports a part, ``status`` say.
    whole: bool
    #: The object as it is, where the write says only what is to change in it.
    live: Obj | None

    def concerns(self, obj: Obj, place: Place) -> bool:
        """Return True if what stands at the place is for this write to say. Labels and annotations always are.

        A report of ``status`` alone is not the place to add a ``spec``. And a change of one field of a running Pod
        repeats lists as they are on the host: what was patched when the Pod was made must not be patched again.
        """
        if place[0] == "metadata":
            return True
        if self.live is not None:
            value = at(obj, place)
            return value is not MISSING and value != at(self.live, place)
        return self.whole or place[0] in obj


def writing(write: Write, *, ctx: Context, virtual: Obj | None, host: Obj | None) -> Writing:
    """Return what a write of the syncer's own resource is about."""
    down = write.side is Side.HOST
    other, there = (virtual, host) if down else (host, virtual)
    on_host = write.obj if down else host
    place = key_of(on_host).namespace if on_host else ctx.settings.host_namespace
    return Writing(
        ctx=ctx,
        side=write.side,
        key=_virtual_key(write, ctx, virtual),
        host_namespace=place,
        other=other,
        virtual=virtual,
        whole=ctx.marks.cluster in labels_of(write.obj),
        live=there if write.partial else None,
    )


def _virtual_key(write: Write, ctx: Context, virtual: Obj | None) -> Key:
    if virtual is not None:
        return key_of(virtual)
    if write.side is Side.VIRTUAL:
        return key_of(write.obj)
    return ctx.marks.virtual_key(write.obj) or Key("", "")
