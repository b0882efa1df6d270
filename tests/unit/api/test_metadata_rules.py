"""The labels and annotations that are copied, by their keys."""

from typing import Any

import pytest
from pydantic import ValidationError

from syncer.api import KeyRules, MetadataRules
from syncer.api.metadata_rules import MetadataFilter

KEYS = ("app", "example.org/team", "example.org/size", "helm.sh/chart", "helm.sh/Chart")
HELM: dict[str, Any] = {"deny": ["helm.sh/*"]}


def crossing(kind: dict[str, Any], section: dict[str, Any], host_owned: tuple[str, ...] = ()) -> set[str]:
    """Return the keys of labels that cross, with these rules for labels."""
    rules = [MetadataRules(labels=KeyRules.model_validate(each)) for each in (kind, section)]
    found = MetadataFilter(rules[0], rules[1], host_owned).kept("labels", dict.fromkeys(KEYS, "x"))
    assert set(found.values()) <= {"x"}
    return set(found)


@pytest.mark.parametrize(
    ("kind", "section", "left"),
    [
        ({}, {}, set()),
        ({}, HELM, {"helm.sh/chart", "helm.sh/Chart"}),
        ({}, {"deny": ["helm.sh/chart"]}, {"helm.sh/chart"}),
        ({}, {"deny": ["?pp"]}, {"app"}),
        ({}, {"deny": ["ap"]}, set()),
        ({}, {"deny": ["helm?sh*"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        ({}, {"allow": ["example.org/*"]}, {"app", "helm.sh/chart", "helm.sh/Chart"}),
        ({}, {"allow": ["*"], "deny": ["*/*"]}, set(KEYS) - {"app"}),
        ({}, {"allow": ["app"], "deny": ["app"]}, set(KEYS)),
        (HELM, {}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"deny": ["app"]}, {"app", "helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["*"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/chart"]}, {"helm.sh/Chart"}),
        (HELM, {"allow": ["*", "helm.sh/char?"]}, {"helm.sh/chart", "helm.sh/Chart"}),
        (HELM, {"allow": ["helm.sh/chart"]}, set(KEYS) - {"helm.sh/chart"}),
        (HELM, {"allow": ["helm.sh/chart"], "deny": ["*chart"]}, set(KEYS)),
        ({"allow": ["app"]}, {}, set(KEYS) - {"app"}),
        ({"allow": ["app"]}, {"allow": ["*"]}, set(KEYS) - {"app"}),
        ({"allow": ["app"]}, {"allow": ["*", "helm.sh/chart"]}, set(KEYS) - {"app", "helm.sh/chart"}),
    ],
)
def test_keys_that_are_denied_stay_behind(kind: dict[str, Any], section: dict[str, Any], left: set[str]) -> None:
    assert crossing(kind, section) == set(KEYS) - left


def test_key_that_the_host_owns_never_goes_down() -> None:
    owned = ("/metadata/labels/example.org~1team", "/metadata/annotations/app", "status")
    assert crossing({}, {"allow": ["*", "example.org/team"]}, owned) == set(KEYS) - {"example.org/team"}


def test_filter_narrows_only_where_there_are_rules() -> None:
    none, some = MetadataRules(), MetadataRules(annotations=KeyRules(deny=("a",)))
    assert not MetadataFilter(none, none, ("status", "spec.a")).narrows
    assert MetadataFilter(none, some).narrows
    assert MetadataFilter(some, none).narrows
    assert MetadataFilter(none, none, ("/metadata/labels/a",)).narrows
    assert MetadataFilter(none, some).crosses("labels", "a"), "labels have rules of their own"


@pytest.mark.parametrize("glob", ["", "a b", "[ab]", "a,b", "a!"])
def test_pattern_that_no_key_matches_is_refused(glob: str) -> None:
    with pytest.raises(ValidationError, match=r"expected the key of a label or annotation, such as example.org/team"):
        KeyRules.model_validate({"deny": [glob]})
