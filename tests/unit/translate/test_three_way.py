"""The three-way merge against a simple model: the virtual change wins, and no change of one side alone is lost."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncer.translate.alike import covers
from syncer.translate.three_way import ABSENT, Merged, Tree, agreed_on, digest, merge, overlaid

NAMES = st.sampled_from(["a", "b", "c.d", "e/f"])
LEAVES = st.one_of(st.integers(0, 2), st.sampled_from(["", "x", "1", "1000m", "1.0"]), st.booleans(), st.none())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
MAYBE = st.one_of(VALUES, st.just(ABSENT))
FLAT = st.dictionaries(NAMES, st.integers(0, 2), max_size=4)


def literally(virtual: Any, host: Any, base: Tree | None) -> Merged:
    return merge(virtual, host, base, same=lambda sent, found: False)


def loosely(virtual: Any, host: Any, base: Tree | None) -> Merged:
    return merge(virtual, host, base, same=lambda sent, found: found is not ABSENT and covers(sent, found))


def agreed(found: Merged) -> Tree:
    """Return the base once all of it is done."""
    return found.kept if found.risen is None else overlaid(found.kept, found.risen)


@given(MAYBE, MAYBE)
def test_change_by_the_host_alone_goes_up(then: Any, host: Any) -> None:
    found = literally(then, host, agreed_on(then))
    assert (found.virtual, found.host) == (host, host)
    again = literally(host, host, agreed(found))
    assert (again.kept, again.risen) == (agreed_on(host), None)


@given(MAYBE, MAYBE)
def test_change_by_the_virtual_side_alone_goes_down(then: Any, virtual: Any) -> None:
    found = literally(virtual, then, agreed_on(then))
    assert (found.virtual, found.host) == (virtual, virtual)
    assert (found.kept, found.risen) == (agreed_on(virtual), None)


@given(MAYBE, MAYBE)
@example({"a": 1}, {"a": 1, "b": 2})
@example({}, {"a": 1})
def test_virtual_side_wins_over_a_copy_without_a_base(virtual: Any, host: Any) -> None:
    found = literally(virtual, host, None)
    assert (found.virtual, found.host) == (virtual, virtual)


@given(FLAT, FLAT, FLAT)
def test_entries_are_merged_one_by_one(then: Any, virtual: Any, host: Any) -> None:
    found = literally(virtual, host, agreed_on(then))
    wanted = {
        name: value
        for name in virtual.keys() | host.keys()
        for value in [virtual.get(name) if virtual.get(name) != then.get(name) else host.get(name)]
        if value is not None
    }
    for side in (found.virtual, found.host):
        assert ({} if side is ABSENT else side) == wanted


@given(MAYBE, MAYBE, MAYBE)
def test_second_merge_changes_nothing(then: Any, virtual: Any, host: Any) -> None:
    found = literally(virtual, host, agreed_on(then))
    assert found.virtual == found.host
    again = literally(found.virtual, found.host, agreed(found))
    assert (again.virtual, again.host, again.risen) == (found.virtual, found.host, None)
    assert literally(again.virtual, again.host, again.kept) == again


@given(MAYBE, MAYBE, MAYBE)
def test_writes_of_a_merge_may_be_made_alone(then: Any, virtual: Any, host: Any) -> None:
    found = literally(virtual, host, agreed_on(then))
    down = literally(virtual, found.host, found.kept)
    assert (down.virtual, down.host) == (found.virtual, found.host), "what went up after a stop is something else"
    if found.risen is not None:
        up = literally(found.virtual, host, overlaid(agreed_on(then), found.risen))
        assert (up.virtual, up.host) == (found.virtual, found.host), "what went down after a stop is something else"


@given(MAYBE, MAYBE, MAYBE)
def test_merge_continues_on_each_side_after_a_value_went_up(then: Any, host: Any, later: Any) -> None:
    """Nothing but the host had changed, that went up, and we stopped. What one side changes then is what both get."""
    found = literally(then, host, agreed_on(then))
    base = agreed_on(then) if found.risen is None else overlaid(agreed_on(then), found.risen)
    assert literally(found.virtual, later, base).virtual == later, "a later change of the host was lost"
    assert literally(later, host, base).host == later, "a later change of the virtual side was lost"


@given(VALUES, VALUES)
def test_digests_differ_where_values_do(one: Any, other: Any) -> None:
    alike = one == other and repr(one) == repr(other)
    assert not alike or digest(one) == digest(other)
    assert digest(one) != digest([one])


def test_value_that_a_server_normalises_is_agreed_and_remembered() -> None:
    sent = {"ports": [{"port": 80}], "cpu": "1"}
    stored = {"ports": [{"port": 80, "protocol": "TCP"}], "cpu": "1"}
    found = loosely(sent, stored, agreed_on(sent))
    assert (found.virtual, found.host) == (sent, stored)
    edited = {**stored, "ports": [{"port": 80, "protocol": "UDP"}]}
    assert loosely(sent, edited, agreed(found)).virtual == {"ports": edited["ports"], "cpu": "1"}
    changed = {**sent, "cpu": "2"}
    assert loosely(changed, stored, agreed(found)).host == {**stored, "cpu": "2"}


def test_value_that_the_host_rewrites_comes_up_and_both_are_at_rest() -> None:
    virtual, base = "1000m", agreed_on("2")
    sent = loosely(virtual, "2", base)
    assert (sent.virtual, sent.host) == ("1000m", "1000m")
    found = loosely(virtual, "1", agreed(sent))
    assert (found.virtual, found.host) == ("1", "1")
    again = loosely("1", "1", agreed(found))
    assert (again.virtual, again.host, agreed(again)) == ("1", "1", agreed_on("1"))


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("007", "7"), (3, "3"), (True, 1), ([0], [False])])
def test_values_that_differ_in_json_differ_in_a_merge(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)
    assert loosely(one, other, agreed_on(one)).virtual is other, "the host has changed it"
    assert loosely(other, one, agreed_on(one)).host is other, "the tenant has"


def test_numbers_have_the_digest_of_their_value() -> None:
    assert digest({"a": [1.0, 1e16, "1.0"]}) == digest({"a": [1, 10**16, "1.0"]})
    assert digest(1.5) != digest(1)


def test_hash_does_not_reveal_the_value() -> None:
    secret = "correct horse battery staple"
    assert secret not in str(agreed_on({"password": secret}))
    assert len(digest(secret)) == 16
