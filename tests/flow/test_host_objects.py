"""Listed ConfigMaps, Secrets and Services of the host in a virtual cluster, with minimal rights."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from harness import CLUSTER, HOME, NAMESPACE, Daemon, Two, between, built_in, until, writes
from rules_scene import USER, Guarded, configured, edit, events, grant, running
from sampled import config_model

from syncer.api import Obj
from syncer.clusters import codec
from syncer.config import SyncerConfig
from syncer.daemon.pages.control import explain
from syncer.daemon.pages.endpoints import measure
from syncer.daemon.pages.status import degraded, mappings
from syncer.rights.rbac import Share, needed
from syncer.testing import ApiServer
from syncer.testing.objects import configmap, endpointslice, namespace, pod_mounting, secret, service

SYNCERS = ("configmaps", "secrets", "pods", "serviceaccounts", "nodes", "host-configmaps", "host-secrets")
INFRA = "infra"
LISTED = {f"{INFRA}/db": f"{NAMESPACE}/password"}


def config(secrets: Mapping[str, str], config_maps: Mapping[str, str] | None = None) -> SyncerConfig:
    """Return a configuration with these mappings."""
    from_host = {
        "secrets": {"enabled": True, "mappings": {"byName": secrets}},
        "configMaps": {"enabled": True, "mappings": {"byName": config_maps or {}}},
    }
    return configured({"fromHost": from_host}, *SYNCERS)


def listed(two: Two) -> Obj | None:
    return two.original("secrets", "password")


def infra(two: Two) -> None:
    """The host has two Secrets, of which one is listed."""
    two.host.put(namespace(INFRA))
    two.host.put(secret("db", namespace=INFRA))
    two.host.put(secret("unlisted", namespace=INFRA))


def host_rules(given: SyncerConfig) -> Mapping[str, Any]:
    """Return the rules on the host for Secrets, by namespace; "" is the whole cluster."""
    settings = given.cluster().settings()
    granted = needed(given.cluster().all_syncers(), settings=settings)
    share = Share(CLUSTER, granted, settings.names.host_namespaces())
    found: dict[str, Any] = {}
    for place, rights in share.by_namespace().items():
        rules = [(right.verbs, right.names) for right in rights if right.resource.plural == "secrets"]
        if rules:
            found[place] = rules
    return found


async def test_pod_uses_a_listed_secret_with_the_right_to_its_name_alone() -> None:
    two = Guarded()
    infra(two)
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: listed(two))
        await daemon.settled()
        assert two.copy("secrets", "password") is None, "no Pod uses it yet"
        two.virtual.put(pod_mounting("web", secret="password"))
        await until(lambda: two.copy("secrets", "password"))
        two.host.put(secret("db", {"password": "tuna"}, namespace=INFRA))
        await until(lambda: (two.copy("secrets", "password") or {})["data"] == {"password": "dHVuYQ=="})
        await daemon.settled()
    asked = [one for one in two.host.requests if f"/{INFRA}/" in one.path]
    assert {(one.verb, one.resource) for one in asked} == {("list", "secrets"), ("watch", "secrets")}
    assert [one for one in two.host.requests if one.status == 403] == []


async def test_listed_object_is_explained_by_its_name_on_the_host() -> None:
    two = Guarded()
    infra(two)
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: listed(two))
        await daemon.settled()
        [found] = await explain(daemon.process, cluster="", kind="host-secrets", key=f"{INFRA}/db")
        assert (found["key"], found["hostKey"]) == (f"{NAMESPACE}/password", f"{INFRA}/db")
        assert found["onHost"]
        assert found["state"] == "in_step"


async def test_metric_of_watches_is_1_while_each_listed_namespace_is_watched() -> None:
    more = {**LISTED, "web/db": f"{NAMESPACE}/other"}
    two = Guarded()
    infra(two)
    async with running(two, config(more)) as daemon:
        await until(lambda: listed(two))
        measure(daemon.process, config(more), None)
        registry = daemon.process.metrics.registry
        labels = {"cluster": CLUSTER, "side": "host", "resource": "secrets"}
        await until(lambda: registry.get_sample_value("syncer_watch_up", labels) == 1.0)


async def test_metric_of_mappings_counts_the_shown_objects_by_metadata_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Guarded()
    infra(two)
    marks = {"labels": {"vsyncer.dev/cluster": f"{CLUSTER}.{HOME}"}}
    two.virtual.put(secret("others", metadata={**marks, "annotations": {"vsyncer.dev/made-for": "another"}}))
    two.virtual.put(secret("own"))
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: listed(two))
        await daemon.settled()
        decoded = list[bytes]()
        with monkeypatch.context() as scraping:
            scraping.setattr(codec, "stored", decoded.append)
            counts = mappings(daemon.process)
        assert counts[CLUSTER, "host-secrets"] == 1
        assert decoded == []


def test_rights_are_those_to_listed_names_and_namespaces() -> None:
    read = ("get", "list", "watch")
    named = {f"{INFRA}/b": "shop/b", f"{INFRA}/a": "shop/a", "shared/*": "shared", "shared/x": "shop/x"}
    rules = host_rules(config(named))
    assert rules.keys() == {HOME, INFRA, "shared"}
    assert rules[INFRA] == [(read, ("a", "b"))]
    assert rules["shared"] == [(read, ())]
    assert host_rules(config({})).keys() == {HOME}


async def test_tenants_change_is_set_back_and_never_reaches_the_host() -> None:
    two = Guarded()
    infra(two)
    two.virtual.put(pod_mounting("web", secret="password"))
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: two.copy("secrets", "password"))
        original = two.host.get("secrets", f"{INFRA}/db")
        assert original
        for patch in ({"data": {"password": "Zm9yZ2Vk"}}, {"metadata": {"annotations": None}}):
            edit(two, "virtual", "secrets", patch, "password")
            await daemon.settled()
        two.virtual.delete("secrets", f"{NAMESPACE}/password")
        await until(lambda: listed(two))
        await daemon.settled()
        for obj in (listed(two), two.copy("secrets", "password")):
            assert obj
            assert obj["data"] == original["data"]
        assert two.host.get("secrets", f"{INFRA}/db") == original
        assert [one for one in writes(two.host) if f"/{INFRA}/" in one] == []


async def test_tenants_own_object_stays_and_its_owner_reads_why() -> None:
    two = Guarded()
    infra(two)
    two.virtual.put(secret("password", {"own": "x"}))
    before = listed(two)
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: events(two, "NameCollision"))
        await daemon.settled()
        [told] = events(two, "NameCollision")
        assert told["involvedObject"]["name"] == "password"
        assert "the host has a Secret that would have the name of this one here" in told["message"]
        assert INFRA not in told["message"]
        status = daemon.status("password", "host-secrets")
        assert status
        assert "that is not ours; it is left alone" in status.reason
        assert listed(two) == before
        two.virtual.delete("secrets", f"{NAMESPACE}/password")
        await until(lambda: (listed(two) or {"data": {}})["data"] == {"password": "c3dvcmRmaXNo"})


async def test_removed_entry_takes_its_object_and_the_copy_along() -> None:
    two = Guarded()
    infra(two)
    two.virtual.put(pod_mounting("web", secret="password"))
    two.virtual.put(secret("own"))
    async with running(two, config(LISTED)):
        await until(lambda: two.copy("secrets", "password"))
    for entries in ({f"{INFRA}/unlisted": f"{NAMESPACE}/other"}, {}):
        async with running(two, config(entries)) as daemon:
            await until(lambda: not (listed(two) or two.copy("secrets", "password")))
            await daemon.settled()
            assert (two.original("secrets", "other") is None) == (not entries)
    assert two.original("secrets", "own")
    assert two.host.get("secrets", f"{INFRA}/db")


async def test_entry_without_a_right_holds_up_no_other_kind() -> None:
    two = Guarded()
    infra(two)
    given = config({f"{INFRA}/db": f"{NAMESPACE}/password"}, {f"{INFRA}/settings": f"{NAMESPACE}/settings"})
    two.host.put(configmap("settings", namespace=INFRA))
    two.virtual.put(secret("own"))
    two.virtual.put(pod_mounting("web", secret="own"))
    grant(two, given)
    two.host.delete("roles.rbac.authorization.k8s.io", f"{INFRA}/vsyncer-{CLUSTER}")
    async with between(two.host, [(given, two.virtual)], user=USER, tenant=USER) as daemon:
        await until(lambda: two.copy("secrets", "own"))
        await daemon.settled()
        waiting = {syncer: reason for (_, syncer), reason in degraded(daemon.process).items()}
        assert waiting.keys() == {"host-secrets", "host-configmaps"}
        assert 'resourceNames: ["db"]' in waiting["host-secrets"]
        grant(two, given)
        await until(lambda: listed(two) and two.original("configmaps", "settings"))


@contextlib.asynccontextmanager
async def two_clusters(host: ApiServer, one: Two, other: Two) -> AsyncIterator[Daemon]:
    """Yield a daemon for two virtual clusters, each with an entry of its own for one host namespace."""
    served = []
    for two, cluster, name in ((one, "one", "db"), (other, "two", "unlisted")):
        home = f"vc-{cluster}"
        host.put(namespace(home))
        entries = {f"{INFRA}/{name}": f"{NAMESPACE}/password"}
        from_host = {"secrets": {"enabled": True, "mappings": {"byName": entries}}}
        document = {"cluster": cluster, "host": {"namespace": home}, "sync": {"fromHost": from_host}}
        served.append((config_model(built_in(*SYNCERS)).model_validate(document), two.virtual))
    async with between(host, served) as daemon:
        yield daemon


async def test_each_virtual_cluster_gets_the_objects_of_its_own_entries() -> None:
    one, other = Two(), Two()
    one.host.put(namespace(INFRA))
    one.host.put(secret("db", {"of": "one"}, namespace=INFRA))
    one.host.put(secret("unlisted", {"of": "two"}, namespace=INFRA))
    async with two_clusters(one.host, one, other) as daemon:
        await until(lambda: listed(one) and listed(other))
        await daemon.settled()
        assert [(listed(two) or {})["data"] for two in (one, other)] == [{"of": "b25l"}, {"of": "dHdv"}]
        assert len(one.virtual.objects("secrets", NAMESPACE)) == 1
        assert len(other.virtual.objects("secrets", NAMESPACE)) == 1


SLICES = "endpointslices.discovery.k8s.io"


def services(*names: str) -> SyncerConfig:
    """Return a configuration that lists these Services of the host."""
    entries = {f"{INFRA}/{name}": f"{NAMESPACE}/{name}" for name in names}
    shown = {"services": {"enabled": True, "mappings": {"byName": entries}}}
    return configured({"fromHost": shown}, "services", "endpointslices", "host-services", *SYNCERS)


def addresses(two: Two, name: str) -> list[tuple[str, bool]]:
    """Return the addresses to which a name leads in the virtual cluster, each with whether it is ready."""
    found = two.original(SLICES, name) or {}
    return [(each["addresses"][0], each["conditions"]["ready"]) for each in found.get("endpoints") or ()]


async def test_name_leads_to_a_service_of_the_host_and_follows_it() -> None:
    two = Guarded()
    infra(two)
    two.host.put(service("db", namespace=INFRA, spec={"clusterIP": "10.96.7.7"}))
    two.host.put(service("peers", namespace=INFRA, spec={"clusterIP": "None"}))
    two.host.put(service("unlisted", namespace=INFRA))
    two.host.put(endpointslice("peers-1", "10.1.0.2", service="peers", namespace=INFRA))
    async with running(two, services("db", "peers")) as daemon:
        await until(lambda: addresses(two, "db") == [("10.96.7.7", False)])
        await until(lambda: addresses(two, "peers") == [("10.1.0.2", True)])
        two.host.put(endpointslice("db-1", "10.1.0.1", service="db", namespace=INFRA))
        assert await until(lambda: addresses(two, "db") == [("10.96.7.7", True)]) < 2
        two.host.put(endpointslice("peers-1", "10.1.0.3", "10.1.0.4", service="peers", namespace=INFRA))
        await until(lambda: addresses(two, "peers") == [("10.1.0.3", True), ("10.1.0.4", True)])
        edit(two, "virtual", SLICES, {"endpoints": []}, "db")
        await until(lambda: addresses(two, "db") == [("10.96.7.7", True)])
        two.virtual.delete(SLICES, f"{NAMESPACE}/db")
        await until(lambda: addresses(two, "db") == [("10.96.7.7", True)])
        await daemon.settled()
        assert two.original("services", "unlisted") is None
        assert two.host.objects("services", HOME) == [], "nothing is made on the host"
        assert [one for one in two.host.requests if one.status == 403] == []
    async with running(two, services("peers")) as daemon:
        await until(lambda: not (two.original("services", "db") or two.original(SLICES, "db")))
        await daemon.settled()
        assert two.original("services", "peers")
        assert two.host.get("services", f"{INFRA}/db")
