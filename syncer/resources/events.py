"""Events of the host about copies appear in the virtual cluster, about the virtual objects."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from syncer.api import (
    Context,
    Decision,
    Key,
    Obj,
    Resource,
    Side,
    Source,
    Syncer,
    SyncFromHost,
    apply,
    skip,
    uid_of,
)
from syncer.resources.kinds import CONFIG_MAPS, EVENTS, INGRESSES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from syncer.resources.pods.references import PATHS

#: The kinds that an Event may be about, each with the syncer that copies it and the virtual
#: resource.
KINDS: Mapping[str, tuple[str, Resource]] = {
    "Pod": ("pods", PODS),
    "Service": ("services", SERVICES),
    "ConfigMap": ("configmaps", CONFIG_MAPS),
    "Secret": ("secrets", SECRETS),
    "ServiceAccount": ("serviceaccounts", SERVICE_ACCOUNTS),
    "Ingress": ("ingresses", INGRESSES),
}

#: Fields that are recomputed, or that name host objects which a tenant can't see.
_NOT_COPIED = frozenset({"apiVersion", "kind", "metadata", "involvedObject", "message", "related"})

_LONGEST_NAME = 253


class Subject(NamedTuple):
    """The virtual object that a host Event is about."""

    resource: Resource
    key: Key
    uid: str


class EventSyncer(Syncer, SyncFromHost):
    """Shows Events of the host about copies. They are never deleted: they expire on each side."""

    name = "events"
    section = "fromHost.events"
    resource = EVENTS
    reads = tuple(
        Source(side, resource, marked=side is Side.HOST, optional_with=syncer)
        for syncer, resource in KINDS.values()
        for side in Side
    )

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return a key in the namespace of the virtual object, with its name; None if the Event
        isn't about a copy.
        """
        subject = _subject(ctx, host)
        return subject and Key(subject.key.namespace, _name(host, subject))

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        """Create or update the Event: repetitions change its count and time."""
        subject = _subject(ctx, host)
        if subject is None:
            return skip("it is not about an object that is synced")
        return apply(virtual=_translated(ctx, host, subject))


def _subject(ctx: Context, event: Obj) -> Subject | None:
    involved = event.get("involvedObject") or {}
    syncer, resource = KINDS.get(involved.get("kind", ""), ("", EVENTS))
    if not involved.get("name") or not ctx.enabled(syncer):
        return None
    key = Key(involved.get("namespace", ""), involved["name"])
    copy = ctx.host(resource, key)
    if copy is None:
        return _by_name(ctx, resource, key)
    if not ctx.marks.is_ours(copy, cluster=ctx.identity, resource=resource):
        return None
    if involved.get("uid") and involved["uid"] != uid_of(copy):
        return None  # about an earlier object of this name
    virtual = ctx.marks.virtual_key(copy)
    return virtual and Subject(resource, virtual, copy["metadata"]["annotations"].get(ctx.marks.uid, ""))


def _by_name(ctx: Context, resource: Resource, key: Key) -> Subject | None:
    """Find the virtual object of an Event that arrives before its object, or after it is gone, by name."""
    found = ctx.names.to_virtual(resource, key)
    virtual = ctx.virtual(resource, found) if found else None
    if found is None or virtual is None or ctx.names.to_host(resource, found) != key:
        return None
    return Subject(resource, found, uid_of(virtual))


def _name(event: Obj, subject: Subject) -> str:
    """Return the Event's name, with the host name of the object at its beginning replaced by the
    virtual one.
    """
    host, name = event["involvedObject"]["name"], str(event["metadata"]["name"])
    if not name.startswith(host + "."):
        return name
    virtual = subject.key.name + name.removeprefix(host)
    return virtual if len(virtual) <= _LONGEST_NAME else name


def _translated(ctx: Context, host: Obj, subject: Subject) -> Obj:
    involved = host["involvedObject"]
    virtual = ctx.virtual_copy(host, Key(subject.key.namespace, _name(host, subject)))
    virtual |= {part: value for part, value in host.items() if part not in _NOT_COPIED and value is not None}
    kept = {part: value for part, value in involved.items() if part != "resourceVersion"}
    virtual["involvedObject"] = kept | {
        "namespace": subject.key.namespace,
        "name": subject.key.name,
        "uid": subject.uid,
    }
    if message := host.get("message"):
        virtual["message"] = _told(message, _words(ctx, host, subject))
    return virtual


def _told(message: str, words: Iterable[tuple[str, str]]) -> str:
    """Replace each host name in a message; the longest first, as one may be part of another."""
    for word, virtual in sorted(words, key=lambda pair: len(pair[0]), reverse=True):
        message = message.replace(word, virtual)
    return message


def _words(ctx: Context, event: Obj, subject: Subject) -> set[tuple[str, str]]:
    """Return the host names and namespaces that the message may contain, with their virtual ones."""
    involved = event["involvedObject"]
    namespace, (virtual, name) = involved.get("namespace", ""), subject.key
    words = {
        (involved["name"], name),
        (f"{namespace}/{involved['name']}", f"{virtual}/{name}"),
        (f'"{namespace}"/', f'"{virtual}"/'),
    }
    # Only warnings name other objects: those that are missing or can't be mounted.
    pod = ctx.virtual(PODS, subject.key) if subject.resource is PODS and event.get("type") == "Warning" else None
    if pod is not None:
        words |= {(ctx.host_name(kind, virtual, other.name), other.name) for kind, other in PATHS.keys(pod)}
    return words
