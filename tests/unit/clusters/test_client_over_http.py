"""The daemon's own client on real sockets, talking to the in-process API server."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kube_envtest import ApiServer, Rule
from syncer.api import Key, Resource, Side
from syncer.api.errors import Missing, Unreachable
from syncer.clusters.client import Cluster
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.clusters.discovery import Discovery

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
KEY = Key("default", "a")

Scene = Callable[[ApiServer, Cluster], Coroutine[Any, Any, None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scene], None]:
    """Run a scene with a server and a client that talks to it over TLS."""

    async def run(scene: Scene) -> None:
        server = ApiServer(rbac=True)
        await server.start(tls=True)
        config = server.kubeconfig(tmp_path / "config")
        settings = ConnectionSettings(kubeconfig=str(config))
        cluster = connect(settings, side=Side.HOST, environ={})
        try:
            await scene(server, cluster)
        finally:
            await cluster.close()
            await server.stop()

    return lambda scene: asyncio.run(run(scene))


def config_map(name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_objects(play: Callable[[Scene], None]) -> None:
    async def scene(server: ApiServer, cluster: Cluster) -> None:
        made = await cluster.create(CONFIG_MAPS, config_map())
        assert made == server.get(CONFIG_MAPS, KEY)
        changed = await cluster.patch(CONFIG_MAPS, KEY, {"data": {"x": "1"}})
        assert changed["data"] == {"x": "1"}
        assert [obj["metadata"]["name"] for obj in await cluster.list(CONFIG_MAPS, namespace="default")] == [
            "a",
            "kube-root-ca.crt",
        ]
        await cluster.delete(CONFIG_MAPS, KEY, uid=made["metadata"]["uid"])
        with pytest.raises(Missing):
            await cluster.get(CONFIG_MAPS, KEY)

    play(scene)


def test_watches(play: Callable[[Scene], None]) -> None:
    async def scene(server: ApiServer, cluster: Cluster) -> None:
        async with cluster.watch(CONFIG_MAPS, resource_version=str(server.revision)) as watch:
            await cluster.create(CONFIG_MAPS, config_map())
            async for events in watch:
                assert [event.type for event in events] == ["ADDED"]
                break
        async with cluster.watch(CONFIG_MAPS, resource_version=str(server.revision)) as watch:
            assert server.open_watches >= 1
            server.restart()
            with pytest.raises(Unreachable):
                async for _ in watch:
                    pass

    play(scene)


def test_resets(play: Callable[[Scene], None]) -> None:
    async def scene(server: ApiServer, cluster: Cluster) -> None:
        server.faults.add(Rule(verb="create", reset="after", count=1))
        with pytest.raises(Unreachable):
            await cluster.create(CONFIG_MAPS, config_map())
        assert server.get(CONFIG_MAPS, KEY) is not None

    play(scene)


def test_discovery(play: Callable[[Scene], None]) -> None:
    async def scene(server: ApiServer, cluster: Cluster) -> None:
        discovery = Discovery(cluster)
        await discovery.refresh()
        assert discovery.find("po").kind == "Pod"
        assert discovery.has_status(discovery.find("deployments"))
        assert not discovery.has_status(CONFIG_MAPS)

    play(scene)


def test_watch_is_closed_with_its_connection(play: Callable[[Scene], None]) -> None:
    async def scene(server: ApiServer, cluster: Cluster) -> None:
        async with cluster.watch(CONFIG_MAPS, resource_version=str(server.revision)):
            assert server.open_watches == 1
        async with asyncio.timeout(10):
            while server.open_watches:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)

    play(scene)
