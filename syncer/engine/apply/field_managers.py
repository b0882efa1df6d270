"""Find the other managers of fields that were just frozen."""

from collections.abc import Iterable, Sequence

from syncer.api.errors import ClusterError
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.clusters.client import SideClient
from syncer.engine.reconcile.managed_fields import FieldManager, holders, writers
from syncer.engine.reconcile.plan import Frozen


async def name_others(frozen: Sequence[Frozen], cluster: SideClient) -> None:
    """Set the other manager of frozen fields of an object.

    It is read from the live object, as the cache doesn't keep managedFields, and only for fields
    that were not reported yet. The manager that holds a field wrote it. If none does, the field is
    removed each time, probably by the last manager that wrote. API servers don't record who deletes
    a whole object.
    """
    fields = [field for field in frozen if field.path and not field.announced]
    if not fields:
        return
    _, resource, key = fields[0].ref
    try:
        live = await cluster.get(resource, key)
    except ClusterError:
        return  # frozen fields matter more than the name of the other manager
    for field in fields:
        through = "status" if field.path[0] == "status" else ""
        field.other = _first(holders(live, field.path))
        if not field.other:
            through_it = [manager for manager in writers(live) if manager.subresource == through]
            field.other = _first(through_it)


def _first(managers: Iterable[FieldManager]) -> str:
    for manager in managers:
        if manager.name != FIELD_MANAGER:
            return manager.name
    return ""
