"""Owners of fields after creates, updates and patches, as a real API server 1.36 writes them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver import defaults
from kube_envtest.apiserver.apply import track_update
from kube_envtest.apiserver.field_sets import Fields, intersection, paths
from kube_envtest.apiserver.managed_fields import MOST_UPDATERS

Obj = dict[str, Any]

FIRST, SECOND, THIRD = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"


def config_map(data: Any = None, **metadata: Any) -> Obj:
    out: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "1", **metadata}}
    return out if data is None else {**out, "data": data}


def tracked(old: Obj | None, new: Obj, manager: str, now: str = FIRST, subresource: str = "") -> Obj:
    before = copy.deepcopy((old, new))
    result = track_update(old, new, manager=manager, api_version=new["apiVersion"], now=now, subresource=subresource)
    assert (old, new) == before
    return result


def entries(obj: Obj) -> list[Obj]:
    found: list[Obj] = obj["metadata"].get("managedFields", [])
    return found


def fields_of(obj: Obj, manager: str, subresource: str = "") -> Fields:
    for entry in entries(obj):
        if (entry["manager"], entry.get("subresource", "")) == (manager, subresource):
            fields: Fields = entry["fieldsV1"]
            return fields
    return {}


def with_data(obj: Obj, **changes: Any) -> Obj:
    data = {**obj.get("data", {}), **changes}
    return {**obj, "data": {key: value for key, value in data.items() if value is not None}}


def test_the_creator_owns_only_the_fields_it_sent() -> None:
    obj = tracked(None, config_map({"a": "1"}, namespace="n", labels={"l": "1"}, creationTimestamp=FIRST), "kubectl")
    assert entries(obj) == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "time": FIRST,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            },
        }
    ]


def test_a_pods_managed_fields_equal_those_of_a_real_server() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "E"}]}],
            "imagePullSecrets": [{"name": "s"}],
            "nodeSelector": {"a": "b"},
        },
    }
    obj = tracked(None, defaults.default("Pod", pod), "m")
    container: Fields = {
        ".": {},
        "f:env": {".": {}, 'k:{"name":"E"}': {".": {}, "f:name": {}}},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:ports": {
            ".": {},
            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}},
        },
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }
    assert fields_of(obj, "m") == {
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': container},
            "f:dnsPolicy": {},
            "f:enableServiceLinks": {},
            "f:imagePullSecrets": {".": {}, 'k:{"name":"s"}': {}},
            "f:nodeSelector": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": {},
            "f:terminationGracePeriodSeconds": {},
        }
    }


def test_a_manager_that_changes_a_field_takes_it_from_the_others() -> None:
    first = tracked(None, config_map({"a": "1", "b": "2"}), "one")
    second = tracked(first, with_data(first, a="x", c="3"), "two", SECOND)
    assert fields_of(second, "one") == {"f:data": {".": {}, "f:b": {}}}
    assert fields_of(second, "two") == {"f:data": {"f:a": {}, "f:c": {}}}
    assert [(entry["manager"], entry["time"]) for entry in entries(second)] == [("one", FIRST), ("two", SECOND)]


def test_a_removed_field_has_no_owner_and_the_removers_time_stays() -> None:
    first = tracked(None, config_map({"a": "1", "b": "2"}), "one")
    second = tracked(first, with_data(first, c="3"), "two", SECOND)
    third = tracked(second, with_data(second, b=None), "two", THIRD)
    assert fields_of(third, "one") == {"f:data": {".": {}, "f:a": {}}}
    assert [entry["time"] for entry in entries(third)] == [FIRST, SECOND]


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    first = tracked(None, config_map({"a": "1"}), "one")
    assert tracked(first, first, "two", SECOND) == first


def test_a_manager_that_owns_nothing_any_more_is_gone() -> None:
    first = tracked(None, config_map({"a": "1"}), "one")
    second = tracked(first, with_data(first, b="2"), "two", SECOND)
    third = tracked(second, with_data(second, b="3"), "three", THIRD)
    assert [entry["manager"] for entry in entries(third)] == ["one", "three"]


def test_the_status_is_tracked_through_its_own_subresource_only() -> None:
    pod: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "1"}, "spec": {"nodeName": "n"}}
    created = tracked(None, {**pod, "status": {"phase": "Running"}}, "one")
    assert "f:status" not in fields_of(created, "one")
    ready = {"type": "Ready", "status": "True"}
    updated = tracked(created, {**created, "status": {"conditions": [ready]}}, "kubelet", SECOND, "status")
    assert entries(updated)[-1]["subresource"] == "status"
    step = 'k:{"type":"Ready"}'
    owned: Fields = {"f:status": {"f:conditions": {".": {}, step: {".": {}, "f:status": {}, "f:type": {}}}}}
    assert fields_of(updated, "kubelet", "status") == owned


def test_a_selector_and_an_owner_reference_are_owned_as_a_whole() -> None:
    owner = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "ownerReferences": [owner]},
        "spec": {"selector": {"a": "b"}},
    }
    assert fields_of(tracked(None, service, "m"), "m") == {
        "f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}}},
        "f:spec": {"f:selector": {}},
    }


def test_custom_resources_own_their_spec_itself_too() -> None:
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"l": [1], "m": {"a": 1}}}
    owned: Fields = {"f:spec": {".": {}, "f:l": {}, "f:m": {".": {}, "f:a": {}}}}
    assert fields_of(tracked(None, thing, "m"), "m") == owned


@pytest.mark.parametrize("reset", [[], [{}]])
def test_emptied_managed_fields_stay_empty(reset: list[Any]) -> None:
    first = tracked(None, config_map({"a": "1"}), "one")
    sent = {**first, "metadata": {**first["metadata"], "managedFields": reset}}
    second = tracked(first, sent, "two", SECOND)
    assert "managedFields" not in second["metadata"]
    assert "managedFields" not in tracked(second, with_data(second, b="2"), "two", THIRD)["metadata"]


def test_a_client_that_sends_none_does_not_remove_them() -> None:
    first = tracked(None, config_map({"a": "1"}), "one")
    bare = config_map({"a": "1"})
    assert entries(tracked(first, bare, "two", SECOND)) == entries(first)


def test_the_oldest_updaters_are_put_together() -> None:
    obj = tracked(None, config_map({"first": ""}), "m00", "2026-01-01T00:00:00Z")
    for number in range(1, MOST_UPDATERS + 3):
        obj = tracked(obj, with_data(obj, **{f"k{number}": ""}), f"m{number:02}", f"2026-01-01T00:00:{number:02}Z")
    managers = [entry["manager"] for entry in entries(obj)]
    assert len(managers) == MOST_UPDATERS
    assert managers[0] == "ancient-changes"
    ancient = fields_of(obj, "ancient-changes")["f:data"]
    assert ancient == {".": {}, "f:first": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}


VALUES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("123"), max_size=4)
WRITES = st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), VALUES), min_size=1, max_size=6)


@given(WRITES)
def test_updates_leave_each_field_with_exactly_one_owner(writes: list[tuple[str, dict[str, str]]]) -> None:
    manager, data = writes[0]
    obj = tracked(None, config_map({"always": "", **data}), manager)
    for manager, data in writes[1:]:
        obj = tracked(obj, {**obj, "data": {"always": "", **data}}, manager, SECOND)
    owned = [entry["fieldsV1"] for entry in entries(obj)]
    for index, one in enumerate(owned):
        assert not any(intersection(one, other) for other in owned[index + 1 :])
    leaves = {path[-1] for one in owned for path in paths(one) if len(path) == 2}
    assert leaves == {"f:" + key for key in obj["data"]}


@given(WRITES)
def test_the_last_writer_of_a_value_owns_it(writes: list[tuple[str, dict[str, str]]]) -> None:
    obj = tracked(None, config_map({"always": ""}), "creator")
    owners: dict[str, str] = {}
    for manager, data in writes:
        before = obj["data"]
        obj = tracked(obj, {**obj, "data": {"always": "", **data}}, manager, SECOND)
        owners = {key: manager if before.get(key) != value else owners[key] for key, value in data.items()}
    for key, manager in owners.items():
        assert "f:" + key in fields_of(obj, manager)["f:data"]
