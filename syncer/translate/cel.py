"""CEL expressions: compiled once, and checked as far as possible without an object.

Variables go in and results come out as plain JSON.

The language is that of https://github.com/google/cel-spec/blob/master/doc/langdef.md with cel-go's
string and list functions. The library's messages about failed evaluations are never passed on,
since they quote values.
"""

import difflib
import logging
import math
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from syncer.api import ConfigError, Problem
from syncer.translate.cel_cost import LIMIT, RANGE, CostBudget, Polynomial, Unknown, bound, price
from syncer.translate.pointers import Unfit

#: The variables of an expression.
VARIABLES = ("value", "self", "other", "context")
#: The fields of ``context``.
CONTEXT = ("cluster", "identity", "hostNamespace", "namespace", "name")

_TYPES = {"bool", "int", "uint", "double", "bytes", "string", "list", "map", "null_type", "type"}
_NATIVE = {"size", "contains", "startsWith", "endsWith", "matches"}
_NATIVE |= {"string", "int", "uint", "double", "bytes", "dyn", "type", "timestamp", "duration"}
_NATIVE |= {"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear"}
_NATIVE |= {"getMonth", "getHours", "getMinutes", "getSeconds", "getMilliseconds"}

_LITERAL = re.compile(r"""(?s)//[^\n]*|("{3}|'{3}|"|')(?:\\.|(?!\1).)*\1""")
_BOUND = re.compile(r"\b(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")
#: A message of the parser: line, column and text, without the list of expected tokens.
_PARSER_MESSAGE = re.compile(
    r"<input>:(?P<line>\d+):(?P<column>\d+): (?:Syntax error: )?"
    r"(?P<text>[^\n]*?)(?: expecting \{[^\n]*)?(?:\n|$)"
)
#: The library's message about an operator that the types of its operands lack.
_TYPES_MESSAGE = re.compile(r"Unsupported operation: (\w+ \S+ \w+)\.")
#: Larger integers become floating-point numbers on their way in.
_INEXACT = 2.0**63


class Expression:
    """A compiled expression.

    Raises:
        ConfigError: The expression is invalid, or CEL isn't installed.
    """

    def __init__(self, text: str) -> None:
        cel = _library()
        try:
            self._program = cel.compile(text)
        except ValueError as error:
            raise _wrong(_syntax_error(text, str(error))) from None
        code = _LITERAL.sub(_blank, text)
        self._text = text
        self._make_context = cel.Context

        variables = set(self._program.variables())
        self._used = {name: _chains(code, name) for name in VARIABLES if name in variables}
        self._functions = _functions(self._program.functions(), code)

        # The parser takes the namespace of a function, such as ``lists``, for a variable.
        namespaces = {name.partition(".")[0] for name in self._functions}
        _check_variables(variables - namespaces, code)
        self._cost = _bounded(text)

    @property
    def variables(self) -> Iterable[str]:
        """The variables that the expression uses; only these must be given."""
        return self._used.keys()

    def result(self, variables: Mapping[str, Any], budget: CostBudget | None = None) -> Any:
        """Evaluate the expression to plain JSON.

        Args:
            variables: The values of the variables.
            budget: The budget that the evaluation takes its cost from; None for a new one.

        Raises:
            Unfit: The evaluation fails, its result isn't JSON, or its cost is over the budget.
        """
        given = {name: _pruned(variables[name], chains) for name, chains in self._used.items()}
        if budget is None:
            budget = CostBudget()
        if not budget.spend(price(self._cost, given)):
            why = "evaluating it would take too long for values of this size"
            raise Unfit(f"{why}; let it read a smaller part")
        try:
            result = self._program.execute(self._make_context(given, self._functions))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic in the library is no Exception
            raise Unfit(self._reason(error)) from None
        _refuse_unless_json(result)
        return result

    def _reason(self, error: BaseException) -> str:
        """Return why an evaluation failed, without a value of an object."""
        match error:
            case KeyError():
                if error.args:
                    name = str(error.args[0])
                    # A name that isn't in the expression comes from a value.
                    if re.search(rf"\b{re.escape(name)}\b", self._text):
                        return f"there is no field {error.args[0]!r} where it is read"
                return "a field that it reads is not there"
            case IndexError():
                return "an item that it reads is not there"
            case TypeError():
                found = _TYPES_MESSAGE.match(str(error))
                if found:
                    return f"it has no such operation: {found[1]}"
                return "values are of types that do not fit"
            case ZeroDivisionError():
                return "it divides by zero"
            case OverflowError():
                return "a number becomes too large"
            case _:
                return "a function fails on its arguments"


@cache
def _library() -> Any:
    """Import the library, when the first expression is compiled.

    Raises:
        ConfigError: The library isn't installed.
    """
    # The package imports its command line, which would cost 30 MB for nothing.
    sys.modules.setdefault("cel.cli", types.ModuleType("cel.cli"))
    try:
        import cel
    except ImportError:
        raise _wrong("needs CEL, which is not installed. Run: pip install 'vsyncer[cel]'") from None
    logging.getLogger("cel").disabled = True  # it would log failing functions with their values
    return cel


def _wrong(message: str) -> ConfigError:
    return ConfigError(Problem(message))


def _blank(literal: re.Match[str]) -> str:
    """Return spaces for a literal or a comment, so that positions in the text stay."""
    return " " * len(literal[0])


# -- checks without an object ----------------------------------------------------------------------


def _bounded(text: str) -> Polynomial:
    """Return the bound of the expression's cost.

    Raises:
        ConfigError: There is none, or it is too high for any value.
    """
    python = _library().stdlib.STDLIB_FUNCTIONS.keys()
    try:
        found = bound(text, variables=VARIABLES, python=python)
    except Unknown as error:
        raise _wrong(f"has no known bound of its cost: {error}. Write it more simply.") from None
    if found.get((), 0) > LIMIT:
        raise _wrong("would take too long for any value. Write it more simply.")
    return found


def _syntax_error(text: str, message: str) -> str:
    """Return the parser's message in our words, with the position in the text.

    The first syntax error explains the others.
    """
    found = None
    for each in _PARSER_MESSAGE.finditer(message):
        if "Syntax error" in each[0]:
            found = each
            break
        if found is None:
            found = each
    if found is None:
        return "is not a CEL expression."

    problem = found["text"].replace("mismatched input '<EOF>'", "it ends too early")
    problem = problem.replace("'<EOF>'", "its end")
    position = _position(text, int(found["line"]), int(found["column"]))
    return f"is not a CEL expression: {position}: {problem}."


def _position(text: str, line: int, column: int) -> str:
    if "\n" in text.strip():
        return f"line {line}, column {column}"
    return f"column {column}"


def _check_variables(names: Iterable[str], code: str) -> None:
    bound = set(_BOUND.findall(code))
    for name in names:
        if name not in _TYPES and name not in VARIABLES and name not in bound:
            raise _wrong(_unknown("variable", name, code, VARIABLES))
    for chain in _chains(code, "context") or ():
        if chain[0] not in CONTEXT:
            raise _wrong(_unknown("field of context", chain[0], code, CONTEXT))


def _functions(names: Iterable[str], code: str) -> dict[str, Any]:
    """Return the library's extra functions that the expression calls."""
    extended: dict[str, Any] = _library().stdlib.STDLIB_FUNCTIONS | {"lists.range": _range}
    dotted: dict[str, Any] = {}
    known = set(_NATIVE)
    for name, function in extended.items():
        if "." in name and re.search(rf"(?<![\w.]){name}\s*\(", code):
            dotted[name] = function
            known.add(name.rpartition(".")[2])

    called: dict[str, Any] = {}
    for name in names:
        # The library names operators like functions: ``_+_``.
        if not name.isidentifier() or name.startswith("_") or name in known:
            continue
        if name not in extended:
            raise _wrong(_unknown("function", name, code, sorted(_NATIVE | extended.keys())))
        called[name] = extended[name]
    return called | dotted


def _range(length: int) -> list[int]:
    """Return the list ``[0, 1, …]`` of this length.

    Raises:
        ValueError: It is longer than the bound of the cost assumes.
    """
    if length > RANGE:
        raise ValueError(length)
    return list(range(length))


def _unknown(kind: str, name: str, code: str, known: Iterable[str]) -> str:
    """Return the message about an unknown name, with its first position."""
    start = 0
    found = re.search(rf"\b{re.escape(name)}\b", code)
    if found:
        start = found.start()
    before = code[:start]
    position = _position(code, before.count("\n") + 1, len(before) - before.rfind("\n"))
    message = f"is wrong at {position}: there is no {kind} {name!r}."

    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"{message} Did you mean {near[0]}?"
    if kind == "function":  # too many to list
        return message
    return f"{message} There are {', '.join(known)}."


# -- input and output ------------------------------------------------------------------------------


def _chains(code: str, name: str) -> tuple[tuple[str, ...], ...] | None:
    """Return the fields of a variable that the expression reads: ``self.spec.x`` gives (spec, x).

    None if the variable is used as a whole.
    """
    chains = []
    for found in re.finditer(rf"(?<![\w.]){name}\b((?:\s*\.\s*[A-Za-z_]\w*)*)(\s*\()?", code):
        steps = tuple(re.findall(r"\w+", found[1]))
        if found[2]:  # the last step is a function
            steps = steps[:-1]
        if not steps:
            return None
        chains.append(steps)
    return tuple(chains)


def _pruned(value: Any, chains: tuple[tuple[str, ...], ...] | None) -> Any:
    """Return the part of a value that the expression reads.

    Passing a whole Pod takes 350 µs, two fields 5 µs.
    """
    if chains is None or not isinstance(value, dict) or () in chains:
        return value
    kept = {}
    for step in {chain[0] for chain in chains}:
        if step in value:
            below = tuple(chain[1:] for chain in chains if chain[0] == step)
            kept[step] = _pruned(value[step], below)
    return kept


def _refuse_unless_json(result: Any) -> None:
    for value in _leaves(result):
        if isinstance(value, float) and not (math.isfinite(value) and abs(value) < _INEXACT):
            raise Unfit("the result has a number that JSON, or a 64-bit integer, can't hold")
        if value is not None and type(value) not in (str, bool, int, float):
            raise Unfit(f"the result has a {type(value).__name__} in it, which is not JSON")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise Unfit("the result has a mapping with keys that are not text")
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value
