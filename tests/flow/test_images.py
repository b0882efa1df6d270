"""Pods whose images the operator maps: each way down has the host's names, and nothing fights about them."""

from typing import Any

from harness import NAMESPACE, Two, until
from patrol_scene import outcomes, patrolled, scanned

from syncer.api import Key, Obj, Side
from syncer.clusters.client import SideClient
from syncer.resources.kinds import PODS
from syncer.testing.merge import merged
from syncer.testing.objects import pod

MIRROR = "registry.example.com/mirror/"
OPTIONS: dict[str, Any] = {"pods": {"images": {"*": MIRROR}}}
HUB = f"{MIRROR}docker.io/library/"
SIZE = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
VOLUME = {"name": "model", "image": {"reference": "model:1", "pullPolicy": "IfNotPresent"}}
CONTAINERS = {
    "containers": [{"name": "app", "image": "nginx:1", "resources": SIZE}],
    "initContainers": [{"name": "init", "image": "busybox:1"}],
    "volumes": [VOLUME],
}
POD = pod("web", spec=CONTAINERS)


def images(two: Two) -> list[str]:
    spec = (two.copy("pods", "web") or {})["spec"]
    parts = ("containers", "initContainers", "ephemeralContainers")
    named = [container["image"] for part in parts for container in spec.get(part) or ()]
    return [*named, *(volume["image"]["reference"] for volume in spec["volumes"] if "image" in volume)]


async def changed(two: Two, spec: Obj, subresource: str = "") -> None:
    """Let the tenant patch their Pod, as kubectl does."""
    tenant = SideClient("tenant", Side.VIRTUAL, two.virtual.transport())
    await tenant.patch(PODS, Key(NAMESPACE, "web"), {"spec": spec}, kind="strategic", subresource=subresource)


async def test_mapped_images_hold_for_the_life_of_a_pod(two: Two) -> None:
    two.virtual.put(POD)
    async with patrolled(two, OPTIONS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        assert images(two) == [f"{HUB}nginx:1", f"{HUB}busybox:1", f"{HUB}model:1"]

        await changed(two, {"containers": [{"name": "app", "image": "nginx:2"}]})
        await until(lambda: f"{HUB}nginx:2" in images(two))
        await changed(two, {"containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}]}, "resize")
        await changed(two, {"ephemeralContainers": [{"name": "debug", "image": "busybox:2"}]}, "ephemeralcontainers")
        await until(lambda: f"{HUB}busybox:2" in images(two))
        await daemon.settled()
        assert images(two) == [f"{HUB}nginx:2", f"{HUB}busybox:1", f"{HUB}busybox:2", f"{HUB}model:1"]

        running = {
            "name": "app",
            "image": f"{HUB}nginx:2",
            "imageID": "x",
            "ready": True,
            "restartCount": 0,
            "state": {},
        }
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [running]}
        two.host.put(merged(two.copy("pods", "web") or {}, {"status": status}))
        await until(lambda: (two.original("pods", "web") or {})["status"].get("containerStatuses"))
        await daemon.settled()
        own = two.original("pods", "web") or {}
        assert own["status"]["containerStatuses"][0]["image"] == f"{HUB}nginx:2", "what the kubelet runs"
        assert own["spec"]["containers"][0]["image"] == "nginx:2", "what the tenant wrote"

        assert outcomes(await scanned(daemon, "pods")) == []
        assert daemon.status("web", "pods") is None, "it is in step"

    since = len(two.host.requests)
    async with patrolled(two, {"pods": {"images": {"*": "other.example.com/"}}}) as daemon:
        await daemon.settled()
        assert outcomes(await scanned(daemon, "pods")) == []
        assert [one for one in list(two.host.requests)[since:] if one.verb == "patch"] == [], "it is as it was created"
