"""The bound of an expression's cost: expressions that are cheap pass, and what a tenant makes expensive is refused.

`hack/bench/cel` measures what the most expensive ones that pass take.
"""

from typing import Any

import pytest

from syncer.api import ConfigError
from syncer.translate.cel import VARIABLES, Expression
from syncer.translate.cel_cost import CostBudget, Polynomial, Unknown, bound
from syncer.translate.pointers import Unfit

PYTHON = ("replace", "split", "join", "distinct", "sort", "lowerAscii", "lists.range")
EMPTY: dict[str, Any] = {"value": None, "self": {}, "other": None, "context": {}}

EACH_NAME_ONCE = "value.all(a, value.exists_one(b, b == a))"


def bounded(text: str) -> Polynomial:
    """Return the bound of an expression."""
    return bound(text, variables=VARIABLES, python=PYTHON)


def degree(text: str) -> int:
    """Return the degree of the bound."""
    return max(map(len, bounded(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a'", 0),
        ("value + '-x'", 1),
        ("has(self.spec.x) ? self.spec.x : value", 1),
        ("value.all(x, x.startsWith('a'))", 1),
        ("value.all(x, x.tags.exists(t, t == 'a'))", 1),
        ("value.filter(x, x.size() > 2)", 2),
        ("value.map(x, x != '', x + '-x')", 2),
        (EACH_NAME_ONCE, 2),
        ("value.all(a, a in value)", 2),
        ("value.distinct()", 2),
        ("value.replace('', value)", 2),
        ("value.map(x, value)", 3),
        ("value.map(x, value).map(y, y.map(z, value))", 5),
        ("value.all(x, value.all(x, x == 'a'))", 2),
        ("{'a': [value, 1.5e3, 0xffu], b'x': r'\\'}.a[0] // value.all(", 1),
        ('"""it\'s "quoted" """ + value', 1),
        ("!(-value < 3) && value in [1, 2] || lists.range(3).size() == 3", 1),
    ],
)
def test_bound_has_the_degree_of_the_worst_value(text: str, expected: int) -> None:
    assert degree(text) == expected


@pytest.mark.parametrize("text", ["value +", "value.all(a, b", "value # 1", "(value", "value value"])
def test_bound_of_unknown_syntax_is_refused(text: str) -> None:
    with pytest.raises(Unknown):
        bounded(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (EACH_NAME_ONCE, [f"a-{number}" for number in range(1600)]),
        ("value.filter(x, x != '')", [f"a-{number}" for number in range(5000)]),
        ("value.map(x, value)", [f"a-{number}" for number in range(300)]),
        ("value.all(x, x in value)", ["a"] * 5000),
        ("value.distinct()", [f"a-{number}" for number in range(20_000)]),
        ("value.replace('a', value)", "a" * 20_000),
        ("value.split('')", "a" * 200_000),
        ("value.all(x, 'a'.matches(x))", ["a", "b", "c"]),
        ("value.size() == 1", [""] * 300_000),
        ("self.spec.all(x, self.spec.size() > 0)", ["a"] * 5000),
    ],
)
def test_expression_that_a_value_makes_expensive_is_refused(text: str, value: Any) -> None:
    with pytest.raises(Unfit, match="would take too long"):
        Expression(text).result({**EMPTY, "value": value, "self": {"spec": value}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (EACH_NAME_ONCE, [f"a-{number}" for number in range(200)]),
        ("value.filter(x, x != 'a')", [f"a-{number}" for number in range(400)]),
        ("value.filter(x, x.name != 'a')", [{"name": "A", "value": "b"} for _ in range(100)]),
        ("value.filter(c, c.name != 'a')", [{"name": "b", "image": "c", "env": [{"name": "d"}] * 50}] * 20),
        ("value.map(k, k).sort()", {f"k{number}": "v" for number in range(200)}),
        ("value.replace('docker.io/', 'mirror.local/')", "docker.io/app:1" * 10_000),
        ("value.contains('x')", "a" * 1_000_000),
        ("value.all(x, x.startsWith('a'))", ["ab"] * 5000),
    ],
)
def test_expression_of_ordinary_size_passes(text: str, value: Any) -> None:
    Expression(text).result({**EMPTY, "value": value})


def test_budget_is_shared_by_the_expressions_of_a_write() -> None:
    expression, budget = Expression("value + 'x'"), CostBudget(500)
    with pytest.raises(Unfit, match="would take too long"):
        for _ in range(100):
            expression.result({**EMPTY, "value": "a"}, budget)
    expression.result({**EMPTY, "value": "a"}, CostBudget())


def test_expression_too_expensive_for_any_value_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(ConfigError, match="too long for any value"):
        Expression("lists.range(size(value)).map(a, lists.range(1000))")


def test_range_is_no_longer_than_its_bound() -> None:
    assert Expression("lists.range(3)").result(EMPTY) == [0, 1, 2]
    with pytest.raises(Unfit):
        Expression("lists.range(value)").result({**EMPTY, "value": 10**12})
