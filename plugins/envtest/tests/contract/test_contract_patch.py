"""PATCH: JSON, merge, strategic, apply."""

from typing import Any

from contract_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api, maps

Obj = dict[str, Any]


def make(api: Api, ns: str, **data: str) -> Obj:
    return api.make(maps(ns), {"metadata": {"name": "a"}, "data": data})


def test_merge(api: Api, ns: str) -> None:
    make(api, ns, x="1", y="2")
    answer = api.patch(maps(ns, "a"), {"data": {"x": None, "z": "3"}, "metadata": {"labels": {"l": "v"}}})
    assert (answer.status, answer["data"], answer["metadata.labels"]) == (200, {"y": "2", "z": "3"}, {"l": "v"})


def test_json(api: Api, ns: str) -> None:
    make(api, ns, x="1")
    ops = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "3"},
        {"op": "copy", "from": "/data/x", "path": "/data/c"},
    ]
    answer = api.patch(maps(ns, "a"), ops, JSON_PATCH)
    assert (answer.status, answer["data"]) == (200, {"x": "2", "c": "2"})
    assert answer["metadata.labels"] == {"a/b": "3"}


def test_a_json_patch_that_does_not_apply(api: Api, ns: str) -> None:
    make(api, ns, x="1")
    for op in (
        {"op": "test", "path": "/data/x", "value": "2"},
        {"op": "remove", "path": "/data/none"},
        {"op": "add", "path": "/none/x", "value": "1"},
    ):
        answer = api.patch(maps(ns, "a"), [op], JSON_PATCH)
        assert answer.status == 422, op
        assert answer["reason"] == "Invalid"
        assert answer["message"].startswith("the server rejected our request due to an error in our request")


def test_strategic(api: Api, ns: str) -> None:
    path = f"/apis/apps/v1/namespaces/{ns}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "one", "image": "x"}]}}
    api.make(path, {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    change = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "y"}]}}}}
    answer = api.patch(f"{path}/a", change, STRATEGIC)
    assert {one["name"] for one in answer["spec.template.spec.containers"]} == {"one", "two"}
    change = {"spec": {"template": {"spec": {"containers": [{"name": "one", "$patch": "delete"}]}}}}
    answer = api.patch(f"{path}/a", change, STRATEGIC)
    assert [one["name"] for one in answer["spec.template.spec.containers"]] == ["two"]
    assert answer["metadata.generation"] == 3


def test_missing_object(api: Api, ns: str) -> None:
    for form in (MERGE, STRATEGIC):
        assert api.patch(maps(ns, "a"), {"data": {}}, form).status == 404


def test_unknown_form(api: Api, ns: str) -> None:
    make(api, ns)
    answer = api.patch(maps(ns, "a"), {}, "application/json")
    assert (answer.status, answer["reason"]) == (415, "UnsupportedMediaType")
    assert answer["message"] == "415: Unsupported Media Type"


def test_bad_patch(api: Api, ns: str) -> None:
    make(api, ns)
    assert api.patch(maps(ns, "a"), b"{", MERGE).status == 400
    assert api.patch(maps(ns, "a"), b"{}", JSON_PATCH).status == 400


def test_a_patch_with_an_old_version_is_a_conflict(api: Api, ns: str) -> None:
    made = make(api, ns)
    version = made["metadata"]["resourceVersion"]
    assert api.patch(maps(ns, "a"), {"metadata": {"resourceVersion": version}, "data": {"x": "1"}}).status == 200
    answer = api.patch(maps(ns, "a"), {"metadata": {"resourceVersion": version}, "data": {"x": "2"}})
    assert (answer.status, answer["reason"]) == (409, "Conflict")


def test_a_patch_with_another_uid_is_refused(api: Api, ns: str) -> None:
    made = make(api, ns)
    right = {"metadata": {"uid": made["metadata"]["uid"]}, "data": {"x": "1"}}
    assert api.patch(maps(ns, "a"), right).status == 200
    answer = api.patch(maps(ns, "a"), {"metadata": {"uid": "other"}, "data": {"x": "2"}})
    assert answer.status == 422
    assert answer["message"] == 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable'


def test_the_name_stays(api: Api, ns: str) -> None:
    make(api, ns)
    answer = api.patch(maps(ns, "a"), {"metadata": {"name": "b"}})
    assert answer.status == 400
    assert answer["message"] == "the name of the object (b) does not match the name on the URL (a)"


def apply(api: Api, ns: str, manager: str, *, force: bool = False, **data: str) -> Any:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    return api.patch(f"{maps(ns, 'a')}?fieldManager={manager}&force={str(force).lower()}", body, APPLY)


def test_apply_creates_and_changes(api: Api, ns: str) -> None:
    first = apply(api, ns, "one", x="1", y="1")
    assert (first.status, first["data"]) == (201, {"x": "1", "y": "1"})
    second = apply(api, ns, "one", x="2")
    assert (second.status, second["data"]) == (200, {"x": "2"})
    assert apply(api, ns, "one", x="2").json == second.json, "the same again is no write"


def test_apply_conflicts(api: Api, ns: str) -> None:
    apply(api, ns, "one", x="1", y="1")
    assert apply(api, ns, "two", y="1", z="1").status == 200
    answer = apply(api, ns, "two", x="2", y="1", z="1")
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    assert answer["details"] == {"causes": [cause]}
    forced = apply(api, ns, "two", force=True, x="2", y="1", z="1")
    assert forced["data"] == {"x": "2", "y": "1", "z": "1"}


def test_apply_needs_a_manager(api: Api, ns: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    answer = api.patch(maps(ns, "a"), body, APPLY)
    assert answer.status == 422
    assert answer["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


def test_apply_of_a_missing_object_with_a_uid(api: Api, ns: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "x"}}
    answer = api.patch(f"{maps(ns, 'a')}?fieldManager=m", body, APPLY)
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    assert "uid mismatch: the provided object specified uid x, and no existing object was found" in answer["message"]


def test_each_manager_has_an_entry_with_its_operation(api: Api, ns: str) -> None:
    apply(api, ns, "one", x="1")
    answer = api.patch(f"{maps(ns, 'a')}?fieldManager=two", {"data": {"y": "1"}})
    entries = {one["manager"]: one for one in answer["metadata.managedFields"]}
    assert entries["one"]["operation"] == "Apply"
    assert entries["one"]["fieldsV1"] == {"f:data": {"f:x": {}}}
    assert entries["two"]["operation"] == "Update"
    assert entries["two"]["fieldsV1"] == {"f:data": {"f:y": {}}}
