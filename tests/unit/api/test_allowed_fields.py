"""Lists of allowed fields."""

from typing import Any

import pytest

from syncer.api import AllowedFields, Refused

ALLOWED = AllowedFields("ca.secretName", "solvers[].selector", "solvers[].http.class", "tags")


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"ca": None, "other": None},
        {"ca": {"secretName": "a"}, "tags": ["a", {"b": "c"}]},
        {"solvers": [{"selector": {"any": {"thing": 1}}}, {"http": {"class": "nginx"}}, None, {}]},
    ],
)
def test_allowed_fields_pass(value: Any) -> None:
    ALLOWED.refuse_others(value, at="spec")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"vault": {}}, "spec.vault"),
        ({"ca": {"secretName": "a", "key": ""}}, "spec.ca.key"),
        ({"solvers": [{}, {"http": {"template": {}}}]}, "spec.solvers[1].http.template"),
        ({"solvers": {"http": {}}}, "spec.solvers.http"),
        ({"ca": [{"secretName": "a"}]}, "spec.ca"),
        ({"ca": "a"}, "spec.ca"),
        ({"x" * 1000: 1}, "spec." + "x" * 63),
    ],
)
def test_other_field_is_refused_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(Refused) as caught:
        ALLOWED.refuse_others(value, at="spec", hint="Ask for it.")
    assert str(caught.value) == f"{path}: is not a field that is synced. Ask for it."
