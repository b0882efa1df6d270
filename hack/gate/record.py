"""How the tests of a stage ended, read from the files of the recorder."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Later ones win: a test that passes and then fails at its end has failed.
_ORDER = ("passed", "skipped", "xpassed", "xfailed", "failed")


@dataclass(slots=True)
class Result:
    """A test's end: one of ``passed skipped xpassed xfailed failed``, and why."""

    test: str
    outcome: str
    reason: str = ""
    text: str = ""


@dataclass(slots=True)
class Cost:
    """What the tests of a file took."""

    #: Seconds of their setups, calls and teardowns.
    seconds: float = 0.0
    #: CPU seconds meanwhile, of the process that ran them and of programs that have ended.
    cpu: float = 0.0


@dataclass(slots=True)
class Record:
    """The results of a stage, and what ended otherwise than by a test."""

    results: dict[str, Result] = field(default_factory=dict)
    #: By file.
    costs: dict[str, Cost] = field(default_factory=dict)
    #: The exit statuses of pytest; None for a process that came to no end.
    exits: list[int | None] = field(default_factory=list)

    def of(self, outcome: str) -> list[Result]:
        """Return the tests that ended so."""
        return [each for each in self.results.values() if each.outcome == outcome]

    @property
    def is_whole(self) -> bool:
        """True if pytest ran to its end, and its exit status agrees with the results
        of the tests.
        """
        expected = 1 if self.of("failed") else 0
        return bool(self.exits) and all(code in (0, expected) for code in self.exits)


def read(folder: Path) -> Record:
    """Read the files that the recorders of a stage have written."""
    record = Record()
    for file in sorted(folder.glob("*.jsonl")):
        code: int | None = None
        for line in file.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            if "exit" in found:
                code = found["exit"]
            else:
                _note(record, found)
        record.exits.append(code)
    return record


def _note(record: Record, found: dict[str, Any]) -> None:
    test = found["test"]
    outcome = found["outcome"]
    cost = record.costs.setdefault(test.partition("::")[0], Cost())
    cost.seconds += found["seconds"]
    cost.cpu += found["cpu"]
    if outcome == "passed" and found["when"] != "call":
        return
    known = record.results.get(test)
    if known is None or _ORDER.index(outcome) > _ORDER.index(known.outcome):
        record.results[test] = Result(test, outcome, found["reason"], found["text"])


def counts(results: Iterable[Result]) -> str:
    """Say how many ended how: ``12 passed, 1 failed``."""
    numbers = dict.fromkeys(("passed", "failed", "skipped", "xfailed", "xpassed"), 0)
    for each in results:
        numbers[each.outcome] += 1
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "no tests"
