"""The simulated kubelet counts what others have overwritten, and nothing that it has written itself."""

import asyncio

from hack.kubelet import Kubelet, is_ready
from hack.side_tasks import helped_by
from kube_envtest import Rule, virtual_time
from syncer.api import Key, Side
from syncer.clusters.client import SideClient
from syncer.resources.kinds import PODS
from syncer.testing.in_process import ApiServer
from syncer.testing.objects import pod

WEB = Key("default", "web")


async def overwritten(*, loses_reply: bool = False, meddles: bool = False) -> int:
    """Return the count of a kubelet that may lose the reply to its last report, and whose status somebody may clear."""
    server = ApiServer(controllers=False)
    cluster = SideClient("host", Side.HOST, server.transport())
    kubelet = Kubelet(cluster, WEB.namespace, pause=1.0)
    async with helped_by(kubelet.run()):
        await asyncio.sleep(1)
        await cluster.create(PODS, pod(WEB.name, namespace=WEB.namespace))
        await asyncio.sleep(1.5)
        if loses_reply:
            server.faults.add(Rule(verb="patch", path="*/status", reset="after", count=1))
        await asyncio.sleep(30)
        assert is_ready(await cluster.get(PODS, WEB))
        if meddles:
            await cluster.patch(PODS, WEB, {"status": {"conditions": None}}, subresource="status")
            await asyncio.sleep(1)
    return kubelet.overwritten


def test_status_that_somebody_overwrites_is_counted() -> None:
    assert virtual_time.run(overwritten(meddles=True)) == 1


def test_report_with_a_lost_reply_is_repeated_and_not_counted() -> None:
    assert virtual_time.run(overwritten(loses_reply=True)) == 0
