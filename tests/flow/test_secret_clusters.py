"""Virtual clusters that Secrets of the host name join and leave with these; a bad one concerns itself alone."""

import asyncio
from typing import Any

import pytest
from clusters_scene import HOME, states
from harness import host_path, namespace, until
from noise import noise
from secrets_scene import LABEL, TEAM, Secrets, configured, kubeconfig, secret

from kube_envtest import Rule
from syncer.api import Obj, Refused
from syncer.clusters import connection
from syncer.daemon.fleet import fleet_memory, secret_clusters
from syncer.daemon.pages.control import selection
from syncer.daemon.pages.endpoints import _degraded, _refused, _unlisted, _virtual
from syncer.daemon.pages.status import ClusterState, clusters
from syncer.daemon.process import Process
from syncer.daemon.start import connecting
from syncer.testing import ApiServer
from syncer.testing.objects import configmap


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    made = Secrets("bank", "pets", "shop")
    monkeypatch.setattr(connecting, "_connect", made.connect)
    monkeypatch.setattr(connection, "HttpTransport", made.transport)
    return made


async def test_virtual_cluster_joins_and_leaves_with_its_secret_beside_one_that_is_listed(world: Secrets) -> None:
    async with world.daemon(configured("bank")) as (process, _):
        await until(lambda: world.has_copy("bank"))
        assert states(process) == {"bank": "served"}
        world.put(secret("shop"))
        await until(lambda: world.has_copy("shop"))
        before = len(world.servers["bank"].requests)
        world.host.delete("secrets", f"{TEAM}/shop")
        await until(lambda: "shop" not in process.pairs)
        world.servers["shop"].put(configmap("late"))
        await asyncio.sleep(60)
        assert states(process) == {"bank": "served"}
        assert (world.has_copy("shop"), world.has_copy("shop", "late")) == (True, False)
        assert [one for one in list(world.servers["bank"].requests)[before:] if one.verb == "list"] == []


async def test_secrets_of_a_namespace_take_no_memory_of_a_listed_cluster(
    world: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beyond their namespace's part are refused with the reason, and served when there is room."""
    monkeypatch.setattr(fleet_memory, "memory_limit", lambda: 16 << 20)
    names = [f"vc{number}" for number in range(8)]
    world.servers |= {name: ApiServer(seed=name) for name in names}
    for name in names:
        world.servers[name].put(namespace("shop"))
    async with world.daemon(configured("bank")) as (process, _):
        await until(lambda: world.has_copy("bank"))
        world.put(*map(secret, names))
        await until(lambda: len(states(process)) == 9 and "failing" in states(process).values())
        failing = [each for each in clusters(process) if each.state.value == "failing"]
        assert all("there is no room for it: the virtual clusters take" in each.reason for each in failing)
        assert 2 <= len(failing) <= 4
        world.servers["bank"].put(configmap("late", {"k": noise(900_000)}))
        await until(lambda: world.has_copy("bank", "late"))
        assert states(process)["bank"] == "served"
        for name in [name for name in names if states(process)[name] == "served"]:
            world.host.delete("secrets", f"{TEAM}/{name}")
        await until(lambda: set(states(process).values()) == {"served"}, within=200)


async def test_new_token_is_used_and_no_watch_is_lost(world: Secrets) -> None:
    world.put(secret("shop"))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: world.has_copy("shop"))
        pair, before = process.pairs["shop"], len(world.servers["shop"].requests)
        world.tokens = {"Bearer new"}
        world.put(secret("shop", kubeconfig("shop", token="new")))
        await asyncio.sleep(5)
        world.servers["shop"].put(configmap("later"))
        await until(lambda: world.has_copy("shop", "later"))
        await pair.virtual.fetch("/version")
        later = list(world.servers["shop"].requests)[before:]
        assert process.pairs["shop"] is pair
        assert [one for one in later if one.verb in ("list", "watch")] == []


def reasons(process: Process) -> dict[str, str]:
    """Return the reasons of refused clusters and Secrets, by name."""
    return {each.cluster: each.reason for each in clusters(process) if each.state is ClusterState.REFUSED}


async def test_cluster_with_another_address_restarts_and_the_others_go_on(world: Secrets) -> None:
    world.put(secret("shop"), secret("pets"))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: world.has_copy("shop") and world.has_copy("pets"))
        before = dict(process.pairs)
        world.servers["elsewhere"] = world.servers["shop"]
        world.put(secret("shop", kubeconfig("elsewhere")))
        await until(lambda: process.pairs.get("shop") not in (None, before["shop"]))
        world.cut.add("shop")
        world.servers["shop"].put(configmap("new"))
        await until(lambda: world.has_copy("shop", "new"))
        assert process.pairs["pets"] is before["pets"]


async def test_another_virtual_cluster_under_a_name_inherits_nothing(world: Secrets) -> None:
    world.put(secret("shop"))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: world.has_copy("shop"))
        world.servers["stranger"] = ApiServer(seed="stranger")
        world.put(secret("shop", kubeconfig("stranger")))
        await until(lambda: states(process) == {"shop": "failing"})
        assert "was never synced as that" in process.unserved.clusters["shop"].message
        assert world.has_copy("shop")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (secret("bad", host_namespace="kube-system"), "host namespace 'kube-system' is not assigned to team"),
        (secret("bad", name="Not/a name"), "'Not/a name' is no name of a virtual cluster"),
        (secret("bad", name="bank"), "the name bank is taken, by virtualClusters"),
        (secret("bad", name="shop"), "the name shop is taken, by the Secret team/shop"),
        (secret("bad", labels={LABEL: "", "vsyncer.dev/cluster": "bank"}), "it is a copy of a tenant's Secret"),
        (secret("bad", kubeconfig("bad", user={"exec": {"command": "id"}})), "exec and auth-provider run programs"),
        (secret("bad", kubeconfig("bad", user={"tokenFile": "/etc/passwd"})), "it names a file of this machine"),
        (secret("bad", kubeconfig("bad", user={"tokenFile": "../config"})), "it names a file of this machine"),
        (secret("bad", kubeconfig("bad").replace(b"https", b"http")), "its server is reached without TLS"),
        (
            secret("bad", kubeconfig("bad", more={"insecure-skip-tls-verify": True})),
            "insecure-skip-tls-verify lets anybody",
        ),
        (secret("bad", b"x" * (1 << 20)), "it has 1048576 bytes, and may have 262144"),
        (secret("bad", b"a: &a [x, x]\nb: [*a, *a]\n"), "YAML aliases in it are not read"),
        (secret("bad", b"[" * 100_000), "it has too many parts"),
        (secret("bad", b"{}"), "there is no current-context"),
        (secret("bad", b"\xff\xfe\x00"), "Unparsable"),
        (secret("bad", b""), "has no key config"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_secret_that_asks_for_too_much_is_refused_alone_until_it_is_mended(
    world: Secrets, bad: Obj, reason: str
) -> None:
    world.servers["bad"] = world.servers.pop("pets")
    world.put(secret("shop"))
    async with world.daemon(configured("bank")) as (process, _):
        await until(lambda: world.has_copy("shop") and world.has_copy("bank"))
        world.put(bad)
        await until(lambda: reasons(process))
        assert reasons(process).keys() == {"team/bad"}
        assert reason in reasons(process)["team/bad"]
        assert _virtual(process) == {"bank": None, "shop": None}
        [line] = [why for part, why in _degraded(process).items() if part == "secrets/team"]
        assert line in ("Refused: 1", "Unparsable: 1", "KeyMissing: 1")
        world.put(secret("bad"))
        await until(lambda: world.has_copy("bad"))
        assert (reasons(process), "secrets/team" in _degraded(process)) == ({}, False)


async def test_kubeconfig_that_can_no_longer_be_used_leaves_the_former_in_use(world: Secrets) -> None:
    world.put(secret("shop"))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: world.has_copy("shop"))
        world.put(secret("shop", b"nonsense"))
        await until(lambda: reasons(process))
        assert reasons(process)["team/shop"].endswith("; its former login stays in use")
        world.servers["shop"].put(configmap("later"))
        await until(lambda: world.has_copy("shop", "later"))


async def test_older_secret_of_an_earlier_entry_has_the_name_whenever_it_is_decided(world: Secrets) -> None:
    entries = [{"namespace": each, "hostNamespaces": [HOME]} for each in ("team", "other")]
    world.host.put(namespace("other"))
    world.put(secret("a", kubeconfig("shop"), home="other", name="shop"))
    async with world.daemon(configured(secrets=entries)) as (process, _):
        await until(lambda: world.has_copy("shop"))
        before = process.pairs["shop"]
        world.put(secret("z", kubeconfig("shop"), name="shop"))
        await until(lambda: reasons(process))
        assert reasons(process) == {"other/a": "Refused: the name shop is taken, by the Secret team/z"}
        await until(lambda: process.pairs.get("shop") not in (None, before))


async def test_ten_thousand_secrets_are_bounded_and_cost_their_namespace_alone(world: Secrets) -> None:
    few = [{"namespace": "team", "hostNamespaces": [HOME], "maxClusters": 2}]
    world.put(secret("shop"), secret("pets"))
    for number in range(10_000):
        world.put(secret(f"x{number}", b"{}"))
    before = len(world.host.requests)
    async with world.daemon(configured("bank", secrets=few)) as (process, _):
        await until(lambda: world.has_copy("bank"))
        await until(lambda: reasons(process))
        await until(lambda: world.has_copy("shop") and world.has_copy("pets"))
        assert set(reasons(process)) == {"team/(further)"}
        assert "10000 further Secrets" in reasons(process)["team/(further)"]
        assert _degraded(process) == {"secrets/team": "too many Secrets: 1"}
        reads = [one for one in list(world.host.requests)[before:] if one.verb == "get" and one.resource == "secrets"]
        assert len(reads) == 2


async def test_secret_may_name_another_assigned_host_namespace(world: Secrets) -> None:
    world.host.put(namespace("more"))
    world.put(secret("a", kubeconfig("shop"), name="shop", host_namespace="more"))
    entries = [{"namespace": TEAM, "hostNamespaces": [HOME, "more"]}]
    async with world.daemon(configured(secrets=entries)):
        await until(lambda: world.host.get("configmaps", host_path("x", "shop", "more")))
        world.servers["shop"].delete("configmaps", "kube-system/vsyncer")
        world.put(secret("a", kubeconfig("shop"), name="shop"))
        await until(lambda: world.host.get("configmaps", host_path("x", "shop", HOME)))


async def test_files_of_a_kubeconfig_are_the_other_keys_of_its_secret(world: Secrets) -> None:
    config = kubeconfig("shop", user={"tokenFile": "token"})
    world.put(secret("shop", config, files={"token": b"good\n"}))
    async with world.daemon(configured()):
        await until(lambda: world.has_copy("shop"))


async def test_daemon_without_any_virtual_cluster_waits_and_is_well(world: Secrets) -> None:
    async with world.daemon(configured()) as (process, _):
        await asyncio.sleep(60)
        assert (clusters(process), _virtual(process), _unlisted(process), _degraded(process)) == ([], {}, {}, {})
        assert selection(process).pairs == []
        with pytest.raises(Refused, match="no virtual cluster 'shop'; it serves none at present"):
            selection(process, cluster="shop")


async def test_failure_of_the_only_cluster_does_not_end_the_daemon(world: Secrets) -> None:
    world.put(secret("shop", kubeconfig("shop", token="unknown")))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: states(process) == {"shop": "failing"})
        world.put(secret("shop"))
        await until(lambda: world.has_copy("shop"), within=200)


async def test_unlistable_secrets_make_unready_only_without_a_served_cluster(world: Secrets) -> None:
    world.put(secret("shop"))
    world.host.faults.add(Rule(verb="list", resource="secrets", status=403, count=2))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: reasons(process))
        assert "its Secrets can't be listed" in reasons(process)["team/(all)"]
        assert _unlisted(process) == {"team": "Forbidden"}
        assert _refused(process) == {("team", "Forbidden"): 1}
        await until(lambda: world.has_copy("shop"), within=200)
        assert (_unlisted(process), reasons(process)) == ({}, {})


async def test_unlistable_secrets_do_not_affect_served_clusters(world: Secrets) -> None:
    world.host.faults.add(Rule(verb="list", resource="secrets", status=403, count=2))
    async with world.daemon(configured("bank")) as (process, _):
        await until(lambda: world.has_copy("bank") and reasons(process))
        assert (_unlisted(process), _degraded(process)) == ({}, {"secrets/team": "Forbidden: 1"})


async def test_secret_that_cannot_be_read_is_read_again(world: Secrets) -> None:
    world.put(secret("shop"))
    world.host.faults.add(Rule(verb="get", resource="secrets", status=500, count=5))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: "team/shop" in reasons(process))
        await until(lambda: world.has_copy("shop"), within=200)
        assert reasons(process) == {}


async def test_changed_configuration_is_followed(world: Secrets) -> None:
    world.put(secret("shop"), secret("pets", labels={"fleet": "yes"}))
    async with world.daemon(configured("bank")) as (process, sources):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        bank = process.pairs["bank"]
        now = configured("bank", secrets=[{"namespace": TEAM, "hostNamespaces": [HOME], "selector": "fleet=yes"}])
        sources.update(now, now.clusters())
        await until(lambda: world.has_copy("pets") and "shop" not in process.pairs)
        assert process.pairs["bank"] is bank
        none = configured("bank").model_copy(update={"virtual_cluster_secrets": ()})
        sources.update(none, none.clusters())
        await until(lambda: set(process.pairs) == {"bank"})
        before = len(world.host.requests)
        await asyncio.sleep(3600)  # longer than a watch lives
        later = list(world.host.requests)[before:]
        assert [one for one in later if one.verb == "watch" and one.path.endswith(f"{TEAM}/secrets")] == []


async def test_watch_of_a_removed_entry_has_ended_when_all_are_closed(world: Secrets) -> None:
    none = configured("bank").model_copy(update={"virtual_cluster_secrets": ()})
    async with world.daemon(none) as (process, _):
        before = asyncio.all_tasks()
        clusters_of_secrets = secret_clusters.SecretClusters(process, lambda: None)
        await clusters_of_secrets.decided(configured("bank"), ())
        [watch] = asyncio.all_tasks() - before
        await asyncio.sleep(10)
        assert not watch.done()
        await clusters_of_secrets.decided(none, ())
        await clusters_of_secrets.close()
        assert watch.done()


async def test_recreated_secret_is_another_virtual_cluster(world: Secrets) -> None:
    world.put(secret("shop"))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: world.has_copy("shop"))
        before = process.pairs["shop"]
        world.servers["elsewhere"] = world.servers["shop"]
        world.cut.add("shop")
        world.host.delete("secrets", f"{TEAM}/shop")
        await asyncio.sleep(5)
        world.put(secret("shop", kubeconfig("elsewhere")))
        await until(lambda: process.pairs.get("shop") not in (None, before))
        world.servers["shop"].put(configmap("new"))
        await until(lambda: world.has_copy("shop", "new"))


async def test_bad_secret_is_read_once_and_others_keep_their_options(world: Secrets) -> None:
    world.put(secret("shop"), secret("bad", b"nonsense"))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: world.has_copy("shop") and reasons(process))
        before = len(world.host.requests)
        for number in range(5):
            world.put(secret("new", b"nonsense", files={"x": str(number).encode()}))
            await asyncio.sleep(5)
        reads = [one.path for one in list(world.host.requests)[before:] if one.verb == "get"]
        assert [path.rpartition("/")[2] for path in reads if "/secrets/" in path] == ["new"] * 5


async def test_reason_is_short_even_for_a_huge_secret(world: Secrets) -> None:
    world.put(secret("a", name="x" * 200_000), secret("b", kubeconfig("b" * 100_000 + "^:x")))
    async with world.daemon(configured()) as (process, _):
        await until(lambda: len(reasons(process)) == 2)
        assert max(map(len, reasons(process).values())) < 400


async def test_error_in_reading_the_secrets_does_not_freeze_the_fleet(
    world: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = secret_clusters.chosen, list[int]()

    def broken(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError
        return real(*given)

    monkeypatch.setattr(secret_clusters, "chosen", broken)
    world.put(secret("shop"))
    async with world.daemon(configured()):
        await until(lambda: world.has_copy("shop"))
        assert len(calls) > 2
