"""Outcomes of the tests, kept in a folder as JSON and JUnit."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hack.suite.cases import Case


class State(StrEnum):
    """The state in which a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a test."""

    name: str
    state: State
    seconds: float = 0.0
    #: Why it failed, or was skipped.
    message: str = ""


#: Ginkgo's states; all others, such as `timedout` and `panicked`, are failures.
_STATES = {"passed": State.PASSED, "skipped": State.SKIPPED}


def reported(
    report: Sequence[Mapping[str, Any]], cases: Iterable[Case]
) -> tuple[list[Outcome], dict[str, str]]:
    """Return the outcomes of tests in a JSON report of Ginkgo, and what those that failed wrote.

    A test that the report lacks, or that Ginkgo never began, has failed: the run was cut off.
    """
    specs = {_name(spec): spec for suite in report for spec in suite.get("SpecReports") or ()}
    outcomes = []
    output = {}
    for case in cases:
        spec = specs.get(case.name)
        if spec is None or (spec["State"] in ("skipped", "pending") and not spec.get("Failure")):
            outcomes.append(
                Outcome(case.name, State.FAILED, 0.0, "never began: the run was cut off")
            )
            continue
        state = _STATES.get(spec["State"], State.FAILED)
        message = (
            (spec.get("Failure") or {}).get("Message", "") if state is not State.PASSED else ""
        )
        if state is State.FAILED:
            message = message or str(spec["State"])
            output[case.name] = str(spec.get("CapturedGinkgoWriterOutput", ""))
        outcomes.append(Outcome(case.name, state, round(spec.get("RunTime", 0) / 1e9, 1), message))
    return outcomes, output


def _name(spec: Mapping[str, Any]) -> str:
    texts = [*(spec.get("ContainerHierarchyTexts") or ()), spec.get("LeafNodeText")]
    return " ".join(text for text in texts if text).strip()


class Results:
    """The outcomes on a side, in a folder. Those of other tests stay when some run again."""

    def __init__(self, folder: Path, side: str) -> None:
        self.side = side
        self._folder = folder
        self._file = folder / f"{side}.json"
        found = json.loads(self._file.read_text()) if self._file.exists() else []
        self._outcomes = {
            one["name"]: Outcome(**{**one, "state": State(one["state"])}) for one in found
        }

    def __contains__(self, case: Case) -> bool:
        return case.name in self._outcomes

    def get(self, case: Case) -> Outcome | None:
        """Return the outcome of a test; None before it ran."""
        return self._outcomes.get(case.name)

    def forget(self, cases: Iterable[Case]) -> None:
        """Remove the outcomes of tests that are to run again."""
        for case in cases:
            self._outcomes.pop(case.name, None)
            self._output(case.name).unlink(missing_ok=True)

    def add(self, outcomes: Iterable[Outcome], output: Mapping[str, str]) -> None:
        """Add outcomes, and write the files: `SIDE.json`, `SIDE.xml` (JUnit), and in `SIDE/` what
        tests that failed wrote.
        """
        self._outcomes.update({outcome.name: outcome for outcome in outcomes})
        ordered = sorted(self._outcomes.values(), key=lambda outcome: outcome.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, text in output.items():
            path = self._output(name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{name}\n\n{self._outcomes[name].message}\n\n{text}")
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps([asdict(outcome) for outcome in ordered], indent=1))
        written.replace(self._file)  # a run that is killed meanwhile loses nothing
        ElementTree.ElementTree(_junit(self.side, ordered)).write(
            self._folder / f"{self.side}.xml", encoding="utf-8", xml_declaration=True
        )

    def _output(self, name: str) -> Path:
        return (
            self._folder / self.side / f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')[:150]}.txt"
        )


def _junit(side: str, outcomes: Sequence[Outcome]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=side, tests=str(len(outcomes)))
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", name=outcome.name, time=str(outcome.seconds)
        )
        if outcome.state is not State.PASSED:
            kind = "failure" if outcome.state is State.FAILED else "skipped"
            ElementTree.SubElement(
                case, kind, message=re.sub(r"[^\x20-\x7e\n]", "?", outcome.message)
            )
    for state, attribute in ((State.FAILED, "failures"), (State.SKIPPED, "skipped")):
        suite.set(attribute, str(sum(outcome.state is state for outcome in outcomes)))
    return suite
