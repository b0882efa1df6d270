"""Operations of RFC 6902; most cases are those of its Appendix A."""

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncer.api import EACH, Patch
from syncer.translate import pointers
from syncer.translate.alike import same
from syncer.translate.patches import operation
from syncer.translate.pointers import MISSING, Unfit

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab/~0"), inner, max_size=4),
    max_leaves=12,
)
DOCS = st.dictionaries(st.sampled_from("ab/~0"), JSON, max_size=4)


def operated(doc: Any, patch: dict[str, Any]) -> Any:
    """Return the operation as a patch makes it, to a document that is no Kubernetes object."""
    read = Patch.model_validate(patch)
    return operation(read, doc, read.steps, read.from_steps if read.from_ else read.steps)


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"baz": "qux", "foo": "bar"}),  # A.1
        ({"foo": ["a", "b"]}, {"op": "add", "path": "/foo/1", "value": "q"}, {"foo": ["a", "q", "b"]}),  # A.2
        ({"baz": "q", "foo": "b"}, {"op": "remove", "path": "/baz"}, {"foo": "b"}),  # A.3
        ({"foo": ["a", "q", "b"]}, {"op": "remove", "path": "/foo/1"}, {"foo": ["a", "b"]}),  # A.4
        ({"baz": "q", "foo": "b"}, {"op": "replace", "path": "/baz", "value": "x"}, {"baz": "x", "foo": "b"}),  # A.5
        (
            {"foo": {"bar": 1, "w": 2}, "q": {"c": 3}},
            {"op": "move", "from": "/foo/w", "path": "/q/t"},
            {"foo": {"bar": 1}, "q": {"c": 3, "t": 2}},
        ),  # A.6
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            {"op": "move", "from": "/foo/1", "path": "/foo/3"},
            {"foo": ["all", "cows", "eat", "grass"]},
        ),  # A.7
        ({"foo": [1, {"a": 2}]}, {"op": "test", "path": "/foo/1", "value": {"a": 2.0}}, {"foo": [1, {"a": 2}]}),  # A.8
        ({"foo": "b"}, {"op": "add", "path": "/c", "value": {"g": {}}}, {"foo": "b", "c": {"g": {}}}),  # A.10
        ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": 10}, {"/": 9, "~1": 10}),  # A.14
        ({"foo": ["b"]}, {"op": "add", "path": "/foo/-", "value": ["c"]}, {"foo": ["b", ["c"]]}),  # A.16
        ({"a": 1}, {"op": "add", "path": "/a", "value": None}, {"a": None}),
        ({"a": {"b": [1]}}, {"op": "copy", "from": "/a/b", "path": "/c"}, {"a": {"b": [1]}, "c": [1]}),
        ({"a": [1]}, {"op": "copy", "from": "/a/0", "path": "/a/0"}, {"a": [1, 1]}),
        ({"a": [1, 2]}, {"op": "replace", "path": "/a/1", "value": 3}, {"a": [1, 3]}),
        ({"": {"": 1}}, {"op": "replace", "path": "//", "value": 2}, {"": {"": 2}}),
        ({"a": {"b/c": 1}}, {"op": "remove", "path": "/a/b~1c"}, {"a": {}}),
    ],
)
def test_operation_gives_the_results_of_the_rfc(doc: Any, patch: dict[str, Any], result: Any) -> None:
    before = copy.deepcopy(doc)
    assert operated(doc, patch) == result
    assert doc == before


@pytest.mark.parametrize(
    ("doc", "patch", "message"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz/bat", "value": 1}, "there is nothing at /baz"),  # A.12
        ({"baz": "q"}, {"op": "test", "path": "/baz", "value": "b"}, "the test does not hold"),  # A.9
        ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": "10"}, "the test does not hold"),  # A.15
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "the test does not hold"),
        ({"a": [1]}, {"op": "test", "path": "/a", "value": [True]}, "the test does not hold"),
        ({"a": 1}, {"op": "test", "path": "/b", "value": None}, "there is nothing at /b"),
        ({}, {"op": "remove", "path": "/a"}, "there is nothing at /a"),
        ({}, {"op": "replace", "path": "/a", "value": 1}, "there is nothing at /a"),
        ({}, {"op": "move", "from": "/a", "path": "/b"}, "there is nothing at /a"),
        ({}, {"op": "copy", "from": "/a", "path": "/b"}, "there is nothing at /a"),
        ({"a": [1]}, {"op": "add", "path": "/a/2", "value": 1}, "there is nothing at /a/2"),
        ({"a": [1]}, {"op": "add", "path": "/a/x", "value": 1}, "/a is a list, of which 'x' is no item"),
        ({"a": [1, 2]}, {"op": "add", "path": "/a/01", "value": 1}, "/a is a list, of which '01' is no item"),
        ({"a": [1]}, {"op": "remove", "path": "/a/-"}, "there is nothing at /a/-"),
        ({"a": [1]}, {"op": "remove", "path": "/a/1"}, "there is nothing at /a/1"),
        ({"a": "text"}, {"op": "add", "path": "/a/b", "value": 1}, "/a is neither a mapping nor a list"),
        ({"a": None}, {"op": "add", "path": "/a/b", "value": 1}, "/a is neither a mapping nor a list"),
    ],
)
def test_impossible_operation_is_refused_with_its_reason(doc: Any, patch: dict[str, Any], message: str) -> None:
    before = copy.deepcopy(doc)
    with pytest.raises(Unfit) as caught:
        operated(doc, patch)
    assert str(caught.value) == message
    assert doc == before


def test_parts_beside_the_path_are_shared() -> None:
    doc: dict[str, Any] = {"a": {"b": [{"c": 1}, {"d": 2}]}, "e": {"f": 3}}
    result = pointers.replaced(doc, ("a", "b", "0", "c"), 2)
    assert result["e"] is doc["e"]
    assert result["a"]["b"][1] is doc["a"]["b"][1]
    assert doc["a"]["b"][0] == {"c": 1}


def test_field_is_put_with_the_mappings_above_it() -> None:
    assert pointers.put({}, ("spec", "a", "b"), 1) == {"spec": {"a": {"b": 1}}}
    assert pointers.put({"spec": {"a": None}}, ("spec", "a", "b"), 1) == {"spec": {"a": {"b": 1}}}
    assert pointers.put({"l": [{"a": 1}]}, ("l", "0", "b"), 2) == {"l": [{"a": 1, "b": 2}]}
    with pytest.raises(Unfit, match="nothing at /l/1"):
        pointers.put({"l": [1]}, ("l", "1", "a"), 2)


def test_path_leads_to_every_item_and_to_none_without_a_list() -> None:
    doc = {"cs": [{"ps": [1, 2]}, {}, {"ps": [3]}], "s": "x"}
    assert list(pointers.paths(doc, ("cs", EACH, "ps", EACH))) == [
        ("cs", "0", "ps", "0"),
        ("cs", "0", "ps", "1"),
        ("cs", "2", "ps", "0"),
    ]
    assert list(pointers.paths(doc, ("none", EACH, "x"))) == []
    assert list(pointers.paths(doc, ("none", "x"))) == [("none", "x")]
    with pytest.raises(Unfit, match="there is no list at /s"):
        list(pointers.paths(doc, ("s", EACH)))


@example({"a": [1, 2]}, ["a", "1"], None)
@given(DOCS, st.lists(st.sampled_from(["a", "b", "/", "~", "0", "1", "-"]), min_size=1, max_size=4), JSON)
def test_added_value_is_there_and_the_document_stays_as_it_was(doc: Any, steps: list[str], value: Any) -> None:
    before, path = copy.deepcopy(doc), tuple(steps)
    try:
        added = pointers.added(doc, path, value)
    except Unfit:
        assert doc == before
        return
    assert doc == before
    parent = pointers.at(added, path[:-1])
    assert same(parent[-1] if isinstance(parent, list) and path[-1] == "-" else pointers.at(added, path), value)
    if isinstance(pointers.at(doc, path[:-1]), list) and path[-1] != "-":
        assert same(pointers.removed(added, path), doc)


def test_missing_value_is_not_null() -> None:
    assert pointers.at({"a": None}, ("a",)) is None
    assert pointers.at({"a": None}, ("b",)) is MISSING
    assert pointers.at({"a": "text"}, ("a", "0")) is MISSING


def test_json_patch_of_ours_is_applied_in_order() -> None:
    doc = {"a": {"b": 1, "c/d": [1]}}
    operations: list[dict[str, Any]] = [
        {"op": "remove", "path": "/a/b"},
        {"op": "add", "path": "/a/c~1d", "value": None},
        {"op": "add", "path": "/e", "value": {"f": None}},
    ]
    assert pointers.patched(doc, operations) == {"a": {"c/d": None}, "e": {"f": None}}
    assert doc == {"a": {"b": 1, "c/d": [1]}}
    with pytest.raises(Unfit, match="never sent"):
        pointers.patched(doc, [{"op": "move", "from": "/a", "path": "/b"}])
