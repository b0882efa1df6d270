"""metrics.k8s.io is registered in a virtual cluster while its host has it, and by the daemon alone."""

import asyncio
import base64
from typing import Any

import pytest
import trustme
from cryptography import x509
from harness import CLUSTER, Two, built_in
from small_syncers import Maps
from test_kubelet_conditions import kubelet, public

from syncer.daemon.kubelet.metrics_api import LOOK_SECONDS, SOON_SECONDS
from syncer.kubelet import usage
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.metrics_api import API_SERVICE, OBJECTS, SERVICE
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import build, crd, crd_version, pod

ADDRESS = "10.1.2.3"
FIGURES, API_SERVICES = "pods.metrics.k8s.io", "apiservices.apiregistration.k8s.io"


def measures(host: ApiServer) -> None:
    """Let a host serve the API."""
    names = {"kind": "PodMetrics", "listKind": "PodMetricsList", "singular": "podmetrics"}
    host.put(crd(FIGURES, [crd_version("v1beta1", storage=True)], spec={"names": names}))


def aggregates(virtual: ApiServer, *, proxy: bool = True) -> None:
    """Let a virtual API server have APIServices, and a front proxy."""
    names = {"kind": "APIService", "listKind": "APIServiceList", "singular": "apiservice"}
    virtual.put(crd(API_SERVICES, [crd_version("v1", storage=True)], scope="Cluster", spec={"names": names}))
    ca = trustme.CA().cert_pem.bytes().decode() if proxy else ""
    data = {"client-ca-file": ca, "requestheader-client-ca-file": ca}
    virtual.put(build(CONFIG_MAPS, "extension-apiserver-authentication", namespace="kube-system", data=data))


def registered(two: Two) -> list[Any]:
    """Return the objects that lead the virtual API server to the daemon, None for each that is missing."""
    return [two.virtual.get(str(resource), str(key).lstrip("/")) for resource, key in OBJECTS]


def options() -> dict[str, Any]:
    return {"address": ADDRESS}


async def test_absence_on_the_host_is_shown_and_in_an_event_of_a_node(two: Two) -> None:
    two.virtual.put(pod("web"))
    async with two.daemon(built_in("pods", "nodes", "serviceaccounts")) as daemon, kubelet(daemon):
        await asyncio.sleep(SOON_SECONDS)
        assert usage.ABSENT in public(daemon)
        await daemon.settled()
        two.host.put(merged(two.copy("pods", "web") or {}, {"spec": {"nodeName": "node-1"}}))
        await asyncio.sleep(30.0)
        messages = [each["message"] for each in two.virtual.objects("events") if each["reason"] == "KubeletServer"]
        assert messages.count(usage.ABSENT) == 1
        assert two.copy("pods", "web")
        measures(two.host)
        await asyncio.sleep(LOOK_SECONDS + SOON_SECONDS)
        assert usage.ABSENT not in public(daemon)


async def test_figures_that_are_off_are_neither_missed_nor_registered(two: Two) -> None:
    aggregates(two.virtual)
    async with two.daemon([Maps]) as daemon, kubelet(daemon, metrics=False):
        await asyncio.sleep(LOOK_SECONDS)
        assert usage.ABSENT not in public(daemon)
        assert registered(two) == [None] * 3


async def test_api_leads_to_the_daemon_and_goes_with_that_of_the_host(two: Two) -> None:
    measures(two.host)
    aggregates(two.virtual)
    async with two.daemon(built_in("services")) as daemon, kubelet(daemon, **options()):
        await asyncio.sleep(SOON_SECONDS)
        front, slices, service = registered(two)
        assert front["spec"]["service"] == {"name": SERVICE.name, "namespace": SERVICE.namespace, "port": 443}
        ca = x509.load_pem_x509_certificate(base64.b64decode(front["spec"]["caBundle"]))
        names = ca.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["vsyncer-metrics.kube-system.svc"]
        assert slices["endpoints"][0]["addresses"] == [ADDRESS]
        assert slices["metadata"]["labels"]["kubernetes.io/service-name"] == SERVICE.name
        assert slices["ports"][0]["name"] == service["spec"]["ports"][0]["name"]
        await daemon.settled()
        assert not [each for each in two.host.objects("services") if "vsyncer" in each["metadata"]["name"]]
        two.host.delete("customresourcedefinitions.apiextensions.k8s.io", FIGURES)
        await asyncio.sleep(LOOK_SECONDS + SOON_SECONDS)
        assert registered(two) == [None] * 3


async def test_object_that_a_tenant_changed_or_removed_is_as_before_a_minute_later(two: Two) -> None:
    measures(two.host)
    aggregates(two.virtual)
    async with two.daemon([Maps]) as daemon, kubelet(daemon, **options()):
        await asyncio.sleep(SOON_SECONDS)
        before = registered(two)
        two.virtual.put(merged(before[1], {"endpoints": [{"addresses": ["10.9.9.9"]}]}))
        two.virtual.delete("services", str(SERVICE))
        await asyncio.sleep(LOOK_SECONDS)
        after = registered(two)
        assert after[1]["endpoints"][0]["addresses"] == [ADDRESS]
        assert after[2] is not None
        assert after[0]["metadata"]["resourceVersion"] == before[0]["metadata"]["resourceVersion"]


async def test_api_of_the_tenants_own_metrics_server_is_left_alone(two: Two) -> None:
    measures(two.host)
    aggregates(two.virtual)
    own = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API_SERVICE.name},
        "spec": {"service": {"name": "metrics-server", "namespace": "kube-system"}},
    }
    two.virtual.put(own)
    async with two.daemon([Maps]) as daemon, kubelet(daemon, **options()):
        await asyncio.sleep(LOOK_SECONDS)
        api, *others = registered(two)
        assert api["spec"] == own["spec"]
        assert others == [None, None]
        assert "metrics" not in public(daemon)


@pytest.mark.parametrize("proxy", [True, False])
async def test_virtual_api_server_that_does_not_reach_the_daemon_is_shown(two: Two, proxy: bool) -> None:
    measures(two.host)
    aggregates(two.virtual, proxy=proxy)
    async with two.daemon([Maps]) as daemon, kubelet(daemon, **options()):
        await asyncio.sleep(SOON_SECONDS)
        if not proxy:
            assert "the virtual API server has no front proxy" in public(daemon)
            assert registered(two) == [None] * 3
            return
        message = f"failing or missing response from https://{ADDRESS}"
        set_condition(two, {"type": "Available", "status": "False", "message": message})
        await asyncio.sleep(SOON_SECONDS)
        assert "--enable-aggregator-routing=true" in public(daemon)
        assert ADDRESS not in public(daemon)
        assert message in daemon.process.pairs[CLUSTER].conditions["kubelet"].message
        set_condition(two, {"type": "Available", "status": "True"})
        await asyncio.sleep(SOON_SECONDS)
        assert "--enable-aggregator-routing" not in public(daemon)


def set_condition(two: Two, condition: dict[str, str]) -> None:
    """Write a condition of the APIService, as a kube-apiserver does."""
    two.virtual.put(merged(registered(two)[0], {"status": {"conditions": [condition]}}))
