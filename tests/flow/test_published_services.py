"""Services of a tenant under names in namespaces of the host, with minimal rights."""

from collections.abc import Mapping
from typing import Any

import pytest
from harness import CLUSTER, HOME, NAMESPACE, Two, between, built_in, until, writes
from rules_scene import USER, Guarded, configured, edit, events, grant, running
from sampled import config_model

from syncer.api import NameTranslator, Obj, annotations_of, labels_of
from syncer.config import SyncerConfig
from syncer.daemon.pages.status import degraded, mappings
from syncer.names import PerNamespace, SingleNamespace
from syncer.rights.rbac import Share, needed
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import endpointslice, namespace, service

SERVICES, SLICES = "services", "endpointslices.discovery.k8s.io"
INFRA = "infra"
SYNCERS = ("services", "endpointslices", "published-services")
LISTED = {f"{NAMESPACE}/web": f"{INFRA}/shop-web"}
PAUSED = {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}}


def section(entries: Mapping[str, str], *namespaces: str) -> dict[str, Any]:
    """Return the part below ``sync`` of a configuration with these entries."""
    options = {"enabled": True, "namespaces": namespaces or [INFRA], "mappings": {"byName": entries}}
    return {"toHost": {"publishedServices": options}}


def config(entries: Mapping[str, str], *namespaces: str) -> SyncerConfig:
    """Return a configuration that publishes these Services."""
    return configured(section(entries, *namespaces), *SYNCERS)


def guarded() -> Guarded:
    """Return two API servers; the host has a namespace of its own."""
    two = Guarded()
    two.host.put(namespace(INFRA))
    return two


def published(two: Two, key: str = f"{INFRA}/shop-web") -> Obj | None:
    return two.host.get(SERVICES, key)


def addresses(two: Two, key: str = f"{INFRA}/shop-web") -> list[tuple[str, bool]]:
    """Return the addresses to which a name leads on the host, each with whether it is ready."""
    found = two.host.get(SLICES, key) or {}
    return [(each["addresses"][0], each["conditions"]["ready"]) for each in found.get("endpoints") or ()]


def of_copy(two: Two, *endpoints: str, name: str = "web") -> Obj:
    """Return the slice that the host's controller makes for the copy of a Service, with its labels."""
    copy = two.copy(SERVICES, name)
    assert copy
    made = endpointslice(f"{name}-1", *endpoints, service=copy["metadata"]["name"], namespace=HOME)
    return merged(made, {"metadata": {"labels": labels_of(copy)}})


def address_of_copy(two: Two) -> str:
    copy = two.copy(SERVICES, "web")
    assert copy
    return str(copy["spec"]["clusterIP"])


async def test_name_on_the_host_leads_to_the_tenants_service_and_follows_it() -> None:
    two = guarded()
    two.virtual.put(service("web", metadata={"labels": {"app": "web"}}))
    two.virtual.put(service("unlisted"))
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: addresses(two))
        address = address_of_copy(two)
        assert addresses(two) == [(address, False)]
        found = published(two)
        assert found
        assert found["spec"]["clusterIP"] == "None"
        assert "selector" not in found["spec"]
        assert "app" not in labels_of(found)
        two.host.put(of_copy(two, "10.1.0.1"))
        await until(lambda: addresses(two) == [(address, True)])
        two.host.put(merged(of_copy(two), {"endpoints": []}))
        await until(lambda: addresses(two) == [(address, False)])
        edit(two, "virtual", SERVICES, {"spec": {"ports": [{"name": "other", "port": 9}]}}, "web")
        await until(lambda: (published(two) or found)["spec"]["ports"][0]["port"] == 9)
        await until(lambda: (two.host.get(SLICES, f"{INFRA}/shop-web") or {})["ports"][0]["port"] == 9)
        two.host.delete(SLICES, f"{INFRA}/shop-web")
        await until(lambda: addresses(two))
        two.host.delete(SERVICES, f"{INFRA}/shop-web")
        await until(lambda: published(two) and addresses(two))
        await daemon.settled()
        assert mappings(daemon.process)[CLUSTER, "published-services"] == 1
        assert [obj["metadata"]["name"] for obj in two.host.objects(SERVICES, INFRA)] == ["shop-web"]
        two.virtual.delete(SERVICES, f"{NAMESPACE}/web")
        await until(lambda: not (published(two) or two.host.get(SLICES, f"{INFRA}/shop-web")))
        await daemon.settled()
    asked = {one.resource for one in two.host.requests if f"/{INFRA}/" in one.path}
    assert asked == {"services", "endpointslices"}
    assert [one for one in two.host.requests if one.status == 403] == []


async def test_headless_service_leads_to_the_endpoints_of_its_copy() -> None:
    two = guarded()
    two.virtual.put(service("web", spec={"clusterIP": "None"}))
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: published(two))
        two.host.put(of_copy(two, "10.1.0.1", "10.1.0.2"))
        await until(lambda: addresses(two) == [("10.1.0.1", True), ("10.1.0.2", True)])
        await daemon.settled()


async def test_whole_namespace_appears_under_names_that_begin_as_the_operator_says() -> None:
    two = guarded()
    entries = {f"{NAMESPACE}/*": f"{INFRA}/shop-*", f"{NAMESPACE}/web": f"{INFRA}/front"}
    for name in ("web", "db"):
        two.virtual.put(service(name))
    async with running(two, config(entries)) as daemon:
        await until(lambda: published(two, f"{INFRA}/front") and published(two, f"{INFRA}/shop-db"))
        await daemon.settled()
        names = {obj["metadata"]["name"] for obj in two.host.objects(SERVICES, INFRA)}
        assert names == {"front", "shop-db"}


FREEZES = {
    "nothing": lambda two: None,
    "pauses it": lambda two: edit(two, "virtual", SERVICES, PAUSED, "web"),
    "pauses its namespace": lambda two: two.virtual.put(namespace(NAMESPACE, **PAUSED)),
    "makes it a name": lambda two: edit(
        two,
        "virtual",
        SERVICES,
        {"spec": {"type": "ExternalName", "externalName": "a.example", "clusterIP": None}},
        "web",
    ),
}


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES)
@pytest.mark.parametrize("entries", [{}, {f"{NAMESPACE}/web": f"{INFRA}/other"}], ids=["removed", "changed"])
async def test_removed_entry_takes_its_service_along_whatever_the_tenant_does(
    freeze: Any, entries: Mapping[str, str]
) -> None:
    two = guarded()
    two.virtual.put(service("web"))
    async with running(two, config(LISTED)):
        await until(lambda: addresses(two))
    freeze(two)
    async with running(two, config(entries)) as daemon:
        await until(lambda: not (published(two) or two.host.get(SLICES, f"{INFRA}/shop-web")))
        await daemon.settled()
    assert two.original(SERVICES, "web")


async def test_service_of_the_host_of_that_name_stays_and_the_tenant_reads_why() -> None:
    two = guarded()
    two.virtual.put(service("web"))
    two.host.put(service("shop-web", namespace=INFRA))
    before = published(two)
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: events(two, "NameCollision"))
        await daemon.settled()
        [event] = events(two, "NameCollision")
        assert event["involvedObject"]["name"] == "web"
        assert INFRA not in event["message"]
        assert published(two) == before
        assert two.copy(SERVICES, "web"), "its copy is made all the same"
        two.host.delete(SERVICES, f"{INFRA}/shop-web")
        two.virtual.put(merged(two.original(SERVICES, "web") or {}, {"metadata": {"labels": {"a": "b"}}}))
        await until(lambda: annotations_of(published(two) or {"metadata": {}}))


async def test_copy_that_the_operator_pauses_is_left_alone() -> None:
    two = guarded()
    two.virtual.put(service("web"))
    async with running(two, config(LISTED)) as daemon:
        await until(lambda: addresses(two))
        await daemon.settled()
        two.host.put(merged(published(two) or {}, merged(PAUSED, {"spec": {"ports": [{"name": "x", "port": 7}]}})))
        await daemon.settled()
        assert (published(two) or {})["spec"]["ports"][0]["port"] == 7


def rules(given: SyncerConfig, resource: str) -> Mapping[str, Any]:
    """Return the verbs on the host for a resource, by namespace; "" is the whole cluster."""
    settings = given.cluster().settings()
    granted = needed(given.cluster().all_syncers(), settings=settings)
    share = Share(CLUSTER, granted, settings.names.host_namespaces())
    found: dict[str, Any] = {}
    for place, rights in share.by_namespace().items():
        verbs = {verb for right in rights if right.resource.plural == resource for verb in right.verbs}
        if verbs:
            found[place] = verbs
    return found


def test_rights_are_those_in_the_listed_namespaces() -> None:
    full = {"get", "list", "watch", "create", "patch", "delete"}
    for resource in ("services", "endpointslices"):
        granted = rules(config({f"{NAMESPACE}/web": "team/web"}, INFRA, "team"), resource)
        assert granted == {HOME: full, INFRA: full, "team": full}
        without = configured({}, "services", "endpointslices")
        assert rules(without, resource).keys() == {HOME}


async def test_missing_right_holds_up_no_other_kind() -> None:
    two = guarded()
    given = config(LISTED)
    grant(two, given)
    two.host.delete("roles.rbac.authorization.k8s.io", f"{INFRA}/vsyncer-{CLUSTER}")
    two.virtual.put(service("web"))
    async with between(two.host, [(given, two.virtual)], user=USER, tenant=USER) as daemon:
        await until(lambda: two.copy(SERVICES, "web"))
        await daemon.settled()
        assert {syncer for _, syncer in degraded(daemon.process)} == {"published-services"}
        grant(two, given)
        await until(lambda: addresses(two))


@pytest.mark.parametrize("translator", [SingleNamespace, PerNamespace])
async def test_published_service_is_no_copy_wherever_it_is(two: Two, translator: type[NameTranslator]) -> None:
    """Its namespace is one of copies, or all of the host is watched: nobody takes it for a copy of the Service."""
    two.host.put(namespace(INFRA))
    place = HOME if translator is SingleNamespace else INFRA
    sync = section({f"{NAMESPACE}/web": f"{place}/shop-web"}, place)
    host = {"namespace": HOME} if translator is SingleNamespace else {}
    model = config_model(built_in("namespaces", *SYNCERS), translator)
    given = model.model_validate({"cluster": CLUSTER, "host": host, "sync": sync})
    two.virtual.put(service("web"))
    async with between(two.host, [(given, two.virtual)]) as daemon:
        await until(lambda: addresses(two, f"{place}/shop-web"))
        await daemon.settled()
        since = len(two.host.requests)
        await daemon.settled()
        assert writes(two.host, since) == []
        assert [daemon.status("web", syncer) for syncer in SYNCERS] == [None] * 3
        two.virtual.delete(SERVICES, f"{NAMESPACE}/web")
        await until(lambda: not published(two, f"{place}/shop-web"))


async def test_of_two_virtual_clusters_the_first_has_the_name() -> None:
    one = Two()
    other = ApiServer(seed="other")
    other.put(namespace(NAMESPACE))
    one.host.put(namespace(INFRA))
    served = []
    for cluster, server in (("one", one.virtual), ("two", other)):
        one.host.put(namespace(f"vc-{cluster}"))
        document = {"cluster": cluster, "host": {"namespace": f"vc-{cluster}"}, "sync": section(LISTED)}
        served.append((config_model(built_in(*SYNCERS)).model_validate(document), server))
    one.virtual.put(service("web"))
    async with between(one.host, served) as daemon:
        await until(lambda: addresses(one))
        before = addresses(one)
        other.put(service("web"))
        await until(lambda: [each for each in other.objects("events") if each["reason"] == "NameCollision"])
        await daemon.settled()
        assert addresses(one) == before
        assert labels_of(published(one) or {})["vsyncer.dev/cluster"] == "one.vc-one"
