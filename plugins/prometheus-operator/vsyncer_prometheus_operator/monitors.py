"""ServiceMonitors and PodMonitors: on the host, each selects the copies of the objects that it
selects in its virtual cluster.
"""

from typing import ClassVar

from syncer.api import Context, Mirror, Obj, Refused, Resource, key_of
from vsyncer_prometheus_operator.endpoints import forbidden, named_in
from vsyncer_prometheus_operator.kinds import POD_MONITORS, PODS, SERVICE_MONITORS, SERVICES
from vsyncer_prometheus_operator.selection import narrowed, places


class _Monitor(Mirror):
    """The base of both.

    They have no status for the tenant, as it would name the host's Prometheuses.
    """

    down = ("spec",)
    #: The resource of the selected objects.
    selected: ClassVar[Resource]
    #: The field of the spec with the endpoints.
    endpoints: ClassVar[str]

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy; it selects only this tenant's objects in the namespaces that the monitor names."""
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
    """Scrapes the endpoints of Services."""

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
