"""The parents of routes: Gateways, by their names in the virtual cluster and on the host.

A parent is one of the host's that appears there, or one of the tenant's own, which leads to its
copy. Whether a route may have one of the latter in another namespace is judged here: on the host,
both may be in one namespace.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from syncer.api import (
    Context,
    Decision,
    Index,
    Key,
    Obj,
    Pair,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    delete,
    dig,
    key_of,
    wait,
)
from vsyncer_gateway_api import tenant_gateways
from vsyncer_gateway_api.gateways import mappings_of
from vsyncer_gateway_api.kinds import GATEWAYS, GROUP
from vsyncer_gateway_api.tenant_gateways import Listeners, TenantGatewaySyncer

#: The fields of a parent that tenants may set.
FIELDS = ("group", "kind", "namespace", "name", "sectionName", "port")
#: Parents of a route that count, the most that its CRD allows: each may be looked up.
MOST_PARENTS = 32

#: What the syncers of routes read; they work without it, too.
OWN_GATEWAYS = Source(Side.VIRTUAL, GATEWAYS, optional_with=TenantGatewaySyncer.name)
#: The index of routes by the tenant's own Gateways in other namespaces, and of these by their keys.
_BY_PARENT = "parents-elsewhere"


def indexes(route: Resource) -> list[Index]:
    """Return the indexes that wake a route when a Gateway of another namespace changes."""

    def elsewhere(virtual: Obj) -> Iterator[str]:
        own = key_of(virtual).namespace
        for _, parent in _parents(virtual):
            wanted = listeners_of(parent, own)
            if wanted is not None and wanted.gateway.namespace != own:
                yield str(wanted.gateway)

    on = TenantGatewaySyncer.name
    return [
        Index(Source(Side.VIRTUAL, route), _BY_PARENT, elsewhere),
        Index(
            OWN_GATEWAYS,
            f"{_BY_PARENT}-of-{route.plural}",
            _own_key,
            optional_with=on,
            requeues=_BY_PARENT,
            when="change",
            keeps=False,
        ),
    ]


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


def on_host(ctx: Context, route: Obj) -> list[Obj]:
    """Return the parents of a virtual route by their names on the host.

    Raises:
        Refused: A parent is no Gateway that serves this virtual cluster, or one of the tenant's own
            whose listeners don't take the route.
        NotYet: The copy of a Gateway isn't there yet, and its name is that of an object of the
            host's own.
    """
    own = key_of(route).namespace
    if len(dig(route, "spec.parentRefs") or ()) > MOST_PARENTS:
        why = f"a route has at most {MOST_PARENTS} parents: leave out some"
        raise Refused(why, path="spec.parentRefs")
    found = []
    for index, parent in _parents(route):
        path = f"spec.parentRefs[{index}]"
        wanted = listeners_of(parent, own)
        if wanted is None:
            why = "only Gateways can be parents of what is synced"
            raise Refused(f"{why}: name one that is listed", path=path, reason="NotAllowed")
        host = mappings_of(ctx.settings).host_key(wanted.gateway)
        if host is None:
            host = _own_on_host(ctx, own, wanted, path)
        found.append({**parent, "namespace": host.namespace, "name": host.name})
    return found


def _own_on_host(ctx: Context, own: str, wanted: Listeners, path: str) -> Key:
    """Return the host key of a Gateway of the tenant's own.

    Raises:
        Refused: Such Gateways aren't synced, or its listeners don't take routes of the namespace.
        NotYet: As :func:`on_host`.
    """
    if tenant_gateways.options_of(ctx.settings) is None:
        why = f"no Gateway {wanted.gateway} of the host serves this virtual cluster"
        operator = f"sync.fromHost.gateways.mappings leads no Gateway to {wanted.gateway}"
        raise Refused(
            f"{why}: name one that is listed",
            path=path,
            reason="NotAllowed",
            for_operator=operator,
        )
    if tenant_gateways.host_key_of(ctx.settings, wanted.gateway) is None:
        raise Refused(tenant_gateways.UNREADABLE, path=path)
    if not _takes(ctx, own, wanted):
        raise Refused(_not_taken(wanted), path=path, reason="NotAllowedByListeners")
    return ctx.refer(GATEWAYS, wanted.gateway)


def ended(ctx: Context, pair: Pair) -> Decision | None:
    """Return the end of a copy with a Gateway of the tenant's own that takes the route no more.

    None if there is no such parent. Before the Gateways could be listed, none is known to be gone.
    """
    own = key_of(pair.virtual).namespace
    on_copy = set()
    for _, parent in _parents(pair.host):
        there = listeners_of(parent, key_of(pair.host).namespace)
        if there is not None:
            on_copy.add(there.gateway)
    for _, parent in _parents(pair.virtual):
        wanted = listeners_of(parent, own)
        if wanted is None or mappings_of(ctx.settings).host_key(wanted.gateway) is not None:
            continue
        host = tenant_gateways.host_key_of(ctx.settings, wanted.gateway)
        if host not in on_copy or _takes(ctx, own, wanted):
            continue
        if not ctx.reader.is_complete(Side.VIRTUAL, GATEWAYS):
            return wait("the Gateways of the virtual cluster can't be listed yet")
        why = _not_taken(wanted)
        return delete(host=pair.host, reason=why).warn("NotAllowedByListeners", why)
    return None


def _takes(ctx: Context, own: str, wanted: Listeners) -> bool:
    """Return True if a Gateway of the tenant's own takes routes of a virtual namespace.

    Its own always: only that of the same namespace or all of them can be chosen.
    """
    if wanted.gateway.namespace == own:
        return True
    try:
        gateway = ctx.virtual(GATEWAYS, wanted.gateway)
    except KeyError:  # the virtual cluster doesn't serve Gateways
        return False
    return gateway is not None and tenant_gateways.takes_all_namespaces(gateway, wanted)


def _not_taken(wanted: Listeners) -> str:
    """Return the reason why a route of another namespace may not have a Gateway."""
    why = f"not all listeners that this names of the Gateway {wanted.gateway} take routes of"
    how = "set allowedRoutes.namespaces.from to All there, or name one that does by sectionName"
    return f"{why} other namespaces: {how}"


def still_allowed(settings: Settings, copy: Obj) -> list[Obj]:
    """Return the parents of a copy that serve this virtual cluster, or are its own."""
    names = mappings_of(settings)
    left = []
    for _, parent in _parents(copy):
        wanted = listeners_of(parent, key_of(copy).namespace)
        if wanted is None:
            continue
        if names.virtual_key(wanted.gateway) or tenant_gateways.is_own(settings, wanted.gateway):
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
        if wanted is None:
            continue
        host = names.host_key(wanted.gateway)
        if host is None:
            host = tenant_gateways.host_key_of(settings, wanted.gateway)
        if host is not None:
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
    if not isinstance(listed, list):
        return
    for index, parent in enumerate(islice(listed, MOST_PARENTS)):
        if isinstance(parent, dict):
            yield index, parent


def _own_key(gateway: Obj) -> Iterable[str]:
    return (str(key_of(gateway)),)
