"""Events of the host about copies appear in the virtual cluster, about the virtual objects."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from syncer.api import (
    LONGEST_NAME,
    Context,
    CopiedKind,
    Decision,
    Key,
    Obj,
    Resource,
    Syncer,
    SyncFromHost,
    apply,
    host_names,
    skip,
    uid_of,
)
from syncer.resources.kinds import EVENTS, PODS
from syncer.resources.pods import containers

#: Fields that are recomputed, or that name host objects which a tenant can't see.
_NOT_COPIED = frozenset({"apiVersion", "kind", "metadata", "involvedObject", "message", "related"})

#: How an Event names a container of its Pod: the list that it is in, and its name.
_CONTAINER = re.compile(r"spec\.(?P<part>\w+)\{(?P<name>.*)\}", re.DOTALL)


class Subject(NamedTuple):
    """The virtual object that a host Event is about."""

    kind: CopiedKind
    key: Key
    uid: str
    #: Its copy; None if that isn't there, yet or any more.
    copy: Obj | None = None


class EventSyncer(Syncer, SyncFromHost):
    """Shows Events of the host about copies of any kind.

    They are never deleted: they expire on each side.
    """

    name = "events"
    section = "fromHost.events"
    resource = EVENTS
    reads_copies = True

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return a key in the namespace of the virtual object, with its name; None if the Event
        isn't about a copy.
        """
        subject = _subject(ctx, host)
        return subject and _place(host, subject)

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        """Create or update the Event: repetitions change its count and time."""
        subject = _subject(ctx, host)
        if subject is None:
            return skip("it is not about an object that is synced")
        if _is_about_other_container(ctx, host, subject):
            return skip("it is about a container that the host has in the pod for itself")
        return apply(virtual=_translated(ctx, host, subject))


def _subject(ctx: Context, event: Obj) -> Subject | None:
    involved = event.get("involvedObject") or {}
    if not involved.get("name"):
        return None
    group = involved.get("apiVersion", "").rpartition("/")[0]
    key = Key(involved.get("namespace", ""), involved["name"])
    found = (_with_copy(ctx, kind, key, involved) for kind in ctx.copied_by(group, involved.get("kind", "")))
    return next((subject for subject in found if subject), None)


def _with_copy(ctx: Context, kind: CopiedKind, key: Key, involved: Obj) -> Subject | None:
    """Return the object of a kind whose copy an Event is about; None if the Event isn't about its copy."""
    copy = ctx.host(kind.host_resource, key)
    if copy is None:
        return _by_name(ctx, kind, key)
    if not ctx.marks.is_ours(copy, cluster=ctx.identity, resource=kind.resource):
        return None
    if involved.get("uid") and involved["uid"] != uid_of(copy):
        return None  # about an earlier object of this name
    virtual = ctx.marks.virtual_key(copy)
    return virtual and Subject(kind, virtual, copy["metadata"]["annotations"].get(ctx.marks.uid, ""), copy)


def _is_about_other_container(ctx: Context, event: Obj, subject: Subject) -> bool:
    """Return True if an Event about a Pod is about a container that isn't known to have been sent."""
    if subject.kind.resource != PODS:
        return False
    named = _CONTAINER.fullmatch(str(event["involvedObject"].get("fieldPath") or ""))
    if named is None:
        return False
    sent = containers.recorded(ctx.marks, subject.copy) if subject.copy is not None else {}
    return named["name"] not in sent.get(named["part"], ())


def _by_name(ctx: Context, kind: CopiedKind, key: Key) -> Subject | None:
    """Find the virtual object of an Event that arrives before its object, or after it is gone, by name."""
    found = ctx.names.to_virtual(kind.host_resource, key)
    virtual = ctx.virtual(kind.resource, found) if found else None
    if found is None or virtual is None or kind.host_key(found) != key:
        return None
    return Subject(kind, found, uid_of(virtual))


def _place(event: Obj, subject: Subject) -> Key:
    """Return the key of the virtual Event; an Event about a cluster-scoped object is in ``default``."""
    return Key(subject.key.namespace or "default", _name(event, subject))


def _name(event: Obj, subject: Subject) -> str:
    """Return the Event's name, with the host name of the object at its beginning replaced by the
    virtual one.
    """
    host, name = event["involvedObject"]["name"], str(event["metadata"]["name"])
    if not name.startswith(host + "."):
        return name
    virtual = subject.key.name + name.removeprefix(host)
    return virtual if len(virtual) <= LONGEST_NAME else name


def _translated(ctx: Context, host: Obj, subject: Subject) -> Obj:
    involved = host["involvedObject"]
    virtual, resource = ctx.virtual_copy(host, _place(host, subject)), subject.kind.resource
    virtual |= {part: value for part, value in host.items() if part not in _NOT_COPIED and value is not None}
    kept = {part: value for part, value in involved.items() if part not in ("namespace", "resourceVersion")}
    about = {"apiVersion": resource.api_version, "kind": resource.kind, "name": subject.key.name, "uid": subject.uid}
    place = {"namespace": subject.key.namespace} if subject.key.namespace else {}
    virtual["involvedObject"] = kept | about | place
    if message := host.get("message"):
        copy = Key(involved.get("namespace", ""), involved["name"])
        names = host_names(ctx, subject.key, copy, lambda: _named(ctx, subject))
        virtual["message"] = names.virtual(message)
    return virtual


def _named(ctx: Context, subject: Subject) -> Iterable[tuple[Resource, Key]]:
    """Return further objects that the message may name: those that the object itself refers to."""
    virtual = ctx.virtual(subject.kind.resource, subject.key)
    return () if virtual is None else subject.kind.named(virtual)
