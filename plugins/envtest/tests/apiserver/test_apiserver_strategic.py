"""Strategic merge patch: merge keys by kind, directives, and refusals."""

import copy
from typing import Any

import pytest

from kube_envtest.apiserver.patches import PatchError, strategic_merge

Obj = dict[str, Any]


def pod(**spec: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def merged(spec: Obj, patch: Obj) -> Obj:
    doc, change = pod(**spec), {"spec": patch}
    before = copy.deepcopy((doc, change))
    result: Obj = strategic_merge(doc, change, resource="Pod")["spec"]
    assert (doc, change) == before
    return result


WEB = {"name": "web", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
LOG = {"name": "log", "image": "l"}


def test_containers_are_merged_by_name_and_their_env_too() -> None:
    patch = {"containers": [{"name": "web", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]}
    [web, log] = merged({"containers": [WEB, LOG]}, patch)["containers"]
    assert {one["name"]: one["value"] for one in web["env"]} == {"A": "1", "B": "3", "C": "4"}
    assert (web["image"], log) == ("a", LOG)


@pytest.mark.parametrize(
    ("spec", "patch", "result"),
    [
        pytest.param(
            {"tolerations": [{"key": "a"}], "containers": [{"name": "c", "args": ["x"]}]},
            {"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["y"]}]},
            {"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["y"]}]},
            id="lists without a merge key are replaced",
        ),
        pytest.param(
            {"containers": [WEB, LOG], "nodeName": "n"},
            {"nodeName": None, "containers": [{"name": "log", "$patch": "delete"}]},
            {"containers": [WEB]},
            id="null removes a field, and the delete directive an item",
        ),
        pytest.param(
            {"containers": [WEB, LOG], "nodeSelector": {"a": "1"}},
            {"nodeSelector": {"$patch": "replace", "b": "2"}, "containers": [{"$patch": "replace"}, {"name": "only"}]},
            {"containers": [{"name": "only"}], "nodeSelector": {"b": "2"}},
            id="the replace directive replaces a map or a list",
        ),
        pytest.param(
            {},
            {"containers": [{"name": "c", "env": [{"name": "A", "$patch": "delete"}], "x": None}]},
            {"containers": [{"name": "c", "env": []}]},
            id="directives in a new element are dropped",
        ),
    ],
)
def test_a_patch_is_merged_by_its_directives_and_keys(spec: Obj, patch: Obj, result: Obj) -> None:
    assert merged(spec, patch) == result


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("volumes", "name"),
        ("imagePullSecrets", "name"),
        ("hostAliases", "ip"),
        ("initContainers", "name"),
        ("schedulingGates", "name"),
        ("topologySpreadConstraints", "topologyKey"),
    ],
)
def test_each_list_has_its_own_key(field: str, key: str) -> None:
    result = merged({field: [{key: "1", "x": 1}, {key: "2"}]}, {field: [{key: "1", "y": 2}, {key: "3"}]})[field]
    assert {one[key] for one in result} == {"1", "2", "3"}
    assert {key: "1", "x": 1, "y": 2} in result


def test_service_ports_are_merged_by_port_and_conditions_by_type() -> None:
    service = {"spec": {"ports": [{"port": 80, "name": "a"}]}, "status": {"conditions": [{"type": "A", "status": "1"}]}}
    patch = {
        "spec": {"ports": [{"port": 81, "name": "b"}]},
        "status": {"conditions": [{"type": "A", "status": "2"}, {"type": "B", "status": "3"}]},
    }
    result = strategic_merge(service, patch, resource="Service")
    assert sorted(one["port"] for one in result["spec"]["ports"]) == [80, 81]
    assert [one["status"] for one in result["status"]["conditions"]] == ["2", "3"]


def test_finalizers_are_joined_and_can_be_taken_out() -> None:
    doc = {"metadata": {"finalizers": ["a/1", "b/2"]}}
    joined = strategic_merge(doc, {"metadata": {"finalizers": ["c/3", "a/1"]}}, resource="Pod")
    assert sorted(joined["metadata"]["finalizers"]) == ["a/1", "b/2", "c/3"]
    less = strategic_merge(doc, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}, resource="Pod")
    assert less["metadata"]["finalizers"] == ["b/2"]


def test_retain_keys_drops_the_other_keys() -> None:
    volume = {"name": "v", "configMap": {"name": "x"}}
    patch = {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}
    assert merged({"volumes": [volume]}, patch)["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert merged({"volumes": []}, patch)["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_set_element_order_keeps_elements_that_only_the_server_has() -> None:
    three = [{"name": "a"}, {"name": "server"}, {"name": "b"}]
    patch = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "x": 1}]}
    names = [one["name"] for one in merged({"containers": three}, patch)["containers"]]
    assert names.index("b") < names.index("a")
    assert sorted(names) == ["a", "b", "server"]


@pytest.mark.parametrize(
    ("patch", "why", "code"),
    [
        ({"containers": [{"image": "x"}]}, "map: map[image:x] does not contain declared merge key: name", 500),
        ({"containers": [{"name": "web", "$patch": "bogus"}]}, "unknown patch type: bogus in map: map[", 500),
        ({"$retainKeys": ["a"], "b": 1}, "invalid patch format of retainKeys", 400),
        ({"$deleteFromPrimitiveList": ["a"]}, "invalid patch format of primitive list", 400),
        (
            {"$setElementOrder/containers": [{"name": "log"}], "containers": [WEB]},
            "doesn't match $setElementOrder",
            500,
        ),
    ],
)
def test_an_invalid_strategic_patch_is_refused_with_the_servers_message(patch: Obj, why: str, code: int) -> None:
    with pytest.raises(PatchError) as caught:
        merged({"containers": [WEB, LOG]}, patch)
    assert why in caught.value.message
    assert caught.value.code == code
