"""Clusters that are objects of the management cluster."""

import asyncio
import threading
from pathlib import Path

import pytest
from fleet_scene import PODS, SECRETS, Site, eventually, leaving_nothing, running
from remote_scene import LOCALS, REMOTES, Notes, Scene, login, remote

from kube_envtest import ADMIN, Rule
from syncer.api import Key, Obj
from syncer.multicluster import (
    Client,
    Cluster,
    ClusterRegistry,
    Manager,
    RemoteClusters,
    Request,
)
from syncer.testing.in_process import ApiServer
from syncer.testing.objects import crd, pod, secret


async def test_object_with_a_secret_is_spawned_and_ready() -> None:
    scene = Scene()
    async with scene.process() as registry:
        scene.manage.server.put(remote("shop"))
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert scene.requests == [Request("shop", "shop", "eu-pod")]
        obj = scene.manage.server.get("remotes.example.org", Key("", "shop")) or {}
        assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        assert list(registry.status()) == ["shop"]
        before = obj["metadata"]["resourceVersion"]
        await asyncio.sleep(100)
        assert (scene.manage.server.get("remotes.example.org", Key("", "shop")) or {})["metadata"][
            "resourceVersion"
        ] == before


async def test_restarted_process_spawns_all_again_though_nothing_was_edited() -> None:
    scene = Scene()
    for _ in range(2):
        async with scene.process() as registry:
            scene.manage.server.put(remote("shop")) if not scene.requests else None
            await eventually(lambda: registry.status().get("shop"))
            await eventually(lambda: scene.requests)
            scene.requests.clear()
            scene.sites["eu"].server.put(pod(f"new{len(scene.sites['eu'].server.requests)}"))
            await eventually(lambda: scene.requests)


async def test_changed_secret_leads_to_another_connection() -> None:
    scene = Scene()
    scene.manage.server.put(remote("shop"))
    async with scene.process() as registry:
        await eventually(lambda: scene.ready() == ("True", "Running"))
        scene.manage.server.put(login("us"))
        await eventually(lambda: Request("shop", "shop", "us-pod") in scene.requests)
        assert scene.sites["eu"].server.open_watches == 0
        assert list(registry.status()) == ["shop"]


async def test_missing_secret_or_key_is_awaited() -> None:
    scene = Scene()
    scene.manage.server.put(remote("shop", "other"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("False", "KubeconfigMissing"))
        obj = scene.manage.server.get("remotes.example.org", Key("", "shop")) or {}
        obj["status"]["conditions"][0]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
        scene.manage.server.put(obj)
        scene.manage.server.put(login("eu", secret_name="other", key="config"))
        await eventually(lambda: scene.ready() == ("False", "KeyMissing"))
        assert scene.since() == "2020-01-01T00:00:00Z"
        scene.manage.server.put(login("eu", secret_name="other"))
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert scene.since() > "2020-01-01T00:00:00Z"


async def test_secret_of_a_namespace_that_is_not_listed_is_refused_and_the_others_notice_nothing() -> None:
    scene = Scene()
    scene.secrets_in = ""
    scene.namespaces = ["logins"]
    scene.manage.server.put(secret("login", {"kubeconfig": "us"}, namespace="kube-system"))
    scene.manage.server.put(remote("shop", namespace="kube-system"))
    scene.manage.server.put(remote("other"))
    async with scene.process() as registry:
        await eventually(lambda: scene.ready() == ("False", "Refused"))
        assert scene.message() == "Secrets of namespace 'kube-system' are not read for it, but only of: logins"
        await eventually(lambda: scene.ready("other") == ("True", "Running"))
        assert list(registry.status()) == ["other"]
        assert len(scene.sites["us"].server.requests) == 0
        scene.manage.server.put(remote("shop"))
        await eventually(lambda: scene.ready() == ("True", "Running"))
        scene.manage.server.put(remote("shop", namespace="kube-system"))
        await eventually(lambda: scene.ready() == ("False", "Refused"))
        assert list(registry.status()) == ["other"], "they are stopped"


async def test_cluster_wide_object_may_name_secrets_of_the_cache_or_of_listed_namespaces_alone() -> None:
    scene = Scene()
    scene.manage.server.put(remote("shop"))
    scene.secrets_in = ""
    async with scene.process():
        await eventually(lambda: scene.ready() == ("False", "Refused"))
        assert scene.message() == "Secrets of namespace 'logins' are not read for it, as no namespaces are listed"
    scene.secrets_in = "logins"
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))


async def test_namespaced_object_may_name_secrets_of_its_own_namespace_alone() -> None:
    scene = Scene()
    scene.resource, scene.secrets_in = LOCALS, ""
    scene.manage.server.put(crd("locals.example.org"))
    scene.manage.server.put(secret("login", {"kubeconfig": "us"}, namespace="shop"))
    for name, namespace in (("own", "shop"), ("none", ""), ("foreign", "logins")):
        obj = remote(name, namespace=namespace, kind=LOCALS)
        scene.manage.server.put({**obj, "metadata": {**obj["metadata"], "namespace": "shop"}})
    async with scene.process() as registry:
        await eventually(lambda: scene.ready(Key("shop", "foreign")) == ("False", "Refused"))
        assert scene.message(Key("shop", "foreign")).endswith("but only of: shop")
        keys = [Key("shop", "own"), Key("shop", "none")]
        await eventually(lambda: [scene.ready(key) for key in keys] == [("True", "Running")] * 2)
        assert sorted(registry.status()) == ["shop/none", "shop/own"]
        assert len(scene.sites["eu"].server.requests) == 0


async def test_object_with_a_malformed_reference_is_reported_and_awaited() -> None:
    scene = Scene()
    odd: list[object] = ["x", {"secretRef": ["x"]}, {"secretRef": {"namespace": 5, "name": {}, "key": []}}]
    for number, given in enumerate(odd):
        scene.manage.server.put({**remote(f"odd{number}"), "spec": {"kubeConfig": given}})
    scene.manage.server.put(remote("shop"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))
        names = [f"odd{number}" for number in range(len(odd))]
        await eventually(lambda: [scene.ready(name) for name in names] == [("False", "Refused")] * len(odd))


async def test_deleted_object_stops_its_controllers_and_keeps_foreign_finalizers() -> None:
    scene = Scene()
    scene.manage.server.put(remote("shop", finalizers=["example.org/foreign"]))
    async with scene.process() as registry:
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert scene.finalizers() == ["example.org/foreign", "vsyncer.dev/remote-cluster"]
        await scene.manage.new_client().delete(REMOTES, Key("", "shop"))
        await eventually(lambda: scene.finalizers() == ["example.org/foreign"])
        assert registry.status() == {}
        assert scene.sites["eu"].server.open_watches == 0


async def test_cluster_that_cannot_be_reached_is_retried_and_delays_no_other() -> None:
    scene = Scene()
    scene.sites["us"].server.faults.add(down := Rule(reset="before"))
    scene.manage.server.put(login("us", secret_name="dead"))
    scene.manage.server.put(remote("a-dead", "dead"))
    scene.manage.server.put(remote("shop"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert asyncio.get_running_loop().time() < 5
        await eventually(lambda: scene.ready("a-dead") == ("False", "Unreachable"))
        scene.sites["us"].server.faults.remove(down)
        await eventually(lambda: scene.ready("a-dead") == ("True", "Running"))


async def test_clusters_that_hang_delay_no_other_however_many_they_are() -> None:
    scene = Scene()
    scene.sites["us"].server.faults.add(Rule(latency=1000.0))
    scene.manage.server.put(login("us", secret_name="hangs"))
    for number in range(6):
        scene.manage.server.put(remote(f"a{number}", "hangs"))
    scene.manage.server.put(remote("shop"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert asyncio.get_running_loop().time() < 5


async def test_agent_is_installed_before_the_controllers_start_and_again_after_each_change() -> None:
    scene, agent = Scene(), Notes()
    scene.agent, agent.fault = agent, RuntimeError("no image")
    scene.manage.server.put(remote("shop"))
    async with scene.process() as registry:
        await eventually(lambda: scene.installed() == ("False", "RuntimeError"))
        assert scene.ready() == ("False", "NotInstalled")
        assert registry.status() == {}
        agent.fault = None
        await eventually(lambda: scene.installed() == ("True", "Installed") and scene.ready() == ("True", "Running"))
        assert scene.sites["eu"].server.get("namespaces", Key("", "agent"))
        agent.calls.clear()
        scene.sites["eu"].server.put(pod("new"))
        scene.manage.server.put(login("eu", key="kubeconfig") | {"metadata": {"namespace": "logins", "name": "login"}})
        await asyncio.sleep(100)
        assert agent.calls == []
        obj = scene.manage.server.get("remotes.example.org", Key("", "shop")) or {}
        scene.manage.server.put({**obj, "spec": {**obj["spec"], "version": "2"}})
        await eventually(lambda: agent.calls == ["install"])
        scene.manage.server.put(login("us"))
        await eventually(lambda: agent.calls == ["install"] * 2)
        await eventually(lambda: scene.ready() == ("True", "Running"))
        assert scene.sites["us"].server.get("namespaces", Key("", "agent"))
    async with scene.process():
        await eventually(lambda: agent.calls == ["install"] * 3)
        assert scene.installed() == ("True", "Installed")


async def test_deleted_object_stays_until_its_agent_is_uninstalled() -> None:
    scene, agent = Scene(), Notes()
    scene.agent = agent
    scene.manage.server.put(remote("shop"))
    async with scene.process() as registry:
        await eventually(lambda: scene.ready() == ("True", "Running"))
        agent.fault = RuntimeError("not now")
        await scene.manage.new_client().delete(REMOTES, Key("", "shop"))
        await eventually(lambda: scene.installed() == ("Unknown", "RuntimeError"))
        assert registry.status() == {}
        assert scene.finalizers() == ["vsyncer.dev/remote-cluster"]
        scene.manage.server.delete("secrets", Key("logins", "login"))
        await eventually(lambda: scene.installed() == ("Unknown", "KubeconfigMissing"))
        scene.manage.server.put(login("eu"))
        agent.fault = None
        await eventually(lambda: scene.finalizers() is None)
        assert scene.sites["eu"].server.get("namespaces", Key("", "agent")) is None
        assert agent.calls[-1] == "uninstall"
        await eventually(lambda: scene.closed == scene.opened)
        scene.manage.server.put(remote("shop"))
        await eventually(lambda: agent.calls[-1] == "install")


async def test_agent_that_never_returns_is_ended_and_reported() -> None:
    class Hanging(Notes):
        hangs = True

        async def install(self, client: Client, obj: Obj) -> None:
            await super().install(client, obj)
            if self.hangs and obj["metadata"]["name"] == "shop":
                await asyncio.Event().wait()

        async def uninstall(self, client: Client, obj: Obj) -> None:
            if self.hangs:
                await asyncio.Event().wait()
            await super().uninstall(client, obj)

    scene = Scene()
    scene.agent = agent = Hanging()
    scene.manage.server.put(remote("shop"))
    scene.manage.server.put(remote("other"))
    async with scene.process() as registry:
        await eventually(lambda: scene.ready("other") == ("True", "Running"))
        assert asyncio.get_running_loop().time() < 5
        await eventually(lambda: scene.installed() == ("False", "CallbackTimeout"))
        assert asyncio.get_running_loop().time() == pytest.approx(30.0, abs=0.5)
        assert scene.ready() == ("False", "NotInstalled")
        assert list(registry.status()) == ["other"]
        await scene.manage.new_client().delete(REMOTES, Key("", "shop"))
        await eventually(lambda: scene.installed() == ("Unknown", "CallbackTimeout"))
        agent.hangs = False
        await eventually(lambda: scene.finalizers() is None)
    assert scene.opened == scene.closed


@pytest.mark.real_time
async def test_agent_that_is_not_async_runs_in_a_thread() -> None:
    class Blocking:
        def __init__(self) -> None:
            self.threads: list[threading.Thread] = []

        def install(self, client: Client, obj: Obj) -> None:
            self.threads.append(threading.current_thread())

        def uninstall(self, client: Client, obj: Obj) -> None:
            self.threads.append(threading.current_thread())

    scene = Scene()
    scene.agent = agent = Blocking()
    scene.manage.server.put(remote("shop"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("True", "Running"))
        await scene.manage.new_client().delete(REMOTES, Key("", "shop"))
        await eventually(lambda: scene.finalizers() is None)
    assert len(agent.threads) == 2
    assert threading.main_thread() not in agent.threads


async def test_agent_that_was_never_begun_needs_no_uninstall() -> None:
    scene, agent = Scene(), Notes()
    scene.agent = agent
    scene.manage.server.put(remote("shop", "missing"))
    async with scene.process():
        await eventually(lambda: scene.ready() == ("False", "KubeconfigMissing"))
        assert scene.installed() == ("", "")
        await scene.manage.new_client().delete(REMOTES, Key("", "shop"))
        await eventually(lambda: scene.finalizers() is None)
    assert agent.calls == []


def test_new_token_is_used_and_a_kubeconfig_that_runs_programs_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        scene = Scene()
        shop = scene.sites["eu"]
        shop.server = ApiServer(tokens={"one": ADMIN, "two": ADMIN})
        shop.server.put(pod("a"))
        await shop.server.start(tls=True)
        written = shop.server.kubeconfig(tmp_path / "shop").read_text()
        assert "token: one" in written
        manage = Site("manage").cluster
        manage.use(scene.manage.new_client("manage"))
        registry = ClusterRegistry(manage, factories=[scene._pods])
        remotes = RemoteClusters(registry, REMOTES, secrets=manage.informer(SECRETS, namespace="logins"), environ={})
        manager = Manager()
        manager.add(remotes.controller)
        scene.manage.server.put(login(written))
        scene.manage.server.put(remote("shop"))

        async def agent(cluster: Cluster) -> int:
            await cluster.client.list(PODS)
            return id(cluster.client)

        async with registry, running(manager):
            await eventually(lambda: scene.ready() == ("True", "Running"))
            before = await registry.with_client("shop", agent)
            lists = len([one for one in shop.server.requests if one.verb in ("list", "watch")])
            scene.manage.server.put(login(written.replace("token: one", "token: two")))
            await asyncio.sleep(1)
            del shop.server._parts.tokens.users["one"]
            assert await registry.with_client("shop", agent) == before
            shop.server.put(pod("b"))
            await eventually(lambda: Request("shop", "shop", "b") in scene.requests)
            assert len([one for one in shop.server.requests if one.verb in ("list", "watch")]) == lists + 1
            scene.manage.server.put(login(written.replace("token: one", "exec: {command: /bin/true}")))
            await eventually(lambda: scene.ready() == ("False", "Refused"))
        await shop.server.stop()

    asyncio.run(leaving_nothing(scene()))
