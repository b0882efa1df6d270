"""A kubelet's pages about its node show the tenant's own Pods, and figures that Prometheus and metrics-server read."""

import json
from typing import Any

import pytest
from kubelet_scene import NODE, POD, request, scene, wait_until
from prometheus_client.parser import text_string_to_metric_families
from usage_scene import BACK, FRONT, copy_name, measuring, virtual

from syncer.byte_budget import ByteBudget
from syncer.kubelet import client, pages
from syncer.kubelet.listener import Bounds


async def page(path: str, *, status: int = 200, **server: Any) -> bytes:
    """Return a page of the node."""
    async with scene(**server) as here:
        found = await here.ask(path)
    assert found[0] == status, found
    return found[1]


async def test_pods_are_those_of_the_node() -> None:
    found = json.loads(await page("/pods"))
    assert (found["kind"], found["apiVersion"]) == ("PodList", "v1")
    assert [pod["metadata"]["name"] for pod in found["items"]] == [POD.name]


async def test_resource_metrics_are_those_of_the_pods_on_the_node() -> None:
    text = (await page("/metrics/resource", usages=measuring().usages())).decode()
    found = {
        sample.name: (dict(sample.labels), sample.value, sample.timestamp)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert BACK.name not in text, "it is on the other node"
    pod = {"namespace": "web", "pod": "front"}
    at = 1767261600.0
    assert found["container_cpu_usage_seconds_total"] == ({**pod, "container": "main"}, 2.5, at)
    assert found["container_memory_working_set_bytes"] == ({**pod, "container": "main"}, 64 << 20, at)
    assert found["container_start_time_seconds"] == ({**pod, "container": "main"}, 1767225600.0, None)
    assert found["pod_cpu_usage_seconds_total"] == (pod, 2.5, at)
    assert found["pod_memory_working_set_bytes"] == (pod, 64 << 20, at)
    assert found["node_cpu_usage_seconds_total"] == ({}, 2.5, at)
    assert found["node_memory_working_set_bytes"] == ({}, 64 << 20, at)
    assert found["resource_scrape_error"] == ({}, 0.0, None)


async def test_summary_is_that_of_the_pods_on_the_node() -> None:
    found = json.loads(await page("/stats/summary", usages=measuring().usages()))
    at = "2026-01-01T10:00:00Z"
    figures = {
        "cpu": {"time": at, "usageNanoCores": 250_000_000, "usageCoreNanoSeconds": 2_500_000_000},
        "memory": {"time": at, "workingSetBytes": 64 << 20},
    }
    started = {"startTime": "2026-01-01T00:00:00Z"}
    assert found == {
        "node": {"nodeName": NODE, **figures},
        "pods": [
            {
                "podRef": {"name": "front", "namespace": "web", "uid": "u-front"},
                **started,
                "containers": [{"name": "main", **started, **figures}],
                **figures,
            }
        ],
    }


async def test_node_without_figures_has_pages_without_them() -> None:
    host = measuring()
    host.pods = {copy_name(FRONT): virtual(FRONT, "node2")}
    usages = host.usages()
    assert b"node_cpu" not in await page("/metrics/resource", usages=usages)
    assert json.loads(await page("/stats/summary", usages=usages)) == {"node": {"nodeName": NODE}, "pods": []}


@pytest.mark.parametrize("path", ["/metrics/resource", "/stats/summary"])
async def test_page_of_figures_has_the_reason_why_there_are_none(path: str) -> None:
    host = measuring()
    host.status = 404
    assert b"no metrics.k8s.io" in await page(path, status=503, usages=host.usages())
    assert b"kubelet.metrics is off" in await page(path, status=404)


async def test_page_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LARGEST_PAGE", 100)
    assert b"the answer would take more than" in await page("/pods", status=413)


async def test_user_who_may_not_read_a_page_gets_none() -> None:
    async with scene(usages=measuring().usages()) as here:
        for path in ("/pods", "/metrics/resource", "/stats/summary"):
            status, body = await here.ask(path, tls=here.tls("mallory"))
            assert (status, b"front" in body) == (403, False)


async def test_large_page_takes_memory_until_its_client_has_it_or_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TAKE_SECONDS", 0.5)
    monkeypatch.setattr(pages, "pod_list", lambda pods: b"x" * (8 << 20))
    budget = ByteBudget(20 << 20, divided=True)
    async with scene(bounds=Bounds(budget)) as here:
        reader, writer = await here.connect()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request("/pods"))
        await wait_until(lambda: budget.used > 8 << 20)
        status, body = await here.ask("/pods")
        assert (status, b"there is no room for" in body) == (503, True)
        await wait_until(lambda: budget.used == 0)
        status, body = await here.ask("/pods")
        assert (status, len(body)) == (200, 8 << 20)
        writer.transport.abort()
