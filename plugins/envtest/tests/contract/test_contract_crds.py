"""Custom resources: what their definition makes of them."""

import json
from typing import Any

import pytest
from contract_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, Api
from contract_crds import path, widget

Obj = dict[str, Any]


def test_create_prunes_and_defaults(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group, unknown=1, free={"x": {"y": 1}}))
    assert made["spec"] == {"size": 3, "color": "red", "free": {"x": {"y": 1}}}
    assert made["metadata"]["generation"] == 1
    assert made["kind"] == "Widget"


def test_unknown_fields(api: Api, ns: str, group: str) -> None:
    answer = api.post(f"{path(group, ns)}?fieldValidation=Strict", widget(group, unknown=1))
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.unknown"' in answer["message"]
    answer = api.post(path(group, ns), widget(group, api.name(), unknown=1))
    assert answer.headers["warning"] == '299 - "unknown field \\"spec.unknown\\""'


def test_items_of_lists_have_their_kind(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group))
    listed = api.get(f"{path(group, ns)}?fieldSelector=metadata.name=a").json
    assert (listed["kind"], listed["apiVersion"]) == ("WidgetList", f"{group}/v1")
    assert listed["items"] == [made]


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"size": 0}, "spec.size"), ({"size": "x"}, "spec.size"), ({"color": "green"}, "spec.color"), (None, "spec.size")],
)
def test_validation(api: Api, ns: str, group: str, spec: Obj | None, field: str) -> None:
    body = widget(group)
    body["spec"] = {} if spec is None else {**body["spec"], **spec}
    answer = api.post(path(group, ns), body)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert answer["details.causes.0.field"] == field
    assert answer["message"].startswith(f'Widget.{group} "a" is invalid: {field}: ')
    assert answer["details.kind"] == "Widget"
    assert answer["details.group"] == group


def test_kind_and_version_are_needed(api: Api, ns: str, group: str) -> None:
    answer = api.post(path(group, ns), {"metadata": {"name": "a"}, "spec": {"size": 1}})
    assert answer.status == 400
    answer = api.post(path(group, ns), widget(group, version="v2"))
    assert answer.status == 400
    assert answer["message"] == (
        f"the API version in the data ({group}/v2) does not match the expected API version ({group}/v1)"
    )


def test_update_needs_a_version(api: Api, ns: str, group: str) -> None:
    api.make(path(group, ns), widget(group))
    answer = api.put(path(group, ns, "a"), widget(group, size=4))
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer["message"]


def test_generation_and_status(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), {**widget(group), "status": {"phase": "x"}})
    assert "status" not in made
    answer = api.patch(path(group, ns, "a", part="status"), {"status": {"phase": "New"}, "spec": {"size": 5}})
    assert (answer["status"], answer["spec.size"], answer["metadata.generation"]) == ({"phase": "New"}, 3, 1)
    answer = api.patch(path(group, ns, "a"), {"status": {"phase": "Old"}, "spec": {"size": 5}})
    assert (answer["status"], answer["spec.size"], answer["metadata.generation"]) == ({"phase": "New"}, 5, 2)
    answer = api.patch(path(group, ns, "a"), {"metadata": {"labels": {"x": "y"}}})
    assert answer["metadata.generation"] == 2
    answer = api.patch(path(group, ns, "a", part="status"), {"metadata": {"labels": {"x": "z"}}})
    assert answer["metadata.labels"] == {"x": "y"}


def test_scale(api: Api, ns: str, group: str) -> None:
    api.make(path(group, ns), widget(group, replicas=2))
    api.patch(path(group, ns, "a", part="status"), {"status": {"replicas": 1, "selector": "x=y"}})
    scale = api.get(path(group, ns, "a", part="scale")).json
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "x=y"}
    changed = api.patch(path(group, ns, "a", part="scale"), {"spec": {"replicas": 5}})
    assert changed["spec"] == {"replicas": 5}
    assert api.get(path(group, ns, "a"))["spec.replicas"] == 5


def test_versions_show_the_same_object(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group))
    other = api.get(path(group, ns, "a", version="v2")).json
    assert other["apiVersion"] == f"{group}/v2"
    assert {**other, "apiVersion": ""} == {**made, "apiVersion": ""}
    watch = api.watch(path(group, ns, version="v1"))
    watch.next()
    assert api.patch(path(group, ns, "a", version="v2"), {"spec": {"size": 7}}).status == 200
    event = watch.next()
    assert event is not None
    assert event["object"]["apiVersion"] == f"{group}/v1"
    assert event["object"]["spec"]["size"] == 7


def test_apply(api: Api, ns: str, group: str) -> None:
    def apply(manager: str, *ports: Obj) -> Answer:
        return api.patch(f"{path(group, ns, 'a')}?fieldManager={manager}", widget(group, ports=list(ports)), APPLY)

    assert apply("one", {"port": 1, "name": "x"}).status == 201
    assert apply("two", {"port": 2}).status == 200
    assert [one["port"] for one in api.get(path(group, ns, "a"))["spec.ports"]] == [1, 2]
    answer = apply("two", {"port": 1, "name": "y"})
    assert answer.status == 409
    assert answer["details.causes.0.field"] == ".spec.ports[port=1].name"


def test_no_strategic_patches(api: Api, ns: str, group: str) -> None:
    api.make(path(group, ns), widget(group))
    answer = api.patch(path(group, ns, "a"), {"spec": {"size": 4}}, STRATEGIC)
    assert (answer.status, answer["reason"]) == (415, "UnsupportedMediaType")


def test_printer_columns(api: Api, ns: str, group: str) -> None:
    api.make(path(group, ns), widget(group))
    answer = api.get(path(group, ns), accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert [(one["name"], one["type"], one["priority"]) for one in answer["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Phase", "string", 1),
        ("Age", "date", 0),
    ]
    cells = answer["rows.0.cells"]
    assert (cells[0], cells[1], cells[2]) == ("a", 3, None)
    assert cells[3].endswith("s")


# -- null, empty values and numbers in a part of any shape -----------------------------------------

#: What a free part keeps as it is given, and in JSON.
KEPT: Obj = {
    "null": None,
    "map": {"null": None, "empty": {}, "x": 1},
    "list": [None, {"null": None}, [None, {"null": None}]],
    "empty": {},
    "items": [],
}


def free(answer: Answer | Obj) -> str:
    """Return the free part as JSON, as True and 1 are equal in Python."""
    spec = answer["spec"]
    return json.dumps(spec["free"], sort_keys=True)


def written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def test_create_keeps_null_and_empty_values(api: Api, ns: str, group: str) -> None:
    assert free(api.make(path(group, ns), widget(group, free=KEPT))) == written(KEPT)
    assert free(api.get(path(group, ns, "a"))) == written(KEPT)


def test_replace_keeps_null_and_empty_values(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group, free={"map": {"null": 1}}))
    made["spec"]["free"] = KEPT
    assert free(api.put(path(group, ns, "a"), made)) == written(KEPT)


@pytest.mark.parametrize("before", [{}, {"map": {"null": 1, "y": 2}, "list": {"a": 1}, "null": 1, "items": None}])
def test_json_patch_keeps_null_and_empty_values(api: Api, ns: str, group: str, before: Obj) -> None:
    made = api.make(path(group, ns), widget(group, free=before))
    head = [{"op": "add", "path": f"/metadata/{name}", "value": made["metadata"][name]} for name in ("uid",)]
    parts = [{"op": "add", "path": f"/spec/free/{name}", "value": value} for name, value in KEPT.items()]
    assert free(api.patch(path(group, ns, "a"), [*head, *parts], JSON_PATCH)) == written(KEPT)
    gone = [{"op": "remove", "path": "/spec/free/null"}, {"op": "remove", "path": "/spec/free/map/null"}]
    left = {**KEPT, "map": {"empty": {}, "x": 1}}
    del left["null"]
    assert free(api.patch(path(group, ns, "a"), gone, JSON_PATCH)) == written(left)


def test_json_patch_of_another_object_or_version_is_refused(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group, free={"a": 1}))
    change = {"op": "add", "path": "/spec/free/a", "value": None}
    other = {"op": "add", "path": "/metadata/uid", "value": "other"}
    answer = api.patch(path(group, ns, "a"), [other, change], JSON_PATCH)
    assert (answer.status, answer["details.causes.0.field"]) == (422, "metadata.uid")
    precondition = {"op": "add", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]}
    assert api.patch(path(group, ns, "a"), [precondition, change], JSON_PATCH).status == 200
    answer = api.patch(path(group, ns, "a"), [precondition, {**change, "value": 2}], JSON_PATCH)
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    gone = {"op": "remove", "path": "/spec/free/none"}
    answer = api.patch(path(group, ns, "a"), [precondition, gone], JSON_PATCH)
    assert (answer.status, answer["reason"]) == (422, "Invalid"), "it is applied before the version is compared"


def test_merge_patch_writes_no_null_but_in_lists(api: Api, ns: str, group: str) -> None:
    api.make(path(group, ns), widget(group, free={"map": {"null": 1, "y": 2}, "list": [1], "was": {"a": 1}}))
    was = [{"null": None}]
    answer = api.patch(path(group, ns, "a"), {"spec": {"free": {**KEPT, "was": was}}}, MERGE)
    left: Obj = {
        "map": {"empty": {}, "x": 1, "y": 2},
        "list": [None, {}, [None, {}]],
        "was": was,  # a list instead of a map is stored as it is
        "empty": {},
        "items": [],
    }
    assert free(answer) == written(left)


def test_null_of_a_known_field_that_cannot_be_null_is_dropped(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group, replicas=None, ports=[]))
    assert made["spec"] == {"size": 3, "color": "red", "ports": []}
    change = [{"op": "add", "path": "/spec/replicas", "value": None}]
    answer = api.patch(path(group, ns, "a"), change, JSON_PATCH)
    assert answer["metadata.resourceVersion"] == made["metadata"]["resourceVersion"], "it changes nothing"


def test_value_of_another_type_is_a_change(api: Api, ns: str, group: str) -> None:
    made = api.make(path(group, ns), widget(group, free={"a": True, "b": [1], "c": "1"}))
    answer = api.patch(path(group, ns, "a"), {"spec": {"free": {"a": 1, "b": [True], "c": 1}}}, MERGE)
    assert free(answer) == written({"a": 1, "b": [True], "c": 1})
    assert answer["metadata.generation"] == 2
    again = api.patch(path(group, ns, "a"), {"spec": {"free": {"a": 1, "c": 1}}}, MERGE)
    assert again["metadata.resourceVersion"] == answer["metadata.resourceVersion"]
    assert made["spec"]["free"]["a"] is True
