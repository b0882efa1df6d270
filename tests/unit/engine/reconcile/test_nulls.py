"""Nulls that are values: found, written as JSON patches, and not mixed up with removals."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Marks, Obj, Resource, Side, Verb, Write
from syncer.clusters import codec
from syncer.clusters.codec import NULL
from syncer.engine.reconcile.calls import Call, Operation, needed
from syncer.engine.reconcile.nulls import has_nulls, json_patch, with_nulls
from syncer.engine.reconcile.patch_paths import changes, unmet
from syncer.testing.merge import merged
from syncer.translate.pointers import patched

MARKS = Marks()
JSON = st.recursive(
    st.sampled_from([None, 1, "x", True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b/~"]), inner, max_size=2),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b/~"]), JSON, max_size=2)


def plain(value: Any) -> Any:
    """Return a value as it is sent."""
    return json.loads(codec.encode(value))


def widget(spec: Any) -> Obj:
    metadata = {"name": "x", "namespace": "vc-ns", "labels": {MARKS.cluster: "vc"}}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def spec_patch(before: Any, now: Any) -> Any:
    """Return the merge patch of a custom resource's spec, ``...`` if there is none."""
    [create] = needed(Write(Side.HOST, Verb.APPLY, widget(before)), None, exact=(), marks=MARKS, verbatim=True)
    live = merged(create.body, {"metadata": {"uid": "u1", "resourceVersion": "1"}})
    live["spec"] = before
    found = needed(Write(Side.HOST, Verb.APPLY, widget(now)), live, exact=(), marks=MARKS, verbatim=True)
    return found[0].body.get("spec", ...) if found else ...


@pytest.mark.parametrize(
    ("before", "now", "patch"),
    [
        ({"a": 1}, {"a": None}, {"a": NULL}),
        ({}, {"a": None}, {"a": NULL}),
        ({"a": None}, {}, {"a": None}),
        ({"a": None}, {"a": {}}, {"a": {}}),
        ({}, {"a": {}}, {"a": {}}),
        ({}, {"a": []}, {"a": []}),
        ({"a": {}}, {}, {"a": None}),
        ({"a": []}, {}, {"a": None}),
        ({"a": {"b": {}}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {"b": NULL}}),
        ({"a": {"b": 1}}, {"a": None}, {"a": NULL}),
        ({"a": [{"b": None}]}, {"a": [{}]}, {"a": [{}]}),
        ({"a": [{}]}, {"a": [{"b": None}]}, {"a": [{"b": NULL}]}),
        ({"a": [[{"b": 1}]]}, {"a": [[{}]]}, {"a": [[{}]]}),
        ({"a": None}, {"a": None}, ...),
        ({"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}, ...),
    ],
)
def test_null_and_empty_values_of_custom_resources_are_changes(before: Any, now: Any, patch: Any) -> None:
    assert spec_patch(before, now) == patch


@given(OBJECTS)
def test_value_is_written_with_its_nulls(value: Obj) -> None:
    assert plain(with_nulls(value)) == value
    assert has_nulls(with_nulls(value)) == ("null" in json.dumps(value))


@given(OBJECTS, OBJECTS)
def test_json_patch_equals_the_merge_patch(live: Obj, wanted: Obj) -> None:
    removals = dict.fromkeys(live.keys() - wanted.keys())
    operations = plain(json_patch({**removals, "x": with_nulls(wanted), "y": None}, live))
    left = {name: value for name, value in live.items() if name in wanted}
    assert patched(live, operations) == {**left, "x": wanted}


def test_json_patch_changes_maps_and_replaces_other_values() -> None:
    live = {"metadata": {"uid": "u"}, "spec": {"a": {"b": 1, "c": 2}, "d": None}}
    patch = {"metadata": {"uid": "u"}, "spec": {"a": {"b": NULL, "c": None}, "d": {"e": NULL, "f": None}}}
    assert plain(json_patch(patch, live)) == [
        {"op": "add", "path": "/metadata/uid", "value": "u"},
        {"op": "add", "path": "/spec/a/b", "value": None},
        {"op": "remove", "path": "/spec/a/c"},
        {"op": "add", "path": "/spec/d", "value": {"e": None}},
    ]


def test_null_that_is_written_is_another_value_than_a_removal_and_than_a_missing_one() -> None:
    head = {"metadata": {"uid": "u"}}
    written = Call(Operation.PATCH, {**head, "spec": {"a": NULL}})
    removed = Call(Operation.PATCH, {**head, "spec": {"a": None}})
    hashes = {changes(call, {"spec": {}}, MARKS)[0].ours for call in (written, removed)}
    assert len(hashes) == 2
    [over_null], [over_none] = (changes(removed, {"spec": spec}, MARKS) for spec in ({"a": None}, {}))
    assert over_null.theirs != over_none.theirs


@pytest.mark.parametrize(
    ("call", "reply", "fields"),
    [
        (Call(Operation.PATCH, {"metadata": {"uid": "u"}, "spec": {"a": NULL, "b": 1}}), {"a": None, "b": 1}, []),
        (Call(Operation.PATCH, {"metadata": {"uid": "u"}, "spec": {"a": NULL, "b": 1}}), {"b": "1"}, ["a", "b"]),
        (Call(Operation.PATCH, {"metadata": {"uid": "u"}, "spec": {"a": None}}), {}, []),
        (Call(Operation.PATCH, {"metadata": {"uid": "u"}, "spec": {"a": None}}), {"a": 5}, ["a"]),
        (Call(Operation.CREATE, widget({"a": None, "b": {"c": 1}, "e": []})), {"a": None, "b": {"c": 1}, "e": []}, []),
        (Call(Operation.CREATE, widget({"a": None, "b": {"c": 1}, "e": []})), {"b": {"c": 2}}, ["a", "e"]),
    ],
)
def test_fields_that_the_api_server_made_something_else_of_are_known_from_its_answer(
    call: Call, reply: Obj, fields: list[str]
) -> None:
    answer = {**widget(reply), "status": {}}
    assert sorted(change.path[-1] for change in unmet(call, answer, verbatim=True)) == fields


def test_null_and_empty_lists_of_a_built_in_kind_are_nothing_that_could_be_dropped() -> None:
    call = Call(Operation.CREATE, widget({"a": None, "b": [], "c": {}, "d": False}))
    assert [change.path for change in unmet(call, widget({}), verbatim=False)] == [("spec", "d")]


@pytest.mark.parametrize(
    ("version", "is_built_in"),
    [
        ("v1", True),
        ("apps/v1", True),
        ("networking.k8s.io/v1", True),
        ("rbac.authorization.k8s.io/v1", True),
        ("snapshot.storage.k8s.io/v1", False),
        ("gateway.networking.k8s.io/v1", False),
        ("cert-manager.io/v1", False),
    ],
)
def test_kinds_of_the_api_server_are_known_by_their_group(version: str, is_built_in: bool) -> None:
    assert Resource(version, "X", "xs").is_built_in is is_built_in
