"""A plugin's kind has operators of the host do no more than the tenant may: with the packages under `plugins/`."""

from typing import Any

from hostile_scene import FOREIGN, HostileScene, eventually

from syncer.api import Obj, Resource, key_of
from syncer.testing.objects import build, crd

ISSUERS = Resource("cert-manager.io/v1", "Issuer", "issuers")
MONITORS = Resource("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")
WIDGETS = Resource("example.org/v1", "Widget", "widgets")
#: Ways for an ACME challenge to be solved, each of which would have the host's cert-manager do what the tenant may not.
SOLVERS: dict[str, Obj] = {
    "ingress": {"http01": {"ingress": {"ingressTemplate": {"metadata": {"annotations": {"a/snippet": "x"}}}}}},
    "pod": {"http01": {"ingress": {"podTemplate": {"spec": {"priorityClassName": "system-node-critical"}}}}},
    "gateway": {"http01": {"gatewayHTTPRoute": {"parentRefs": [{"name": "gate", "namespace": FOREIGN}]}}},
    "unknown": {"dns01": {"unheardOf": {"apiKeySecretRef": {"name": "host-secret"}}}},
}
#: What would have the host's Prometheus use its credentials, or connect to any address.
SCRAPES: dict[str, Obj] = {
    "class": {"scrapeClass": "host-class"},
    "metadata": {"attachMetadata": {"node": True}},
    "address": {"endpoints": [{"relabelings": [{"targetLabel": "__address__", "replacement": "10.0.0.1:80"}]}]},
    "file": {"endpoints": [{"bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}]},
}


def _start(hostile: HostileScene, plugin: str, resource: Resource) -> None:
    """Start the daemon with a plugin, whose kind both sides have."""
    assert hostile.add_plugins(plugin)
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List"}
    for server in (hostile.tenant, hostile.operator):
        server.put(crd(str(resource), spec={"names": names}))
    hostile.plugins = {"serviceMonitors" if resource is MONITORS else resource.plural: {}}
    hostile.start()


def _refused(hostile: HostileScene, obj: Obj) -> None:
    """Wait until an object is parked; it has no copy."""
    key = str(key_of(obj))
    eventually(lambda: hostile.copy(obj) or key in {each["key"] for each in hostile.parked()}, f"{key} is parked")
    assert hostile.copy(obj) is None


def test_issuer_makes_no_object_of_a_tenants_choice(hostile: HostileScene) -> None:
    """0aeb964 copies each of them."""
    _start(hostile, "cert-manager", ISSUERS)
    acme = {"server": "https://acme.example", "privateKeySecretRef": {"name": "key"}}
    for name, solver in SOLVERS.items():
        spec = {"acme": {**acme, "solvers": [solver]}}
        _refused(hostile, hostile.tenant.put(build(ISSUERS, name, spec=spec)))
    assert hostile.copied(hostile.tenant.put(build(ISSUERS, "plain", spec={"selfSigned": {}})))
    hostile.serves_others()


def test_monitor_has_the_hosts_prometheus_go_nowhere_else(hostile: HostileScene) -> None:
    """0aeb964 copies the three first."""
    _start(hostile, "prometheus-operator", MONITORS)
    base: dict[str, Any] = {"selector": {"matchLabels": {"app": "a"}}, "endpoints": [{"port": "web"}]}
    for name, spec in SCRAPES.items():
        _refused(hostile, hostile.tenant.put(build(MONITORS, name, spec={**base, **spec})))
    assert hostile.copied(hostile.tenant.put(build(MONITORS, "plain", spec=base)))
    hostile.serves_others()


def test_marks_in_a_template_of_a_plugins_kind_stay_behind(hostile: HostileScene) -> None:
    """0aeb964 copies them all: what an operator makes with these would look like a copy of the daemon's."""
    _start(hostile, "template", WIDGETS)
    forged = {
        "vsyncer.dev/cluster": "vc.vc-ns",
        "replicator.v1.mittwald.de/replicate-from": "kube-system/token",
        "tenancy.x-k8s.io/super.public": "true",
    }
    given = {"metadata": {"labels": {**forged, "app": "a"}, "annotations": forged}}
    made = hostile.tenant.put(build(WIDGETS, "w", spec={"size": 1, "templates": [given]}))
    copy = hostile.copied(made)
    assert copy["spec"]["templates"] == [{"metadata": {"labels": {"app": "a"}, "annotations": {}}}]
    assert "annotations[replicator.v1.mittwald.de/replicate-from] of a template" in hostile.event_message(
        made, "NotCopied"
    )
