"""Several virtual clusters in one host namespace: one watch for each kind, and to each its own objects."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from harness import (
    ALL,
    HOME,
    Daemon,
    Tenant,
    add,
    built_in,
    configured,
    host_path,
    namespace,
    serving,
    until,
    writes,
)

from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import Key, Obj, Side, labels_of
from syncer.names import SingleNamespace
from syncer.resources.kinds import CONFIG_MAPS, EVENTS
from syncer.testing import ApiServer
from syncer.testing.objects import configmap, pod_mounting, secret

NAMES = ("one", "two", "three", "four")


class Shared:
    """A host with a namespace for all virtual clusters."""

    def __init__(self) -> None:
        self.host = ApiServer(seed="host")
        self.host.put(namespace(HOME))
        self.servers = {name: self.server(name) for name in NAMES}

    def server(self, name: str) -> ApiServer:
        """Return a new virtual API server."""
        server = ApiServer(seed=name)
        server.put(namespace("shop"))
        return server

    @contextlib.asynccontextmanager
    async def daemon(self, *syncers: str, **options: Any) -> AsyncIterator[Daemon]:
        tenants = [Tenant(server, name, HOME, ALL) for name, server in self.servers.items()]
        async with serving(self.host, tenants, built_in(*syncers), **options) as daemon:
            yield daemon

    def watches(self) -> Mapping[str, int]:
        """Return how many watches of each kind are open on the host."""
        return Counter(resource for resource, _ in self.host._watches.values())

    def copy(self, cluster: str, name: str) -> Obj | None:
        return self.host.get("configmaps", host_path(name, cluster, HOME))


@pytest.fixture
def shared() -> Shared:
    return Shared()


def cached(daemon: Daemon, cluster: str) -> set[str]:
    """Return the clusters in the marks of the host's ConfigMaps that a cluster has in its store."""
    store = daemon.process.pairs[cluster].informers.store(Side.HOST, CONFIG_MAPS)
    found = [store.get(key) for key in list(store.keys())]
    return {labels_of(obj).get("vsyncer.dev/cluster", "") for obj in found if obj}


async def test_one_watch_for_each_kind(shared: Shared) -> None:
    for server in shared.servers.values():
        server.put(configmap("c"))
        server.put(secret("s"))
        server.put(pod_mounting("p", secret="s"))
    async with shared.daemon() as daemon:
        await daemon.settled()
        kinds = {key for pair in daemon.process.pairs.values() for key in pair.reflectors if key[0] is Side.HOST}
        assert sum(shared.watches().values()) == len(kinds)
        assert set(shared.watches().values()) == {1}
        for name in NAMES:
            assert shared.copy(name, "c")
            assert cached(daemon, name) == {f"{name}.{HOME}"}
        await asyncio.sleep(2000)  # each watch has ended more than once
        await daemon.settled()
        assert set(shared.watches().values()) == {1}


def event_about(copy: Obj, name: str, **fields: Any) -> Obj:
    """Return an Event of the host about a ConfigMap there."""
    metadata = copy["metadata"]
    about = {each: metadata[each] for each in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": HOME},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", **about},
        "reason": "Seen",
        "message": "it was seen",
        "type": "Normal",
        **fields,
    }


def stored_events(daemon: Daemon) -> dict[str, set[str]]:
    """Return the names of the host's Events that each cluster has in its store."""
    found = {}
    for cluster, pair in daemon.process.pairs.items():
        found[cluster] = {key.name for key in pair.informers.keys(Side.HOST, EVENTS)}
    return found


def shown(server: ApiServer) -> dict[str, int]:
    """Return the counts of the Events that a tenant sees in the shop, by name."""
    events = server.objects("events")
    return {each["metadata"]["name"]: each.get("count", 0) for each in events if each["reason"] == "Seen"}


async def test_event_is_kept_for_the_cluster_of_its_object_alone(shared: Shared) -> None:
    """Whether it was there before the daemon or came later, and until it goes."""
    own = configmap("own", namespace=HOME)
    shared.host.put(own)
    nobodys: dict[str, set[str]] = {name: set() for name in NAMES}
    async with shared.daemon("configmaps", "events") as daemon:
        for server in shared.servers.values():
            server.put(configmap("c"))
        await daemon.settled()
        one, two = (shared.copy(name, "c") for name in ("one", "two"))
        assert one
        assert two
        host_own = shared.host.get("configmaps", f"{HOME}/own")
        assert host_own
        shared.host.put(event_about(one, "seen-one"))
        shared.host.put(event_about(host_own, "seen-own"))
        await daemon.settled()
        assert stored_events(daemon) == {**nobodys, "one": {"seen-one"}}
        shared.host.put(event_about(one, "seen-one", count=2))
        await daemon.settled()
        assert shown(shared.servers["one"]) == {"seen-one": 2}
        assert shown(shared.servers["two"]) == {}
    shared.host.put(event_about(two, "seen-two"))
    async with shared.daemon("configmaps", "events") as daemon:
        await daemon.settled()
        assert stored_events(daemon) == {**nobodys, "one": {"seen-one"}, "two": {"seen-two"}}
        assert shown(shared.servers["two"]) == {"seen-two": 0}
        shared.host.delete("events", f"{HOME}/seen-one")
        patroller = daemon.process.served["two"].patroller
        assert patroller
        await daemon.settled()
        assert stored_events(daemon) == {**nobodys, "two": {"seen-two"}}
        events = daemon.process.pairs["two"].controllers["events"]
        scan = await patroller.scan(events, fresh=True)
        assert (scan.problem, list(scan.findings)) == ("", [])


async def test_event_is_kept_that_arrives_before_the_response_to_the_create(shared: Shared) -> None:
    """Of a copy whose name on the host doesn't show whose it is."""
    name = "c" * 250
    names = SingleNamespace(cluster="one", namespace=HOME)
    key = names.to_host(CONFIG_MAPS, Key("shop", name))
    copy = {"metadata": {"name": key.name, "namespace": HOME, "uid": ""}}
    async with shared.daemon("configmaps", "events") as daemon:
        shared.host.faults.add(Rule(verb="create", resource="configmaps", latency=20, count=1))
        shared.servers["one"].put(configmap(name))
        await asyncio.sleep(5)
        assert shared.host.get("configmaps", str(key)) is None
        shared.host.put(event_about(copy, "early"))
        await daemon.settled()
        assert stored_events(daemon) == {"one": {"early"}, "two": set(), "three": set(), "four": set()}


async def test_cluster_that_comes_and_goes_disturbs_no_other(shared: Shared) -> None:
    async with shared.daemon("configmaps", "secrets") as daemon:
        for server in shared.servers.values():
            server.put(configmap("c"))
        await daemon.settled()
        process, late = daemon.process, shared.server("late")
        lists = sum(one.verb == "list" for one in shared.host.requests)
        for _ in range(2):
            late.put(configmap("c"))
            add(process, configured(Tenant(late, "late", HOME, ALL), built_in("configmaps", "secrets")), late)
            await process.served["late"].prepare()
            async with helped_by(process.served["late"].serve()):
                await until(lambda: shared.copy("late", "c"))
                shared.servers["one"].put(configmap("c", {"color": "red"}))
                late.delete("configmaps", "shop/c")
                await daemon.settled()
                assert shared.copy("late", "c") is None
                copy = shared.copy("one", "c")
                assert copy
                assert copy["data"] == {"color": "red"}
                assert set(shared.watches().values()) == {1}
            await process.remove("late")
        shared.host.delete("configmaps", host_path("c", "two", HOME))
        await until(lambda: shared.copy("two", "c"))
        kinds = len(shared.watches())
        assert sum(one.verb == "list" for one in shared.host.requests) - lists <= 2 * kinds, "its own lists alone"


async def test_client_of_a_removed_cluster_is_used_no_more(shared: Shared) -> None:
    async with shared.daemon("configmaps") as daemon:
        process, late = daemon.process, shared.server("late")
        add(process, configured(Tenant(late, "late", HOME, ALL), built_in("configmaps")), late)
        await process.served["late"].connection.reach(10)
        probing = process.connections._cache._lifecycles._lifecycles["late"].task
        await process.remove("late")
        assert probing.done()


@pytest.mark.parametrize("compacted", [False, True])
async def test_host_that_was_away_is_listed_and_watched_again(shared: Shared, compacted: bool) -> None:
    async with shared.daemon("configmaps", "secrets") as daemon:
        for server in shared.servers.values():
            server.put(configmap("c"))
        await daemon.settled()
        shared.host.restart(down=20)
        shared.host.delete("configmaps", host_path("c", "one", HOME))
        shared.servers["two"].delete("configmaps", "shop/c")
        if compacted:
            shared.host.compact()
        await until(lambda: shared.copy("one", "c") and not shared.copy("two", "c"))
        await daemon.settled()
        assert set(shared.watches().values()) == {1}
        assert all(cached(daemon, name) <= {f"{name}.{HOME}"} for name in NAMES)


async def test_restart_writes_nothing(shared: Shared) -> None:
    for server in shared.servers.values():
        server.put(configmap("c"))
    async with shared.daemon("configmaps", "secrets") as daemon:
        await daemon.settled()
    since = len(shared.host.requests)
    async with shared.daemon("configmaps", "secrets") as daemon:
        await daemon.settled()
    assert writes(shared.host, since) == []


async def test_cluster_with_a_raising_handler_stops_alone(shared: Shared) -> None:
    async with shared.daemon("configmaps", "secrets") as daemon:
        await daemon.settled()

        def broken(key: Key, last: Obj) -> None:
            raise ValueError("broken")

        daemon.process.pairs["one"].informers.store(Side.HOST, CONFIG_MAPS).add_handler(broken)
        for server in shared.servers.values():
            server.put(configmap("c"))
        await daemon.settled()
        for name in NAMES:
            shared.host.delete("configmaps", host_path("c", name, HOME))
        await until(lambda: all(shared.copy(name, "c") for name in NAMES))
        assert set(shared.watches().values()) == {1}


async def test_mark_in_a_tenants_object_leads_to_no_other_cluster(shared: Shared) -> None:
    async with shared.daemon("configmaps", "secrets") as daemon:
        await daemon.settled()
        mark = {"vsyncer.dev/cluster": f"two.{HOME}"}
        for mark_key in ("labels", "annotations"):
            forged = configmap(f"in-{mark_key}", {"text": f'"labels":{{"vsyncer.dev/cluster":"two.{HOME}"}}'})
            forged["metadata"][mark_key] = mark
            shared.servers["one"].put(forged)
        data = configmap("in-data", {"vsyncer.dev.cluster": f"two.{HOME}"})
        shared.servers["one"].put(data)
        await daemon.settled()
        assert shared.copy("one", "in-data")
        assert cached(daemon, "one") == {f"one.{HOME}"}
        assert cached(daemon, "two") == set()


async def test_copy_without_its_mark_is_recreated_or_left(shared: Shared) -> None:
    """The cluster sees it go, as with a watch of its own, and what bears no mark of ours is not overwritten."""
    async with shared.daemon("configmaps", "secrets") as daemon:
        shared.servers["one"].put(configmap("c"))
        await daemon.settled()
        copy = shared.copy("one", "c")
        assert copy
        del copy["metadata"]["labels"]["vsyncer.dev/cluster"]
        shared.host.put(copy)
        await daemon.settled()
        assert cached(daemon, "one") == set()
        assert daemon.requests("configmaps"), "it isn't ours any more"
