"""The verdict about a run, and its last lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack.gate import quarantine, stages
from hack.gate.record import Result, counts, read
from hack.gate.recorder.gate_recorder import QUARANTINE
from hack.gate.run import Ran, execute

#: More failing tests on real servers than this are no bad luck, so none of them runs again.
SECOND_CHANCES = 3
#: How many of the files that took longest are shown.
SLOWEST = 12


@dataclass(slots=True)
class Verdict:
    """All that ran. ``is_all`` is True if no stage was left out."""

    ran: Sequence[Ran]
    is_all: bool
    #: Tests that failed, and passed when they ran again.
    flaky: list[Result] = field(default_factory=list)

    def _results(self, outcome: str) -> list[Result]:
        return [one for ran in self.ran for one in ran.record.of(outcome)]

    @property
    def failed(self) -> list[Result]:
        """The tests that failed, and failed again if they got a second chance."""
        passed = {one.test for one in self.flaky}
        return [one for one in self._results("failed") if one.test not in passed]

    def try_again(self, folder: Path) -> None:
        """Run what failed on real servers once more, each alone,
        in a new process with new servers.
        """
        real = [one for one in self._results("failed") if stages.is_real(one.test)]
        if len(real) > SECOND_CHANCES:
            return
        for number, one in enumerate(real):
            print(f"── once more, alone: {one.test}", flush=True)
            run_folder = folder / f"again-{number}"
            run_folder.mkdir()
            command, where = stages.again(one.test)
            code = execute(command, run_folder, where).code
            found = read(run_folder).results.get(one.test)
            if code == 0 and found and found.outcome == "passed":
                self.flaky.append(one)

    def faults(self) -> list[str]:
        """Return faults other than failing tests: those of stages and of the quarantine."""
        found = [f"{ran.stage.name} failed" for ran in self.ran if ran.unexplained]
        known = {test for ran in self.ran for test in ran.record.results} if self.is_all else None
        text = QUARANTINE.read_text() if QUARANTINE.exists() else "# at most 0"
        return found + [
            f"tests/quarantine.txt: {fault}" for fault in quarantine.faults(text, known)
        ]

    @property
    def is_green(self) -> bool:
        """True if nothing has failed."""
        return not self.failed and not self.faults()

    def text(self) -> str:
        """Return the last lines of a run."""
        lines = ["── stages"]
        for ran in self.ran:
            tally = f": {counts(ran.record.results.values())}" if ran.stage.tests else ""
            bad = " FAILED" if ran.unexplained or ran.record.of("failed") else ""
            lines.append(
                f"   {ran.seconds:.0f} s, CPU {ran.cpu:.0f} s  {ran.stage.name}{tally}{bad}"
            )
        lines += self._slowest()
        for ran in self.ran:
            if ran.unexplained:
                lines += [f"── the end of: {ran.stage.name} (exit status {ran.code})", *ran.tail]
        for one in self.flaky:
            lines += [
                f"── passed when it ran again; the first time {one.test} failed with",
                one.text,
            ]
        lines.append("── verdict")
        lines += [f"{name} {one.test} - {one.reason}" for name, one in self._shown()]
        lines += [f"FAILED: {fault}" for fault in self.faults()]
        every = [one for ran in self.ran for one in ran.record.results.values()]
        passed = sum(one.outcome == "passed" for one in every) + len(self.flaky)
        lines.append(f"{passed} passed, {len(self.failed)} failed")
        return "\n".join([*lines, f"VERDICT {'green' if self.is_green else 'red'}"])

    def _slowest(self) -> list[str]:
        """Return lines with the files whose tests took longest."""
        costs = {file: cost for ran in self.ran for file, cost in ran.record.costs.items()}
        slowest = sorted(costs, key=lambda file: costs[file].seconds, reverse=True)[:SLOWEST]
        lines = [
            f"   {costs[file].seconds:.0f} s, CPU {costs[file].cpu:.0f} s  {file}"
            for file in slowest
        ]
        return ["── files that took longest", *lines] if lines else []

    def _shown(self) -> list[tuple[str, Result]]:
        """Return the tests that are named, each with the word before it."""
        return [
            *(("XFAIL", one) for one in self._results("xfailed")),
            *(("XPASS", one) for one in self._results("xpassed")),
            *(("FLAKY", one) for one in self.flaky),
            *(("FAILED", one) for one in self.failed),
        ]
