"""Find the other managers of fields that were just frozen."""

from collections.abc import Iterable, Sequence

from syncer.api.errors import ClusterError
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.clusters.client import SideClient
from syncer.engine.reconcile.managed_fields import FieldManager, holders, writers
from syncer.engine.reconcile.plan import Frozen


async def name_others(frozen: Sequence[Frozen], cluster: SideClient) -> None:
    """Set the other manager of frozen fields of an object, read from the live object, as the cache
    doesn't keep managedFields.

    Only for fields that are news. The manager that holds a field wrote it. If none does, the field
    is removed each time, probably by the last manager that wrote. Who deletes a whole object is
    recorded nowhere.
    """
    fields = [one for one in frozen if one.path and not one.announced]
    if not fields:
        return
    _, resource, key = fields[0].ref
    try:
        live = await cluster.get(resource, key)
    except ClusterError:
        return  # frozen fields matter more than the name of the other manager
    for one in fields:
        through = "status" if one.path[0] == "status" else ""
        one.other = _first(holders(live, one.path)) or _first(
            manager for manager in writers(live) if manager.subresource == through
        )


def _first(managers: Iterable[FieldManager]) -> str:
    return next((manager.name for manager in managers if manager.name != FIELD_MANAGER), "")
