"""Listed CRDs of the tenant on the host: which, how they follow, and that none is deleted by default."""

from typing import Any

import pytest

from syncer.api import Key, Obj, Outcome, Refused, Resource, Right, Side
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.resources.definitions.tenant import TenantDefinitionSyncer
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import crd, crd_version

NAME = "widgets.example.com"
ENDING: Obj = {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/wait"]}}


def options(**given: Any) -> Obj:
    return {"sync": {"toHost": {"customResourceDefinitions": {"enabled": True, "names": [NAME], **given}}}}


def world(**given: Any) -> World:
    return World([TenantDefinitionSyncer], config=options(**given))


def synced(**given: Any) -> World:
    """Return a world in which a named CRD has its copy, which stores v1."""
    made = world(**given).given(virtual=[crd(NAME)])
    assert made.settle("tenant-crds", NAME)
    return made.given(host=[merged(host(made), {"status": {"storedVersions": ["v1"]}})])


def host(made: World) -> Obj:
    found = made.host("CustomResourceDefinition", NAME)
    assert found
    return found


def test_named_crd_is_made_under_its_own_name_with_our_marks() -> None:
    made = synced()
    assert made.copy_of("tenant-crds", NAME) == host(made)
    assert host(made)["spec"] == crd(NAME)["spec"]
    assert made.settings.marks.virtual_key(host(made)) == Key("", NAME)
    assert made.settle("tenant-crds", NAME) == []


def test_short_names_and_categories_of_built_in_kinds_stay_behind() -> None:
    names = {"shortNames": ["po", "w", "svc"], "categories": ["all", "shop"], "singular": "widget"}
    made = world().given(virtual=[crd(NAME, spec={"names": names})])
    decision = made.decide("tenant-crds", NAME)
    assert "shortNames of built-in kinds are left out: po, svc; categories of built-in kinds" in decision.reason
    made.settle("tenant-crds", NAME)
    found = host(made)["spec"]["names"]
    assert (found["shortNames"], found["categories"], found["singular"]) == (["w"], ["shop"], "widget")
    made.given(virtual=[crd(NAME, spec={"names": {"shortNames": ["secret"]}})])
    made.settle("tenant-crds", NAME)
    found = host(made)["spec"]["names"]
    assert "shortNames" not in found
    assert "categories" not in found
    assert made.settle("tenant-crds", NAME) == []


@pytest.mark.parametrize(("wanted", "found"), [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
def test_crd_of_another_scope_than_the_configured_one_is_refused(wanted: str, found: str) -> None:
    made = world(scope=wanted).given(virtual=[crd(NAME, spec={"scope": found})])
    option = "sync.toHost.customResourceDefinitions.scope"
    with pytest.raises(Refused, match=f"is {found}, and only {wanted} kinds go to the host .{option}.") as refused:
        made.decide("tenant-crds", NAME)
    assert refused.value.path == "spec.scope"
    made.given(virtual=[crd(NAME, spec={"scope": wanted})])
    made.settle("tenant-crds", NAME)
    assert host(made)["spec"]["scope"] == wanted


def test_change_of_a_copy_to_another_scope_than_the_configured_one_is_refused() -> None:
    made = synced(scope="Namespaced")
    made.given(virtual=[crd(NAME, spec={"scope": "Cluster"})])
    with pytest.raises(Refused, match="and only Namespaced kinds go"):
        made.decide("tenant-crds", NAME)


@pytest.mark.reason("NotListed")
def test_crds_are_created_only_if_they_are_listed() -> None:
    decision = world().given(virtual=[crd("gadgets.example.com")]).decide("tenant-crds", "gadgets.example.com")
    assert decision.reason == "gadgets.example.com is not among sync.toHost.customResourceDefinitions.names"
    assert decision.outcome is Outcome.SKIPPED


def test_tenant_can_not_make_it_public() -> None:
    labels = {"tenancy.x-k8s.io/super.public": "true", "team": "a"}
    made = world().given(virtual=[crd(NAME, metadata={"labels": labels})])
    made.settle("tenant-crds", NAME)
    assert host(made)["metadata"]["labels"] == {"team": "a", "vsyncer.dev/cluster": "vc.vc-ns"}


def test_tenant_can_not_make_it_public_by_a_configured_label() -> None:
    public = {"fromHost": {"customResourceDefinitions": {"enabled": True, "label": "example.org/public"}}}
    config = merged(options(), {"sync": public})
    made = World([TenantDefinitionSyncer, PublicDefinitionSyncer], config=config)
    made.given(virtual=[crd(NAME, metadata={"labels": {"example.org/public": "true", "team": "a"}})])
    made.settle("tenant-crds", NAME)
    assert host(made)["metadata"]["labels"] == {"team": "a", "vsyncer.dev/cluster": "vc.vc-ns"}


def test_object_from_the_host_does_not_go_back() -> None:
    marked = crd(NAME, metadata={"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}})
    assert world().given(virtual=[marked]).decide("tenant-crds", NAME).writes == ()


@pytest.mark.parametrize("labels", [{}, {"vsyncer.dev/cluster": "another.vc-ns"}])
def test_crd_of_the_host_or_of_another_tenant_is_left_alone(labels: Obj) -> None:
    made = world().given(virtual=[crd(NAME)], host=[crd(NAME, metadata={"labels": labels})])
    before = host(made)
    with pytest.raises(Refused, match="not ours"):
        made.settle("tenant-crds", NAME)
    assert host(made) == before


@pytest.mark.reason("NameCollision")
def test_tenant_crd_is_recognised_where_all_crds_of_the_host_are_watched() -> None:
    both = {"sync": {"fromHost": {"customResourceDefinitions": {"enabled": True}}}}
    made = World([TenantDefinitionSyncer, PublicDefinitionSyncer], config=merged(options(), both))
    made.given(virtual=[crd(NAME)], host=[crd(NAME)])
    with pytest.raises(Refused, match="that is not ours"):
        made.decide("tenant-crds", NAME)


def test_copy_of_a_crd_follows_the_tenant() -> None:
    made = synced()
    versions = [crd_version("v1"), crd_version("v2", storage=True)]
    made.given(virtual=[crd(NAME, versions)])
    assert len(made.settle("tenant-crds", NAME)) == 1
    assert host(made)["spec"]["versions"] == versions
    made.given(host=[merged(host(made), {"spec": {"names": {"shortNames": ["w"]}}})])
    assert len(made.settle("tenant-crds", NAME)) == 1
    assert "shortNames" not in host(made)["spec"]["names"]


def test_change_that_would_lose_stored_objects_is_refused() -> None:
    made = synced().given(virtual=[crd(NAME, [crd_version("v2", storage=True)])])
    with pytest.raises(Refused, match="v1 is gone, but objects may be stored as v1 on the host"):
        made.decide("tenant-crds", NAME)


def test_webhook_of_the_tenant_is_not_called_by_the_host() -> None:
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}}}
    made = world().given(virtual=[crd(NAME, spec={"conversion": webhook})])
    made.settle("tenant-crds", NAME)
    assert host(made)["spec"]["conversion"] == {"strategy": "None"}
    refusing = world(conversion="refuse").given(virtual=[crd(NAME, spec={"conversion": webhook})])
    with pytest.raises(Refused, match="webhook"):
        refusing.decide("tenant-crds", NAME)


# -- what becomes of it ----------------------------------------------------------------------------


def unnamed(made: World) -> World:
    return made.configure(options(names=[]))


def removed(made: World) -> World:
    return made.gone(virtual=[crd(NAME)])


@pytest.mark.parametrize("end", [unnamed, removed])
def test_crd_stays_by_default(end: Any) -> None:
    decision = end(synced()).decide("tenant-crds", NAME)
    assert decision.writes == ()
    assert decision.reason.endswith(f"{NAME} stays, as sync.toHost.customResourceDefinitions.onRemoval says")


@pytest.mark.parametrize("end", [unnamed, removed])
def test_crd_is_deleted_if_configured(end: Any) -> None:
    made = end(synced(onRemoval="delete"))
    assert [sent.verb for sent in made.settle("tenant-crds", NAME)] == ["delete"]
    [write] = end(synced(onRemoval="delete-if-unused")).decide("tenant-crds", NAME).writes
    assert write.only_if_none == Resource("example.com/v1", "Widget", "widgets")


@pytest.mark.reason("CrdUnchecked")
def test_tenant_can_not_hide_that_it_is_used_by_serving_no_version() -> None:
    """The host's own objects of the kind are in no list then, and would go with it."""
    made = synced(onRemoval="delete-if-unused")
    made.given(virtual=[crd(NAME, [crd_version("v1", storage=True, served=False)])])
    made.settle("tenant-crds", NAME)
    decision = removed(made).decide("tenant-crds", NAME)
    assert (decision.writes, decision.outcome) == ((), Outcome.SKIPPED)
    assert "its use can't be checked" in decision.reason


@pytest.mark.reason("VirtualEnds")
def test_copy_stays_until_the_virtual_crd_is_really_gone() -> None:
    made = synced(onRemoval="delete").given(virtual=[crd(NAME, **ENDING)])
    decision = made.decide("tenant-crds", NAME)
    assert (decision.writes, decision.outcome) == ((), Outcome.PENDING)
    assert world().given(virtual=[crd(NAME, **ENDING)]).decide("tenant-crds", NAME).writes == ()


def test_crd_that_is_deleted_on_the_host_is_created_again() -> None:
    made = synced()
    made.given(host=[merged(host(made), ENDING)])
    assert made.decide("tenant-crds", NAME).outcome is Outcome.PENDING
    made.gone(host=[crd(NAME)])
    assert [sent.verb for sent in made.settle("tenant-crds", NAME)] == ["create"]


@pytest.mark.parametrize("policy", ["retain", "delete-if-unused", "delete"])
def test_copy_that_is_still_there_is_taken_over_by_the_next_crd_of_its_name(policy: str) -> None:
    made = synced(onRemoval=policy)
    before = host(made)
    removed(made).given(virtual=[crd(NAME, metadata={"uid": "another"})])
    assert {sent.verb for sent in made.settle("tenant-crds", NAME)} == {"patch"}
    assert host(made)["metadata"]["uid"] == before["metadata"]["uid"]
    assert host(made)["metadata"]["annotations"]["vsyncer.dev/virtual-uid"] == "another"


def test_next_crd_of_the_name_must_keep_stored_fields() -> None:
    made = removed(synced()).given(virtual=[crd(NAME, scope="Cluster", metadata={"uid": "another"})])
    with pytest.raises(Refused, match="it is Cluster now, and can't be changed from Namespaced on the host"):
        made.decide("tenant-crds", NAME)


def test_custom_resources_are_listed_only_where_that_is_needed() -> None:
    made = world()
    assert list(made.syncer("tenant-crds").rights_with(made.settings)) == []
    made = world(onRemoval="delete-if-unused")
    resource = Resource("example.com/*", "*", "widgets", namespaced=False)
    assert list(made.syncer("tenant-crds").rights_with(made.settings)) == [Right(Side.HOST, resource, ("list",))]
