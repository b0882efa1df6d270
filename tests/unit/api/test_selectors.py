"""Label selectors: narrowing, folding of label keys, matching."""

from typing import Any

import pytest

from syncer.api import selectors

OURS = {"vsyncer.dev/cluster": "vc.vc-ns"}


def test_narrowed_selector_keeps_its_terms_and_marks_win() -> None:
    selector = {"matchLabels": {"app": "web", "vsyncer.dev/cluster": "forged"}, "matchExpressions": [{"key": "a"}]}
    assert selectors.narrowed(selector, OURS) == {
        "matchLabels": {"app": "web", "vsyncer.dev/cluster": "vc.vc-ns"},
        "matchExpressions": [{"key": "a"}],
    }
    assert selector["matchLabels"] == {"app": "web", "vsyncer.dev/cluster": "forged"}


def test_empty_selector_narrows_to_the_marks() -> None:
    assert selectors.narrowed({}, OURS) == {"matchLabels": OURS}


def test_label_keys_become_expressions_with_the_values_of_the_pod() -> None:
    folded = selectors.folded({}, {"hash": "1", "zone": "b"}, match=["hash", "absent"], mismatch=["zone"])
    assert folded["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["1"]},
        {"key": "zone", "operator": "NotIn", "values": ["b"]},
    ]


def test_label_keys_that_the_api_server_has_folded_are_not_repeated() -> None:
    selector = {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}]}
    assert selectors.folded(selector, {"hash": "1"}, match=["hash"]) == selector


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Resembles"}]}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, False),
    ],
)
def test_matching_is_that_of_kubernetes(selector: dict[str, Any] | None, expected: bool) -> None:
    assert selectors.matches(selector, {"a": "1", "b": "2"}) is expected
