"""The notations of paths, and tables of paths by which strings are found and rewritten."""

import copy
from typing import Any

import pytest

from syncer.api import (
    EACH,
    Paths,
    copy_fields,
    dig,
    is_within,
    metadata_key,
    overlaps,
    path_steps,
    path_text,
)

PATHS = Paths({"volumes[].secret.name": "secret", "volumes[].map.name": "map", "account": "account"})

TEAM = ("metadata", "annotations", "example.org/team")


@pytest.mark.parametrize(
    ("path", "steps", "text"),
    [
        ("spec", ("spec",), "spec"),
        ("spec.ports[].name", ("spec", "ports", EACH, "name"), "spec.ports[].name"),
        ("/spec/replicas", ("spec", "replicas"), "spec.replicas"),
        ("/metadata/annotations/example.org~1team", TEAM, "/metadata/annotations/example.org~1team"),
        (TEAM, TEAM, "/metadata/annotations/example.org~1team"),
        ("metadata.labels.a/b", ("metadata", "labels", "a/b"), "/metadata/labels/a~1b"),
        ("/data/~0x", ("data", "~x"), "/data/~0x"),
    ],
)
def test_path_has_one_text_however_it_is_written(path: Any, steps: tuple[str, ...], text: str) -> None:
    assert path_steps(path) == steps
    assert path_text(path) == text
    assert path_steps(text) == steps


@pytest.mark.parametrize("text", ["", ".x", "a..b", "a.[]", "/a~2b"])
def test_text_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a"):
        path_steps(text)


def test_paths_lie_within_one_another_by_whole_steps() -> None:
    assert is_within("spec.a", "spec")
    assert is_within("/spec/a", ("spec", "a"))
    assert not is_within("spec.ab", "spec.a")
    assert not is_within("spec", "spec.a")
    assert overlaps("spec", "spec.a")
    assert not overlaps("spec.b", "spec.a")


def test_label_or_annotation_is_named_by_its_key() -> None:
    assert metadata_key(TEAM) == ("annotations", "example.org/team")
    assert metadata_key("/metadata/labels/app") == ("labels", "app")
    assert metadata_key("metadata.annotations.example.org") is None
    assert metadata_key("metadata.labels") is None
    assert metadata_key("metadata.finalizers.x") is None


def test_key_with_dots_is_read_and_copied_by_its_pointer() -> None:
    obj = {"metadata": {"annotations": {"example.org/team": "blue", "other": "x"}}, "spec": {"a": {"b": 1, "c": 2}}}
    assert dig(obj, "/metadata/annotations/example.org~1team") == "blue"
    assert dig(obj, "spec.a.x", "none") == "none"
    target: dict[str, Any] = {"metadata": {"name": "n"}}
    copy_fields(obj, target, (TEAM, "spec.a.b", "spec.lost", "status"))
    assert target == {
        "metadata": {"name": "n", "annotations": {"example.org/team": "blue"}},
        "spec": {"a": {"b": 1}},
    }


def test_path_may_end_where_another_goes_on() -> None:
    table = Paths({"names[]": "each", "names[].inner": "inner", "other": "other"})
    assert sorted(table.found({"names": ["a", {"inner": "b"}], "other": "c"})) == [
        ("each", "a"),
        ("inner", "b"),
        ("other", "c"),
    ]


def shouted(label: str, text: str) -> str:
    return f"{label}:{text}"


def test_strings_at_the_paths_are_found_with_their_label() -> None:
    obj = {"account": "robot", "volumes": [{"secret": {"name": "a"}}, {"map": {"name": "b", "other": "c"}}]}
    assert sorted(PATHS.found(obj)) == [("account", "robot"), ("map", "b"), ("secret", "a")]


def test_strings_at_the_paths_are_rewritten_and_nothing_else() -> None:
    obj = {"account": "robot", "name": "n", "volumes": [{"secret": {"name": "a", "mode": 1}}, {"empty": {}}]}
    before = copy.deepcopy(obj)
    assert PATHS.rewritten(obj, shouted) == {
        "account": "account:robot",
        "name": "n",
        "volumes": [{"secret": {"name": "secret:a", "mode": 1}}, {"empty": {}}],
    }
    assert obj == before


def test_parts_without_a_path_are_shared_with_the_input() -> None:
    obj = {"account": "robot", "volumes": [{"empty": {}}], "labels": {"a": "b"}}
    result = PATHS.rewritten(obj, shouted)
    assert result["volumes"] is obj["volumes"]
    assert result["labels"] is obj["labels"]
    assert PATHS.rewritten({"x": [1]}, shouted) == {"x": [1]}


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"account": ""},
        {"account": None, "volumes": None},
        {"account": 3, "volumes": ["text", None, 4]},
        {"account": {"name": "deeper"}, "volumes": {"secret": {"name": "not in a list"}}},
        {"account": ["in a list"], "volumes": [{"secret": "a"}, {"secret": [{"name": "a"}]}]},
    ],
)
def test_odd_shapes_are_passed_over(obj: dict[str, Any]) -> None:
    assert PATHS.found(obj) == []
    assert PATHS.rewritten(obj, shouted) is obj
