"""How much of a node a tenant may use at most, by the ResourceQuotas of the host namespace."""

from decimal import Decimal

from syncer.api import Context, Obj, Settings, Side, Source, dig
from syncer.resources.kinds import RESOURCE_QUOTAS
from syncer.translate.quantities import quantity

#: The quotas.
QUOTAS = Source(Side.HOST, RESOURCE_QUOTAS)
#: Seconds until a Node is decided again. A quota changes with each Pod, and its limits seldom do.
LOOK_SECONDS = 60.0

_REQUESTS = "requests."
#: Other names by which a quota limits a resource of Pods (Kubernetes, "Resource Quotas").
_COUNTED = {"pods": "count/pods"}


def has_home(settings: Settings) -> bool:
    """Return True if all copies are in one host namespace, whose quotas so count for all Pods."""
    spaces = settings.names.host_namespaces()
    return spaces is not None and len(spaces) == 1


def limits(ctx: Context) -> Obj:
    """Return the lowest limit of each resource of a node, as quantities by its name there.

    Quotas for some Pods alone (``scopes``) don't count.
    """
    spaces = ctx.names.host_namespaces() or ()
    found: dict[str, tuple[Decimal, str]] = {}
    for key in sorted(ctx.reader.keys(Side.HOST, RESOURCE_QUOTAS)):
        quota = ctx.host(RESOURCE_QUOTAS, key)
        if quota is None or key.namespace not in spaces:
            continue
        if dig(quota, "spec.scopes") or dig(quota, "spec.scopeSelector"):
            continue
        for name, amount in (dig(quota, "spec.hard") or {}).items():
            size = quantity(amount)
            resource = _resource(name)
            if size is not None and resource:
                least = found.get(resource)
                if least is None or size < least[0]:
                    found[resource] = (size, amount)
    return {resource: amount for resource, (_, amount) in found.items()}


def lowered(amounts: Obj, most: Obj) -> Obj:
    """Return the amounts of a node, each at most what a quota allows of it."""
    result = dict(amounts)
    for name, amount in amounts.items():
        size = quantity(amount)
        limit = quantity(most[name]) if name in most else None
        if size is not None and limit is not None and limit < size:
            result[name] = most[name]
    return result


def is_extended(resource: str) -> bool:
    """Return True for the name of an extended resource (``IsExtendedResourceName``)."""
    return "/" in resource and "kubernetes.io/" not in resource


def _resource(name: str) -> str:
    """Return the resource of a node that an amount of a quota limits; ``""`` for another one."""
    for resource, counted in _COUNTED.items():
        if name == counted:
            return resource
    if name.startswith(_REQUESTS):
        return name.removeprefix(_REQUESTS)
    if "/" in name or "." in name:
        return ""
    return name
