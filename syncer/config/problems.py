"""Turn pydantic's errors into problems: location, expected and found value, and a suggestion."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from syncer.api import Problem
from syncer.config.document import Steps
from syncer.config.types import option_names
from syncer.translate.messages import LONGEST_QUOTE

#: Makes a problem from steps, a message and a hint; adds the file and the line.
MakeProblem = Callable[[Steps, str, str], Problem]

_SECRET = re.compile(r"(password|passwd|token|secret|credentials?|privatekey|apikey|clientkey|keydata)$", re.IGNORECASE)

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "mapping_type": "a mapping",
}


def guess(word: str, known: Iterable[str]) -> str:
    """Return ``Did you mean …?``, or ``""`` if no known word is similar."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"Did you mean {by_lower[near[0]]}?" if near else ""


def found(value: Any, steps: Steps = ()) -> str:
    """Return a value for a message: short, on a single line, and never a secret."""
    if isinstance(value, SecretStr) or (steps and _SECRET.search(str(steps[-1]))):
        return "a value that is not shown"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_QUOTE and "\\n" not in text else f"a text of {len(str(value))} characters"


def explained(
    error: ValidationError, model: type[BaseModel], data: Mapping[str, Any], report: MakeProblem
) -> list[Problem]:
    """Return all problems that pydantic found in the data, in the order of the model."""
    return [_problem(details, model, data, report) for details in error.errors(include_url=False)]


def _problem(details: ErrorDetails, model: type[BaseModel], data: Mapping[str, Any], report: MakeProblem) -> Problem:
    steps = _place(details["loc"], data)
    message, hint = _said(details, model, steps)
    return report(steps, message, hint)


def _said(details: ErrorDetails, model: type[BaseModel], steps: Steps) -> tuple[str, str]:
    kind, value = details["type"], details.get("input")
    context = details.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return "no such option.", guess(str(steps[-1]), option_names(model, steps[:-1]))
        case "missing":
            return "is required and not given.", ""
        case "literal_error" | "enum":
            choices = re.findall(r"'([^']*)'", str(context.get("expected", "")))
            if len(choices) == 1:
                return f"expected {choices[0]}, found {found(value, steps)}.", ""
            said = ", ".join(choice or '""' for choice in choices)
            return f"{found(value, steps)} is not one of {said}.", guess(str(value), choices)
        case "value_error":
            return _sentence(str(context.get("error", details["msg"])), value, steps), ""
        case _ if kind in _EXPECTED:
            return f"expected {_EXPECTED[kind]}, found {found(value, steps)}.", _quote(kind, value)
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            return f"expected {_bound(kind, context)}, found {found(value, steps)}.", ""
        case "string_too_short":
            return "must not be empty.", ""
        case _:
            expected = details["msg"].removeprefix("Input should be ").removeprefix("Input should ")
            return f"expected {expected}, found {found(value, steps)}.", ""


def _sentence(message: str, value: Any, steps: Steps) -> str:
    """Return the message of one of our own checks, with the found value if it names only the
    expected form.
    """
    if message.startswith("expected ") and ", found " not in message:
        message = f"{message}, found {found(value, steps)}"
    return message if message.endswith((".", "?")) else f"{message}."


def _bound(kind: str, context: Mapping[str, Any]) -> str:
    words = {"greater_than_equal": "at least", "greater_than": "more than"}
    words |= {"less_than_equal": "at most", "less_than": "less than"}
    return f"{words[kind]} {next(iter(context.values())):g}"


def _quote(kind: str, value: Any) -> str:
    """Return the hint for a word that YAML reads as a number or a boolean."""
    return "Put it in quotes." if kind == "string_type" and isinstance(value, bool | int | float) else ""


def nearest(model: type[BaseModel], path: str) -> str:
    """Suggest an option for a dotted path that doesn't exist."""
    steps = tuple(path.split("."))
    for depth, step in enumerate(steps):
        known = option_names(model, steps[:depth])
        if step not in known:
            return guess(step, known) or (f"Known here: {', '.join(known)}." if known else "")
    return ""


def _place(loc: Sequence[str | int], data: Any) -> Steps:
    """Return the steps in the data.

    Pydantic adds names of its own between them (members of unions, ``[key]``).
    """
    steps: list[str | int] = []
    for number, step in enumerate(loc):
        inside = isinstance(data, Mapping) and step in data
        inside = inside or (isinstance(data, list) and isinstance(step, int) and step < len(data))
        if inside:
            data = data[step]
            steps.append(step)
        elif number == len(loc) - 1 and isinstance(data, Mapping) and step != "[key]":
            steps.append(step)
    return tuple(steps)
