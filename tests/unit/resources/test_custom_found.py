"""Objects that belong to copies by owner, labels or an operator's name appear beside the virtual objects."""

from typing import Any

import pytest
from custom_kinds import (
    CERT_MANAGER,
    CERTIFICATE,
    HOST_KEY,
    MONITOR,
    MONITORS,
    ORDERS,
    SECRET,
    asked,
    begun,
    certificate,
    made,
)

from syncer.api import Key, Obj, Side, Verb, uid_of
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build

OWNED = {"related": [{"resource": str(ORDERS), "origin": "host", "by": {"owner": True}}]}
ORDER = f"{CERTIFICATE}:{ORDERS}"


def order(owner: Obj, **parts: Any) -> Obj:
    """Return an Order that belongs to a Certificate on the host."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
    }
    base = {"metadata": {"ownerReferences": [reference]}, "spec": {"dns": ["a"]}, "status": {"state": "valid"}}
    return build(ORDERS, "db-1", namespace="vc-ns", **merged(base, parts))


def ordered() -> tuple[World, Obj]:
    world = begun(entries={CERTIFICATE: OWNED})
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    world.given(host=[order(copy)])
    return world, copy


def test_object_owned_by_the_copy_appears_beside_the_original() -> None:
    world, _ = ordered()
    assert (ORDER, Key("shop", "db-1")) in asked(world)
    world.settle(ORDER, "shop/db-1")
    found = world.virtual("Order", "shop/db-1")
    assert found
    assert (found["spec"], found["status"]) == ({"dns": ["a"]}, {"state": "valid"})
    assert "ownerReferences" not in found["metadata"]


def test_found_object_is_reconciled_when_its_owner_changes_and_deleted_with_it() -> None:
    world, copy = ordered()
    decision = world.decide(ORDER, "shop/db-1")
    assert {(awaited.side, awaited.key) for awaited in decision.on} == {
        (Side.VIRTUAL, Key("shop", "db")),
        (Side.HOST, Key("vc-ns", "db-x-shop-x-vc")),
    }
    world.apply(decision)
    assert world.decide(ORDER, "shop/db-1").on == decision.on
    world.gone(virtual=[certificate()], host=[copy])
    assert [write.verb for write in world.decide(ORDER, "shop/db-1").writes] == [Verb.DELETE]
    world.woken()
    world.gone(host=[order(copy)])
    assert (ORDER, Key("shop", "db-1")) in asked(world)
    world.settle(ORDER, "shop/db-1")
    assert world.virtual("Order", "shop/db-1") is None


def test_object_owned_by_the_copy_of_an_earlier_object_is_left_out() -> None:
    world, _ = ordered()
    world.given(virtual=[certificate(metadata={"uid": "the-next-one"})])
    assert world.decide(ORDER, "shop/db-1").writes == ()


def test_object_that_another_one_owns_is_left_out() -> None:
    world, copy = ordered()
    world.given(host=[order(merged(copy, {"metadata": {"uid": "an-earlier-one"}}))])
    assert world.decide(ORDER, "shop/db-1").writes == ()


LABELLED = {
    "related": [
        {
            "resource": str(ORDERS),
            "origin": "host",
            "by": {"selector": {"matchLabels": {"order": "of-{name}", "kind": "acme"}}},
        }
    ]
}


@pytest.mark.parametrize(
    ("labels", "appears"),
    [
        ({"order": "of-db-x-shop-x-vc", "kind": "acme"}, True),
        ({"order": "of-db-x-shop-x-vc"}, False),
        ({"order": "of-other", "kind": "acme"}, False),
        ({"kind": "acme"}, False),
    ],
)
def test_labels_identify_the_owner_of_an_object(labels: dict[str, str], appears: bool) -> None:
    world = begun(entries={CERTIFICATE: LABELLED})
    world.given(host=[build(ORDERS, "db-1", namespace="vc-ns", metadata={"labels": labels})])
    assert bool(world.decide(ORDER, "shop/db-1").writes) is appears


def test_objects_are_watched_only_with_the_labels() -> None:
    world = begun(entries={CERTIFICATE: LABELLED})
    syncer: Any = world.syncer(ORDER)
    assert syncer.host_selector(world.settings) == "kind=acme,order"


def test_conditions_must_all_hold() -> None:
    by = {"reference": "spec.secretName", "selector": {"matchLabels": {"made-by": "cert-manager"}}}
    entries = merged(
        dict(CERT_MANAGER), {CERTIFICATE: {"related": [{"resource": "secrets", "origin": "host", "by": by}]}}
    )
    world = begun(entries=entries).given(host=[made()])
    assert world.decide(SECRET, "shop/db-tls").writes == ()
    world.given(host=[made(metadata={"labels": {"made-by": "cert-manager"}})])
    assert world.settle(SECRET, "shop/db-tls")


def test_name_that_the_operator_chose_is_the_virtual_one_too() -> None:
    by = {"reference": "status.secretName"}
    world = begun(entries={CERTIFICATE: {"related": [{"resource": "secrets", "origin": "host", "by": by}]}})
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    world.given(host=[merged(copy, {"status": {"secretName": "generated"}}), made("generated")])
    world.settle(CERTIFICATE, "shop/db")
    world.settle(SECRET, "shop/generated")
    found = world.virtual("Certificate", "shop/db")
    assert found
    assert world.virtual("Secret", f"shop/{found['status']['secretName']}")
    world.woken()
    world.gone(host=[made("generated")])
    assert (SECRET, Key("shop", "generated")) in asked(world)


@pytest.mark.reason("Anothers")
def test_rules_of_one_kind_do_not_interfere() -> None:
    rules = [*CERT_MANAGER[CERTIFICATE]["related"], {"resource": "secrets", "origin": "host", "by": {"owner": True}}]
    world = begun(entries=merged(dict(CERT_MANAGER), {CERTIFICATE: {"related": rules}})).given(host=[made()])
    world.settle(SECRET, "shop/db-tls")
    assert world.decide(f"{SECRET}:2", "shop/db-tls", host_key=HOST_KEY).writes == ()
    assert world.decide(f"{SECRET}:2", "shop/db-tls").writes == ()
    assert world.virtual("Secret", "shop/db-tls")


def test_object_of_two_entries_stays_with_the_first() -> None:
    second = {
        "references": {"spec.secretName": "Secret"},
        "related": [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}],
    }
    world = begun(entries={**CERT_MANAGER, MONITOR: second})
    world.given(virtual=[build(MONITORS, "web", spec={"secretName": "db-tls"})], host=[made()])
    world.settle(MONITOR, "shop/web")
    world.settle(SECRET, "shop/db-tls")
    decision = world.decide(f"{MONITOR}:secrets", "shop/db-tls")
    assert (decision.writes, decision.reason) == ((), f"it is kept by {SECRET}")
