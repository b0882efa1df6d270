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

#: Names of options with values that are never shown.
_SECRET = re.compile(
    r"(password|passwd|token|secret|credentials?|privatekey|apikey|clientkey|keydata)$",
    re.IGNORECASE,
)

#: The expected form, by the type of pydantic's error.
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
#: The words before a bound, by the type of pydantic's error.
_BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than_equal": "at most",
    "less_than": "less than",
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
    if len(text) > LONGEST_QUOTE or "\\n" in text:
        return f"a text of {len(str(value))} characters"
    return text


def explained(
    error: ValidationError, model: type[BaseModel], data: Mapping[str, Any], report: MakeProblem
) -> list[Problem]:
    """Return all problems that pydantic found in the data, in the order of the model."""
    problems: list[Problem] = []
    for details in error.errors(include_url=False):
        steps = _steps_in(data, details["loc"])
        message, hint = _explanation(details, model, steps)
        problems.append(report(steps, message, hint))
    return problems


def _explanation(details: ErrorDetails, model: type[BaseModel], steps: Steps) -> tuple[str, str]:
    """Return the message and the hint for an error of pydantic; the hint may be ``""``."""
    kind = details["type"]
    value = details.get("input")
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
            listed = ", ".join(choice or '""' for choice in choices)
            return f"{found(value, steps)} is not one of {listed}.", guess(str(value), choices)
        case "value_error":
            return _sentence(str(context.get("error", details["msg"])), value, steps), ""
        case _ if kind in _EXPECTED:
            hint = ""
            if kind == "string_type" and isinstance(value, bool | int | float):
                hint = "Put it in quotes."  # YAML reads the word as a number or a boolean
            return f"expected {_EXPECTED[kind]}, found {found(value, steps)}.", hint
        case _ if kind in _BOUNDS:
            bound = next(iter(context.values()))
            return f"expected {_BOUNDS[kind]} {bound:g}, found {found(value, steps)}.", ""
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


def nearest(model: type[BaseModel], path: str) -> str:
    """Suggest an option for a dotted path that doesn't exist; ``""`` if there is no suggestion."""
    steps = tuple(path.split("."))
    for depth, step in enumerate(steps):
        known = option_names(model, steps[:depth])
        if step in known:
            continue
        hint = guess(step, known)
        if not hint and known:
            hint = f"Known here: {', '.join(known)}."
        return hint
    return ""


def _steps_in(data: Any, loc: Sequence[str | int]) -> Steps:
    """Return the steps in the data to an error of pydantic.

    Pydantic adds names of its own between them (members of unions, ``[key]``).
    """
    steps: list[str | int] = []
    for number, step in enumerate(loc):
        if isinstance(data, list):
            is_inside = isinstance(step, int) and step < len(data)
        else:
            is_inside = isinstance(data, Mapping) and step in data

        if is_inside:
            data = data[step]
            steps.append(step)
        elif number == len(loc) - 1 and isinstance(data, Mapping) and step != "[key]":
            steps.append(step)
    return tuple(steps)
