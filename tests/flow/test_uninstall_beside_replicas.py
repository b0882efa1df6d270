"""One virtual cluster is uninstalled while replicas go on with the others."""

import asyncio

import pytest
from clusters_scene import HOME, MODEL
from harness import admin, until
from replicas_scene import FLEET, SHARDS, Replica, Replicas
from test_replicas import NAMES, led, scene, settled

from syncer.api import Side
from syncer.config import SyncerConfig
from syncer.daemon.uninstall.uninstall import UninstallReport, uninstall
from syncer.leaderelection.uninstalls import StillServed, uninstall_name
from syncer.testing.objects import configmap

GONE, KEPT = NAMES[0], NAMES[1:]


def configured(*names: str) -> SyncerConfig:
    given = [{"name": name, "kubeconfig": f"{name}.kubeconfig", "hostNamespace": HOME} for name in names]
    election = {"enabled": True, "shards": SHARDS, "namespace": FLEET.namespace, "name": FLEET.name}
    sync = {"toHost": {"configMaps": {"all": True}}}
    return MODEL.model_validate({"virtualClusters": given, "leaderElection": election, "sync": sync})


def leave(replica: Replica) -> None:
    """Take the virtual cluster out of a replica's configuration."""
    replica.fleet.update([each for each in replica.replicas.clusters if each.name != GONE])


async def uninstalled(replicas: Replicas) -> UninstallReport:
    config = configured(GONE)
    [cluster] = config.clusters()
    both = {
        Side.HOST: admin(replicas.world.host, Side.HOST),
        Side.VIRTUAL: admin(replicas.world.servers[GONE], Side.VIRTUAL),
    }
    return await uninstall(config, cluster, both, yes=True, keep=False)


def test_cluster_left_by_all_replicas_is_uninstalled_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        for each in replicas.live.values():
            leave(each)
        running = asyncio.create_task(uninstalled(replicas))
        for number in range(10):
            for name in KEPT:
                replicas.world.servers[name].put(configmap(f"o{number}"))
            await asyncio.sleep(1)
            assert all(replicas.world.has_copy(name, f"o{number}") for name in KEPT)
            await asyncio.sleep(2)
        report = await running
        assert (report.done, report.problems) == (True, [])
        assert not replicas.world.has_copy(GONE)
        assert replicas.world.servers[GONE].get("configmaps", "kube-system/vsyncer") is None
        await asyncio.sleep(60)
        assert not replicas.world.has_copy(GONE)
        assert (
            replicas.world.host.get("leases.coordination.k8s.io", f"{HOME}/{uninstall_name(FLEET.name, GONE)}") is None
        )

    scene(monkeypatch, scenario)


@pytest.mark.parametrize("state", ["serves", "is cut off", "is frozen"])
def test_replica_that_may_still_write_prevents_an_uninstall(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        owner = replicas.owner(GONE)
        [other] = [each for each in replicas.live.values() if each is not owner]
        leave(other)
        before = len(replicas.world.host.requests)
        if state == "serves":
            with pytest.raises(StillServed, match=f"{owner.name}_{owner.name} may still write for"):
                await uninstalled(replicas)
            assert not [one for one in list(replicas.world.host.requests)[before:] if one.verb == "delete"]
            assert replicas.world.has_copy(GONE)
            return
        # One whose Leases end can write no more, whatever its configuration says.
        owner.is_cut, is_frozen = state == "is cut off", state == "is frozen"
        if is_frozen:
            owner.is_open.clear()
        report = await uninstalled(replicas)
        assert report.done
        owner.is_cut = False
        owner.is_open.set()

    scene(monkeypatch, scenario)


def test_replica_that_joins_during_an_uninstall_serves_it_only_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann")
        await asyncio.sleep(30)
        leave(replicas.live["ann"])
        running = asyncio.create_task(uninstalled(replicas))
        await asyncio.sleep(5)
        replicas.join("bob")  # its configuration has all
        replicas.live["ann"].fleet.update(replicas.clusters)
        report = await running
        assert (report.done, report.problems) == (True, [])
        await until(replicas.is_led, within=120)
        await until(lambda: replicas.world.has_copy(GONE), within=30)

    scene(monkeypatch, scenario)
