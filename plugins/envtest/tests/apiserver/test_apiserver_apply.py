"""Server-side apply, as a real API server 1.36 does it."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver.apply import (
    LAST_APPLIED,
    ApplyConflict,
    ApplyRefusedError,
    server_side_apply,
    track_update,
)
from kube_envtest.apiserver.schemas import compile as compile_schema

Obj = dict[str, Any]

FIRST, SECOND = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    out: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return out if data is None else {**out, "data": data}


def deployment(*containers: Obj, **spec: Any) -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


def applied(live: Obj | None, config: Obj, manager: str = "one", **options: Any) -> Obj:
    before = copy.deepcopy((live, config))
    options = {"force": False, "now": FIRST, **options}
    result = server_side_apply(live, config, manager=manager, **options)
    assert (live, config) == before
    return result


def updated(live: Obj, data: dict[str, str], manager: str) -> Obj:
    stored = {**live, "metadata": {**live["metadata"], "uid": "1"}}
    return track_update(stored, {**stored, "data": data}, manager=manager, api_version="v1", now=SECOND)


def owners(obj: Obj) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


def test_an_applier_owns_leaves_and_no_maps() -> None:
    obj = applied(None, config_map({"a": "1"}, labels={"l": "1"}))
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": FIRST,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}},
        }
    ]


def test_a_field_no_longer_applied_is_removed_unless_another_manager_owns_it() -> None:
    live = applied(None, config_map({"a": "1", "b": "2", "c": "3"}))
    live = applied(live, config_map({"b": "2"}), "two")
    live = applied(live, config_map({"a": "1"}))
    assert live["data"] == {"a": "1", "b": "2"}
    assert owners(live) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:b": {}}}}
    assert "data" not in applied(applied(live, config_map()), config_map(), "two")


def test_the_same_value_is_shared_and_another_value_conflicts() -> None:
    live = applied(None, config_map({"a": "1", "b": "2"}))
    shared = applied(live, config_map({"a": "1"}), "two")
    assert owners(shared)["two"] == {"f:data": {"f:a": {}}}
    with pytest.raises(ApplyConflict) as caught:
        applied(live, config_map({"a": "x"}), "two")
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert caught.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]


def test_several_conflicts_are_listed_by_manager() -> None:
    live = updated(applied(None, config_map({"a": "1"})), {"a": "1", "b": "2", "c": "3"}, "kubectl-edit")
    with pytest.raises(ApplyConflict) as caught:
        applied(live, config_map({"a": "x", "b": "x", "c": "x"}), "two")
    assert str(caught.value) == (
        'Apply failed with 3 conflicts: conflicts with "kubectl-edit" using v1:\n- .data.b\n- .data.c\n'
        'conflicts with "one":\n- .data.a'
    )


def test_force_takes_the_field() -> None:
    live = applied(None, config_map({"a": "1", "b": "2"}))
    taken = applied(live, config_map({"a": "x"}), "two", force=True)
    assert taken["data"] == {"a": "x", "b": "2"}
    assert owners(taken) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_applying_the_same_again_gives_back_the_live_object() -> None:
    live = applied(None, config_map({"a": "1"}, labels={"l": "1"}))
    assert applied(live, config_map({"a": "1"}, labels={"l": "1"}), now=SECOND) is live


def test_containers_are_merged_by_name_and_keep_the_fields_of_other_managers() -> None:
    web = {"name": "web", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    live = applied(None, deployment(web, {"name": "old", "image": "o"}))
    live = applied(live, deployment({"name": "web", "resources": {"limits": {"cpu": "1"}}}), "two")
    live = applied(live, deployment({"name": "new", "image": "n"}, {**web, "env": web["env"][1:]}))
    containers = live["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in containers] == ["new", "web"]
    assert containers[1]["env"] == [{"name": "B", "value": "2"}]
    assert containers[1]["resources"] == {"limits": {"cpu": "1"}}


def test_fields_from_before_the_first_apply_belong_to_before_first_apply() -> None:
    live = {**config_map({"a": "1"}), "metadata": {"name": "c", "uid": "1"}}
    result = applied(live, config_map({"b": "2"}))
    assert owners(result)["before-first-apply"] == {"f:data": {".": {}, "f:a": {}}}
    with pytest.raises(ApplyConflict, match="before-first-apply"):
        applied(live, config_map({"a": "x"}))


def test_kubectl_may_take_over_its_client_side_applied_fields() -> None:
    last = json.dumps(config_map({"a": "1", "b": "2"}))
    stored = {**config_map({"a": "1", "b": "changed"}), "metadata": {"name": "c", "annotations": {LAST_APPLIED: last}}}
    live = track_update(None, stored, manager="kubectl-client-side-apply", api_version="v1", now=FIRST)
    live["metadata"]["uid"] = "1"
    result = applied(live, config_map({"a": "new"}), "kubectl")
    assert result["data"]["a"] == "new"
    assert json.loads(result["metadata"]["annotations"][LAST_APPLIED])["data"] == {"a": "new"}
    with pytest.raises(ApplyConflict, match=r"\.data\.b"):
        applied(live, config_map({"b": "new"}), "kubectl")
    with pytest.raises(ApplyConflict, match=r"\.data\.a"):
        applied(live, config_map({"a": "new"}), "somebody")


DUPLICATE = '.spec.template.spec.containers: duplicate entries for key [name="c"]'


@pytest.mark.parametrize(
    ("config", "code", "why"),
    [
        (config_map(managedFields=[]), 400, "metadata.managedFields must be nil"),
        (
            deployment({"name": "c"}, {"name": "c"}),
            500,
            "failed to create typed patch object (/d; apps/v1, Kind=Deployment): " + DUPLICATE,
        ),
    ],
)
def test_a_wrong_request_is_refused(config: Obj, code: int, why: str) -> None:
    with pytest.raises(ApplyRefusedError) as caught:
        applied(None, config)
    assert (caught.value.code, str(caught.value)) == (code, why)


def test_a_null_creation_timestamp_is_not_applied() -> None:
    live = {**applied(None, config_map({"a": "1"}))}
    live["metadata"] = {**live["metadata"], "creationTimestamp": FIRST}
    assert applied(live, config_map({"a": "1"}, creationTimestamp=None)) is live


SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "byKey": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"],
                        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}},
                    },
                    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "plain": {"type": "array", "items": {"type": "string"}},
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {}},
                },
            }
        },
    }
)


def thing(**spec: Any) -> Obj:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def test_a_custom_resources_lists_merge_by_its_schema() -> None:
    live = applied(None, thing(byKey=[{"k": "a", "v": "1"}], set=["x"], plain=["p"], whole={"a": 1}), schema=SCHEMA)
    live = applied(live, thing(byKey=[{"k": "b"}], set=["y"]), "two", schema=SCHEMA)
    assert live["spec"]["byKey"] == [{"k": "a", "v": "1"}, {"k": "b"}]
    assert live["spec"]["set"] == ["x", "y"]
    assert owners(live)["two"] == {"f:spec": {"f:byKey": {'k:{"k":"b"}': {".": {}, "f:k": {}}}, "f:set": {'v:"y"': {}}}}
    for spec in ({"plain": ["q"]}, {"whole": {"b": 1}}):
        with pytest.raises(ApplyConflict, match=r"conflict with \"one\": \.spec\."):
            applied(live, thing(**spec), "two", schema=SCHEMA)


def test_without_a_schema_a_list_is_one_value() -> None:
    live = applied(None, thing(byKey=[{"k": "a"}]))
    assert applied(live, thing(byKey=[{"k": "b"}]))["spec"]["byKey"] == [{"k": "b"}]


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
APPLIES = st.lists(st.tuples(st.sampled_from(["one", "two"]), DATA), min_size=1, max_size=5)


@given(APPLIES)
def test_apply_is_idempotent_and_its_manager_owns_the_applied_fields(applies: list[tuple[str, dict[str, str]]]) -> None:
    live: Obj | None = None
    expected: dict[str, dict[str, str]] = {}
    for manager, data in applies:
        config = config_map(data or None)
        live = applied(live, config, manager, force=True)
        assert applied(live, config, manager, now=SECOND) is live
        expected = {
            who: {key: value for key, value in old.items() if data.get(key, value) == value}
            for who, old in expected.items()
        }
        expected[manager] = data
    assert live is not None
    wanted = {key: value for data in expected.values() for key, value in data.items()}
    assert live.get("data", {}) == wanted
    owned = {who: set(fields["f:data"]) for who, fields in owners(live).items()} if wanted else {}
    assert owned == {who: {"f:" + key for key in data} for who, data in expected.items() if data}
