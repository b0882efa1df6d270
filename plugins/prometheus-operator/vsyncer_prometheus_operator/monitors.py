"""ServiceMonitors and PodMonitors: each selects on the host the copies of what it selects in its virtual cluster."""

from typing import ClassVar

from syncer.api import Context, Mirror, Obj, Refused, Resource, key_of
from vsyncer_prometheus_operator.endpoints import forbidden, named_in
from vsyncer_prometheus_operator.kinds import POD_MONITORS, PODS, SERVICE_MONITORS, SERVICES
from vsyncer_prometheus_operator.selection import narrowed, places


class _Monitor(Mirror):
    """What both have in common. They have no status for the tenant: it would name the Prometheuses of the host."""

    down = ("spec",)
    #: What is selected.
    selected: ClassVar[Resource]
    #: Where in the spec the endpoints are.
    endpoints: ClassVar[str]

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy: it selects this tenant's objects of the namespaces that it names."""
        host, namespace = super().translate(ctx, virtual), key_of(virtual).namespace
        spec = host.get("spec") or {}
        endpoints = spec.get(self.endpoints) or []
        for place, endpoint in enumerate(endpoints):
            for path in forbidden(endpoint):
                why = "is a matter of the Prometheus that scrapes, which is the host's. Use a Secret of yours instead"
                raise Refused(why, path=f"spec.{self.endpoints}[{place}].{path}")
        copied = {
            "selector": narrowed(ctx, spec, namespace),
            "namespaceSelector": places(ctx, spec, namespace, self.selected),
            self.endpoints: endpoints,
        }
        return host | {"spec": spec | copied}


class ServiceMonitorSyncer(_Monitor):
    """Scrapes what stands behind Services."""

    name = "servicemonitors"
    section = "toHost.serviceMonitors"
    resource = SERVICE_MONITORS
    selected = SERVICES
    endpoints = "endpoints"
    references = named_in("endpoints")


class PodMonitorSyncer(_Monitor):
    """Scrapes Pods."""

    name = "podmonitors"
    section = "toHost.podMonitors"
    resource = POD_MONITORS
    selected = PODS
    endpoints = "podMetricsEndpoints"
    references = named_in("podMetricsEndpoints")
