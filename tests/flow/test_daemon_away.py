"""The daemon is away for an hour: no pod is deleted, and what was done meanwhile has its effect afterwards.

In a virtual cluster of the chart no controller judges Nodes, which only the daemon renews: kube-controller-manager
runs without node-lifecycle, taint-eviction and pod-garbage-collector (`hack/planes.py`; the chart has the same list).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from harness import HOME, Two, host_path, until
from restart_scene import TOKEN

from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import Obj, is_deleting, uid_of
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, node, pod, service, serviceaccount

HOUR = 3600.0
NAMES = [f"web-{number}" for number in range(5)]


def web(name: str) -> Obj:
    """Return a pod with a token and a ConfigMap."""
    volumes = [TOKEN, {"name": "c", "configMap": {"name": "settings"}}]
    return pod(name, spec={"volumes": volumes})


@contextlib.asynccontextmanager
async def host_at_work(two: Two) -> AsyncIterator[None]:
    """Let the host's scheduler and kubelet work meanwhile; the kubelet reports each pod and the node every minute."""

    def work(minute: int) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "lastProbeTime": f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z",
        }
        running = {"phase": "Running", "startTime": "2026-01-01T00:00:05Z", "conditions": [ready]}
        for each in two.host.objects("pods"):
            if is_deleting(each):
                two.host.delete("pods", f"{HOME}/{each['metadata']['name']}")
            else:
                two.host.put(merged(each, {"spec": {"nodeName": "n1"}, "status": running}))
        for each in two.host.objects("nodes"):
            two.host.put(merged(each, {"status": {"conditions": [ready]}}))

    async def forever() -> None:
        for second in range(10_000):
            if second % 60 in (0, 5):
                work(second // 60)
            await asyncio.sleep(1)

    async with helped_by(forever()):
        yield


def uids(server: ApiServer, namespace: str) -> dict[str, str]:
    return {each["metadata"]["name"]: uid_of(each) for each in server.objects("pods", namespace)}


def deleted_pods(server: ApiServer) -> list[str]:
    return [one.path for one in server.requests if one.verb.startswith("delete") and one.resource == "pods"]


@pytest.mark.parametrize("how", ["ended", "cut off"])
async def test_pods_outlive_an_hour_without_the_daemon(two: Two, how: str) -> None:
    two.host.put(node("n1"))
    for obj in (serviceaccount("default"), configmap("settings"), service("web"), *map(web, NAMES)):
        two.virtual.put(obj)
    async with host_at_work(two), contextlib.AsyncExitStack() as stack:
        daemon = await stack.enter_async_context(two.daemon())
        await until(lambda: all(phase(two, name) == "Running" for name in NAMES))
        await daemon.settled()
        virtual, host = uids(two.virtual, "shop"), uids(two.host, HOME)

        if how == "ended":
            await stack.aclose()
        else:
            for server in (two.virtual, two.host):
                server.faults.add(Rule(reset="before"))
                server.faults.add(Rule(verb="watch", cut=True))
        await asyncio.sleep(HOUR / 2)
        two.virtual.delete("pods", "shop/web-0")
        two.virtual.put(web("younger"))
        await asyncio.sleep(HOUR / 2)
        assert uids(two.host, HOME) == host
        for server in (two.virtual, two.host):
            server.faults.clear()

        async with two.daemon() if how == "ended" else contextlib.nullcontext():
            await until(lambda: phase(two, "younger") == "Running", within=120)
            await until(lambda: two.copy("pods", "web-0") is None)
            await asyncio.sleep(120)
        assert without(uids(two.virtual, "shop"), "younger") == without(virtual, "web-0")
        assert without(uids(two.host, HOME), copy("younger")) == without(host, copy("web-0"))
        assert {path.rpartition("/")[2] for path in deleted_pods(two.host)} == {copy("web-0")}
        assert deleted_pods(two.virtual) == []


def phase(two: Two, name: str) -> str:
    return str((two.original("pods", name) or {}).get("status", {}).get("phase"))


def copy(name: str) -> str:
    return host_path(name).partition("/")[2]


def without(found: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in found.items() if key != name}
