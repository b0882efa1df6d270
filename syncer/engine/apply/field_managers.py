"""Who else writes the fields that have just been frozen."""

from collections.abc import Iterable, Sequence

from syncer.api.errors import ClusterError
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.clusters.client import Cluster
from syncer.engine.reconcile.managed_fields import Manager, holders, writers
from syncer.engine.reconcile.plan import Frozen


async def name_others(frozen: Sequence[Frozen], cluster: Cluster) -> None:
    """Fill in who else writes fields of one object, as the live one says it: the stores don't keep it.

    Only where nobody was told yet. Who holds a field wrote it. Where nobody does, it is taken away each time, by the
    last who wrote, as far as one can tell. Who deletes an object is nowhere to be read.
    """
    fields = [one for one in frozen if one.path and not one.announced]
    if not fields:
        return
    _, resource, key = fields[0].place
    try:
        live = await cluster.get(resource, key)
    except ClusterError:
        return  # that the fields are left alone is what matters
    for one in fields:
        through = "status" if one.path[0] == "status" else ""
        one.other = _first(holders(live, one.path)) or _first(
            manager for manager in writers(live) if manager.subresource == through
        )


def _first(managers: Iterable[Manager]) -> str:
    return next((manager.name for manager in managers if manager.name != FIELD_MANAGER), "")
