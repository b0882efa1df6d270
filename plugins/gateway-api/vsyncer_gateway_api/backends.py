"""The backends of routes: Services of the tenant, in other namespaces by a ReferenceGrant."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from syncer.api import (
    Context,
    Index,
    Key,
    Named,
    Obj,
    Reference,
    ReferencePaths,
    References,
    Resource,
    Side,
    Source,
    dig,
    key_of,
)
from vsyncer_gateway_api.kinds import GROUP, REFERENCE_GRANTS, SERVICES

#: The fields of a backend, wherever it is.
FIELDS = ("group", "kind", "namespace", "name", "port")
#: Entries of ``from`` and of ``to`` in a ReferenceGrant that count, the most that its CRD allows:
#: each pair of them has an entry in an index.
MOST_ENTRIES = 16
#: Stands for the name where a ReferenceGrant allows every one.
_ANY = "*"

_SERVICE = Reference(SERVICES, namespace="namespace", kind="kind", group="group")


def named_at(paths: Iterable[str]) -> References:
    """Return the references of backends at these paths of a spec."""
    return {f"spec.{path}.name": _SERVICE for path in paths}


def grants(route: Resource, syncer: str) -> Source:
    """Return the ReferenceGrants; without their CRD, none is there, and routes are synced."""
    return Source(Side.VIRTUAL, REFERENCE_GRANTS, optional_with=syncer)


def indexes(route: Resource, syncer: str, names: ReferencePaths) -> list[Index]:
    """Return the indexes that wake a route when a grant that it needs begins or ends.

    Args:
        route: The kind of routes.
        syncer: The name of its syncer, and of the indexes.
        names: The references of its backends.
    """

    def needed(virtual: Obj) -> Iterator[str]:
        for each in elsewhere(names, virtual):
            yield from _values(key_of(virtual).namespace, each.key)

    def given(grant: Obj) -> Iterator[str]:
        return _given(route, grant)

    return [
        Index(Source(Side.VIRTUAL, route), syncer, needed),
        Index(
            grants(route, syncer),
            syncer,
            given,
            optional_with=syncer,
            requeues=syncer,
            keeps=False,
        ),
    ]


def elsewhere(names: ReferencePaths, virtual: Obj) -> list[Named]:
    """Return the backends of a virtual route in other namespaces than its own."""
    own = key_of(virtual).namespace
    return [each for each in names.named(virtual) if each.key.namespace != own]


def is_granted(ctx: Context, syncer: str, virtual: Obj, service: Key) -> bool:
    """Return True if a ReferenceGrant in the Service's namespace lets a route have it."""
    for value in _values(key_of(virtual).namespace, service):
        try:
            found = ctx.reader.indexed(Side.VIRTUAL, REFERENCE_GRANTS, syncer, value)
        except KeyError:  # the virtual cluster doesn't serve ReferenceGrants
            return False
        if found:
            return True
    return False


def _values(own: str, service: Key) -> tuple[str, str]:
    """Return the index values of the grants that let a route of a namespace have a Service."""
    return _value(own, service.namespace, service.name), _value(own, service.namespace, _ANY)


def _value(own: str, namespace: str, name: str) -> str:
    return f"{own} {namespace}/{name}"


def _given(route: Resource, grant: Obj) -> Iterator[str]:
    """Yield what a ReferenceGrant gives to routes of a kind."""
    for source in _entries(grant, "from"):
        if (source.get("group"), source.get("kind")) != (GROUP, route.kind):
            continue
        for target in _entries(grant, "to"):
            if (target.get("group"), target.get("kind")) == (SERVICES.group, SERVICES.kind):
                name = target.get("name") or _ANY
                yield _value(str(source.get("namespace")), key_of(grant).namespace, str(name))


def _entries(grant: Obj, field: str) -> Iterator[dict[str, Any]]:
    listed = dig(grant, f"spec.{field}")
    for each in islice(listed if isinstance(listed, list) else (), MOST_ENTRIES):
        if isinstance(each, dict):
            yield each
