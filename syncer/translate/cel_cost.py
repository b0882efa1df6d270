"""Upper bounds of the cost of CEL expressions, as polynomials in the sizes of their variables.

The library evaluates an expression while it holds the interpreter's lock and can't be interrupted,
so no other thread can keep a deadline. Instead, the cost is bounded before the evaluation: the text
gives a polynomial when it is compiled, and the sizes of the given values its value. The unit is
that of Kubernetes' CEL cost, a tenth of a microsecond
(https://kubernetes.io/docs/reference/using-api/cel/#resource-constraints); the prices are measured.

The size of a value is the number of its scalars, lists and mappings, and a unit for each 32
characters. Its length is the number of its items. The variables of a polynomial are the sizes of
the fields that the expression reads (``self.spec.items``), and their lengths
(``self.spec.items[]``).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

#: Highest cost of all expressions that are evaluated for a write: about 0.1 s. (Kubernetes allows
#: an expression of a CustomResourceDefinition as much, its ``PerCallLimit``.)
LIMIT = 1_000_000

#: Characters of a string that count as an element.
CHARACTERS = 32

#: Price of an operation.
_OP = 1
#: Price of a step of a comprehension.
_STEP = 2
#: Price of a call.
_CALL = 10
#: Price of an element that is compared.
_COMPARE = 0.2
#: Price of an element that is copied within the library.
_COPY = 3
#: Price of an element that goes into the library.
_IN = 40
#: Price of an element that comes out of the library.
_OUT = 10
#: Price of an element that is passed to a function in Python.
_PYTHON = 20
#: Price of a regular expression that is written in the text.
_REGEX = 200
#: Price of a regular expression that comes from a value.
_UNKNOWN_REGEX = 600_000
#: The longest list of ``lists.range``.
RANGE = 1000

#: A product of sizes, by the names of their variables.
_Product: TypeAlias = tuple[str, ...]
#: A polynomial: the factor of each product.
Polynomial: TypeAlias = Mapping[_Product, float]


class Unknown(ValueError):
    """The text isn't in the known syntax."""


class Bound(NamedTuple):
    """Upper bounds of an expression."""

    #: The size of its result.
    size: Polynomial
    #: The cost of its evaluation.
    cost: Polynomial
    #: The length of its result; None for that of the size.
    known_length: Polynomial | None = None
    #: The text of the literal, if it is a string or a number.
    literal: str | None = None
    #: The path, if it is a variable or a field of a variable, such as ``self.spec.items``.
    path: str = ""

    @property
    def length(self) -> Polynomial:
        """The length of its result."""
        if self.known_length is None:
            return self.size
        return self.known_length


def bound(text: str, *, variables: Collection[str], python: Collection[str]) -> Polynomial:
    """Return the bound of an expression's cost in the sizes of its variables.

    The price of passing the variables is not in it.

    Args:
        text: The expression.
        variables: The names of its variables; other names are those of types.
        python: The functions that are implemented in Python, such as ``replace`` and
            ``lists.range``.

    Raises:
        Unknown: The text isn't in the known syntax.
    """
    parser = _Parser(text, variables, python)
    found = parser.expression()
    parser.take("")
    return _sum(found.cost, _times(found.size, _OUT))


class CostBudget:
    """The cost that all expressions of a write may have together."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._left = limit

    def spend(self, cost: float) -> bool:
        """Return True if the cost is still allowed, and subtract it."""
        if cost > self._left:
            return False
        self._left -= cost
        return True


def price(polynomial: Polynomial, given: Mapping[str, Any]) -> float:
    """Return the bound of an evaluation with these variables, with the price of passing them."""
    sizes: dict[str, float] = {}
    total = 0.0
    for name, value in given.items():
        elements, characters = _counted(value)
        sizes[name] = elements + characters / CHARACTERS
        total += _IN * elements + characters / 100
    for product, factor in polynomial.items():
        for name in product:
            if name not in sizes:
                sizes[name] = _size(name, given)
            factor *= sizes[name]
        total += factor
    return total


def _size(name: str, given: Mapping[str, Any]) -> float:
    """Return the value of a variable of a polynomial."""
    value: Any = given
    for step in name.removesuffix("[]").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if name.endswith("[]"):
        if isinstance(value, list | dict):
            return len(value)
        return 1
    elements, characters = _counted(value)
    return elements + characters / CHARACTERS


def _counted(value: Any) -> tuple[int, int]:
    """Return the number of elements of a value, and of the characters in them.

    The count ends where the elements alone are over the limit.
    """
    if type(value) is str:
        return 1, len(value)
    most = LIMIT // _IN + 1
    elements = 0
    characters = 0
    rest = [value]
    while rest and elements < most:
        each = rest.pop()
        elements += 1
        if type(each) is str:
            characters += len(each)
        elif isinstance(each, dict):
            rest.extend(each)
            rest.extend(each.values())
        elif isinstance(each, list):
            rest.extend(each)
    return elements, characters


# -- polynomials -----------------------------------------------------------------------------------


def _number(value: float) -> Polynomial:
    return {(): value}


def _sum(*summands: Polynomial) -> Polynomial:
    total: defaultdict[_Product, float] = defaultdict(float)
    for each in summands:
        for product, factor in each.items():
            total[product] += factor
    return total


def _greatest(*choices: Polynomial) -> Polynomial:
    """Return a polynomial that is at least each of these."""
    found: dict[_Product, float] = {}
    for each in choices:
        for product, factor in each.items():
            found[product] = max(factor, found.get(product, 0))
    return found


def _times(one: Polynomial, other: Polynomial | float) -> Polynomial:
    """Return the product of two polynomials, or of one and a number."""
    factors = other if isinstance(other, Mapping) else _number(other)
    total: defaultdict[_Product, float] = defaultdict(float)
    for product, factor in one.items():
        for more, times in factors.items():
            total[tuple(sorted(product + more))] += factor * times
    return total


def _over_items(of_item: Polynomial, item: str, over: "Bound") -> Polynomial:
    """Return the sum of a polynomial over the items of a value.

    The items together are no larger than the value, so the sum of the items' sizes to the power of
    n is at most the value's size to that power.
    """
    total: Polynomial = {}
    for product, factor in of_item.items():
        rest = tuple(name for name in product if name != item)
        summand: Polynomial = {rest: factor}
        power = len(product) - len(rest)
        if power:
            for _ in range(power):
                summand = _times(summand, over.size)
        else:
            summand = _times(summand, over.length)
        total = _sum(total, summand)
    return total


# -- syntax ----------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""(?sx) (?: \s | //[^\n]* )* (?:
        (?P<string> [bB]?[rR][bB]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"]*"|'[^']*')
            | [bB]?(?:(\"{3}|'{3}|"|')(?:\\.|(?!\2).)*\2) )
      | (?P<number> 0[xX][0-9a-fA-F]+[uU]? | (?:\d+\.\d*|\.?\d+)(?:[eE][+-]?\d+)?[uU]? )
      | (?P<name> [A-Za-z_]\w* | `[^`]*` )
      | (?P<sign> == | != | <= | >= | && | \|\| | [<>+\-*/%!?:.,()\[\]{}] )
      | (?P<end> $ ) )"""
)
#: Binary operators by precedence. (https://github.com/google/cel-spec/blob/master/doc/langdef.md)
_BINARY = {"||": 1, "&&": 2, "in": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_BINARY |= dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 3)
_MACROS = ("all", "exists", "exists_one", "map", "filter")
#: Functions that return a number or a truth value.
_SCALAR = {"size", "contains", "startsWith", "endsWith", "matches", "indexOf", "has"}
_SCALAR |= {"int", "uint", "double", "bool"}


class _Parser:
    """Computes the bounds while it reads an expression that the library has compiled."""

    def __init__(self, text: str, variables: Collection[str], python: Collection[str]) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._variables = variables
        self._python = python
        self._bound: dict[str, str] = {}
        self._made = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at][1]

    def take(self, wanted: str) -> None:
        """Take a sign, or the end of the text (``""``)."""
        if not self._took(wanted):
            raise Unknown(f"expected {wanted!r}, found {self._next!r}")

    def _took(self, wanted: str) -> bool:
        kind, text = self._tokens[self._at]
        if text != wanted or kind == "string":
            return False
        self._at += 1
        return True

    def expression(self) -> Bound:
        """Read an expression, which may be conditional."""
        condition = self._binary(1)
        if not self._took("?"):
            return condition
        yes = self._binary(1)
        self.take(":")
        no = self.expression()
        # Both ways are paid for, since the condition isn't known.
        cost = _sum(condition.cost, yes.cost, no.cost, _number(_OP))
        return Bound(_greatest(yes.size, no.size), cost)

    def _binary(self, lowest: int) -> Bound:
        """Read operators of at least this precedence, with their operands."""
        left = self._unary()
        while True:
            kind, operator = self._tokens[self._at]
            rank = _BINARY.get(operator, 0)
            if kind == "string" or rank < lowest:
                return left
            self._at += 1
            right = self._binary(rank + 1)
            left = _operation(operator, left, right)

    def _unary(self) -> Bound:
        signs = 0
        while self._took("!") or self._took("-"):
            signs += 1
        found = self._member()
        if not signs:
            return found
        return Bound(found.size, _sum(found.cost, _number(_OP * signs)))

    def _member(self) -> Bound:
        """Read a value with the fields, items and calls that follow it."""
        found, name = self._primary()
        while True:
            if self._took("."):
                self._took("?")
                field = self._name()
                if self._took("("):
                    found = self._call(field, found, f"{name}.{field}")
                    name = ""
                else:
                    found = _field(found, field)
            elif self._took("["):
                self._took("?")
                index = self.expression()
                self.take("]")
                found = _field(Bound(found.size, _sum(found.cost, index.cost)))
            elif name and self._took("{"):
                found = self._items(found, "}")
            else:
                return found

    def _primary(self) -> tuple[Bound, str]:
        """Return a value, with its name if it has one."""
        kind, text = self._tokens[self._at]
        if self._took("("):
            found = self.expression()
            self.take(")")
            return found, ""
        nothing = Bound(_number(1), _number(_OP))
        if self._took("["):
            return self._items(nothing, "]"), ""
        if self._took("{"):
            return self._items(nothing, "}"), ""
        self._took(".")  # an absolute name
        if kind in ("string", "number"):
            self._at += 1
            size = _number(1 + len(text) / CHARACTERS)
            return Bound(size, _number(_OP), literal=text), ""
        name = self._name()
        if self._took("("):
            return self._call(name, None, name), ""
        if name in ("true", "false", "null"):
            return nothing, ""
        item = self._bound.get(name)
        if item:  # the variable of a macro
            return Bound({(item,): 1}, _number(_OP)), name
        if name not in self._variables:  # a type
            return Bound(_number(1), _number(_OP)), name
        return _variable(name, _number(_OP)), name

    def _items(self, found: Bound, end: str) -> Bound:
        """Read the items of a list or a mapping, up to its closing bracket."""
        while not self._took(end):
            self._took("?")
            item = self.expression()
            size = _sum(found.size, item.size)
            cost = _sum(found.cost, item.cost, _times(item.size, _COPY))
            found = Bound(size, cost)
            if not self._took(":"):
                self._took(",")
        return found

    def _name(self) -> str:
        kind, text = self._tokens[self._at]
        if kind != "name":
            raise Unknown(f"expected a name, found {text!r}")
        self._at += 1
        return text.strip("`")

    def _call(self, name: str, receiver: Bound | None, dotted: str) -> Bound:
        """Read a call after its opening parenthesis."""
        if receiver is not None and name in _MACROS and self._tokens[self._at + 1][1] == ",":
            return self._comprehension(name, receiver)

        given: list[Bound] = []
        if dotted in self._python:
            # The receiver is a namespace such as ``lists``, and no argument.
            function = dotted
            python = True
        else:
            function = name
            python = name in self._python
            if receiver is not None:
                given.append(receiver)

        while not self._took(")"):
            given.append(self.expression())
            self._took(",")
        return _called(function, given, python=python)

    def _comprehension(self, macro: str, over: Bound) -> Bound:
        """Read a macro after its opening parenthesis.

        It has a variable, and an expression for each item.
        """
        variable = self._name()
        self.take(",")
        self._made += 1
        item = f"{variable}#{self._made}"
        hidden = self._bound.get(variable)
        self._bound[variable] = item

        body = self.expression()
        spent = _sum(body.cost, _number(_STEP))
        if self._took(","):  # map(item, condition, result)
            body = self.expression()
            spent = _sum(spent, body.cost)
        self.take(")")
        if hidden is None:
            del self._bound[variable]
        else:
            self._bound[variable] = hidden

        cost = _sum(over.cost, _over_items(spent, item, over))
        if macro not in ("map", "filter"):
            return Bound(_number(1), cost)
        size = over.size
        if macro == "map":
            size = _over_items(_sum(body.size, _number(1)), item, over)
        # The library copies the result so far at each item: half of the result on average.
        return Bound(size, _sum(cost, _times(_times(over.length, size), _COPY / 2)), over.length)


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position = 0
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            raise Unknown(f"unknown syntax at {text[position : position + 10]!r}")
        position = token.end()
        kind = token.lastgroup or "end"
        found.append((kind, token[kind]))
        if kind == "end":
            return found


def _variable(path: str, cost: Polynomial) -> Bound:
    return Bound({(path,): 1}, cost, {(f"{path}[]",): 1}, path=path)


def _field(of: Bound, name: str = "") -> Bound:
    """Return the bound of a field, or without a name of an item.

    The library copies the whole value for it.
    """
    cost = _sum(of.cost, _number(_OP), _times(of.size, _COPY))
    if of.path and name:
        return _variable(f"{of.path}.{name}", cost)
    return Bound(of.size, cost)


def _operation(operator: str, left: Bound, right: Bound) -> Bound:
    cost = _sum(left.cost, right.cost, _number(_OP))
    match operator:
        case "+":
            size = _sum(left.size, right.size)
            return Bound(size, _sum(cost, _times(size, _COPY)))
        case "in":
            compared = _sum(left.size, right.size)
            return Bound(_number(1), _sum(cost, _times(compared, _COMPARE)))
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            compared = _compared(left.size, right.size)
            return Bound(_number(1), _sum(cost, _times(compared, _COMPARE)))
        case _:
            return Bound(_number(1), cost)


def _compared(one: Polynomial, other: Polynomial) -> Polynomial:
    """Return the number of elements that a comparison reads, no more than either value has."""
    for size in (one, other):
        if size.keys() == {()}:
            return size
    return _sum(one, other)


def _called(name: str, given: list[Bound], *, python: bool) -> Bound:
    """Return the bound of a call of a function with these arguments."""
    sizes = _sum(*(each.size for each in given))
    cost = _sum(_number(_CALL), *(each.cost for each in given))
    if name == "matches":
        regex = _UNKNOWN_REGEX
        if len(given) > 1 and given[1].literal is not None:
            regex = _REGEX
        return Bound(_number(1), _sum(cost, _number(regex), _times(sizes, _COPY)))
    if name == "size":
        return Bound(_number(1), cost)

    result = _result(name, given, sizes)
    element = _COPY
    if python:
        element = _PYTHON
    cost = _sum(cost, _times(_sum(sizes, result), element))
    if name == "distinct" or name.startswith("sets."):  # each item is compared with each other one
        cost = _sum(cost, _times(_times(sizes, sizes), 5 * _COMPARE))
    return Bound(result, cost)


def _result(name: str, given: list[Bound], sizes: Polynomial) -> Polynomial:
    """Return the size of a function's result."""
    if name in _SCALAR or name.startswith(("math.", "sets.")):
        return _number(1)
    if name == "lists.range":
        if given:
            literal = given[0].literal
            if literal is not None and literal.isdecimal():
                return _number(float(literal))
        return _number(RANGE)
    if name == "split":
        return _sum(_times(sizes, CHARACTERS), _number(1))
    if name == "replace" and len(given) > 2:
        growth = _growth(given[1], given[2])
        return _sum(given[0].size, _times(given[0].size, growth))
    if name == "join" and len(given) > 1:
        return _sum(given[0].size, _times(given[0].size, given[1].size))
    return _sum(_times(sizes, 2), _number(1))


def _growth(old: Bound, new: Bound) -> Polynomial:
    """Return how often a text can become its own length by ``replace``."""
    if new.literal is None:
        return _times(new.size, CHARACTERS)
    shortest = 0
    if old.literal and re.match(r"""["'][^\\]*$""", old.literal):
        shortest = len(old.literal.strip("\"'"))
    return _number(max(len(new.literal) / max(shortest, 1), 1))
