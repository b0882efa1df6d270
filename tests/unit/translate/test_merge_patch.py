"""Merge patches: the examples of RFC 7386 about objects, and conditions."""

import copy
from typing import Any

import pytest

from syncer.translate.merge_patch import merged


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({"a": "foo"}, {"b": [None]}, {"a": "foo", "b": [None]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "x"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_merge_patch_gives_the_results_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert merged(target, patch) == result
    assert (target, patch) == before


READY, MINE = {"type": "Ready", "status": "True", "reason": "x"}, {"type": "mine", "status": "False"}


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        ([READY], [MINE], [READY, MINE]),
        ([READY, MINE], [{"type": "Ready", "status": "False"}], [{**READY, "status": "False"}, MINE]),
        ([], [MINE], [MINE]),
        (None, [MINE], [MINE]),
        ([{"ip": "1"}], [{"ip": "2"}], [{"ip": "2"}]),
        (["a"], [MINE], [MINE]),
    ],
)
def test_conditions_are_merged_by_type(live: Any, patch: Any, result: Any) -> None:
    target = {"status": {"phase": "x", **({"conditions": live} if live is not None else {})}}
    after = merged(target, {"status": {"conditions": patch}}, by_key=True)
    assert after == {"status": {"phase": "x", "conditions": result}}
    assert merged(target, {"status": {"conditions": patch}})["status"]["conditions"] == patch
