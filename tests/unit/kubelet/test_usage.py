"""Figures of a tenant's Pods are those of the host's metrics.k8s.io, and of no pod of others."""

import asyncio

import pytest
from kubelet_scene import NODE
from usage_scene import BACK, FIGURES, FRONT, copy_name, measured, measuring, virtual

from syncer.kubelet import usage
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.usage import NANO, amount


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("250m", NANO, 250_000_000),
        ("1234567n", NANO, 1_234_567),
        ("3", NANO, 3 * NANO),
        ("17u", NANO, 17_000),
        ("0", 1, 0),
        ("64Mi", 1, 64 << 20),
        ("1000Ki", 1, 1_024_000),
        ("1.5Gi", 1, 3 << 29),
        ("129e6", 1, 129_000_000),
        ("1k", 1, 1000),
        ("100m", 1, 1),
    ],
)
def test_quantity_is_read(text: str, unit: int, expected: int) -> None:
    assert amount(text, unit) == expected


@pytest.mark.parametrize("text", ["", "Mi", "1 Mi", "1.2.3", "1e999", "-", "1x", "9" * 5000])
def test_quantity_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        amount(text)


async def test_figures_are_those_of_the_tenants_own_containers() -> None:
    found = await measuring().usages().pods()
    assert {key: (pod.node, pod.cpu, pod.memory) for key, pod in found.items()} == {
        FRONT: (NODE, 250_000_000, 64 << 20),
        BACK: ("node2", 1_500_000, 1_024_000),
    }


async def test_figures_of_a_node_are_the_sum_of_its_pods() -> None:
    host = measuring()
    host.pods[copy_name(BACK)] = virtual(BACK, NODE)
    found = await host.usages().nodes()
    assert {name: (node.cpu, node.memory) for name, node in found.items()} == {
        NODE: (251_500_000, (64 << 20) + 1_024_000)
    }


async def test_host_is_asked_once_for_several_and_only_when_somebody_asks() -> None:
    host = measuring()
    usages = host.usages()
    assert host.asked == []
    await asyncio.gather(*(usages.pods() for _ in range(5)), usages.nodes())
    [path] = host.asked
    assert path.startswith(f"{FIGURES}?labelSelector=vsyncer.dev%2Fcluster%3Dshop.vc-shop")


async def test_figures_are_kept_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "KEPT_SECONDS", 0.05)
    host = measuring()
    usages = host.usages()
    await usages.pods()
    await asyncio.sleep(0.1)
    await usages.pods()
    assert len(host.asked) == 2


async def test_cpu_time_grows_by_the_use_between_two_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "KEPT_SECONDS", 0.0)
    host = measuring()
    usages = host.usages()
    first = (await usages.pods())[FRONT].containers[0].seconds
    assert first == pytest.approx(2.5), "it begins with the window"
    host.figures = [measured(copy_name(FRONT), {"main": ("500m", "64Mi")}, second=20)]
    assert (await usages.pods())[FRONT].containers[0].seconds == pytest.approx(first + 10)
    assert (await usages.nodes())[NODE].seconds == pytest.approx(first + 10)
    assert (await usages.pods())[FRONT].containers[0].seconds == pytest.approx(first + 10), "nothing new is measured"
    host.pods[copy_name(FRONT)] = virtual(FRONT, started="2026-01-01T10:00:25Z")
    host.figures = [measured(copy_name(FRONT), {"main": ("500m", "64Mi")}, second=30)]
    assert (await usages.pods())[FRONT].containers[0].seconds == pytest.approx(5), "the container began again"


@pytest.mark.parametrize(("status", "why"), [(404, usage.ABSENT), (403, usage.FORBIDDEN), (503, usage.SILENT)])
async def test_host_without_figures_is_reported_without_its_names(
    status: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "AGAIN_SECONDS", 0.05)
    host = measuring()
    host.status, usages = status, host.usages()
    for _ in range(3):
        with pytest.raises(RefusedRequest) as refused:
            await usages.pods()
        assert (refused.value.status, refused.value.text) == (503, why)
    assert len(host.asked) == 1, "it is asked again only after a while"
    public, details = host.reported[-1]
    assert public == why
    assert details.startswith("host cluster: list pods.metrics.k8s.io")
    host.status = 200
    await asyncio.sleep(0.1)
    assert len(await usages.pods()) == 2
    assert host.reported[-1] == ("", "")


async def test_malformed_figures_of_a_pod_cost_that_pod_alone() -> None:
    host = measuring()
    host.figures[0] = {**host.figures[0], "timestamp": "yesterday"}
    host.figures.append(measured(copy_name(FRONT), {"main": ("a lot", "64Mi")}))
    assert set(await host.usages().pods()) == {BACK}
