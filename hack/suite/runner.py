"""Runs of the suite: Ginkgo with some processes, a batch of tests at a time."""

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hack.commands import SECONDS, run
from hack.suite import programs
from hack.suite.cases import Case, batches, listed
from hack.suite.results import Outcome, Results, State, reported

#: The tests of a batch. A run that is killed loses the batch that it was at.
BATCH = 24
#: The seconds that a batch may take beside those for each of its tests: a pod that doesn't become
#: ready holds up its test for 5 minutes, and some tests wait twice.
_SPARE_SECONDS = 720
#: The seconds of a process for a test, on average; most take 10 to 30.
_TEST_SECONDS = 60


@dataclass(frozen=True)
class Runner:
    """Runs tests against a cluster, and keeps their results."""

    kubeconfig: Path
    results: Results
    folder: Path
    processes: int
    say: Callable[[str], None]

    def run(self, cases: Sequence[Case]) -> None:
        """Run tests; those that must run alone come last."""
        parts = list(batches(cases, BATCH))
        for number, batch in enumerate(parts, 1):
            self.say(f"{self.results.side}: batch {number} of {len(parts)}, {len(batch)} tests …")
            outcomes, output = self._batch(batch)
            self.results.add(outcomes, output)
            counts = ", ".join(
                f"{sum(one.state is state for one in outcomes)} {state}" for state in State
            )
            self.say(f"{self.results.side}: batch {number} of {len(parts)}: {counts}")

    def _batch(self, batch: Sequence[Case]) -> tuple[list[Outcome], dict[str, str]]:
        report = self.folder / f"{self.results.side}.report.json"
        log = self.folder / f"{self.results.side}.log"
        report.unlink(missing_ok=True)
        processes = 1 if batch[0].is_serial else min(self.processes, len(batch))
        with (
            log.open("ab") as output,
            tempfile.TemporaryDirectory(
                prefix="vsyncer-suite-", ignore_cleanup_errors=True
            ) as temporary,
        ):
            _run(
                self._command(batch, processes, report),
                output,
                temporary,
                seconds(len(batch), processes) + SECONDS,
            )
        found = json.loads(report.read_text()) if report.exists() else []
        report.unlink(missing_ok=True)  # it lists all 7,000 tests of Kubernetes
        return reported(found, batch)

    def _command(self, batch: Sequence[Case], processes: int, report: Path) -> list[str]:
        names = "|".join(re.escape(case.name) for case in batch)
        return [
            str(programs.ginkgo()),
            f"--procs={processes}",
            f"--timeout={seconds(len(batch), processes)}s",
            f"--focus=({names})$",
            f"--output-dir={report.parent}",
            f"--json-report={report.name}",
            "--keep-going",
            "--no-color",
            "--silence-skips",
            "--poll-progress-after=0",
            str(programs.suite()),
            "--",
            f"--kubeconfig={self.kubeconfig}",
            f"--kubectl-path={programs.kubectl()}",
            "--provider=skeleton",
            "--num-nodes=1",
            "--allowed-not-ready-nodes=-1",
            "--minStartupPods=0",
            "--disable-log-dump=true",
        ]


def _run(command: Sequence[str], output: IO[bytes], temporary: str, seconds: float) -> None:
    """Run a command with this folder for its temporary files: the tests leave hundreds.

    If it takes longer, or this process is asked to end meanwhile, all that the command started
    ends.
    """
    environment = {**os.environ, "TMPDIR": temporary}
    with subprocess.Popen(
        command, stdout=output, stderr=output, env=environment, start_new_session=True
    ) as process:
        try:
            process.wait(seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def seconds(tests: int, processes: int) -> int:
    """Return the seconds that a batch may take."""
    return _SPARE_SECONDS + tests * _TEST_SECONDS // processes


def all_cases(wanted: str) -> list[Case]:
    """Return the tests with this in their name."""
    command = [str(programs.suite()), "--list-tests"]
    done = run(command)
    done.check_returncode()
    return listed(done.stdout, wanted)
