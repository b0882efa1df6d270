"""A host that measures pods, and a tenant with two of them on two nodes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubelet_scene import NODE, SETTINGS
from single_requests import SingleRequests

from syncer.api.objects import Key, Obj, Side, key_of, uid_of
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse
from syncer.kubelet.usage import Copied, Usages
from syncer.resources.kinds import PODS

FIGURES = "/apis/metrics.k8s.io/v1beta1/namespaces/vc-shop/pods"
FRONT, BACK = Key("web", "front"), Key("data", "back")


def copy_name(key: Key) -> str:
    """Return the name of a Pod's copy."""
    return SETTINGS.names.to_host(PODS, key).name


def virtual(key: Key, node: str = NODE, *containers: str, started: str = "2026-01-01T00:00:00Z") -> Obj:
    """Return a running virtual Pod."""
    names = containers or ("main",)
    statuses = [{"name": name, "state": {"running": {"startedAt": started}}} for name in names]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "uid": f"u-{key.name}",
            "labels": {"app": key.name},
        },
        "spec": {"nodeName": node, "containers": [{"name": name} for name in names]},
        "status": {"startTime": started, "containerStatuses": statuses},
    }


def measured(name: str, usage: Mapping[str, tuple[str, str]], second: int = 0) -> Obj:
    """Return the figures of a host pod, by container: CPU and memory."""
    return {
        "metadata": {"name": name, "namespace": "vc-shop", "labels": {"secret": "of the host"}},
        "timestamp": f"2026-01-01T10:00:{second:02}Z",
        "window": "10s",
        "containers": [{"name": each, "usage": {"cpu": cpu, "memory": mem}} for each, (cpu, mem) in usage.items()],
    }


@dataclass
class Measuring(SingleRequests):
    """The host."""

    figures: list[Obj] = field(default_factory=list)
    #: Tenant's Pods, by the names of their copies.
    pods: dict[str, Obj] = field(default_factory=dict)
    status: int = 200
    asked: list[str] = field(default_factory=list)
    reported: list[tuple[str, str]] = field(default_factory=list)

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request.path)
        body: Any = {"kind": "PodMetricsList", "metadata": {}, "items": self.figures}
        if self.status != 200:
            reason = {404: "NotFound", 403: "Forbidden", 503: "ServiceUnavailable"}[self.status]
            body = {"kind": "Status", "code": self.status, "reason": reason, "message": "at 10.0.0.1"}
        return HttpResponse(self.status, {}, json.dumps(body).encode())

    def usages(self) -> Usages:
        """Return what reads its figures."""
        cluster = SideClient("host", Side.HOST, self)
        return Usages(SETTINGS, cluster, self._copied, lambda *reported: self.reported.append(reported))

    def _copied(self, key: Key) -> Copied | None:
        """Return a Pod with those of its containers that it was created with."""
        found = self.pods.get(key.name)
        if found is None:
            return None
        names = frozenset(each["name"] for each in found["spec"]["containers"])
        return Copied(key_of(found), uid_of(found), found, names)


def measuring() -> Measuring:
    """Return a host with the figures of two Pods of the tenant, and of a pod that isn't."""
    host = Measuring()
    host.pods = {copy_name(FRONT): virtual(FRONT), copy_name(BACK): virtual(BACK, "node2")}
    host.figures = [
        measured(copy_name(FRONT), {"main": ("250m", "64Mi"), "istio-proxy": ("1", "1Gi")}),
        measured(copy_name(BACK), {"main": ("1500000n", "1000Ki")}),
        measured("kube-dns", {"main": ("1", "1Gi")}),
    ]
    return host
