"""The addresses of a Service, the same on both sides.

The host is asked for the addresses that the virtual API server has drawn. Nothing else happens
unless it refuses them, since another Service of the host has them, or they are outside of its
range. Then the host draws, and the virtual Service takes the address of its copy. This can't be
changed in place, but a Service may become an ExternalName and a Service again (Kubernetes:
``ValidateServiceClusterIPsRelatedFields``), which keeps its uid. Each step is a single write, after
which the objects alone determine the next one, so the daemon may restart at any point:

=======================  ========  =========  ===================================
virtual Service          its note  copy       next
=======================  ========  =========  ===================================
address a                -         -          create the copy with a
                                              (refused: note ``taken`` a)
address a                taken a   -          create the copy without an address
address a                any       address b  note the spec, become an ExternalName
a name, the placeholder  the spec  address b  take b, remove the note
                                              (refused: take a, note ``unfit`` b)
a name, the placeholder  the spec  -          take a, remove the note
address a                unfit b   address b  if it took a: delete the copy
=======================  ========  =========  ===================================

While the spec is in the note, nothing of the virtual Service goes down or comes up. A Service with
node ports keeps its address, as does one whose copy had another address before: no
address that a client uses is ever replaced.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from syncer.api import Decision, Marks, Obj, Side, Verb, Write, annotations_of

#: The ``clusterIP`` of a headless Service.
HEADLESS = "None"
#: The DNS name that a Service has while its address is being changed. No DNS server knows names in
#: ``invalid`` (RFC 2606).
PLACEHOLDER = "address-is-being-changed.invalid"
#: How often the host draws an address for a Service before it keeps different ones on both sides.
MOST_DRAWS = 5
#: The field at which an API server refuses addresses, or one of them.
DISPUTED = "spec.clusterIPs"

_NONE: Mapping[str, str] = MappingProxyType({})

_ADDRESSES = ("clusterIP", "clusterIPs")
_FAMILIES = ("ipFamilies", "ipFamilyPolicy")
#: The fields of ``metadata`` by which an API server knows a version of an object.
_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class Note:
    """The note on a virtual Service whose addresses aren't those of its copy yet.

    A tenant can write it, too, and then reaches their own Service.
    """

    #: The addresses that the host refused; empty for a copy that had others before.
    taken: tuple[str, ...] = ()
    #: The addresses that the virtual API server refused.
    unfit: tuple[str, ...] = ()
    #: The number of addresses that the host drew in vain.
    draws: int = 0
    #: True once an event has warned the tenant that the addresses differ.
    notified: bool = False
    #: The spec of the Service before it became an ExternalName; None while it isn't one.
    was: Obj | None = None

    @classmethod
    def of(cls, marks: Marks, virtual: Obj) -> "Note":
        """Return the note on a virtual Service; an empty one if it has none that can be read."""
        text = annotations_of(virtual).get(marks.address)
        if not text:
            return NO_NOTE
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):
            return NO_NOTE
        if not isinstance(found, dict):
            return NO_NOTE
        was = found.get("was")
        if not isinstance(was, dict):
            was = None
        draws = found.get("draws")
        if not isinstance(draws, int):
            draws = MOST_DRAWS
        return cls(
            taken=_texts(found.get("taken")),
            unfit=_texts(found.get("unfit")),
            draws=draws,
            notified=found.get("told") is True,
            was=was,
        )

    def __str__(self) -> str:
        found = {
            "taken": self.taken,
            "unfit": self.unfit,
            "draws": self.draws,
            "told": self.notified,
            "was": self.was,
        }
        given = {name: value for name, value in found.items() if value or name == "draws"}
        return json.dumps(given)


NO_NOTE = Note()


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple([each for each in value if each and isinstance(each, str)])
    return ()


def addresses(service: Obj | None) -> tuple[str, ...]:
    """Return the addresses of a Service, the primary one first.

    A headless Service and one of type ExternalName have none.
    """
    spec = (service or {}).get("spec") or {}
    if spec.get("type") == "ExternalName":
        return ()
    given = _texts(spec.get("clusterIPs")) or _texts([spec.get("clusterIP")])
    if HEADLESS in given:
        return ()
    return given


def is_being_changed(virtual: Obj, note: Note) -> bool:
    """Return True if a virtual Service is an ExternalName while its address is being changed."""
    if note.was is None:
        return False
    spec = virtual.get("spec") or {}
    return spec.get("type") == "ExternalName" and spec.get("externalName") == PLACEHOLDER


def asked(
    virtual: Obj,
    wanted: tuple[str, ...],
    host: Obj | None,
    there: tuple[str, ...],
    note: Note,
) -> Obj:
    """Return the fields of a copy's spec that hold its addresses.

    The copy asks for those of the virtual Service. If these are taken, the host draws. A copy that
    has an address keeps it.

    Args:
        virtual: The virtual Service.
        wanted: Its addresses.
        host: The copy; None if there is none.
        there: The addresses of the copy.
        note: The note on the virtual Service.
    """
    is_taken = note.taken == wanted
    if host is not None and there:
        is_complete = is_taken and len(there) == len(wanted)
        if there[0] != wanted[0] or is_complete:
            spec = host["spec"]
            return {name: spec[name] for name in (*_ADDRESSES, *_FAMILIES) if name in spec}

    given = there if is_taken else wanted
    fields: Obj = {}
    if given:
        fields["clusterIP"] = given[0]
        fields["clusterIPs"] = list(given)
    if families := virtual["spec"].get("ipFamilies"):
        # A policy that prefers two families would give a copy more addresses than its original has.
        policy = "RequireDualStack" if len(families) > 1 else "SingleStack"
        fields |= {"ipFamilies": families, "ipFamilyPolicy": policy}
    return fields


def differ(virtual: Obj, host: Obj) -> bool:
    """Return True if a Service and its copy have different addresses, equally many."""
    wanted = addresses(virtual)
    there = addresses(host)
    if not there:
        return False
    return wanted != there and len(wanted) == len(there)


def note_taken(marks: Marks, virtual: Obj, note: Note) -> Write:
    """Return the write that notes that the host refused the addresses, so that it draws."""
    return _noted(marks, virtual, Note(taken=addresses(virtual), draws=note.draws))


def begin(marks: Marks, virtual: Obj, note: Note) -> Decision:
    """Note the spec of a virtual Service, and make the Service an ExternalName, in one write."""
    mark = str(Note(taken=note.taken, draws=note.draws, was=virtual["spec"]))
    obj = version_of(virtual, {marks.address: mark})
    obj["spec"] = {"type": "ExternalName", "externalName": PLACEHOLDER}
    why = "the virtual Service takes the address of its copy"
    return Decision((Write(Side.VIRTUAL, Verb.APPLY, obj, exact=()),), why, is_step=True)


def finish(marks: Marks, virtual: Obj, host: Obj, note: Note) -> Decision:
    """Give a virtual Service the addresses of its copy.

    If the virtual API server refuses them, the change is undone.
    """
    there = addresses(host)
    after = Note(taken=note.taken, unfit=there, draws=note.draws + 1)
    write = _restored(marks, virtual, note, there)
    write = _or_else(write, _undone(marks, virtual, note, after))
    return Decision((write,), "its address is being changed to that of its copy", is_step=True)


def undo(marks: Marks, virtual: Obj, note: Note) -> Decision:
    """Give a virtual Service its old addresses again, or new ones if these are taken by now."""
    why = "its copy is gone, so its address isn't changed"
    return Decision((_undone(marks, virtual, note, NO_NOTE),), why, is_step=True)


def forget(marks: Marks, virtual: Obj) -> Decision:
    """Remove the note."""
    metadata = {name: virtual["metadata"][name] for name in ("name", "namespace", "uid")}
    metadata["annotations"] = {marks.address: None}
    obj = {"apiVersion": virtual["apiVersion"], "kind": virtual["kind"], "metadata": metadata}
    why = "its address is that of its copy, or the tenant's own choice"
    return Decision((Write(Side.VIRTUAL, Verb.NOTE, obj),), why, is_step=True)


def tell(marks: Marks, virtual: Obj, note: Note) -> Decision:
    """Warn the tenant, once, that the addresses differ."""
    after = replace(note, notified=True, was=None)
    write = _noted(marks, virtual, after)
    why = "the cluster has no address for it that is free in both the virtual and the host cluster"
    how = "its environment variables work, its name leads nowhere: delete it and create it again"
    return Decision((write,), why, is_step=True).warn("AddressDiffers", f"{why}: {how}")


def _or_else(write: Write, otherwise: Write) -> Write:
    """Return a write with the one to make if the API server refuses its addresses."""

    def instead(refused: Write, fields: Collection[str]) -> Write:
        return otherwise

    return replace(write, disputed=DISPUTED, otherwise=instead)


def _undone(marks: Marks, virtual: Obj, note: Note, after: Note) -> Write:
    """Return the write that makes an ExternalName a Service with its old addresses again."""
    drawn = _restored(marks, virtual, note, (), after)
    before = addresses({"spec": note.was})
    if not before:
        return drawn
    return _or_else(_restored(marks, virtual, note, before, after), drawn)


def _restored(
    marks: Marks,
    virtual: Obj,
    note: Note,
    given: tuple[str, ...],
    after: Note = NO_NOTE,
) -> Write:
    """Return the write that makes an ExternalName a Service with the given addresses again.

    The fields that the API server has dropped with the address come back; those that the tenant has
    changed meanwhile stay.
    """
    annotations = {}
    if after != NO_NOTE:
        annotations[marks.address] = str(after)
    obj = version_of(virtual, annotations)

    kept_out = {*virtual["spec"], *_ADDRESSES}
    was = note.was or {}
    spec = {name: value for name, value in was.items() if name not in kept_out}
    spec["type"] = "ClusterIP"
    if given:
        spec["clusterIP"] = given[0]
        spec["clusterIPs"] = list(given)
    obj["spec"] = spec

    mark = ("metadata", "annotations", marks.address)
    return Write(Side.VIRTUAL, Verb.APPLY, obj, exact=(mark, "spec.externalName"))


def _noted(marks: Marks, virtual: Obj, note: Note) -> Write:
    return Write(Side.VIRTUAL, Verb.NOTE, version_of(virtual, {marks.address: str(note)}))


def version_of(virtual: Obj, annotations: Mapping[str, str] = _NONE) -> Obj:
    """Return the start of a write to this version of a virtual object."""
    own = virtual["metadata"]
    metadata = {name: own[name] for name in _IDENTITY if name in own}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": virtual["apiVersion"], "kind": virtual["kind"], "metadata": metadata}
