"""The daemon's own client on real sockets, talking to the in-process API server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cluster_servers import PATIENCE, over_tls

from kube_envtest import ApiServer, Rule
from syncer.api import Key, Resource, Side
from syncer.api.errors import Expired, Invalid, NotFound, Unreachable
from syncer.clusters import client, codec, pieces
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Discovery
from syncer.clusters.errors import FailedRequest, from_failure
from syncer.clusters.transport import HttpRequest, HttpResponse, LineSplitter, ReplyTooLarge

pytestmark = pytest.mark.real_time

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
KEY = Key("default", "a")


def config_map(name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def test_objects(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        made = await cluster.create(CONFIG_MAPS, config_map())
        assert made == server.get(CONFIG_MAPS, KEY)
        changed = await cluster.patch(CONFIG_MAPS, KEY, {"data": {"x": "1"}})
        assert changed["data"] == {"x": "1"}
        assert [obj["metadata"]["name"] for obj in await cluster.list(CONFIG_MAPS, namespace="default")] == [
            "a",
            "kube-root-ca.crt",
        ]
        await cluster.delete(CONFIG_MAPS, KEY, uid=made["metadata"]["uid"])
        with pytest.raises(NotFound):
            await cluster.get(CONFIG_MAPS, KEY)


async def test_watches(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
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


async def test_resets(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        server.faults.add(Rule(verb="create", reset="after", count=1))
        with pytest.raises(Unreachable):
            await cluster.create(CONFIG_MAPS, config_map())
        assert server.get(CONFIG_MAPS, KEY) is not None


async def test_discovery(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (_, cluster):
        discovery = Discovery(cluster)
        await discovery.refresh()
        assert discovery.find("po").kind == "Pod"
        assert discovery.has_status(discovery.find("deployments"))
        assert not discovery.has_status(CONFIG_MAPS)


async def test_watch_is_closed_with_its_connection(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        async with cluster.watch(CONFIG_MAPS, resource_version=str(server.revision)):
            assert server.open_watches == 1
        async with asyncio.timeout(PATIENCE):
            while server.open_watches:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)


# -- sizes -----------------------------------------------------------------------------------------

KB = 1000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read little of a response."""
    monkeypatch.setattr(client, "LARGEST_PAGE", 20 * KB)
    monkeypatch.setattr(client, "LARGEST_REPLY", 30 * KB)
    monkeypatch.setattr(client, "STEP_BYTES", 5 * KB)
    monkeypatch.setattr(LineSplitter, "LONGEST", 30 * KB)


def filled(server: ApiServer, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        server.put({**config_map(name), "data": {"a": "x" * size}})


def limited(cluster: SideClient, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the limits of the requests for pages, in order; more are added with each."""
    found: list[int] = []
    send = cluster.transport.send

    async def noted(request: HttpRequest) -> HttpResponse:
        found.append(int(parse_qs(urlsplit(request.path).query)["limit"][0]))
        return await send(request)

    monkeypatch.setattr(cluster.transport, "send", noted)
    return found


@pytest.mark.usefixtures("small")
async def test_page_over_the_bound_is_requested_with_fewer_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        limits = limited(cluster, monkeypatch)
        filled(server, {f"a{number:02}": 5 * KB for number in range(10)} | {f"b{number:02}": 1 for number in range(40)})
        pages = [page async for page in cluster.list_pages(CONFIG_MAPS, namespace="default", limit=32)]
        names = [codec.head(raw).key.name for page in pages for raw in page.items]
        assert names == sorted(set(names))
        assert len(names) == 51, "with kube-root-ca.crt"
        assert len({page.resource_version for page in pages}) == 1
        assert limits[:3] == [32, 8, 2]
        assert (limits[3], max(limits[3:])) == (2, 8), "there is room for more again"
        assert max(sum(len(bytes(raw)) for raw in page.items) for page in pages) < 12 * KB


@pytest.mark.usefixtures("small")
async def test_object_over_the_bound_comes_without_its_contents_and_others_whole(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        filled(server, {"a": 1, "b": 40 * KB, "c": 25 * KB, "d": 40 * KB})
        found = {one["metadata"]["name"]: one for one in await cluster.list(CONFIG_MAPS, namespace="default")}
        assert found.keys() == {"a", "b", "c", "d", "kube-root-ca.crt"}
        assert {name for name, one in found.items() if codec.UNREADABLE in one} == {"b", "d"}
        there = server.get(CONFIG_MAPS, Key("default", "b")) or {}
        assert found["b"]["metadata"]["uid"] == there["metadata"]["uid"]
        assert (found["b"]["kind"], "data" in found["b"]) == ("ConfigMap", False)
        assert found["c"]["data"] == {"a": "x" * 25 * KB}


@pytest.mark.usefixtures("small")
async def test_large_malformed_page_is_requested_with_fewer_objects_and_cut_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To cut up a page of 8 MiB would take seconds of a step of the event loop."""
    cut: list[int] = []
    elements = pieces.elements

    def noted(text: bytes) -> Iterator[bytes]:
        cut.append(len(text))
        return elements(text)

    monkeypatch.setattr(codec, "MOST_CUT", 4 * KB)
    monkeypatch.setattr(pieces, "elements", noted)
    async with over_tls(tmp_path) as (server, cluster):
        filled(server, {f"a{number}": KB for number in range(8)} | {"b": 8 * KB, "c": 1})
        for name in ("a3", "b"):
            there = server.get(CONFIG_MAPS, Key("default", name)) or {}
            annotated = there["metadata"] | {"annotations": {"malformed": "x"}}
            server.put(there | {"metadata": annotated})
        lie = Rule(verb="list", rewrite=lambda sent: sent.replace(b'"malformed":"x"', b'"malformed":nope'))
        server.faults.add(lie)
        limits = limited(cluster, monkeypatch)
        pages = [page async for page in cluster.list_pages(CONFIG_MAPS, namespace="default", limit=32)]
        found = {codec.head(raw).key.name: codec.observed(raw) for page in pages for raw in page.items}
        assert found.keys() == {*(f"a{number}" for number in range(8)), "b", "c", "kube-root-ca.crt"}
        assert {name for name, one in found.items() if codec.UNREADABLE in one} == {"a3", "b"}
        assert 0 < max(cut) <= 4 * KB
        assert min(limits) == 1


def test_answer_over_the_bound_is_no_lost_connection() -> None:
    failure = ReplyTooLarge(16 << 20)
    error = from_failure(failure, FailedRequest("vc", Side.VIRTUAL, "get", CONFIG_MAPS, KEY))
    assert (type(error), str(error)) == (
        Invalid,
        "virtual cluster vc: get configmaps default/a: the reply is larger than 16 MiB",
    )


@pytest.mark.usefixtures("small")
async def test_event_over_the_bound_makes_the_watch_expire(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster), cluster.watch(CONFIG_MAPS, namespace="default") as watch:
        filled(server, {"b": 40 * KB})
        with pytest.raises(Expired, match="the reply is larger than"):
            async for _ in watch:
                pass
