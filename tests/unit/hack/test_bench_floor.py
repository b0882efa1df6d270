"""The floor copies objects with the fewest requests, and drops the echoes of its own writes."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hack.bench.daemon import Daemon
from hack.bench.floor import LABELS, Floor, metrics
from hack.bench.phases import HOST_NAMESPACE, NAMESPACE, Bench, Load
from hack.kubelet import Kubelet, is_ready
from hack.side_tasks import helped_by
from kube_envtest import Rule, virtual_time
from syncer.api import Key, NotFound, Side, dig
from syncer.clusters.client import SideClient
from syncer.resources.kinds import CONFIG_MAPS, PODS
from syncer.testing.in_process import ApiServer
from syncer.testing.objects import namespace, serviceaccount

VIRTUAL = Key(NAMESPACE, "a")
HOST = Key(HOST_NAMESPACE, "a")


class World:
    """A floor between two API servers."""

    def __init__(self) -> None:
        self.virtual_server = ApiServer(seed="virtual", controllers=False)
        self.host_server = ApiServer(seed="host", controllers=False)
        self.virtual_server.put(namespace(NAMESPACE))
        self.virtual_server.put(serviceaccount("default", namespace=NAMESPACE))
        self.host_server.put(namespace(HOST_NAMESPACE))
        self.virtual = SideClient("virtual", Side.VIRTUAL, self.virtual_server.transport())
        self.host = SideClient("host", Side.HOST, self.host_server.transport())
        self.floor = Floor(self.virtual, self.host)
        self._sent = Counter[str]()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the floor, and the simulation of a kubelet on the host."""
        kubelet = Kubelet(self.host, HOST_NAMESPACE, pause=1.0)
        async with helped_by(kubelet.run(), self.floor.run(lambda: None)):
            await asyncio.sleep(1)
            yield

    async def sent(self) -> dict[str, int]:
        """Return the requests of the floor since the last call, by method, after all is done."""
        await asyncio.sleep(10)
        new = self.floor.sent - self._sent
        self._sent = Counter(self.floor.sent)
        return dict(new)


async def test_config_map_takes_one_request_for_each_change() -> None:
    world = World()
    load = Load()
    async with world.running():
        await world.virtual.create(CONFIG_MAPS, load.make("a", 0))
        assert await world.sent() == {"POST": 1}
        copy = await world.host.get(CONFIG_MAPS, HOST)
        assert copy["data"] == load.make("a", 0)["data"]
        assert copy["metadata"]["labels"] == LABELS
        assert copy["metadata"]["annotations"]["vsyncer.dev/virtual-name"] == "a"

        await world.virtual.patch(CONFIG_MAPS, VIRTUAL, load.change("a"))
        assert await world.sent() == {"PATCH": 1}
        copy = await world.host.get(CONFIG_MAPS, HOST)
        assert copy["data"]["revision"] == "1"
        assert copy["metadata"]["annotations"]["revision"] == "1"

        await world.virtual.delete(CONFIG_MAPS, VIRTUAL)
        assert await world.sent() == {"DELETE": 1}
        with pytest.raises(NotFound):
            await world.host.get(CONFIG_MAPS, HOST)


async def test_pod_takes_five_requests_from_create_to_gone() -> None:
    world = World()
    async with world.running():
        await world.virtual.create(PODS, Load(kind="pods").make("a", 0))
        assert await world.sent() == {"POST": 2, "PATCH": 1}
        pod = await world.virtual.get(PODS, VIRTUAL)
        assert is_ready(pod)
        assert dig(pod, "spec.nodeName") == "node-1"

        await world.virtual.delete(PODS, VIRTUAL)
        assert await world.sent() == {"DELETE": 2}
        for cluster, key in ((world.virtual, VIRTUAL), (world.host, HOST)):
            with pytest.raises(NotFound):
                await cluster.get(PODS, key)


def test_refused_request_ends_the_floor_with_its_status() -> None:
    async def live() -> None:
        world = World()
        world.host_server.faults.add(Rule(verb="create", path="*/configmaps", status=403))
        async with world.running():
            await world.virtual.create(CONFIG_MAPS, Load().make("a", 0))
            await asyncio.sleep(10)

    with pytest.raises(ExceptionGroup) as raised:
        virtual_time.run(live())
    assert raised.group_contains(RuntimeError, match=r"POST .* of the host cluster got status 403")


@pytest.fixture
def ended(tmp_path: Path) -> Daemon:
    daemon = Daemon({}, tmp_path)
    daemon.log.write_text("the API server has ended the watch")
    daemon.process = subprocess.Popen([sys.executable, "-c", ""])
    daemon.process.wait()
    return daemon


async def test_objects_of_a_process_that_has_ended_are_not_awaited(ended: Daemon) -> None:
    nobody: Any = None
    bench = Bench(Load(n=1), nobody, nobody, ended)
    bench.waiting.expect(1)
    with pytest.raises(SystemExit, match="has ended the watch"):
        await bench._all_arrived()


def test_requests_and_open_ones_are_the_metrics_of_the_floor() -> None:
    floor = World().floor
    floor.sent["POST"] = 3
    floor.open_requests = 1
    assert metrics(floor).splitlines() == [
        "workqueue_depth 1",
        'rest_client_requests_total{method="POST"} 3',
    ]
