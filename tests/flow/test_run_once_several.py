"""``run --once`` and ``--dry-run`` of several virtual clusters: each is done by itself, whatever is wrong with one."""

import asyncio
from typing import Any

import pytest
from clusters_scene import HOME, MODEL, Line, World
from harness import admin, until, writes

from hack.side_tasks import helped_by
from syncer.api import ConfigError, Key, Side
from syncer.api.errors import Problem
from syncer.clusters.client import SideClient
from syncer.clusters.errors import ClusterOrigin
from syncer.clusters.kubeconfig import NoKubeconfig
from syncer.config import SyncerConfig
from syncer.daemon import runner
from syncer.daemon.start import connecting, startup
from syncer.leaderelection.lease import AnotherLeads, Lease
from syncer.leaderelection.rendezvous import shard_of
from syncer.leaderelection.shards import lease_name

NAMES = ("bank", "pets", "shop")


def config(*names: str, shards: int = 0) -> SyncerConfig:
    given = [{"name": name, "kubeconfig": f"{name}.kubeconfig", "hostNamespace": HOME} for name in names or NAMES]
    election = {"enabled": shards > 0, "namespace": HOME, "name": "vsyncer", "shards": max(shards, 1)}
    sync = {"toHost": {"configMaps": {"all": True}}}
    return MODEL.model_validate({"virtualClusters": given, "leaderElection": election, "sync": sync})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(*NAMES)

    def connect(given: Any, side: Side, name: str, *_: object) -> SideClient:
        if side is Side.HOST:
            host = admin(made.host, Side.HOST)
            host.origin = ClusterOrigin("https://host")
            return host
        if name in made.moved:  # stands for a kubeconfig that isn't there
            raise NoKubeconfig(Problem("doesn't exist.", path=f"kubeconfig of virtual cluster {name}"))
        return SideClient(name, side, Line(made, name), origin=ClusterOrigin(f"https://{name}"))

    monkeypatch.setattr(connecting, "_connect", connect)
    return made


def without(world: World, reason: str) -> None:
    """Make something be wrong with the virtual cluster pets."""
    if reason == "no answer":
        world.cut.add("pets")
    else:
        world.moved["pets"] = lambda: None


@pytest.mark.parametrize(("reason", "message"), [("no answer", "refused"), ("no kubeconfig", "doesn't exist")])
@pytest.mark.parametrize("dry_run", [True, False])
async def test_failed_cluster_is_named_and_the_others_are_synced(
    world: World, reason: str, message: str, dry_run: bool
) -> None:
    without(world, reason)
    summary = await runner.run(config(), once=True, dry_run=dry_run)
    assert summary.exit_code == 1
    assert list(summary.failed) == ["pets"]
    assert message in summary.failed["pets"]
    assert summary.lines()[-1] == f"failed: pets: {summary.failed['pets']}"
    assert summary.troubles == []
    done = {name for name in NAMES if world.has_copy(name)}
    assert done == (set() if dry_run else {"bank", "shop"})
    if dry_run:
        would = "\n".join(summary.lines())
        assert all(f"would create configmaps {HOME}/x-x-shop-x-{name} on the host" in would for name in done)
        assert "on the virtual side of bank" in would
        assert not writes(world.host)


async def test_bug_in_one_start_affects_no_other_cluster(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = startup.prepare

    async def broken(engine: Any, cluster: Any, **options: Any) -> None:
        if cluster.name == "pets":
            raise RuntimeError("a bug")
        await prepare(engine, cluster, **options)

    monkeypatch.setattr(startup, "prepare", broken)
    summary = await runner.run(config(), once=True)
    assert (summary.exit_code, summary.failed) == (1, {"pets": "RuntimeError: a bug"})
    assert world.has_copy("bank")


async def test_all_failed_clusters_are_named(world: World) -> None:
    world.cut.update(NAMES)
    summary = await runner.run(config(), once=True)
    assert (summary.exit_code, sorted(summary.failed)) == (1, list(NAMES))


async def test_error_of_the_only_cluster_ends_the_run(world: World) -> None:
    without(world, "no kubeconfig")
    with pytest.raises(ConfigError, match="doesn't exist"):
        await runner.run(config("pets"), once=True)


async def test_cluster_lost_meanwhile_is_named_and_the_others_are_synced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = startup.prepare

    async def cut_off(engine: Any, cluster: Any, **options: Any) -> None:
        await prepare(engine, cluster, **options)
        if cluster.name == "pets":
            world.cut.add("pets")

    monkeypatch.setattr(startup, "prepare", cut_off)
    summary = await runner.run(config(), once=True)
    assert summary.exit_code == 1
    assert list(summary.failed) == ["pets"]
    assert "does not answer" in summary.failed["pets"]
    assert world.has_copy("bank")
    assert world.has_copy("shop")


async def test_shard_led_by_a_daemon_is_skipped(world: World) -> None:
    shard = shard_of("pets", 8)
    others = [name for name in NAMES if shard_of(name, 8) != shard]
    assert others
    key = Key(HOME, lease_name("vsyncer", shard))
    daemon = Lease(admin(world.host, Side.HOST), key=key, identity="the-daemon")
    async with helped_by(daemon.lead(asyncio.Event().wait)):  # type: ignore[arg-type]
        await until(lambda: daemon.is_leader)
        summary = await runner.run(config(shards=8), once=True)
        assert set(summary.failed) == {*NAMES} - {*others}
        assert "the-daemon leads" in summary.failed["pets"]
        assert [name for name in NAMES if world.has_copy(name)] == others
        with pytest.raises(AnotherLeads):
            await runner.run(config("pets", shards=8), once=True)
