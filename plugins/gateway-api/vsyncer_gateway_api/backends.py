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

_SERVICE = Reference(SERVICES, namespace="namespace", kind="kind", group="group")


def named_at(paths: Iterable[str]) -> References:
    """Return the references of backends at these paths of a spec."""
    return {f"spec.{path}.name": _SERVICE for path in paths}


def grants(syncer: str) -> Source:
    """Return the ReferenceGrants that a syncer of routes reads; it works without them, too."""
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

    def let(grant: Obj) -> Iterator[str]:
        for source, name in given(route, grant):
            yield _value(source, key_of(grant).namespace, name)

    return [
        Index(Source(Side.VIRTUAL, route), syncer, needed),
        Index(
            grants(syncer),
            syncer,
            let,
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


def are_known(ctx: Context) -> bool:
    """Return True if all ReferenceGrants are known: not before they could be listed."""
    return ctx.reader.is_complete(Side.VIRTUAL, REFERENCE_GRANTS)


def given(route: Resource, grant: Obj) -> Iterator[tuple[str, str]]:
    """Yield what a ReferenceGrant gives to routes of a kind.

    Each as the namespace of the routes and the name of the Service; ``""`` for all Services.
    """
    for source in _entries(grant, "from"):
        namespace = source.get("namespace")
        of_kind = (source.get("group"), source.get("kind")) == (GROUP, route.kind)
        if not of_kind or not isinstance(namespace, str) or not namespace:
            continue
        for target in _entries(grant, "to"):
            name = target.get("name") or ""
            is_service = (target.get("group"), target.get("kind")) == (
                SERVICES.group,
                SERVICES.kind,
            )
            if is_service and isinstance(name, str):
                yield namespace, name


def _entries(grant: Obj, field: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a field of a ReferenceGrant, which may be of any shape."""
    listed = dig(grant, f"spec.{field}")
    for each in islice(listed if isinstance(listed, list) else (), MOST_ENTRIES):
        if isinstance(each, dict):
            yield each


def _values(own: str, service: Key) -> tuple[str, str]:
    """Return the index values of the grants that let a route of a namespace have a Service."""
    return (
        _value(own, service.namespace, service.name),
        _value(own, service.namespace, ""),
    )


def _value(own: str, namespace: str, name: str) -> str:
    return f"{own} {namespace}/{name}"
