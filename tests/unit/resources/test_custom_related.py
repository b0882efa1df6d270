"""Objects that an operator on the host creates for copies appear in the virtual cluster."""

from typing import Any

import pytest
from custom_kinds import (
    CERT_MANAGER,
    CERTIFICATE,
    CERTIFICATES,
    HOST_KEY,
    SECRET,
    asked,
    begun,
    certificate,
    made,
    world_of,
)

from syncer.api import Key, Obj, Outcome, Refused, Side, annotations_of
from syncer.resources.custom import related
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import host_copy, pod_mounting, secret


def issued() -> World:
    """Return a world in which its Secret is on both sides."""
    world = begun().given(host=[made()])
    world.settle(SECRET, "shop/db-tls")
    world.woken()
    return world


def test_secret_appears_under_its_virtual_name() -> None:
    world = begun().given(host=[made()])
    assert (SECRET, Key("shop", "db-tls")) in asked(world)
    world.settle(SECRET, "shop/db-tls")
    found = world.virtual("Secret", "shop/db-tls")
    assert found
    assert (found["type"], found["data"]) == ("kubernetes.io/tls", made()["data"])
    assert annotations_of(found)["cert-manager.io/certificate-name"] == "x"
    assert annotations_of(found)["vsyncer.dev/made-from"] == HOST_KEY


def test_related_object_does_not_go_down_again() -> None:
    world = issued().given(virtual=[pod_mounting("web", secret="db-tls")])
    decision = world.decide("secrets", "shop/db-tls")
    assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())


def test_host_object_that_nothing_names_stays_on_the_host() -> None:
    world = begun().given(host=[made("other-x-shop-x-vc"), made("registry")])
    assert not {syncer for syncer, _ in asked(world)} & {SECRET}
    assert world.virtual("Secret", "shop/other") is None


@pytest.mark.reason("NoOwner")
def test_role_leaves_an_object_that_nothing_names_to_the_host() -> None:
    world = begun().given(host=[made("registry")])
    syncer: Any = world.syncer(SECRET)
    assert syncer.sync_from_host(world.context(SECRET), made("registry")).outcome is Outcome.SKIPPED


def test_event_changes_by_the_host_come_up_and_those_by_the_tenant_are_reverted() -> None:
    world = issued().given(host=[merged(made(), {"data": {"tls.crt": "bmV3"}})])
    world.settle(SECRET, "shop/db-tls")
    found = world.virtual("Secret", "shop/db-tls")
    assert found
    assert found["data"]["tls.crt"] == "bmV3"
    world.given(virtual=[merged(found, {"data": {"mine": "bWluZQ=="}})])
    assert (SECRET, Key("shop", "db-tls")) in asked(world)
    world.settle(SECRET, "shop/db-tls")
    after = world.virtual("Secret", "shop/db-tls")
    assert after
    assert after["data"] == found["data"]


def test_related_object_that_the_tenant_deletes_is_created_again() -> None:
    world = issued()
    world.gone(virtual=[secret("db-tls")])
    assert (SECRET, Key("shop", "db-tls")) in asked(world)
    assert world.settle(SECRET, "shop/db-tls")


def test_another_type_means_another_object() -> None:
    world = issued().given(host=[made(type="Opaque")])
    assert [str(call).split()[0] for call in world.settle(SECRET, "shop/db-tls")] == ["delete", "create"]
    found = world.virtual("Secret", "shop/db-tls")
    assert found
    assert found["type"] == "Opaque"


@pytest.mark.parametrize("kind", ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"])
def test_type_that_means_something_to_the_virtual_control_plane_does_not_reach_it(kind: str) -> None:
    world = begun().given(host=[made(type=kind)])
    world.settle(SECRET, "shop/db-tls")
    found = world.virtual("Secret", "shop/db-tls")
    assert found
    assert found["type"] == "Opaque"


def test_immutable_object_is_replaced() -> None:
    world = begun().given(host=[made(immutable=True)])
    world.settle(SECRET, "shop/db-tls")
    world.given(host=[merged(made(immutable=True), {"data": {"tls.crt": "bmV3"}})])
    world.settle(SECRET, "shop/db-tls")
    found = world.virtual("Secret", "shop/db-tls")
    assert found
    assert found["data"]["tls.crt"] == "bmV3"


def test_related_object_that_is_being_deleted_does_not_appear() -> None:
    going = {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/theirs"]}
    world = begun().given(host=[made(metadata=going)])
    assert world.decide(SECRET, "shop/db-tls").outcome is Outcome.SKIPPED


def test_related_object_of_an_unsynced_owner_does_not_appear() -> None:
    options = {CERTIFICATE: {"selector": {"matchLabels": {"sync": "yes"}}}}
    world = world_of(merged(dict(CERT_MANAGER), options)).given(virtual=[certificate()], host=[made()])
    decision = world.decide(SECRET, "shop/db-tls")
    assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())


def assert_deleted(world: World) -> None:
    """Check that the change just made wakes the request of the Secret, which deletes it in the virtual cluster."""
    assert (SECRET, Key("shop", "db-tls")) in asked(world)
    world.settle(SECRET, "shop/db-tls")
    assert world.virtual("Secret", "shop/db-tls") is None


def test_related_object_is_deleted_with_its_host_object() -> None:
    world = issued()
    world.gone(host=[made()])
    assert_deleted(world)


def test_related_secret_is_deleted_with_the_certificate_though_the_operator_keeps_its_own() -> None:
    world = issued()
    world.gone(virtual=[certificate()])
    assert_deleted(world)
    assert world.host("Secret", HOST_KEY)


def test_another_name_means_another_secret() -> None:
    world = issued().given(virtual=[certificate(to="new")], host=[made("new-x-shop-x-vc")])
    assert {(SECRET, Key("shop", "db-tls")), (SECRET, Key("shop", "new"))} <= asked(world)
    for key in ("shop/db-tls", "shop/new"):
        world.settle(SECRET, key)
    assert world.virtual("Secret", "shop/db-tls") is None
    assert world.virtual("Secret", "shop/new")


def test_object_that_two_name_stays_while_one_does() -> None:
    world = begun().given(virtual=[certificate("twin")], host=[made()])
    world.settle(CERTIFICATE, "shop/twin")
    world.settle(SECRET, "shop/db-tls")
    world.gone(virtual=[certificate()])
    world.settle(CERTIFICATE, "shop/db")
    world.settle(SECRET, "shop/db-tls")
    assert world.virtual("Secret", "shop/db-tls")


@pytest.mark.parametrize(("owner", "appears"), [("b", True), ("c", False)])
def test_only_so_many_of_the_objects_that_name_one_are_tried(
    owner: str, appears: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(related, "MOST_TRIED", 2)
    by = {"reference": "spec.secretName", "selector": {"matchLabels": {"for": "{name}"}}}
    entries = merged(
        dict(CERT_MANAGER), {CERTIFICATE: {"related": [{"resource": "secrets", "origin": "host", "by": by}]}}
    )
    world = world_of(entries).given(virtual=[certificate(name) for name in "cab"])
    for name in "abc":
        world.settle(CERTIFICATE, f"shop/{name}")
    world.given(host=[made(metadata={"labels": {"for": f"{owner}-x-shop-x-vc"}})])
    world.settle(SECRET, "shop/db-tls")
    assert (world.virtual("Secret", "shop/db-tls") is not None) == appears


@pytest.mark.reason("OwnerAbsent")
def test_related_object_waits_until_its_owner_is_on_the_host() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[certificate()], host=[made()])
    decision = world.decide(SECRET, "shop/db-tls")
    assert (decision.outcome, decision.reason) == (Outcome.PENDING, "its Certificate is not on the host yet")
    assert (Side.HOST, CERTIFICATES, Key("vc-ns", "db-x-shop-x-vc")) in decision.on


def test_name_that_is_hashed_on_the_host_is_found_as_well() -> None:
    long = "x" * 250
    world = world_of(CERT_MANAGER).given(virtual=[certificate(to=long)])
    world.settle(CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    assert "-x-shop" not in copy["spec"]["secretName"]
    world.woken()
    world.given(host=[made(copy["spec"]["secretName"])])
    assert (SECRET, Key("shop", long)) in asked(world)
    assert world.settle(SECRET, f"shop/{long}")


def test_secret_of_the_tenants_own_is_left_alone() -> None:
    world = begun().given(virtual=[secret("db-tls")], host=[made()])
    with pytest.raises(Refused, match="the virtual cluster has a Secret shop/db-tls that is not ours"):
        world.apply(world.decide(SECRET, "shop/db-tls"))
    found = world.virtual("Secret", "shop/db-tls")
    assert found
    assert found["data"] == secret("db-tls")["data"]


def test_copies_of_other_secrets_are_not_taken_for_the_operators() -> None:
    """The host has a copy at the very place: of a Secret that was synced before the Certificate named it."""
    world = begun().given(virtual=[secret("db-tls")], host=[host_copy(secret("db-tls"))])
    assert world.decide(SECRET, "shop/db-tls").writes == ()


def test_labels_of_ours_that_an_operator_copied_do_not_make_it_a_copy() -> None:
    copied = {"vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/namespace": "shop"}
    world = begun().given(host=[made(metadata={"labels": copied})])
    assert world.settle(SECRET, "shop/db-tls")


def test_related_object_of_another_virtual_clusters_copy_does_not_appear() -> None:
    world = begun().given(host=[made(metadata={"labels": {"vsyncer.dev/cluster": "other.vc-ns"}})])
    assert world.decide(SECRET, "shop/db-tls").writes == ()


def test_forged_mark_shows_nothing_of_a_secret_while_the_certificate_is_not_on_the_host() -> None:
    """A Certificate that the host refuses has no copy that the Secret could be compared with."""
    rule = {"reference": "spec.secretName", "selector": {"matchLabels": {"made-by": "cert-manager"}}}
    entry = {CERTIFICATE: {"related": [{"resource": "secrets", "origin": "host", "by": rule}]}}
    forged = {
        "labels": {"vsyncer.dev/cluster": "vc.vc-ns"},
        "annotations": {"vsyncer.dev/made-for": SECRET, "vsyncer.dev/made-from": HOST_KEY},
    }
    world = world_of(merged(dict(CERT_MANAGER), entry)).given(
        virtual=[certificate(), secret("db-tls", metadata=forged)],
        host=[made()],
    )
    decision = world.decide(SECRET, "shop/db-tls")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())


def marked(host: Obj) -> Obj:
    """Return a host object with the marks of a Pod's tokens."""
    marks = {"virtual-name": "admin", "virtual-namespace": "shop", "virtual-kind": "Pod", "host-namespace": "vc-ns"}
    marks["host-name"] = host["metadata"]["name"]
    annotations = {f"vsyncer.dev/{name}": value for name, value in marks.items()}
    return merged(host, {"metadata": {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}, "annotations": annotations}})


def test_tokens_of_a_pod_never_appear_by_a_name_in_a_certificate() -> None:
    tokens = marked(made("admin.pod-tokens-x-shop-x-vc"))
    world = begun().given(virtual=[certificate(to="admin.pod-tokens")], host=[tokens])
    with pytest.raises(Refused, match=r"spec\.secretName: no Secret may have a name that ends in \.pod-tokens"):
        world.decide(CERTIFICATE, "shop/db")
    assert (SECRET, Key("shop", "admin.pod-tokens")) not in asked(world)


def test_object_with_the_marks_of_its_host_key_is_a_copy_despite_its_kind_mark() -> None:
    world = begun().given(host=[marked(made())])
    assert world.decide(SECRET, "shop/db-tls").writes == ()
    elsewhere = {"metadata": {"annotations": {"vsyncer.dev/host-name": "another"}}}
    world.given(host=[merged(marked(made()), elsewhere)])
    assert world.decide(SECRET, "shop/db-tls").writes, "an operator copied our marks to its own object"
