"""The parents of routes: Gateways of the host, by their names in the virtual cluster."""

from collections.abc import Iterator
from typing import NamedTuple

from syncer.api import Json, Key, Obj, Refused, Settings, dig, key_of
from vsyncer_gateway_api.gateways import mappings_of
from vsyncer_gateway_api.kinds import GATEWAYS, GROUP

#: The fields of a parent that tenants may set.
FIELDS = ("group", "kind", "namespace", "name", "sectionName", "port")


class Listeners(NamedTuple):
    """What a parent reference names: a Gateway, or some of its listeners."""

    gateway: Key
    section: Json
    port: Json


def listeners_of(parent: Obj, namespace: str) -> Listeners | None:
    """Return what a parent reference names; None if that is no Gateway.

    ``namespace`` is that of the object that has the reference.
    """
    group = parent.get("group")
    if group is None:
        group = GROUP
    name = parent.get("name")
    own = parent.get("namespace") or namespace
    is_gateway = group == GROUP and (parent.get("kind") or GATEWAYS.kind) == GATEWAYS.kind
    if not is_gateway or not isinstance(name, str) or not isinstance(own, str):
        return None
    return Listeners(Key(own, name), parent.get("sectionName"), parent.get("port"))


def on_host(settings: Settings, route: Obj) -> list[Obj]:
    """Return the parents of a virtual route by their names on the host.

    Raises:
        Refused: A parent is another object than a Gateway that serves this virtual cluster.
    """
    names = mappings_of(settings)
    found = []
    for index, parent in _parents(route):
        path = f"spec.parentRefs[{index}]"
        wanted = listeners_of(parent, key_of(route).namespace)
        if wanted is None:
            why = "only Gateways can be parents of what is synced"
            raise Refused(f"{why}: name one that is listed", path=path, reason="NotAllowed")
        host = names.host_key(wanted.gateway)
        if host is None:
            why = f"no Gateway {wanted.gateway} of the host serves this virtual cluster"
            operator = f"sync.fromHost.gateways.mappings leads no Gateway to {wanted.gateway}"
            raise Refused(
                f"{why}: name one that is listed",
                path=path,
                reason="NotAllowed",
                for_operator=operator,
            )
        found.append({**parent, "namespace": host.namespace, "name": host.name})
    return found


def still_allowed(settings: Settings, copy: Obj) -> list[Obj]:
    """Return the parents of a copy that serve this virtual cluster."""
    names = mappings_of(settings)
    left = []
    for _, parent in _parents(copy):
        wanted = listeners_of(parent, key_of(copy).namespace)
        if wanted is not None and names.virtual_key(wanted.gateway) is not None:
            left.append(parent)
    return left


def reported(settings: Settings, route: Obj, listed: list[Obj], namespace: str) -> list[Obj]:
    """Return what the host reports of a virtual route's own parents.

    Each has the reference as the tenant wrote it. What the host reports of other parents, which a
    policy or a person there has added, stays there.

    Args:
        settings: The settings of the virtual cluster.
        route: The virtual route.
        listed: ``status.parents`` of its copy.
        namespace: The namespace of its copy.
    """
    names = mappings_of(settings)
    written: dict[Listeners, Obj] = {}
    for _, parent in _parents(route):
        wanted = listeners_of(parent, key_of(route).namespace)
        host = names.host_key(wanted.gateway) if wanted else None
        if wanted is not None and host is not None:
            written[wanted._replace(gateway=host)] = parent

    shown = []
    for entry in listed:
        found = listeners_of(entry.get("parentRef") or {}, namespace)
        if found is not None and found in written:
            shown.append({**entry, "parentRef": written[found]})
    return shown


def _parents(route: Obj) -> Iterator[tuple[int, Obj]]:
    """Yield the parents of a route, which may be of any shape, with their indexes."""
    listed = dig(route, "spec.parentRefs")
    for index, parent in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(parent, dict):
            yield index, parent
