"""Each reason has a case: one in YAML with its ``code``, or a test that is marked with it and gives it."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from sampled import CASES

from syncer.api import reasons
from syncer.api.reasons import CODES, ReasonCode
from syncer.cli.app import app

ROOT = Path(__file__).parents[2]
#: Where a syncer or the engine gives a reason as a text, as its own code has it.
_TEXTS = {"skip", "wait"}


@cache
def in_yaml() -> frozenset[str]:
    return frozenset(case.model.expect.code for case in CASES if case.model.expect.code)


@cache
def marked() -> frozenset[str]:
    """Return the codes that tests are marked with: ``@pytest.mark.reason("Paused")``."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"\.mark\.reason\(([^)]*)\)", path.read_text()):
            found |= set(re.findall(r'"(\w+)"', name))
    return frozenset(found)


@pytest.mark.parametrize("name", sorted(CODES))
def test_each_reason_has_a_case(name: str) -> None:
    why = f'give a case of tests/cases the code {name}, or mark a test with reason("{name}")'
    assert name in in_yaml() | marked(), why


def test_cases_name_reasons_that_exist() -> None:
    assert (in_yaml() | marked()) - CODES.keys() == set()


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in (ROOT / "syncer").rglob("*.py"):
        if "testing" in path.parts or path.name == "decision.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_no_decision_of_ours_has_a_text_instead_of_a_code() -> None:
    found = []
    for place, call in calls():
        is_decision = isinstance(call.func, ast.Name) and call.func.id in _TEXTS
        if is_decision and call.args and isinstance(call.args[0], ast.Constant | ast.JoinedStr):
            found.append(place)
    assert found == []


def test_refusals_of_ours_have_codes() -> None:
    unknown = []
    for place, call in calls():
        named = call.func.id if isinstance(call.func, ast.Name) else ""
        for keyword in call.keywords:
            if named not in ("Refused", "IdentityLost") or keyword.arg != "reason":
                continue
            if isinstance(keyword.value, ast.Constant) and keyword.value.value not in CODES:
                unknown.append(f"{place}: {keyword.value.value!r}")
    assert unknown == []


def test_reasons_are_given_as_many_arguments_as_they_have() -> None:
    names = {id(code): name for name, code in vars(reasons).items() if isinstance(code, ReasonCode)}
    numbers = {names[id(code)]: _number(code) for code in CODES.values()}
    wrong = []
    for place, call in calls():
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        has_all = not any(isinstance(each, ast.Starred) for each in call.args)
        if name in numbers and has_all and len(call.args) != numbers[name]:
            wrong.append(f"{place}: {name}")
    assert wrong == []


def _number(code: ReasonCode) -> int:
    """Return the number of the arguments of a code."""
    found = [int(each) for each in re.findall(r"\{(\d+)", code.sentence + code.way_out)]
    return max(found, default=-1) + 1


def commands_in(code: ReasonCode) -> list[str]:
    """Return the command of ours in a way out, with an argument for each place."""
    found = re.search(r"syncer [a-z].*", code.way_out)
    if found is None:
        return []
    filled = re.sub(r"\{\d\}", "shop/x", found[0])
    return shlex.split(filled.partition(";")[0])


@pytest.mark.parametrize("code", [code for code in CODES.values() if commands_in(code)], ids=lambda code: code.name)
def test_command_of_a_way_out_can_be_typed(code: ReasonCode) -> None:
    _, name, *words = commands_in(code)
    if name == "rbac":  # its name stands in a sentence
        words = []
    command = app.get_command(click.Context(app), name)
    assert command is not None
    command.make_context(name, words)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.name)
def test_sentence_begins_small_and_ends_without_a_stop(code: ReasonCode) -> None:
    for text in filter(None, (code.sentence, code.way_out)):
        assert not text.endswith(".")
        assert text[0].islower() or text[0] == "{"
    assert re.fullmatch(r"(?:[A-Z][a-z]*)+", code.name)


def test_argument_with_braces_stays_as_it_is() -> None:
    reason = reasons.NO_NAMESPACE("{0}{x}")
    assert reason == "the virtual cluster has no namespace {0}{x} yet"
    assert reason.way_out == "create the namespace {0}{x}"


def test_argument_of_a_command_is_one_word_of_the_shell() -> None:
    reason = reasons.NO_COPY_YET("Secret", "shop/a; reboot")
    assert reason.way_out == "see why that has none: syncer explain Secret 'shop/a; reboot'"
    assert reasons.NO_COPY_YET("Secret", "shop/a").way_out.endswith("syncer explain Secret shop/a")
