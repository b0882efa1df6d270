"""Warn, once at start, of objects of the host's own that a tenant's Pod can be selected by.

Labels of Pods cross, so a Service, NetworkPolicy or workload of the host in a host namespace has to
select by a label below the marks' prefix, which no tenant can set.
"""

from syncer.api.context import Settings
from syncer.api.errors import ClusterError
from syncer.api.objects import key_of
from syncer.clusters.client import SideClient
from syncer.observe.logs import get_logger
from syncer.resources.kinds import SERVICES
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.neighbours import FURTHER, may_select_tenants

#: Most warnings for a virtual cluster.
MOST_WARNINGS = 20

log = get_logger(__name__)


async def warn_of_selectors(host: SideClient, settings: Settings) -> None:
    """Log a warning for each object of the host's that a tenant's Pod can be selected by.

    Host namespaces that the daemon makes hold nothing of the host's; those that the configuration lists do. A last
    warning names the kinds that can't be listed.
    """
    config, marks, warned = settings.section("pods", PodConfig), settings.marks, 0
    unread: dict[str, str] = {}
    homes = sorted({*(settings.names.host_namespaces() or ()), *settings.namespaces})
    for namespace in homes if config else ():
        for resource in (SERVICES, *FURTHER) if config and config.check_selectors else (SERVICES,):
            try:
                found = await host.list(resource, namespace=namespace, selector=f"!{marks.cluster}")
            except ClusterError as error:
                unread.setdefault(str(resource), str(error))
                continue
            for obj in found:
                if may_select_tenants(resource, obj, marks) and (warned := warned + 1) <= MOST_WARNINGS:
                    why = f"a tenant's Pod with the right labels is selected; select by a label {marks.prefix}/… too"
                    log.warning(why, cluster=settings.cluster, what=f"{resource.kind} {key_of(obj)}")
    if unread:
        why = (
            "selectors of the host's own objects are not checked, as they can't be listed; grant the right to list them"
        )
        log.warning(why, cluster=settings.cluster, what=", ".join(unread), error=next(iter(unread.values())))
