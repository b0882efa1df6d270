"""Public CRDs of the host in the virtual cluster: which, how they follow, and how they end."""

from typing import Any

import pytest

from syncer.api import Obj, Outcome, Refused, Resource, Right, Side
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.resources.definitions.tenant import TenantDefinitionSyncer
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import crd, crd_version

NAME = "widgets.example.com"
LABELLED = {"labels": {"tenancy.x-k8s.io/super.public": "true"}}
OURS = {"vsyncer.dev/cluster": "vc.vc-ns"}
ENDING: Obj = {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/wait"]}}


def world(**options: Any) -> World:
    section = {"enabled": True, **options}
    return World([PublicDefinitionSyncer], config={"sync": {"fromHost": {"customResourceDefinitions": section}}})


def public(**parts: Any) -> Obj:
    return crd(NAME, **merged({"metadata": LABELLED}, parts))


def stored(*versions: str) -> Obj:
    return {"status": {"storedVersions": list(versions), "conditions": [{"type": "Established", "status": "True"}]}}


def synced(**options: Any) -> World:
    """Return a world in which a public CRD has its copy, which stores v1."""
    made = world(**options).given(host=[public(status={"storedVersions": ["v1"]})])
    assert made.settle("public-crds", NAME)
    return made.given(virtual=[merged(virtual(made), stored("v1"))])


def virtual(made: World) -> Obj:
    found = made.virtual("CustomResourceDefinition", NAME)
    assert found
    return found


# -- which, and as what ----------------------------------------------------------------------------


def test_public_crd_is_created_without_its_status() -> None:
    annotations = {"note": "x", "cert-manager.io/inject-ca-from": "a/b"}
    made = world().given(host=[public(metadata={"annotations": annotations}, status={"storedVersions": ["v1"]})])
    [write] = made.decide("public-crds", NAME).writes
    assert write.side is Side.VIRTUAL
    assert write.obj == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": LABELLED["labels"] | OURS, "annotations": {"note": "x"}},
        "spec": crd(NAME)["spec"],
    }


@pytest.mark.parametrize("value", ["True", "yes", "", "1"])
def test_label_has_to_be_exactly_true(value: str) -> None:
    host = public(metadata={"labels": {"tenancy.x-k8s.io/super.public": value}})
    decision = world().given(host=[host]).decide("public-crds", NAME)
    assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())
    assert "no label tenancy.x-k8s.io/super.public: 'true'" in decision.reason


@pytest.mark.reason("CrdNotPublic")
def test_label_may_be_another_one() -> None:
    made = world(label="example.com/shared")
    assert not made.given(host=[public()]).decide("public-crds", NAME).writes
    assert made.given(host=[crd(NAME, metadata={"labels": {"example.com/shared": "true"}})]).settle("public-crds", NAME)
    syncer = made.syncer("public-crds")
    assert isinstance(syncer, PublicDefinitionSyncer)
    assert syncer.host_selector(made.settings) == "example.com/shared=true"


@pytest.mark.parametrize(
    ("allow", "deny", "reason"),
    [
        (["widgets.*"], [], ""),
        (["*"], ["*.example.org"], ""),
        (["*.cert-manager.io"], [], f"{NAME} is not among sync.fromHost.customResourceDefinitions.allow"),
        ([], [], f"{NAME} is not among sync.fromHost.customResourceDefinitions.allow"),
        (["*"], ["w*.example.com"], f"{NAME} is among sync.fromHost.customResourceDefinitions.deny"),
    ],
)
def test_crds_for_a_tenant_can_be_limited(allow: list[str], deny: list[str], reason: str) -> None:
    decision = world(allow=allow, deny=deny).given(host=[public()]).decide("public-crds", NAME)
    assert bool(decision.writes) is not bool(reason)
    assert not reason or decision.reason == reason


def test_crd_of_the_tenants_own_is_never_touched() -> None:
    own = crd(NAME, [crd_version("v7", storage=True)])
    made = world(onRemoval="delete").given(host=[public()], virtual=[own])
    before = virtual(made)
    with pytest.raises(Refused, match="the virtual cluster has a CustomResourceDefinition") as refused:
        made.settle("public-crds", NAME)
    assert refused.value.reason == "NameCollision"
    assert made.gone(host=[public()]).settle("public-crds", NAME) == []
    assert virtual(made) == before


@pytest.mark.reason("CopyOfCrd")
def test_crd_that_a_tenant_put_on_the_host_is_not_given_to_others() -> None:
    section = {"enabled": True, "names": [NAME]}
    theirs = World(
        [TenantDefinitionSyncer],
        config={"sync": {"toHost": {"customResourceDefinitions": section}}},
        cluster="other",
    )
    theirs.given(virtual=[public()]).settle("tenant-crds", NAME)
    copy = theirs.host("CustomResourceDefinition", NAME)
    assert copy
    decision = world().given(host=[merged(copy, {"metadata": LABELLED})]).decide("public-crds", NAME)
    assert (decision.writes, decision.reason) == ((), "it is the copy of a tenant's CRD")


# -- how it follows --------------------------------------------------------------------------------


def test_fields_that_the_host_removes_go_and_those_it_adds_come() -> None:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    rich = [crd_version("v1", storage=True, additionalPrinterColumns=[column]), crd_version("v0")]
    poor = [crd_version("v1", storage=True), crd_version("v2", served=False)]
    made = world().given(host=[public(metadata={"labels": {"team": "a"}}, spec={"versions": rich})])
    made.settle("public-crds", NAME)
    made.given(host=[public(metadata={"annotations": {"note": "y"}}, spec={"versions": poor})])
    assert [str(sent) for sent in made.settle("public-crds", NAME)] == [
        f"patch virtual customresourcedefinitions.apiextensions.k8s.io {NAME}"
    ]
    assert virtual(made)["spec"]["versions"] == poor
    assert virtual(made)["metadata"]["labels"] == LABELLED["labels"] | OURS
    assert virtual(made)["metadata"]["annotations"]["note"] == "y"


@pytest.mark.parametrize(
    "edit",
    [
        {"names": {"shortNames": ["w"], "categories": ["all"]}},
        {"versions": [crd_version("v1", storage=True), crd_version("v2")]},
        {"versions": [crd_version("v1", storage=True, deprecated=True)]},
        {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}},
    ],
)
def test_specification_that_a_tenant_changes_is_restored(edit: Obj) -> None:
    made = synced()
    before = virtual(made)
    made.given(virtual=[merged(before, {"spec": edit, "metadata": {"labels": {"mine": "x"}}})])
    assert len(made.settle("public-crds", NAME)) == 1
    assert virtual(made)["spec"] == before["spec"]
    assert virtual(made)["metadata"]["labels"]["mine"] == "x"


def test_status_is_neither_compared_nor_written() -> None:
    made = synced()
    changed = public(status={"storedVersions": ["v1", "v0"], "acceptedNames": {"kind": "Widget"}})
    assert made.given(host=[changed]).settle("public-crds", NAME) == []
    assert virtual(made)["status"] == stored("v1")["status"]


def test_change_that_would_lose_stored_objects_is_refused() -> None:
    made = synced().given(host=[public(spec={"versions": [crd_version("v2", storage=True)]})])
    with pytest.raises(Refused, match="v1 is gone, but objects may be stored as v1 in the virtual cluster"):
        made.decide("public-crds", NAME)


def test_reason_names_differences_without_the_webhook() -> None:
    webhook = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}}}
    versions = [crd_version("v1"), crd_version("v2", storage=True, schema={"openAPIV3Schema": {"required": ["spec"]}})]
    made = synced().given(host=[public(spec={"conversion": webhook, "versions": versions})])
    made.given(virtual=[merged(virtual(made), stored("v2"))])
    decision = made.decide("public-crds", NAME)
    assert "webhook can't be reached from there and is left out" in decision.reason
    assert "v1 is not served there" in decision.reason
    made.apply(decision)
    assert virtual(made)["spec"]["conversion"] == {"strategy": "None"}
    assert made.settle("public-crds", NAME) == []


@pytest.mark.reason("Remade")
def test_crd_that_the_tenant_deletes_is_created_again() -> None:
    made = synced()
    made.given(virtual=[merged(virtual(made), ENDING)])
    assert made.decide("public-crds", NAME).outcome is Outcome.PENDING
    made.gone(virtual=[virtual(made)])
    assert [sent.verb for sent in made.settle("public-crds", NAME)] == ["create"]


# -- what becomes of it ----------------------------------------------------------------------------


def unlabelled(made: World) -> World:
    return made.given(host=[crd(NAME)])


def denied(made: World) -> World:
    return made.configure({"sync": {"fromHost": {"customResourceDefinitions": {"deny": [NAME]}}}})


def removed(made: World) -> World:
    return made.gone(host=[public()])


ENDS = [unlabelled, denied, removed]


@pytest.mark.parametrize("end", ENDS)
def test_crd_stays_when_it_is_no_longer_public_and_is_taken_over_again(end: Any) -> None:
    made = synced()
    before = virtual(made)
    decision = end(made).decide("public-crds", NAME)
    assert (decision.writes, decision.outcome) == ((), Outcome.SKIPPED)
    assert decision.reason.endswith(
        "widgets.example.com stays, as sync.fromHost.customResourceDefinitions.onRemoval says"
    )
    made.configure({"sync": {"fromHost": {"customResourceDefinitions": {"deny": []}}}})
    made.given(host=[public(spec={"names": {"shortNames": ["w"]}})])
    assert [sent.verb for sent in made.settle("public-crds", NAME)] == ["patch"]
    assert virtual(made)["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("end", ENDS)
def test_crd_is_deleted_if_configured(end: Any) -> None:
    made = end(synced(onRemoval="delete"))
    assert [sent.verb for sent in made.settle("public-crds", NAME)] == ["delete"]
    assert made.virtual("CustomResourceDefinition", NAME) is None


@pytest.mark.parametrize("end", ENDS)
def test_crd_is_deleted_only_if_it_has_no_objects(end: Any) -> None:
    [write] = end(synced(onRemoval="delete-if-unused")).decide("public-crds", NAME).writes
    assert write.only_if_none == Resource("example.com/v1", "Widget", "widgets")


@pytest.mark.reason("HostEnds")
def test_host_crd_that_is_being_deleted_is_still_there_but_not_for_newcomers() -> None:
    made = synced(onRemoval="delete").given(host=[public(**ENDING)])
    assert made.settle("public-crds", NAME) == []
    late = world().given(host=[public(**ENDING)])
    assert late.decide("public-crds", NAME).reason == "the host CRD is being deleted"


@pytest.mark.reason("BothGo")
def test_crd_that_is_being_deleted_is_left_alone() -> None:
    made = removed(synced(onRemoval="delete"))
    made.given(virtual=[merged(virtual(made), ENDING)])
    assert made.decide("public-crds", NAME).writes == ()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"onRemoval": "delete"}, []),
        ({"onRemoval": "delete-if-unused"}, [Resource("*/*", "*", "*", namespaced=False)]),
        (
            {"onRemoval": "delete-if-unused", "allow": ["widgets.example.com", "gadgets.example.com"]},
            [
                Resource("example.com/*", "*", "gadgets", namespaced=False),
                Resource("example.com/*", "*", "widgets", namespaced=False),
            ],
        ),
        (
            {"onRemoval": "delete-if-unused", "allow": ["widgets.example.com", "*.io"]},
            [Resource("*/*", "*", "*", namespaced=False)],
        ),
    ],
)
def test_custom_resources_are_listed_only_where_that_is_needed(options: Obj, expected: list[Resource]) -> None:
    made = world(**options)
    rights = made.syncer("public-crds").rights_with(made.settings)
    assert sorted(rights, key=str) == [Right(Side.VIRTUAL, resource, ("list",)) for resource in expected]
