"""Custom resources with other top-level fields than ``spec``."""

from typing import Any

import pytest
from custom_kinds import ORDERS, PARAMETERS, TEMPLATES, world_of

from syncer.api import Obj
from syncer.resources.custom.contents import LONGEST_EXACT, MOST_EXACT, exact_of
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, secret

KIND, SHOWN = str(TEMPLATES), str(PARAMETERS)
HOST_KEY = "vc-ns/t-x-shop-x-vc"
CONTENTS: Obj = {"objects": [{"kind": "ConfigMap"}], "parameters": {"A": "1"}}


def template(**parts: Any) -> Obj:
    return build(TEMPLATES, "t", **{**CONTENTS, **parts})


def copied(world: World) -> Obj:
    world.settle(KIND, "shop/t")
    found = world.host("Template", HOST_KEY)
    assert found
    return {name: value for name, value in found.items() if name not in ("apiVersion", "kind", "metadata")}


def test_all_top_level_fields_go_down_but_status() -> None:
    world = world_of({KIND: {}}).given(virtual=[template(spec={"a": 1}, message="m", status={"mine": True})])
    assert copied(world) == {**CONTENTS, "spec": {"a": 1}, "message": "m"}


def test_field_that_is_removed_is_removed_from_the_copy() -> None:
    world = world_of({KIND: {}}).given(virtual=[template()])
    copied(world)
    changed = {name: value for name, value in template().items() if name != "parameters"}
    world.given(virtual=[{**changed, "message": "m"}])
    assert copied(world) == {"objects": CONTENTS["objects"], "message": "m"}


def test_field_of_the_hosts_own_is_left_alone_and_comes_up_where_configured() -> None:
    world = world_of({KIND: {"up": ["status", "results"]}}).given(virtual=[template(results={"mine": 1})])
    assert copied(world) == CONTENTS
    host = world.host("Template", HOST_KEY)
    assert host
    world.given(host=[{**host, "results": {"b": 2}, "status": {"ready": True}, "other": {"c": 3}}])
    world.settle(KIND, "shop/t")
    virtual = world.virtual("Template", "shop/t")
    assert virtual
    assert (virtual["results"], virtual["status"], "other" in virtual) == ({"mine": 1, "b": 2}, {"ready": True}, False)
    assert copied(world)["other"] == {"c": 3}


def test_paths_that_are_given_are_all_that_goes() -> None:
    world = world_of({KIND: {"down": ["parameters"]}}).given(virtual=[template()])
    assert copied(world) == {"parameters": {"A": "1"}}


def test_name_in_any_field_is_translated() -> None:
    entry = {"references": {"store.secretName": "Secret"}}
    world = world_of({KIND: entry}).given(virtual=[template(store={"secretName": "s"}), secret("s")])
    assert copied(world)["store"] == {"secretName": "s-x-shop-x-vc"}


def test_mark_in_any_field_stays_behind() -> None:
    forged = {"template": {"metadata": {"labels": {"vsyncer.dev/cluster": "other", "a": "b"}}}}
    world = world_of({KIND: {}}).given(virtual=[template(**forged)])
    assert copied(world)["template"]["metadata"]["labels"] == {"a": "b"}


def test_owner_of_a_field_outside_of_spec_is_heeded() -> None:
    world = world_of({KIND: {"authority": {"parameters": "both"}}}).given(virtual=[template()])
    copied(world)
    host = world.host("Template", HOST_KEY)
    assert host
    world.given(host=[merged(host, {"parameters": {"A": "2"}})])
    world.settle(KIND, "shop/t")
    virtual = world.virtual("Template", "shop/t")
    assert virtual
    assert virtual["parameters"] == {"A": "2"}


CLASS: Obj = {"driver": "d", "deletionPolicy": "Delete", "parameters": {"size": "1"}}


def test_object_of_the_host_appears_with_all_its_fields_and_stays_as_it_is() -> None:
    world = world_of({SHOWN: {"direction": "fromHost"}}).given(host=[build(PARAMETERS, "fast", **CLASS)])
    world.settle(SHOWN, "fast")
    virtual = world.virtual("VolumeSnapshotClass", "fast")
    assert virtual
    assert {name: virtual[name] for name in CLASS} == CLASS
    world.given(virtual=[merged(virtual, {"driver": "mine", "parameters": {"more": "2"}, "spec": {"a": 1}})])
    world.settle(SHOWN, "fast")
    virtual = world.virtual("VolumeSnapshotClass", "fast")
    assert virtual
    assert ({name: virtual[name] for name in CLASS}, "spec" in virtual) == (CLASS, False)
    world.given(host=[build(PARAMETERS, "fast", **{**CLASS, "parameters": None, "deletionPolicy": "Retain"})])
    world.settle(SHOWN, "fast")
    virtual = world.virtual("VolumeSnapshotClass", "fast")
    assert virtual
    assert (virtual["deletionPolicy"], virtual.get("parameters")) == ("Retain", None)


def test_object_that_an_operator_makes_appears_with_all_its_fields() -> None:
    made = {"resource": str(ORDERS), "origin": "host", "by": {"owner": True}}
    world = world_of({KIND: {"related": [made]}}).given(virtual=[template()])
    world.settle(KIND, "shop/t")
    copy = world.host("Template", HOST_KEY)
    assert copy
    owner = {"apiVersion": "example.test/v1", "kind": "Template", "name": "t-x-shop-x-vc"}
    owner["uid"] = copy["metadata"]["uid"]
    order = build(ORDERS, "o", namespace="vc-ns", metadata={"ownerReferences": [owner]}, request="r", type="fast")
    world.given(host=[order])
    world.settle(f"{KIND}:{ORDERS}", "shop/o")
    world.given(host=[{**order, "type": "slow"}])
    world.settle(f"{KIND}:{ORDERS}", "shop/o")
    virtual = world.virtual("Order", "shop/o")
    assert virtual
    assert (virtual["request"], virtual["type"]) == ("r", "slow")


@pytest.mark.parametrize("name", ["a" * (LONGEST_EXACT + 1), "a"])
def test_paths_that_are_kept_in_mind_are_few_and_short(name: str) -> None:
    many: Obj = {f"{name}{number}": 1 for number in range(1000)}
    exact = exact_of(many, many)
    assert len(exact) <= MOST_EXACT
    assert max(len(step) for path in exact for step in path) <= LONGEST_EXACT
