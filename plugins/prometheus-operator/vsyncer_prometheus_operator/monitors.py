"""ServiceMonitors and PodMonitors: on the host, each selects the copies of the objects that it
selects in its virtual cluster.
"""

from typing import ClassVar

from pydantic import Field

from syncer.api import AllowedFields, Config, Context, Duration, Mirror, Obj, Resource, key_of
from vsyncer_prometheus_operator.endpoints import FIELDS, NAMES, named_in, refuse, refuse_short
from vsyncer_prometheus_operator.kinds import POD_MONITORS, PODS, SERVICE_MONITORS, SERVICES
from vsyncer_prometheus_operator.selection import namespace_selector, narrowed

#: The fields that tenants may set beside the endpoints. (The API reference of prometheus-operator,
#: v1.)
_FIELDS = (
    *("selector", "namespaceSelector", "selectorMechanism", "serviceDiscoveryRole"),
    *("jobLabel", "targetLabels", "podTargetLabels", "keepDroppedTargets", "bodySizeLimit"),
    *("sampleLimit", "targetLimit", "labelLimit", "labelNameLengthLimit", "labelValueLengthLimit"),
    *(
        "scrapeProtocols",
        "fallbackScrapeProtocol",
        "scrapeNativeHistograms",
        "scrapeClassicHistograms",
    ),
    *(
        "nativeHistogramBucketLimit",
        "nativeHistogramMinBucketFactor",
        "convertClassicHistogramsToNHCB",
    ),
)


def _allowed(endpoints: str) -> AllowedFields:
    return AllowedFields(*_FIELDS, *(f"{endpoints}[].{field}" for field in (*NAMES, *FIELDS)))


class MonitorConfig(Config):
    """What tenants may ask of the host's Prometheus."""

    token_urls: tuple[str, ...] = ()
    """Addresses that an endpoint's ``oauth2.tokenUrl`` may have, as they are written there. None by
    default: the host's Prometheus would connect to any address."""

    least_interval: Duration = Field(default=5.0, ge=0)
    """The shortest ``interval`` of an endpoint: the host's Prometheus has its memory and CPU for
    all tenants."""


class _Monitor(Mirror[MonitorConfig]):
    """The base of both.

    They have no status for the tenant, as it would name the host's Prometheuses.
    """

    down = ("spec",)
    #: The resource of the selected objects.
    selected: ClassVar[Resource]
    #: The field of the spec with the endpoints.
    endpoints: ClassVar[str]
    #: The fields that tenants may set.
    allowed: ClassVar[AllowedFields]

    def translate(self, ctx: Context[MonitorConfig], virtual: Obj) -> Obj:
        """Return the copy.

        It selects only this tenant's objects in the namespaces that the monitor names.

        Raises:
            Refused: The monitor has a field that tenants may not set.
        """
        given = virtual.get("spec") or {}
        listed = given.get(self.endpoints)
        for index, endpoint in enumerate(listed if isinstance(listed, list) else ()):
            path = f"spec.{self.endpoints}[{index}]"
            refuse(endpoint, path, token_urls=ctx.config.token_urls)
            refuse_short(endpoint, path, least=ctx.config.least_interval)
        self.allowed.refuse_others(given, at="spec")
        host, namespace = super().translate(ctx, virtual), key_of(virtual).namespace
        spec = host.get("spec") or {}
        # A target could redirect Prometheus to any address that it reaches.
        endpoints = [each | {"followRedirects": False} for each in spec.get(self.endpoints) or []]
        copied = {
            "selector": narrowed(ctx, spec, namespace),
            "namespaceSelector": namespace_selector(ctx, spec, namespace, self.selected),
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
    allowed = _allowed("endpoints")


class PodMonitorSyncer(_Monitor):
    """Scrapes Pods."""

    name = "podmonitors"
    section = "toHost.podMonitors"
    resource = POD_MONITORS
    selected = PODS
    endpoints = "podMetricsEndpoints"
    references = named_in("podMetricsEndpoints")
    allowed = _allowed("podMetricsEndpoints")
