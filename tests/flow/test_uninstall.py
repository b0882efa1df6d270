"""An uninstall removes all our objects, and no others, from both sides."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from crd_scene import CRDS
from custom_scene import CLUSTER_ISSUERS, define, definition, running, there
from harness import ALL, CLUSTER, HOME, NAMESPACE, Two, admin, built_in, host_path, namespace, writes
from rules_scene import configured as configured_sections
from rules_scene import edit
from sampled import config_model
from shop_scene import settled, the_copy, the_original
from uninstall_scene import (
    ELECTING,
    GADGETS,
    IDENTITY,
    LABEL,
    LEASES,
    MARKED,
    NOTE,
    both,
    claimed,
    config,
    contents,
    marked,
    now,
    only,
    planned,
    sent,
    synced,
    uninstalled,
    worked,
    working,
)

from kube_envtest import Rule
from syncer.api import ConfigError, Key, Obj, Side, annotations_of, labels_of
from syncer.config import SyncerConfig
from syncer.engine.stores.identity import is_claimed
from syncer.names import PerNamespace
from syncer.resources.kinds import API_SERVICES, CONFIG_MAPS, ENDPOINT_SLICES, SERVICES
from syncer.resources.metrics_api import OBJECTS
from syncer.resources.pods.eviction import SAFE_TO_EVICT
from syncer.resources.service_addresses import PLACEHOLDER, Note
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd, crd_version, pod, secret, service

GADGET: Obj = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "mine", "namespace": NAMESPACE}}


# -- what goes, and what doesn't -------------------------------------------------------------------


@pytest.mark.parametrize("elects", [True, False])
async def test_uninstall_removes_all_our_objects_and_no_others(two: Two, elects: bool) -> None:
    given = config(**(ELECTING if elects else {}))
    others = await synced(two, given)
    assert two.virtual.get("configmaps", NOTE)
    report = await uninstalled(two, given)
    assert (report.problems, report.left, report.done, report.exit_code) == ([], {}, True, 0)
    assert both(two) == others
    again = await uninstalled(two, given)
    assert (again.items, again.problems) == ([], [])
    assert both(two) == others


async def test_plan_lists_the_deletions_and_writes_nothing(two: Two) -> None:
    given = config(**ELECTING)
    others = await synced(two, given)
    ours = [set(found) - set(known) for found, known in zip(both(two), others, strict=True)]
    since = now(two)
    report = await planned(two, given)
    assert sent(two, since) == ([], [])
    assert not report.done
    for side, found in zip((Side.VIRTUAL, Side.HOST), ours, strict=True):
        named = {(str(item.resource), str(item.key)) for item in report.items if item.side is side}
        assert named == {(kind, key) for kind, key in found if kind != LEASES and key != NOTE}
    doubtful = [line for line in report.remarks if "with our mark that no syncer makes" in line]
    assert len(doubtful) == 2, "what the tenant has forged"


async def test_kept_objects_stay_as_they_are_without_our_marks(two: Two) -> None:
    given = config(**ELECTING)
    virtual, host = await synced(two, given)
    before, data = both(two), the_copy(two, "configmaps", "color")["data"]
    report = await uninstalled(two, given, keep=True)
    assert (report.problems, report.done) == ([], True)
    kept = both(two)
    assert set(kept[0]) == set(before[0]) - {("configmaps", NOTE)}
    assert set(kept[1]) == set(before[1]) - {(LEASES, f"{HOME}/vsyncer-{CLUSTER}")}
    assert virtual.items() <= kept[0].items()
    assert host.items() <= kept[1].items()
    assert the_copy(two, "configmaps", "color")["data"] == data
    ours = (marked(two.virtual) - set(virtual)) | (marked(two.host) - set(host))
    assert ours == {("pods", host_path("web")), ("services", host_path("web"))}
    copy = the_copy(two, "pods", "web")
    assert {name for name in annotations_of(copy) if name.startswith("vsyncer.dev/")} == set()
    selector = the_copy(two, "services", "web")["spec"]["selector"]
    ours_in = {name: value for name, value in selector.items() if name.startswith("vsyncer.dev/")}
    assert len(ours_in) == 2
    assert ours_in.items() <= labels_of(copy).items(), "the Service goes on selecting it"
    assert list((await planned(two, given)).items) == []


async def test_kept_pod_may_no_longer_be_evicted_as_nobody_makes_another(two: Two) -> None:
    given = config(sync_toHost_pods_evictable="all")
    await synced(two, given)
    copy = the_copy(two, "pods", "web")
    [owner] = copy["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Namespace", HOME, True)
    selecting = the_copy(two, "services", "web")["metadata"]
    other = {"apiVersion": "v1", "kind": "Service", "name": selecting["name"], "uid": selecting["uid"]}
    two.host.put(merged(copy, {"metadata": {"ownerReferences": [owner, other]}}))
    assert annotations_of(copy)[SAFE_TO_EVICT] == "true"
    report = await uninstalled(two, given, keep=True)
    assert (report.problems, report.done) == ([], True)
    kept = the_copy(two, "pods", "web")
    assert kept["metadata"]["ownerReferences"] == [other]
    assert SAFE_TO_EVICT not in annotations_of(kept)


async def test_objects_of_disabled_syncers_are_uninstalled_too(two: Two) -> None:
    others = await synced(two, config())
    off = {
        f"sync_{path}_enabled": False for path in ("toHost_services", "toHost_pods", "fake_nodes", "fromHost_events")
    }
    less = config(**off)
    custom = {name: entry for name, entry in less.sync.custom.items() if name == CLUSTER_ISSUERS}
    less = less.model_copy(update={"sync": less.sync.model_copy(update={"custom": custom})})
    report = await uninstalled(two, less)
    assert report.problems == []
    assert both(two) == others


async def test_objects_that_lead_to_the_metrics_api_are_uninstalled(two: Two) -> None:
    names = {"kind": "APIService", "listKind": "APIServiceList", "singular": "apiservice"}
    version = [crd_version("v1", storage=True)]
    two.virtual.put(crd(str(API_SERVICES), version, scope="Cluster", spec={"names": names}))
    two.virtual.put(build(API_SERVICES, "v1.apps"))
    two.virtual.put(merged(build(API_SERVICES, "v1.odd"), MARKED))
    for resource, key in OBJECTS:
        parts = {"spec": {"ports": [{"port": 443}]}} if resource.kind == "Service" else {"addressType": "IPv4"}
        two.virtual.put(merged(build(resource, key.name, namespace=key.namespace, **parts), MARKED))
    report = await uninstalled(two, config())
    assert report.problems == []
    assert [two.virtual.get(str(resource), str(key).lstrip("/")) for resource, key in OBJECTS] == [None] * 3
    assert {each["metadata"]["name"] for each in two.virtual.objects(str(API_SERVICES))} == {"v1.apps", "v1.odd"}


async def test_shown_objects_of_the_host_are_uninstalled_without_the_tenants_own(two: Two) -> None:
    made: Mapping[str, Callable[..., Obj]] = {"configmaps": configmap, "secrets": secret, "services": service}
    from_host: Obj = {}
    two.host.put(namespace("infra"))
    for kind, section in (("configmaps", "configMaps"), ("secrets", "secrets"), ("services", "services")):
        two.host.put(made[kind]("shown", namespace="infra"))
        two.virtual.put(merged(made[kind]("forged"), MARKED))
        entries = {"infra/shown": f"{NAMESPACE}/shown"}
        from_host[section] = {"enabled": True, "mappings": {"byName": entries}}
    syncers = (*made, "endpointslices", "host-configmaps", "host-secrets", "host-services")
    given = configured_sections({"fromHost": from_host}, *syncers)
    slices = str(ENDPOINT_SLICES)
    await worked(two, given, lambda: two.original(slices, "shown"))
    assert all(two.original(kind, "shown") for kind in made)
    report = await uninstalled(two, given)
    assert (report.problems, report.left, report.done) == ([], {}, True)
    assert [kind for kind in (*made, slices) if two.original(kind, "shown")] == []
    assert [kind for kind in made if two.original(kind, "forged")] == list(made)
    assert all(two.host.get(kind, "infra/shown") for kind in made)


async def test_published_services_are_uninstalled_without_those_of_the_host(two: Two) -> None:
    two.host.put(namespace("infra"))
    two.host.put(service("own", namespace="infra"))
    two.virtual.put(service("x"))
    options = {"enabled": True, "namespaces": ["infra"], "mappings": {"byName": {f"{NAMESPACE}/x": "infra/shop-x"}}}
    given = configured_sections({"toHost": {"publishedServices": options}}, "services", "published-services")
    slices = str(ENDPOINT_SLICES)
    await worked(two, given, lambda: two.host.get(slices, "infra/shop-x"))
    report = await uninstalled(two, given)
    assert (report.problems, report.left, report.done) == ([], {}, True)
    assert [kind for kind in ("services", slices) if two.host.get(kind, "infra/shop-x")] == []
    assert two.host.get("services", "infra/own")


async def test_paused_objects_are_uninstalled_too(two: Two) -> None:
    given = only(two, "configmaps")
    two.virtual.put(configmap("x"))
    async with working(two, given, lambda: two.copy("configmaps", "x")) as daemon:
        edit(two, "virtual", "configmaps", {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}})
        await daemon.settled()
    assert (await uninstalled(two, given)).done
    assert two.copy("configmaps", "x") is None
    assert two.original("configmaps", "x")


# -- what would take others with it ----------------------------------------------------------------


async def test_crd_that_the_tenant_has_objects_of_stays_until_they_are_gone(two: Two) -> None:
    given = config()
    virtual, _ = await synced(two, given)
    two.virtual.put(GADGET)
    [(item, why)] = (await planned(two, given)).left.items()
    assert (str(item.key), why) == (GADGETS, f"there is the Gadget {NAMESPACE}/mine, which is not ours")
    report = await uninstalled(two, given)
    assert (report.done, [str(item.key) for item in report.left]) == (True, [GADGETS])
    assert set(contents(two.virtual)) == {*virtual, (CRDS, GADGETS), (GADGETS, f"{NAMESPACE}/mine")}
    two.virtual.delete(GADGETS, f"{NAMESPACE}/mine")
    assert (await uninstalled(two, given)).left == {}
    assert contents(two.virtual) == virtual


@pytest.mark.parametrize("status", [503, 403])
async def test_crd_with_unlistable_objects_stays(two: Two, status: int) -> None:
    given = config()
    await synced(two, given)
    two.virtual.faults.add(Rule(verb="list", path="/apis/example.com/v1/gadgets", status=status))
    report = await uninstalled(two, given)
    assert report.exit_code == (1 if status == 503 else 0)
    assert [str(item.key) for item in report.left] == ([] if status == 503 else [GADGETS])
    assert two.virtual.get(CRDS, GADGETS)


async def test_tenants_crd_stays_on_the_host_while_others_have_objects_of_it(two: Two) -> None:
    define(two)
    two.virtual.put(definition(GADGETS))
    section = {"toHost": {"customResourceDefinitions": {"enabled": True, "names": [GADGETS]}}}
    given = per(section=section)
    await worked(two, given, lambda: two.host.get(CRDS, GADGETS))
    two.host.put(GADGET)
    report = await uninstalled(two, given)
    assert [str(item) for item in report.left] == [f"host CustomResourceDefinition {GADGETS}"]
    assert two.host.get(GADGETS, f"{NAMESPACE}/mine")
    two.host.delete(GADGETS, f"{NAMESPACE}/mine")
    assert (await uninstalled(two, given)).left == {}
    assert two.host.get(CRDS, GADGETS) is None
    assert two.virtual.get(CRDS, GADGETS), "it is the tenant's"


def per(*, section: Obj | None = None) -> SyncerConfig:
    """Return a configuration in which each virtual namespace has a host namespace of its own."""
    model = config_model(built_in(), PerNamespace)
    return model.model_validate({"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": section or {"toHost": ALL}})


@pytest.mark.parametrize("foreign", [True, False])
async def test_host_namespace_goes_last_and_only_if_nothing_of_others_is_in_it(two: Two, foreign: bool) -> None:
    given = per()
    home = str(given.cluster().translator.to_host(CONFIG_MAPS, Key(NAMESPACE, "x")).namespace)
    two.virtual.put(configmap("x"))
    two.virtual.put(pod("web"))
    await worked(two, given, lambda: two.host.get("pods", f"{home}/web"))
    if foreign:
        two.host.put(configmap("operators", namespace=home))
    since = len(two.host.requests)
    report = await uninstalled(two, given)
    assert report.problems == []
    deletes = [line for line in writes(two.host, since) if line.startswith("delete ")]
    assert "/pods/" in deletes[0]
    if not foreign:
        assert (report.left, two.host.get("namespaces", home)) == ({}, None)
        names = [line for line in deletes if "/v1/namespaces/" in line and line.count("/") == 4]
        assert deletes[-len(names) :] == names
        return
    assert [str(item.key) for item in report.left] == [home]
    assert "the ConfigMap operators, which is not ours" in next(iter(report.left.values()))
    assert [one["metadata"]["name"] for one in two.host.objects("configmaps", home)] == [
        "kube-root-ca.crt",
        "operators",
    ]


async def test_host_namespace_stays_for_a_pod_of_others_though_it_controls_it(two: Two) -> None:
    given = per()
    home = str(given.cluster().translator.to_host(CONFIG_MAPS, Key(NAMESPACE, "x")).namespace)
    two.virtual.put(configmap("x"))
    await worked(two, given, lambda: two.host.get("configmaps", f"{home}/x"))
    uid = there(two.host, "namespaces", home)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": home, "uid": uid, "controller": True}
    two.host.put(pod("operators", namespace=home, metadata={"ownerReferences": [owner]}))
    report = await uninstalled(two, given)
    assert report.problems == []
    assert ["the Pod operators, which is not ours" in why for why in report.left.values()] == [True]
    assert two.host.get("pods", f"{home}/operators")


@pytest.mark.parametrize("keep", [True, False])
async def test_quota_and_limits_of_a_host_namespace_are_uninstalled(two: Two, keep: bool) -> None:
    given = {"quota": {"hard": {"pods": "10"}}, "limits": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
    daemon = per(section={"toHost": {**ALL, "namespaces": given}})
    home = str(daemon.cluster().translator.to_host(CONFIG_MAPS, Key(NAMESPACE, "x")).namespace)
    two.virtual.put(configmap("x"))
    await worked(two, daemon, lambda: two.host.get("configmaps", f"{home}/x"))
    kinds = ("resourcequotas", "limitranges")
    assert all(two.host.get(kind, f"{home}/vsyncer") for kind in kinds)
    assert (await planned(two, daemon, keep=keep)).left == {}
    report = await uninstalled(two, daemon, keep=keep)
    assert (report.problems, report.left) == ([], {})
    if not keep:
        assert two.host.get("namespaces", home) is None
        return
    assert not any(LABEL in labels_of(two.host.get(kind, f"{home}/vsyncer") or {}) for kind in kinds)
    assert all(two.host.get(kind, f"{home}/vsyncer") for kind in kinds)


# -- in which order --------------------------------------------------------------------------------


async def test_pods_are_deleted_before_the_objects_they_mount(two: Two) -> None:
    given = config()
    await synced(two, given)
    since = len(two.host.requests)
    pods_at: list[float] = []

    async def watch() -> None:
        while two.copy("pods", "web"):  # noqa: ASYNC110 — the server's own state
            await asyncio.sleep(0.1)
        pods_at.append(max(one.at for one in two.host.requests))

    watching = asyncio.create_task(watch())
    await uninstalled(two, given)
    await watching
    others = [one for one in list(two.host.requests)[since:] if one.verb == "delete" and one.resource != "pods"]
    assert pods_at[0] <= min(one.at for one in others)
    kinds = [one.resource for one in others if one.user != "system:apiserver"]
    assert kinds.index("certificates") < kinds.index("secrets")


async def test_notes_are_removed_from_tenants_objects_before_any_copy(two: Two) -> None:
    """By them a daemon would take the copies for deleted by the host, and might delete the tenant's objects."""
    given = config()
    await synced(two, given)
    edit(two, "virtual", "configmaps", {"metadata": {"annotations": {"vsyncer.dev/copied": "some-uid"}}}, "color")
    two.virtual.faults.add(Rule(verb="patch", resource="configmaps", status=500))
    since = now(two)
    assert (await uninstalled(two, given)).exit_code == 1
    assert [line for line in sent(two, since)[1] if line.startswith("delete")] == []
    two.virtual.faults.clear()
    assert (await uninstalled(two, given)).done
    assert annotations_of(the_original(two, "configmaps", "color")) == {}


# -- afterwards ------------------------------------------------------------------------------------


async def test_afterwards_the_virtual_cluster_can_be_synced_under_another_name(two: Two) -> None:
    await synced(two, config())
    other = config(cluster="other")
    with pytest.raises(ConfigError):
        await is_claimed(admin(two.virtual, Side.VIRTUAL), other.cluster().settings(), translator="single-namespace")
    await uninstalled(two, config())
    await claimed(two, other)
    async with working(two, other, lambda: two.host.get("services", host_path("web", "other"))) as daemon:
        assert list(daemon.process.statuses.troubles()) == []


async def test_kept_copies_are_left_alone_by_the_next_daemon(two: Two) -> None:
    given = only(two, "configmaps", "services")
    two.virtual.put(configmap("x"))
    two.virtual.put(service("x"))
    await worked(two, given, lambda: two.copy("configmaps", "x") and two.copy("services", "x"))
    await uninstalled(two, given, keep=True)
    before = contents(two.host)
    async with settled(running(two, given)) as daemon:
        two.virtual.delete("configmaps", f"{NAMESPACE}/x")
        two.virtual.delete("services", f"{NAMESPACE}/x")
        await daemon.settled()
    assert before.items() <= contents(two.host).items()


async def test_scene_has_objects_that_only_look_like_ours(two: Two) -> None:
    virtual, host = await synced(two, config())
    forged = labels_of(the_original(two, "secrets", "forged"))
    assert labels_of(there(two.host, "configmaps", f"{HOME}/copy-of-copy"))[LABEL] == IDENTITY
    assert {("configmaps", f"{HOME}/copy-of-copy"), ("configmaps", host_path("color", "another"))} <= set(host)
    assert ("secrets", f"{NAMESPACE}/forged") in virtual
    assert MARKED["metadata"]["labels"].items() <= forged.items()
    assert namespace(NAMESPACE)["metadata"]["name"] in {key for kind, key in virtual if kind == "namespaces"}


# -- a Service whose address is being changed ------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("is_taken", [False, True])
async def test_service_in_the_middle_of_an_address_change_is_restored(two: Two, keep: bool, is_taken: bool) -> None:
    given, client = only(two, "services"), admin(two.virtual, Side.VIRTUAL)
    before = await client.create(SERVICES, service("web", namespace=NAMESPACE, spec={"sessionAffinity": "ClientIP"}))
    await worked(two, given, lambda: two.copy("services", "web"))
    note = str(Note(was=before["spec"]))
    half = {"type": "ExternalName", "externalName": PLACEHOLDER}
    half_done = {"metadata": {"annotations": {"vsyncer.dev/address": note}}, "spec": half}
    await client.patch(SERVICES, Key(NAMESPACE, "web"), half_done)
    if is_taken:
        spec = {"clusterIP": before["spec"]["clusterIP"]}
        await client.create(SERVICES, service("other", namespace=NAMESPACE, spec=spec))
    report = await uninstalled(two, given, keep=keep)
    assert (report.problems, report.done) == ([], True)
    after = two.original("services", "web") or {}
    own = {name: after["spec"][name] for name in ("clusterIP", "clusterIPs")}
    assert after["spec"] == {**before["spec"], **own}
    assert (own["clusterIP"] == before["spec"]["clusterIP"]) is not is_taken
    assert "annotations" not in after["metadata"] or not annotations_of(after)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
