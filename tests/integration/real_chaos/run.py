"""A run from its seed to its report."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api import nothing_left
from scene import Scene

from real_chaos import checks
from real_chaos.audit import writes
from real_chaos.faults import inflicted
from real_chaos.script import Step, script
from real_chaos.stage import PATIENCE, Planes, Stage
from syncer.api import Side


@dataclass
class Report:
    """The report of a run."""

    seed: int
    steps: int
    pair: bool
    seconds: float = 0.0
    edits: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    #: What was done up to a violation.
    script: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """For people and machines; the script only where something was violated."""
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "script"}
        return {**shown, "seconds": round(self.seconds, 1), **({"script": self.script} if self.violations else {})}


@dataclass(frozen=True, slots=True)
class Play:
    """The plan of a run: the steps of a script, with one daemon or a pair of which one leads."""

    seed: int
    steps: int
    pair: bool
    #: Steps at the beginning of the script that are left out.
    skip: int = 0
    #: Seconds that a fault lasts at most.
    longest: float = 20.0

    def script(self) -> list[Step]:
        """The steps."""
        return script(self.seed, self.skip + self.steps, longest=self.longest)[self.skip :]


def run(planes: Planes, folder: Path, play: Play, *, say: Callable[[str], object] = str) -> Report:
    """Play; each step is printed before it is taken."""
    report, begun = Report(play.seed, play.steps, play.pair), time.monotonic()
    writes(planes.audits)  # those of earlier runs
    scene = Scene(planes.apis[Side.VIRTUAL], planes.apis[Side.HOST], folder)
    stage = Stage(planes, scene, play.pair)
    is_clean = False
    try:
        _play(stage, play.script(), report, say)
        is_clean = not report.violations
    finally:
        stage.close(show=not is_clean)
    report.seconds = time.monotonic() - begun
    report.edits = stage.tenant.done + stage.stranger.done
    return report


def _play(stage: Stage, steps: list[Step], report: Report, say: Callable[[str], object]) -> None:
    try:
        for daemon in stage.daemons:
            daemon.start()
        for step in steps:
            report.script.append(str(step))
            say(str(step))
            _take(stage, step)
            report.faults[f"{step.fault}{f' on the {step.side} side' if step.side else ''}"] += 1
        _finish(stage)
    except (AssertionError, SystemExit) as error:
        stage.violations.append(str(error))
    found = [*stage.violations, *checks.broken(stage), *checks.audited(stage)]
    report.violations = list(dict.fromkeys(found))


def _take(stage: Stage, step: Step) -> None:
    stage.edit(step.before)
    with inflicted(stage, step) as away:
        stage.edit(step.during, away=away)
    stage.ready()
    stage.check_alive()
    if step.settle:
        checks.agree(stage)


def _finish(stage: Stage) -> None:
    """In the end both sides are in step, and when the tenant leaves, nothing stays."""
    checks.agree(stage)
    stage.violations += checks.broken(stage)
    stage.violations += stage.tenant.missed()
    stage.tenant.leave()
    nothing_left(lambda: checks.leftovers(stage), "nothing is left of what the tenant had", seconds=PATIENCE)
