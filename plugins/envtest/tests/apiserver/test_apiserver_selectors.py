"""Label and field selectors: their matches, and refusals of wrong ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver.selectors import SelectorError, check_fields, parse_fields, parse_labels

LABELS = {"app": "web", "tier": "front", "n": "5", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=other", False),
        ("app!=other", True),
        ("app!=web", False),
        ("gone!=x", True),
        ("gone=x", False),
        ("app", True),
        ("gone", False),
        ("!gone", True),
        ("!app", False),
        ("app in (web,db)", True),
        ("app in (db)", False),
        ("app notin (db, cache)", True),
        ("app notin (web)", False),
        ("gone notin (web)", True),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        (" app = web , tier in ( front ) ", True),
        ("n>4", True),
        ("n>5", False),
        ("n<6", True),
        ("app>1", False),
        ("empty=", True),
        ("empty in ()", True),
        ("empty in (,x)", True),
        ("app in (in)", False),
    ],
)
def test_label_selectors(text: str, matches: bool) -> None:
    assert parse_labels(text)(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a>b", "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("A_/b=c", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("a=b%", "a valid label must be an empty string or consist of"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_wrong_label_selectors(text: str, why: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert why in str(caught.value)


POD = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "node"},
    "status": {"phase": "Running"},
    "involvedObject": {"name": "a,b=c"},
}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=p", True),
        ("metadata.name!=p", False),
        ("spec.nodeName==node,status.phase=Running", True),
        ("spec.nodeName=", False),
        ("spec.host=", True),
        ("spec.hostNetwork=false", True),
        ("status.phase!=Failed,status.phase!=Succeeded", True),
        (r"involvedObject.name=a\,b\=c", True),
    ],
)
def test_field_selectors(text: str, matches: bool) -> None:
    assert parse_fields(text)(POD) is matches


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_wrong_field_selectors(text: str, why: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields(text)
    assert str(caught.value) == why


def test_a_kind_can_be_selected_by_its_own_fields_only() -> None:
    check_fields("metadata.name=x,spec.nodeName=y", "Pod")
    check_fields("spec.colour=x", "Thing", extra=["spec.colour"])
    with pytest.raises(SelectorError, match=r"field label not supported: spec\.x"):
        check_fields("spec.x=1", "Pod")
    with pytest.raises(SelectorError, match=r'"data\.x" is not a known field selector: only "metadata\.name"'):
        check_fields("data.x=1", "ConfigMap")


def test_an_event_is_selected_by_its_source() -> None:
    event: dict[str, Any] = {"source": {"component": "kubelet"}}
    assert parse_fields("source=kubelet")(event)
    assert parse_fields("source=x")({"reportingComponent": "x"})


WORDS = st.text("abc", min_size=1, max_size=2)


@given(st.dictionaries(WORDS, WORDS, max_size=3), WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_a_requirement_and_its_negation_never_agree(labels: dict[str, str], key: str, values: list[str]) -> None:
    listed = ",".join(values)
    for one, other in ((f"{key} in ({listed})", f"{key} notin ({listed})"), (key, f"!{key}")):
        assert parse_labels(one)(labels) is not parse_labels(other)(labels)
