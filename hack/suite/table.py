"""The table of outcomes, and why tests failed, in Markdown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.suite.cases import Case
from hack.suite.results import Outcome, Results, State

_REASONS = Path(__file__).with_name("reasons.yaml")


@dataclass(frozen=True)
class Reason:
    """A reason for which tests can't pass."""

    #: Searched in a test's name.
    pattern: re.Pattern[str]
    #: The side that it holds for, `host` or `virtual`; what holds for the host holds for both.
    side: str
    text: str

    def explains(self, case: Case, side: str) -> bool:
        """Return True if it is why the test fails on the side."""
        return self.side in (side, "host") and self.pattern.search(case.name) is not None


def known_reasons(path: Path = _REASONS) -> list[Reason]:
    """Return the reasons in a file."""
    entries = yaml.safe_load(path.read_text())
    return [
        Reason(re.compile(re.escape(one["test"])), one["side"], one["reason"]) for one in entries
    ]


def report(cases: Sequence[Case], sides: Sequence[Results], reasons: Sequence[Reason]) -> str:
    """Return the table of tests by sig, then those that failed on each side."""
    parts = [_table(cases, sides)]
    for side in sides:
        on_host = None
        if side.side != "host":
            on_host = next((one for one in sides if one.side == "host"), None)
        if failed := _failed(cases, side, on_host, reasons):
            beside = " that passed on the host" if on_host else ""
            parts.append(f"## Failed on the {side.side} side{beside}\n\n{failed}")
    return "\n".join(parts)


def _table(cases: Sequence[Case], sides: Sequence[Results]) -> str:
    heads = ["sig", "tests", *(f"{side.side} {state}" for side in sides for state in State)]
    compared = {side.side: side for side in sides}.keys() >= {"host", "virtual"}
    if compared:
        heads.append("virtual of those passed on the host")
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for sig in [*sorted({case.sig for case in cases}), "all"]:
        same = [case for case in cases if sig in (case.sig, "all")]
        counts = [_count(same, side, state) for side in sides for state in State]
        row = [sig, str(len(same)), *(str(count) for count in counts)]
        rows.append([*row, _share(same, sides)] if compared else row)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _count(cases: Sequence[Case], side: Results, state: State) -> int:
    return sum(_state(side.get(case)) is state for case in cases)


def _state(outcome: Outcome | None) -> State | None:
    return outcome.state if outcome else None


def _share(cases: Sequence[Case], sides: Sequence[Results]) -> str:
    """Return how many tests passed on both sides,
    of those that passed on the host and ran on both.
    """
    by_side: Mapping[str, Results] = {side.side: side for side in sides}
    host = by_side["host"]
    virtual = by_side["virtual"]
    asked = [case for case in cases if _state(host.get(case)) is State.PASSED and case in virtual]
    if not asked:
        return ""
    passed = _count(asked, virtual, State.PASSED)
    return f"{passed} of {len(asked)}, {100 * passed // len(asked)} %"


def _failed(
    cases: Sequence[Case], side: Results, host: Results | None, reasons: Sequence[Reason]
) -> str:
    lines = []
    for case in cases:
        outcome = side.get(case)
        if outcome is None or outcome.state is not State.FAILED:
            continue
        if host is not None and _state(host.get(case)) is not State.PASSED:
            continue  # its reason stands with the host
        why = next((reason.text for reason in reasons if reason.explains(case, side.side)), "")
        lines.append(
            f"- {case.name}: {why or f'**not explained**: `{_first_line(outcome.message)}`'}\n"
        )
    return "".join(lines)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "")[:200].replace(
        "`", "'"
    )
