"""Measure what expressions take whose value is as large as the limit of their cost allows; prints a
line of JSON each.

The limit is meant to be a tenth of a second, as an evaluation holds up everything else.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from syncer.translate.cel import VARIABLES, Expression
from syncer.translate.cel_cost import LIMIT, bound, price

PYTHON = ("replace", "split", "join", "distinct", "sort", "lowerAscii", "lists.range")
#: Expressions, each with what makes a value of a size.
EXPRESSIONS: dict[str, Callable[[int], Any]] = {
    "value.all(a, value.exists_one(b, b == a))": lambda size: [
        f"a-{number}" for number in range(size)
    ],
    "value.filter(x, x != '')": lambda size: [f"a-{number}" for number in range(size)],
    "value.filter(x, x.n != '')": lambda size: [{"n": "a", "l": ["x"] * 20} for _ in range(size)],
    "value.map(x, value)": lambda size: ["a"] * size,
    "value.all(x, x.l.all(y, y == 'x'))": lambda size: [
        {"n": "a", "l": ["x"] * 20} for _ in range(size)
    ],
    "self.a.b.c.all(x, self.a.b.c.size() > 0)": lambda size: ["a"] * size,
    "value.split('').join('-')": lambda size: "a" * size,
    "value.lowerAscii()": lambda size: "a" * size,
    "value.distinct()": lambda size: [str(number) for number in range(size)],
    "value": lambda size: [[]] * size,
    "value.all(x, x.matches('^[a-z]+$'))": lambda size: ["abc"] * size,
    "value.matches(value)": lambda size: r"\w{100}",
    "lists.range(1000).all(x, value.matches('(a|b|ab)*c'))": lambda size: "ab" * size,
}
#: No value is larger.
LARGEST = 2_000_000


def largest(text: str, grow: Callable[[int], Any]) -> int:
    """Return a size, a power of two, at which the expression is allowed,
    and at twice which it is not.
    """
    cost = bound(text, variables=VARIABLES, python=PYTHON)
    size = 1
    while size < LARGEST and price(cost, _used(text, grow(size * 2))) <= LIMIT:
        size *= 2
    return size


def _used(text: str, value: Any) -> dict[str, Any]:
    return {"value": value} if "value" in text else {"self": {"a": {"b": {"c": value}}}}


def main() -> None:
    """Print a line for each expression."""
    for text, grow in EXPRESSIONS.items():
        size = largest(text, grow)
        expression = Expression(text)
        nothing: dict[str, Any] = {"value": None, "self": {}, "other": None, "context": {}}
        begun = time.thread_time()
        expression.result({**nothing, **_used(text, grow(size))})
        spent = time.thread_time() - begun
        print(
            json.dumps(
                {"bench": "cel", "expression": text, "size": size, "cpu_ms": round(spent * 1e3, 1)}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
