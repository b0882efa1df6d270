"""ServiceMonitors and PodMonitors: each selects on the host the copies of what it selects in its virtual cluster."""

from collections.abc import Iterable
from typing import ClassVar

from syncer.api import Context, Key, Mirror, Obj, Refers, Refused, Resource, key_of
from vsyncer_prometheus_operator.endpoints import NAMES, forbidden
from vsyncer_prometheus_operator.kinds import CONFIG_MAPS, POD_MONITORS, PODS, SECRETS, SERVICE_MONITORS, SERVICES
from vsyncer_prometheus_operator.selection import narrowed, places


class _Monitor(Mirror, Refers):
    """What both have in common. They have no status for the tenant: it would name the Prometheuses of the host."""

    down = ("spec",)
    refers_to = (SECRETS, CONFIG_MAPS)
    #: What is selected.
    selected: ClassVar[Resource]
    #: Where in the spec the endpoints are.
    endpoints: ClassVar[str]

    def references(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """The Secrets and ConfigMaps that the endpoints name: certificates, passwords, tokens."""
        namespace = key_of(virtual).namespace
        return [(kind, Key(namespace, name)) for one in self._endpoints(virtual) for kind, name in NAMES.found(one)]

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """The copy: it selects this tenant's objects of the namespaces that it names, and has their credentials."""
        host, namespace = super().translate(ctx, virtual), key_of(virtual).namespace
        spec = host.get("spec") or {}
        copied = {
            "selector": narrowed(ctx, spec, namespace),
            "namespaceSelector": places(ctx, spec, namespace, self.selected),
            self.endpoints: [self._endpoint(ctx, namespace, place, one) for place, one in self._numbered(virtual)],
        }
        return host | {"spec": spec | copied}

    def _endpoint(self, ctx: Context, namespace: str, place: int, endpoint: Obj) -> Obj:
        for path in forbidden(endpoint):
            why = "is a matter of the Prometheus that scrapes, which is the host's. Use a Secret of yours instead"
            raise Refused(why, path=f"spec.{self.endpoints}[{place}].{path}")
        return NAMES.rewritten(endpoint, lambda kind, name: ctx.host_name(kind, namespace, name))

    def _numbered(self, virtual: Obj) -> Iterable[tuple[int, Obj]]:
        return enumerate(self._endpoints(virtual))

    def _endpoints(self, virtual: Obj) -> list[Obj]:
        return (virtual.get("spec") or {}).get(self.endpoints) or []


class ServiceMonitorSyncer(_Monitor):
    """Scrapes what stands behind Services."""

    name = "servicemonitors"
    section = "toHost.serviceMonitors"
    resource = SERVICE_MONITORS
    selected = SERVICES
    endpoints = "endpoints"


class PodMonitorSyncer(_Monitor):
    """Scrapes Pods."""

    name = "podmonitors"
    section = "toHost.podMonitors"
    resource = POD_MONITORS
    selected = PODS
    endpoints = "podMetricsEndpoints"
