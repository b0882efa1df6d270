"""Two values are equal only as JSON values."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Key, Resource, Settings
from syncer.names import SingleNamespace
from syncer.translate.alike import covers, same
from syncer.translate.three_way import digest

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
KEY = Key("shop", "x")

#: Values that Python, YAML or a parser of quantities could take for one another.
_SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 3, 0.0, 1.0, 1.5, 10**16, 1e16]),
    st.sampled_from(["", "0", "1", "1.0", "01", "3", "+3", "true", "null", "1000m", "1Gi", "1024Mi", "0e9"]),
)
_NAMES = st.sampled_from(["a", "b", "c.d/e~1"])
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)),
    max_leaves=10,
)
SPECS = st.dictionaries(_NAMES, VALUES, max_size=3)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """Draw a value that is like another one in most parts, in another order, with more fields and some other ones."""
    if draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        kept = {name: draw(changed(value[name])) for name in reversed(value) if draw(st.integers(0, 9))}
        return kept | (draw(SPECS) if draw(st.integers(0, 3)) == 0 else {})
    if isinstance(value, list):
        return [draw(changed(item)) for item in value]
    if isinstance(value, int | float) and draw(st.booleans()):
        return draw(st.sampled_from([float(value), str(value), bool(value)]))
    return value


PAIRS = VALUES.flatmap(lambda value: st.tuples(st.just(value), changed(value)))


# -- equality --------------------------------------------------------------------------------------


def leaves(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the leaves of a JSON value as their canonical texts (RFC 8785), and each map and list, with their paths."""
    if isinstance(value, dict):
        yield at, "{}"
        for name, below in value.items():
            yield from leaves(below, (*at, name))
    elif isinstance(value, list):
        yield at, f"[{len(value)}]"
        for number, item in enumerate(value):
            yield from leaves(item, (*at, number))
    else:
        is_whole = isinstance(value, float) and value.is_integer()
        yield at, json.dumps(int(value) if is_whole else value)


@given(PAIRS)
def test_values_are_the_same_if_all_their_leaves_are(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert same(one, other) == (dict(leaves(one)) == dict(leaves(other))) == same(other, one)
    assert same(one, json.loads(json.dumps(one)))


@given(PAIRS)
def test_values_have_the_same_digest_if_they_are_the_same(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert (digest([one]) == digest([other])) == same(one, other)


@given(PAIRS)
def test_built_in_object_has_all_that_is_wanted_if_it_has_all_leaves_but_null_and_empty_lists(
    pair: tuple[Any, Any],
) -> None:
    want, live = pair
    there = dict(leaves(live))

    def lacks(at: tuple[str | int, ...], text: str) -> bool:
        says_nothing = text == "null" and at and isinstance(at[-1], str)
        is_missing = text == "[0]" and there.get(at, "null") == "null"
        return there.get(at) != text and not says_nothing and not is_missing

    assert covers(want, live) == (not any(lacks(at, text) for at, text in leaves(want)))
