"""Events of the host about copies appear in the virtual cluster, about the virtual objects."""

import re
from collections.abc import Iterable
from functools import partial
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
    reasons,
    skip,
    uid_of,
)
from syncer.resources.kinds import EVENTS, PODS
from syncer.resources.pods import record

#: Fields that are recomputed, or that name host objects which a tenant can't see.
_NOT_COPIED = frozenset({"apiVersion", "kind", "metadata", "involvedObject", "message", "related"})

#: How an Event names a container of its Pod: the list that it is in, and its name.
_CONTAINER = re.compile(r"spec\.(?P<part>\w+)\{(?P<name>.*)\}", re.DOTALL)


class EventSubject(NamedTuple):
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
    about_copies = True

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the key of the virtual Event; None if the Event isn't about a copy.

        It is in the namespace of the virtual object, and begins with that object's name.
        """
        subject = _subject(ctx, host)
        if subject is None:
            return None
        return _virtual_key(host, subject)

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        """Create or update the Event: repetitions change its count and time."""
        subject = _subject(ctx, host)
        if subject is None:
            return skip(reasons.EVENT_UNRELATED())
        if _is_about_other_container(ctx, host, subject):
            return skip(reasons.EVENT_OF_CONTAINER())
        return apply(virtual=_translated(ctx, host, subject))


def _subject(ctx: Context, event: Obj) -> EventSubject | None:
    """Return the virtual object that an Event of the host is about; None if there is none."""
    involved = event.get("involvedObject") or {}
    if not involved.get("name"):
        return None
    group = involved.get("apiVersion", "").rpartition("/")[0]
    key = Key(involved.get("namespace", ""), involved["name"])
    for kind in ctx.copied_by(group, involved.get("kind", "")):
        subject = _with_copy(ctx, kind, key, involved)
        if subject is not None:
            return subject
    return None


def _with_copy(ctx: Context, kind: CopiedKind, key: Key, involved: Obj) -> EventSubject | None:
    """Return the object of a kind if an Event is about the copy of it; None otherwise."""
    copy = ctx.host(kind.host_resource, key)
    if copy is None:
        return _by_name(ctx, kind, key)
    if not ctx.marks.is_ours(copy, cluster=ctx.identity, resource=kind.resource):
        return None
    if involved.get("uid") and involved["uid"] != uid_of(copy):
        # The Event is about an earlier object of this name.
        return None
    virtual = ctx.marks.virtual_key(copy)
    if virtual is None:
        return None
    uid = copy["metadata"]["annotations"].get(ctx.marks.uid, "")
    return EventSubject(kind, virtual, uid, copy)


def _is_about_other_container(ctx: Context, event: Obj, subject: EventSubject) -> bool:
    """Return True if an Event is about a container of a Pod that the tenant's Pod doesn't have."""
    if subject.kind.resource != PODS:
        return False
    named = _CONTAINER.fullmatch(str(event["involvedObject"].get("fieldPath") or ""))
    if named is None:
        return False
    if subject.copy is None:
        return True
    return not record.recorded(ctx.marks, subject.copy).has(named["part"], named["name"])


def _by_name(ctx: Context, kind: CopiedKind, key: Key) -> EventSubject | None:
    """Find the virtual object of an Event by the name of the copy.

    An Event may arrive before the copy, or after the copy is gone.
    """
    found = ctx.names.to_virtual(kind.host_resource, key)
    if found is None:
        return None
    virtual = ctx.virtual(kind.resource, found)
    if virtual is None or kind.host_key(found) != key:
        return None
    return EventSubject(kind, found, uid_of(virtual))


def _virtual_key(event: Obj, subject: EventSubject) -> Key:
    """Return the key of the virtual Event.

    The name begins with that of the virtual object where the host's begins with that of the copy.
    An Event about a cluster-scoped object is in ``default``.
    """
    namespace = subject.key.namespace or "default"
    name = str(event["metadata"]["name"])
    host = event["involvedObject"]["name"]
    if name.startswith(host + "."):
        virtual = subject.key.name + name.removeprefix(host)
        if len(virtual) <= LONGEST_NAME:
            name = virtual
    return Key(namespace, name)


def _translated(ctx: Context, host: Obj, subject: EventSubject) -> Obj:
    """Return the virtual Event of one of the host's."""
    virtual = ctx.virtual_copy(host, _virtual_key(host, subject))
    for part, value in host.items():
        if part not in _NOT_COPIED and value is not None:
            virtual[part] = value

    involved = host["involvedObject"]
    of_host = ("namespace", "resourceVersion")
    about = {part: value for part, value in involved.items() if part not in of_host}
    about["apiVersion"] = subject.kind.resource.api_version
    about["kind"] = subject.kind.resource.kind
    about["name"] = subject.key.name
    about["uid"] = subject.uid
    if subject.key.namespace:
        about["namespace"] = subject.key.namespace
    virtual["involvedObject"] = about

    if message := host.get("message"):
        copy = Key(involved.get("namespace", ""), involved["name"])
        names = host_names(ctx, subject.key, copy, partial(_named, ctx, subject))
        virtual["message"] = names.virtual(message)
    return virtual


def _named(ctx: Context, subject: EventSubject) -> Iterable[tuple[Resource, Key]]:
    """Return further objects that a message may name: those that the object itself refers to."""
    virtual = ctx.virtual(subject.kind.resource, subject.key)
    if virtual is None:
        return ()
    return subject.kind.named(virtual)
