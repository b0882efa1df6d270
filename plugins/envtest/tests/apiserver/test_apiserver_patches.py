"""JSON patch and merge patch: the RFCs' examples, the API server's messages, and laws."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver.patches import PatchError, json_patch, merge_patch

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("xyz", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)

# RFC 7386, appendix A.
RFC_7386: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

# RFC 6902, appendix A, and where the library that the API server uses is more lenient.
JSON_PATCHES: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": [2]}], {"a": [1, [2]]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
    ({"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
    ({"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/1"}], {"a": [1, 3]}),
    ({"a": 1}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}),
    ({"a": [1]}, [{"op": "replace", "path": "/a/0", "value": 5}], {"a": [5]}),
    ({}, [{"op": "replace", "path": "/new", "value": 1}], {"new": 1}),
    ({"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}], {"a": {}, "c": {"d": 1}}),
    ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    (
        {"a/b": 1, "m~n": 2},
        [{"op": "test", "path": "/a~1b", "value": 1}, {"op": "remove", "path": "/m~0n"}],
        {"a/b": 1},
    ),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    ({"": 1}, [{"op": "test", "path": "/", "value": 1}], {"": 1}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": 1}, [{"op": "test", "path": "/missing", "value": None}], {"a": 1}),
]

REJECTED: list[tuple[list[Any], str]] = [
    ([{"op": "test", "path": "/a", "value": 2}], "testing value /a failed: test failed"),
    ([{"op": "test", "path": "/a", "value": True}], "testing value /a failed: test failed"),
    (
        [{"op": "remove", "path": "/b"}],
        "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
    ),
    (
        [{"op": "add", "path": "/b/c", "value": 1}],
        'add operation does not apply: doc is missing path: "/b/c": missing value',
    ),
    (
        [{"op": "replace", "path": "/l/9", "value": 1}],
        "replace operation does not apply: doc is missing key: /l/9: missing value",
    ),
    (
        [{"op": "remove", "path": "/l/9"}],
        "error in remove for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    ([{"op": "add", "path": "/l/x", "value": 1}], "value was not a proper array index: 'x'"),
    ([{"op": "move", "from": "/b", "path": "/c"}], "Unable to remove nonexistent key: b: missing value"),
    (
        [{"op": "copy", "from": "/b/c", "path": "/d"}],
        "copy operation does not apply: doc is missing from path: /b/c: missing value",
    ),
    ([{"op": "sing", "path": "/a"}], "Unexpected kind: sing"),
    ([{"op": "add", "value": 1}], "add operation failed to decode path: missing value"),
]


@pytest.mark.parametrize(("doc", "patch", "result"), RFC_7386)
def test_merge_patch_passes_the_examples_of_the_rfc(doc: Any, patch: Any, result: Any) -> None:
    assert merge_patch(doc, patch) == result


@pytest.mark.parametrize(("doc", "ops", "result"), JSON_PATCHES)
def test_json_patch_passes_the_examples_of_the_rfc(doc: Any, ops: list[dict[str, Any]], result: Any) -> None:
    before = copy.deepcopy(doc)
    assert json_patch(doc, ops) == result
    assert doc == before


@pytest.mark.parametrize(("ops", "why"), REJECTED)
def test_an_invalid_json_patch_is_rejected_with_the_servers_message(ops: list[Any], why: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({"a": 1, "l": [1]}, ops)
    assert why in str(caught.value)
    assert caught.value.code == 422
    assert caught.value.message == "the server rejected our request due to an error in our request"


def test_a_json_patch_must_be_a_list_of_objects() -> None:
    for patch in ({"op": "add"}, ["add"]):
        with pytest.raises(PatchError, match="error decoding patch") as caught:
            json_patch({}, patch)  # type: ignore[arg-type]
        assert caught.value.code == 400


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_changes_nothing_in_the_end_and_nothing_it_was_given(
    doc: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = copy.deepcopy((doc, patch))
    twice = merge_patch(merge_patch(doc, patch), patch)  # of a list over a map, the second one prunes nulls
    assert merge_patch(twice, patch) == twice
    assert (doc, patch) == before


@given(OBJECTS)
def test_an_empty_merge_patch_changes_nothing(doc: dict[str, Any]) -> None:
    assert merge_patch(doc, {}) == doc


@given(OBJECTS, st.dictionaries(KEYS, st.integers() | st.none(), max_size=4))
def test_a_merge_patch_decides_the_keys_it_names_and_no_others(doc: dict[str, Any], patch: dict[str, Any]) -> None:
    result = merge_patch(doc, patch)
    for key in doc.keys() | patch.keys():
        wanted = patch.get(key) if key in patch else doc[key]
        assert result.get(key) == wanted
        assert not (key in patch and patch[key] is None and key in result)


@given(OBJECTS, KEYS, JSON)
def test_add_then_test_then_remove_gives_the_document_back(doc: dict[str, Any], key: str, value: Any) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    rest = {name: sub for name, sub in doc.items() if name != key}
    ops = [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    assert json_patch(rest, [*ops, {"op": "remove", "path": path}]) == rest
