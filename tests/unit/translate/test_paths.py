"""Finding and rewriting strings at many paths of an object."""

import copy
from typing import Any

import pytest

from syncer.translate.paths import Paths

PATHS = Paths({"volumes[].secret.name": "secret", "volumes[].map.name": "map", "account": "account"})


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


def test_what_no_path_leads_into_is_shared_with_the_input() -> None:
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
