"""Warn, once at start, of custom resources from which a controller of the host may make Pods.

Such Pods have passed none of the daemon's rules for Pods: volumes, Pod Security level, nodes,
tokens. The schemas show which kinds these are; every user may read them (``/openapi/v3``,
ClusterRole ``system:discovery``).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from syncer.api.context import Settings
from syncer.api.errors import ClusterError
from syncer.api.objects import Obj, Resource
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.observe.logs import get_logger

log = get_logger(__name__)


async def warn_of_pod_templates(
    host: SideClient,
    settings: Settings,
    kinds: Iterable[Resource],
) -> None:
    """Log a warning for each of these kinds of the host whose objects can hold the spec of a Pod.

    A kind without a readable schema, or that comes later, isn't checked.
    """
    for kind in kinds:
        try:
            document = await host.fetch(f"/openapi/v3/apis/{kind.api_version}")
        except (ClusterError, codec.DecodeError) as error:
            log.warning(
                "can't read the schema of a kind",
                cluster=settings.cluster,
                what=str(kind),
                error=str(error),
            )
            continue
        if any(has_containers(schema) for schema in _schemas_of(document, kind)):
            warning = (
                "a controller of the host that makes Pods from these objects makes them without "
                "the rules for Pods of tenants; sync the kind only if the host's own admission "
                "checks its Pods"
            )
            log.warning(warning, cluster=settings.cluster, what=str(kind))


def _schemas_of(document: Obj, kind: Resource) -> Iterator[Any]:
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    for schema in ((document.get("components") or {}).get("schemas") or {}).values():
        if named in (schema.get("x-kubernetes-group-version-kind") or ()):
            yield schema


def has_containers(schema: Any) -> bool:
    """Return True if a schema has, at any depth, a list ``containers`` of items with ``image``."""
    below = [schema]
    while below:
        each = below.pop()
        if not isinstance(each, dict):
            continue
        properties = each.get("properties")
        named = properties if isinstance(properties, dict) else {}
        items = (named.get("containers") or {}).get("items")
        if isinstance(items, dict) and "image" in (items.get("properties") or {}):
            return True
        below.extend(named.values())
        below.extend(each.get(name) for name in ("items", "additionalProperties"))
    return False
