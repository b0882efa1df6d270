"""Warn, once at start, of the host's own objects that can select a tenant's Pod.

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
    """Log a warning for each of the host's own objects that can select a tenant's Pod.

    Host namespaces that the daemon makes contain no such objects; those that the configuration
    lists do. A last warning names the kinds that can't be listed.
    """
    config = settings.section("pods", PodConfig)
    if config is None:
        return
    marks = settings.marks
    resources = (SERVICES, *FURTHER) if config.check_selectors else (SERVICES,)
    unread: dict[str, str] = {}
    label = f"{marks.prefix}/…"
    warned = 0
    for namespace in sorted({*(settings.names.host_namespaces() or ()), *settings.namespaces}):
        for resource in resources:
            try:
                found = await host.list(resource, namespace=namespace, selector=f"!{marks.cluster}")
            except ClusterError as error:
                unread.setdefault(str(resource), str(error))
                continue
            for obj in found:
                if warned < MOST_WARNINGS and may_select_tenants(resource, obj, marks):
                    warned += 1
                    warning = "a tenant's Pod with the right labels is selected"
                    warning = f"{warning}; select by a label {label} too"
                    log.warning(
                        warning,
                        cluster=settings.cluster,
                        what=f"{resource.kind} {key_of(obj)}",
                    )
    if unread:
        warning = "selectors of the host's own objects are not checked, as they can't be listed"
        warning = f"{warning}; grant the right to list them"
        log.warning(
            warning,
            cluster=settings.cluster,
            what=", ".join(unread),
            error=next(iter(unread.values())),
        )
