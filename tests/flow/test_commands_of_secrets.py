"""Commands that work without the daemon find a virtual cluster by its Secret, as the daemon does."""

from typing import Any

import pytest
from clusters_scene import HOME
from harness import host_path, until, writes
from secrets_scene import TEAM, Secrets, configured, kubeconfig, secret

from kube_envtest import Rule
from syncer.api import ConfigError, SyncerError
from syncer.clusters import connection
from syncer.daemon.fleet import fleet_memory, secret_lookup
from syncer.daemon.fleet.secret_lookup import secret_cluster
from syncer.daemon.patrol_once import patrol_once
from syncer.daemon.runner import run
from syncer.daemon.start import connecting
from syncer.daemon.start.connecting import connected
from syncer.daemon.uninstall.uninstall import uninstall
from syncer.testing.objects import configmap

#: The number of objects whose names, labels and other metadata take more than a megabyte.
TOO_MANY = 900


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    made = Secrets("bank", "pets", "shop")
    made.servers[""] = made.host
    monkeypatch.setattr(connecting, "_connect", made.connect)
    monkeypatch.setattr(connection, "HttpTransport", made.transport)
    return made


async def test_scan_and_uninstall_of_a_cluster_from_a_secret(world: Secrets) -> None:
    config = configured("bank")
    world.put(secret("kubeconfig", kubeconfig("shop"), name="shop"), secret("pets"))
    async with world.daemon(config):
        await until(lambda: all(world.has_copy(each) for each in ("bank", "pets", "shop")))
    world.host.delete("configmaps", host_path("x", "shop", HOME))
    report = await patrol_once(config, await secret_cluster(config, "shop"))
    assert [one["outcome"] for kind in report["kinds"] for one in kind["found"]] == ["repaired"]
    assert world.has_copy("shop")

    cluster = await secret_cluster(config, "shop")
    async with connected(config, cluster) as clusters:
        done = await uninstall(config, cluster, clusters, yes=True, keep=False)
    assert (done.done, done.problems) == (True, [])
    assert [world.has_copy(each) for each in ("bank", "pets", "shop")] == [True, True, False]


async def test_lookup_decides_as_the_daemon_and_an_uninstall_of_the_host_needs_no_kubeconfig(world: Secrets) -> None:
    world.put(secret("shop", b"no kubeconfig", host_namespace="second"))
    secrets = [{"namespace": TEAM, "hostNamespaces": [HOME, "second"], "names": {"translator": "single-namespace"}}]
    config = configured(secrets=secrets)
    cluster = await secret_cluster(config, "shop", login=False)
    assert (cluster.name, cluster.host_namespace) == ("shop", "second")
    with pytest.raises(SyncerError, match=r"virtual cluster shop: .*not a kubeconfig"):
        await secret_cluster(config, "shop")


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        ([secret("shop", host_namespace="kube-system")], "'kube-system' is not assigned to team"),
        ([secret("thief", name="bank"), secret("shop", files={"config": b""})], "has no key config"),
        ([secret("shop", kubeconfig("shop", user={"exec": {"command": "id", "apiVersion": "v1"}}))], "run programs"),
        ([secret("shop", labels={"vsyncer.dev/virtual-cluster": "", "vsyncer.dev/cluster": "x"})], "it is a copy"),
        ([secret("a"), secret("shop")], "more than 1 .maxClusters."),
    ],
)
async def test_secret_that_is_refused_is_named_with_the_reason(world: Secrets, secrets: Any, why: str) -> None:
    world.put(*secrets)
    most = 1 if "maxClusters" in why else 100
    config = configured("bank", secrets=[{"namespace": TEAM, "hostNamespaces": [HOME], "maxClusters": most}])
    with pytest.raises(SyncerError, match=why) as raised:
        await secret_cluster(config, "shop")
    assert f"{TEAM}/shop" in str(raised.value)
    assert raised.value.exit_code == 1


async def test_unknown_cluster_error_lists_the_known_ones(world: Secrets, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured("bank")
    with pytest.raises(ConfigError, match="listed or in Secrets of team there are: bank") as raised:
        await secret_cluster(config, "zoo")
    assert raised.value.problems[0].hint.startswith("If its Secret is gone")
    world.put(secret("shop"), secret("pets"), secret("thief", name="bank"))
    with pytest.raises(ConfigError, match=r"'shops'.* there are: bank, pets, shop\.") as raised:
        await secret_cluster(config, "shops")
    assert "shop" in raised.value.problems[0].hint
    monkeypatch.setattr(secret_lookup, "MOST_LISTED", 2)
    with pytest.raises(ConfigError, match=r"bank, pets and 1 more\."):
        await secret_cluster(config, "zoo")


async def test_no_cluster_is_found_while_the_secrets_cannot_be_listed(world: Secrets) -> None:
    world.put(secret("shop", home="other"))
    secrets = [{"namespace": each, "hostNamespaces": [HOME]} for each in (TEAM, "other")]
    world.host.faults.add(Rule(verb="list", resource="secrets", status=403, count=1))
    with pytest.raises(SyncerError, match="shop can't be looked for, as the Secrets in team can't be listed"):
        await secret_cluster(configured(secrets=secrets), "shop")


@pytest.mark.parametrize("dry_run", [True, False])
async def test_run_once_does_each_cluster_of_a_secret_and_names_those_that_are_refused(
    world: Secrets, dry_run: bool
) -> None:
    world.put(
        secret("shop"),
        secret("pets", kubeconfig("pets", token="unknown")),
        secret("thief", kubeconfig("shop"), name="bank"),
        secret("empty", files={"config": b""}),
    )
    summary = await run(configured("bank"), once=True, dry_run=dry_run)
    assert summary.exit_code == 1
    failed = {name: why.partition(":")[0] for name, why in summary.failed.items()}
    assert failed.keys() == {"pets", "Secret team/thief", "empty"}
    assert "the name bank is taken, by virtualClusters" in summary.failed["Secret team/thief"]
    assert "has no key config" in summary.failed["empty"]
    done = {"bank", "shop"}
    if dry_run:
        would = "\n".join(summary.lines())
        assert all(f"would create configmaps {HOME}/x-x-shop-x-{name} on the host" in would for name in done)
        assert not writes(world.host)
    else:
        assert {name for name in world.servers if world.has_copy(name)} == done


async def test_run_once_without_any_secret_has_nothing_to_do(world: Secrets) -> None:
    summary = await run(configured(), once=True)
    assert (summary.exit_code, summary.lines()) == (0, [])


async def test_run_once_ends_where_secrets_cannot_be_listed(world: Secrets) -> None:
    world.host.faults.add(Rule(verb="list", resource="secrets", status=403))
    with pytest.raises(SyncerError, match="the Secrets in team can't be listed"):
        await run(configured("bank"), once=True)
    assert not writes(world.host)


async def test_run_once_ends_a_cluster_of_a_secret_that_takes_too_much_memory_alone(world: Secrets) -> None:
    for number in range(TOO_MANY):
        world.servers["shop"].put(configmap(f"many-{number}", {"k": "x" * 5_000}))
    world.put(secret("shop"), secret("pets"))
    entry = {"namespace": TEAM, "hostNamespaces": [HOME], "maxMegabytes": 1}
    summary = await run(configured("bank", secrets=[entry]), once=True)
    assert list(summary.failed) == ["shop"]
    assert "its objects take more than 1 MB of the daemon's memory" in summary.failed["shop"]
    assert [world.has_copy(name) for name in ("bank", "pets")] == [True, True]


async def test_run_once_leaves_out_clusters_of_secrets_for_which_there_is_no_room(
    world: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_memory, "memory_limit", lambda: 6 << 20)
    world.put(secret("shop"), secret("pets"))
    summary = await run(configured("bank"), once=True)
    assert len(summary.failed) == 1
    [why] = summary.failed.values()
    assert "there is no room for it" in why
    assert world.has_copy("bank")
