"""A cluster: its caches, its live client, and what happens while it can't be reached."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from fleet_scene import CONFIG_MAPS, PODS, SECRETS, Site, eventually, running

from kube_envtest import Rule
from syncer.api import ConfigError, Conflict, Key, NotFound, Obj, Resource, labels_of
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream
from syncer.multicluster import (
    Cluster,
    ClusterCacheOptions,
    ClusterOptions,
    ConnectionSettings,
    NotRunning,
    NotSynced,
    WatchOptions,
)
from syncer.resources.kinds import NODES
from syncer.testing.objects import crd, node, pod, secret

A, B = Key("shop", "a"), Key("shop", "b")


def thing(name: str, data: Mapping[str, str] | None = None, *, namespace: str = "shop") -> Obj:
    """A Secret, as Kubernetes itself makes none."""
    return secret(name, data or {"color": "blue"}, namespace=namespace)


def colour(obj: Obj | None) -> str | None:
    return b64decode(obj["data"]["color"]).decode() if obj else None


def encoded(value: str) -> Obj:
    return {"data": {"color": b64encode(value.encode()).decode()}}


class Changes:
    """What a subscriber is told: names, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, key: Key, _: Obj) -> None:
        self.names.append(key.name)


# -- reads ---------------------------------------------------------------------------------------------


async def test_cached_reads_wait_for_the_first_list_and_ask_nothing_afterwards() -> None:
    site = Site("eu", thing("a"), thing("b", namespace="bank"))
    async with running(site):
        assert colour(await site.cluster.get(SECRETS, A)) == "blue"
        assert await site.cluster.get(SECRETS, B) is None
        assert [each["metadata"]["name"] for each in await site.cluster.list(SECRETS)] == ["b", "a"]
        assert [each["metadata"]["name"] for each in await site.cluster.list(SECRETS, namespace="bank")] == ["b"]
        assert len(site.requests("list", SECRETS)) == 1
        assert site.requests("get", SECRETS) == []


async def test_cached_list_is_of_a_label_selector() -> None:
    site = Site("eu", pod("a", metadata={"labels": {"app": "web"}}), pod("b"))
    async with running(site):
        found = await site.cluster.list(PODS, selector={"matchLabels": {"app": "web"}})
        assert [labels_of(each) for each in found] == [{"app": "web"}]


async def test_informer_is_the_same_for_the_same_arguments() -> None:
    cluster = Site("eu").cluster
    assert cluster.informer(PODS) is cluster.informer(PODS)
    assert cluster.informer(PODS, namespace="shop") is cluster.informer(PODS, namespace="shop")
    assert cluster.informer(PODS, selector="app=web") is not cluster.informer(PODS)
    assert len({cluster.informer(PODS), cluster.informer(PODS, namespace="shop"), cluster.informer(CONFIG_MAPS)}) == 3


async def test_informer_of_a_part_asks_the_api_server_for_that_part() -> None:
    site = Site("eu", pod("a", metadata={"labels": {"app": "web"}}), pod("b"), pod("a", namespace="bank"))
    web = site.cluster.informer(PODS, namespace="shop", selector="app=web")
    async with running(site):
        await web.wait_synced(5)
        assert list(web.keys()) == [A]
        assert site.requests("list", PODS) == ["/api/v1/namespaces/shop/pods"]


async def test_informer_begins_when_it_is_asked_for_while_the_cluster_runs_and_not_before() -> None:
    site = Site("eu", thing("a"))
    early = site.cluster.informer(SECRETS)
    await asyncio.sleep(5)
    assert not early.synced
    async with running(site):
        await early.wait_synced(5)
        assert site.requests("list", CONFIG_MAPS) == []
        await site.cluster.list(CONFIG_MAPS)
        assert len(site.requests("list", CONFIG_MAPS)) == 1


async def test_namespace_of_the_options_limits_requests_and_reads() -> None:
    site = Site("eu", thing("a"), node("n1"), options=ClusterOptions(namespace="shop"))
    async with running(site):
        assert await site.cluster.get(SECRETS, A)
        assert await site.cluster.get(NODES, Key("", "n1")), "a cluster-scoped resource is of no namespace"
        assert site.requests("list", SECRETS) == ["/api/v1/namespaces/shop/secrets"]
        assert site.cluster.informer(SECRETS) is site.cluster.informer(SECRETS, namespace="shop")
        with pytest.raises(ValueError, match=r"cluster eu caches namespace shop alone; read 'bank' by its client"):
            await site.cluster.get(SECRETS, Key("bank", "a"))
        with pytest.raises(ValueError, match="bank"):
            site.cluster.informer(SECRETS, namespace="bank")


async def test_live_resource_is_read_in_the_namespace_of_the_options_alone_and_never_cached() -> None:
    options = ClusterOptions(namespace="shop", disable_for=frozenset([SECRETS, NODES]))
    site = Site(
        "eu", thing("a"), thing("b", {"color": "red"}), thing("a", namespace="bank"), node("n1"), options=options
    )
    site.cluster.add_index(SECRETS, "colour", lambda obj: [colour(obj)])
    async with running(site):
        assert len(await site.cluster.list(SECRETS)) == len(await site.cluster.list(SECRETS, namespace="shop")) == 2
        assert [each["metadata"]["name"] for each in await site.cluster.by_index(SECRETS, "colour", "red")] == ["b"]
        assert len(await site.cluster.list(NODES)) == 1
        assert set(site.requests("list", SECRETS)) == {"/api/v1/namespaces/shop/secrets"}
        assert site.requests("watch", SECRETS) == []
        assert list(site.cluster.informers()) == []
        with pytest.raises(KeyError):
            await site.cluster.by_index(SECRETS, "unknown", "red")
        for resource in (SECRETS, CONFIG_MAPS):
            with pytest.raises(ValueError, match="caches namespace shop alone; read 'bank' by its client"):
                await site.cluster.list(resource, namespace="bank")


async def test_index_finds_objects_whether_added_before_or_after_the_start() -> None:
    many = [thing(f"c{number}", {"color": "red" if number % 2 else "blue"}) for number in range(300)]
    site = Site("eu", *many)
    site.cluster.add_index(SECRETS, "before", lambda obj: [colour(obj)])
    async with running(site):
        assert len(await site.cluster.by_index(SECRETS, "before", "red")) == 150
        site.cluster.add_index(SECRETS, "after", lambda obj: [colour(obj)])
        assert len(await site.cluster.by_index(SECRETS, "after", "red")) == 150
        site.server.put(thing("c1", {"color": "green"}))
        site.server.delete("secrets", Key("shop", "c3"))
        await eventually(lambda: len(site.cluster.informer(SECRETS)) == 299)
        assert len(await site.cluster.by_index(SECRETS, "before", "red")) == 148
        assert len(await site.cluster.by_index(SECRETS, "after", "red")) == 148
        with pytest.raises(KeyError):
            await site.cluster.by_index(SECRETS, "unknown", "red")


async def test_resource_of_a_name_is_found_when_its_definition_comes_later() -> None:
    site = Site("eu")
    assert await site.cluster.resource("pods") == PODS
    with pytest.raises(NotFound, match=r"there is no resource foos\.example\.org"):
        await site.cluster.resource("foos.example.org")
    site.server.put(crd("foos.example.org"))
    assert (await site.cluster.resource("foos.example.org")).kind == "Foo"


async def test_resync_shows_all_objects_to_subscribers_again() -> None:
    site = Site("eu", thing("a"), options=ClusterOptions(resync=100.0))
    changes = Changes()
    site.cluster.informer(SECRETS).add_handler(changes)
    async with running(site):
        await asyncio.sleep(80)
        assert changes.names == ["a"]
        await asyncio.sleep(40)
        assert changes.names == ["a", "a"]


# -- writes --------------------------------------------------------------------------------------------


async def test_writes_are_in_the_cache_at_once_though_the_watch_is_late() -> None:
    site = Site("eu", thing("a"), options=ClusterOptions(sync_timeout=1.0))
    cluster = site.cluster
    async with running(site):
        await cluster.list(SECRETS)
        site.server.faults.add(Rule(verb="watch", drop=True))
        created = await cluster.create(SECRETS, thing("b", {"color": "red"}))
        assert colour(await cluster.get(SECRETS, B)) == "red"
        await cluster.patch(SECRETS, B, encoded("green"))
        assert colour(await cluster.get(SECRETS, B)) == "green"
        with pytest.raises(Conflict):
            await cluster.replace(SECRETS, created | encoded("white"))
        created["metadata"].pop("resourceVersion")
        await cluster.replace(SECRETS, created | encoded("black"))
        assert colour(await cluster.get(SECRETS, B)) == "black"
        await cluster.delete(SECRETS, B)
        assert await cluster.get(SECRETS, B) is None
        generated = thing("x")
        generated["metadata"] = {"namespace": "shop", "generateName": "a-"}
        name = (await cluster.create(SECRETS, generated))["metadata"]["name"]
        assert await cluster.get(SECRETS, Key("shop", name))


async def test_writes_notify_subscribers_of_the_cluster_as_those_of_others_do() -> None:
    site = Site("eu", thing("a"))
    changes = Changes()
    async with running(site):
        await site.cluster.list(SECRETS)
        site.cluster.informer(SECRETS).add_handler(changes)
        await site.cluster.patch(SECRETS, A, encoded("green"))
        await site.cluster.delete(SECRETS, A)
        await eventually(lambda: len(changes.names) >= 2)
        await asyncio.sleep(5)
        assert changes.names == ["a", "a"], "the watch brings nothing new"


async def test_status_is_written_by_its_subresource_alone() -> None:
    site = Site("eu", pod("a"))
    async with running(site):
        assert await site.cluster.get(PODS, A)
        await site.cluster.patch(PODS, A, {"status": {"phase": "Failed"}, "spec": {"x": 1}}, subresource="status")
        changed = await site.cluster.get(PODS, A)
        assert changed is not None
        assert changed["status"]["phase"] == "Failed"
        assert "x" not in changed["spec"]


async def test_write_leaves_caches_of_other_parts_alone() -> None:
    site = Site("eu", thing("b"))
    bank = site.cluster.informer(SECRETS, namespace="bank")
    red = site.cluster.informer(SECRETS, selector="color=red")
    async with running(site):
        await bank.wait_synced(5)
        await red.wait_synced(5)
        await site.cluster.create(SECRETS, thing("a"))
        assert (len(bank), len(red)) == (0, 0)
        assert len(await site.cluster.list(SECRETS)) == 2


# -- aliases, connections ------------------------------------------------------------------------------


async def test_alias_shares_client_and_caches_even_those_that_come_later() -> None:
    site = Site("eu", thing("a"))
    alias = site.cluster.alias("agent")
    assert (alias.name, str(alias)) == ("agent", "agent")
    assert alias.is_alias_of(site.cluster)
    assert not alias.is_alias_of(Site("eu").cluster)
    assert alias.client is site.cluster.client
    async with running(site):
        assert await alias.get(SECRETS, A)
        assert alias.is_running
        assert site.cluster.informer(SECRETS) is alias.informer(SECRETS)
        assert len(site.requests("list", SECRETS)) == 1
        with pytest.raises(NotRunning, match="runs already"):
            await alias.run()


async def test_kubeconfig_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        Cluster("eu", ConnectionSettings(str(tmp_path / "none")), environ={})


async def test_cluster_speaks_with_its_own_name() -> None:
    site = Site("eu")
    with pytest.raises(NotFound, match=r"^cluster eu: get secrets shop/a"):
        await site.cluster.client.get(SECRETS, A)


# -- outages -------------------------------------------------------------------------------------------


async def test_deletions_missed_by_a_broken_watch_are_notified() -> None:
    site = Site("eu", *(thing(f"c{number}") for number in range(100)))
    changes = Changes()
    async with running(site):
        await site.cluster.list(SECRETS)
        site.cluster.informer(SECRETS).add_handler(changes)
        site.server.faults.add(broken := Rule(verb="watch", status=503))
        site.server.cut_watches()
        for number in range(1, 100):
            site.server.delete("secrets", Key("shop", f"c{number}"))
        site.server.compact()
        site.server.faults.remove(broken)
        await eventually(lambda: len(changes.names) == 99, "each deletion is told")
        assert len(await site.cluster.list(SECRETS)) == 1


async def test_deletions_missed_by_a_stopped_cluster_are_notified_over_another_client() -> None:
    site = Site("eu", thing("a"), thing("b"))
    changes = Changes()
    cluster = site.cluster
    async with running(site):
        await cluster.list(SECRETS)
        cluster.informer(SECRETS).add_handler(changes)
        with pytest.raises(NotRunning, match="stop it"):
            cluster.use(site.new_client())
    assert not cluster.is_running
    site.server.delete("secrets", A)
    cluster.use(site.new_client())
    async with running(site):
        await eventually(lambda: changes.names)
        assert changes.names == ["a"]
        assert [each["metadata"]["name"] for each in await cluster.list(SECRETS)] == ["b"]
        site.server.delete("secrets", B)
        await eventually(lambda: len(changes.names) == 2)


async def test_dead_cluster_delays_neither_another_nor_its_own_readers() -> None:
    dead, hung, good = Site("dead", thing("a")), Site("hung"), Site("good", thing("a"))
    dead.server.faults.add(down := Rule(reset="before"))
    hung.server.freeze()
    loop = asyncio.get_running_loop()
    async with running(dead, hung, good):
        assert await good.cluster.get(SECRETS, A)
        assert loop.time() < 1, "a cluster waits for another"
        with pytest.raises(NotSynced, match=r"cluster hung: secrets aren't listed after 5 s|can't be listed") as late:
            await hung.cluster.get(SECRETS, A)
        assert late.value.cluster == "hung"
        assert loop.time() < 11
        before = loop.time()
        for cluster in (dead.cluster, hung.cluster):
            with pytest.raises(NotSynced, match="can't be listed") as known:
                await cluster.get(SECRETS, A)
            assert known.value.__cause__ is cluster.error is not None
        assert loop.time() == before, "a reader waits for a cluster that is known to be dead"
        dead.server.faults.remove(down)
        await eventually(lambda: dead.cluster.error is None)
        assert await dead.cluster.get(SECRETS, A)


async def test_dead_cluster_is_asked_by_one_request_at_a_time_however_many_caches_it_has() -> None:
    site = Site("dead")
    for resource in (SECRETS, PODS, CONFIG_MAPS):
        site.cluster.informer(resource)
    site.server.faults.add(Rule(status=503))
    async with running(site):
        await asyncio.sleep(600)
        assert {one.path for one in site.server.requests} == {"/version"}
        assert len(site.server.requests) < 80


async def test_resource_that_cannot_be_listed_fails_its_own_reads_alone() -> None:
    site = Site("eu", thing("a"))
    site.server.faults.add(broken := Rule(resource="configmaps", status=503))
    async with running(site):
        with pytest.raises(NotSynced, match="configmaps can't be listed"):
            await site.cluster.list(CONFIG_MAPS)
        assert await site.cluster.get(SECRETS, A)
        site.server.faults.remove(broken)
        await eventually(lambda: site.cluster.error is None)
        assert await site.cluster.list(CONFIG_MAPS)


async def test_selector_that_is_none_is_refused_instead_of_selecting_everything() -> None:
    plain = {"copy": "yes"}
    with pytest.raises(
        ValueError, match=r"labels of WatchOptions is no LabelSelector: .* write \{'matchLabels': \{'copy'"
    ):
        WatchOptions(labels=plain)
    with pytest.raises(ValueError, match="annotations of WatchOptions"):
        WatchOptions(annotations=plain)
    with pytest.raises(ValueError, match="selector of ClusterCacheOptions"):
        ClusterCacheOptions(user_agent="test", selector=plain)
    site = Site("eu")
    async with running(site):
        with pytest.raises(ValueError, match="selector is no LabelSelector"):
            await site.cluster.list(PODS, selector=plain)
        with pytest.raises(ValueError, match="selector is no LabelSelector"):
            site.cluster.informer(PODS, selector=plain)
        same = site.cluster.informer(PODS, selector={"matchLabels": plain})
        assert same is site.cluster.informer(PODS, selector="copy=yes")


async def test_read_of_a_cluster_that_does_not_run_names_the_remedy() -> None:
    with pytest.raises(NotSynced, match="aren't listed after 5 s; nobody runs this cluster"):
        await Site("eu").cluster.list(PODS)


async def test_resource_that_is_not_served_is_named_in_the_log_once_with_a_hint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = Site("eu", pod("a"))
    site.cluster.informer(Resource("v1", "Pod", "podz"))
    async with running(site):
        await asyncio.sleep(600)
    output = [line for line in capsys.readouterr().err.splitlines() if "can't be listed or watched" in line]
    assert len(output) == 1
    assert "podz" in output[0]
    assert "is its plural right" in output[0]


async def test_cluster_that_answers_no_more_is_named_in_the_log_once_however_many_caches_it_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = Site("eu", pod("a"))
    for resource in (PODS, SECRETS, CONFIG_MAPS):
        site.cluster.informer(resource)
    async with running(site):
        await eventually(lambda: all(each.synced for each in site.cluster.informers()))
        site.server.freeze()
        await asyncio.sleep(1800)
    assert capsys.readouterr().err.count("no answer from a cluster") == 1


@pytest.mark.parametrize(
    ("settings", "manager"),
    [
        ({}, "vsyncer"),
        ({"user_agent": "fleet-controller/1.2 (linux)"}, "fleet-controller"),
        ({"user_agent": "fleet/1", "field_manager": "a b"}, "a%20b"),
    ],
)
async def test_field_manager_is_the_users_or_that_of_the_user_agent(
    settings: Any, manager: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    made = Cluster("eu", ConnectionSettings(kubeconfig=str(file), **settings))
    assert isinstance(made.client.transport, HttpTransport)
    assert made.client.transport.dialer.user_agent == settings.get("user_agent", "vsyncer")
    sent = Sent()
    made.client.transport = sent
    await made.client.create(PODS, pod("a"))
    await made.client.replace(PODS, pod("a"))
    await made.client.patch(PODS, Key("shop", "a"), {"metadata": {}})
    assert [path.rpartition("fieldManager=")[2] for path in sent.paths] == [manager] * 3
    assert made.owns_client


class Sent:
    """A transport that notes the paths of requests."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.paths.append(request.path)
        return HttpResponse(200, {}, request.body or b"{}")

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None:
        """Close nothing."""


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: eu
contexts: [{name: eu, context: {cluster: eu, user: me}}]
clusters: [{name: eu, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {token: t}}]
"""
