"""A turn of the hostile tenant with one name translator, from its start to its report."""

import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile_scene import NAMESPACE, PATIENCE, eventually

from hostile_chaos.attacks import ATTACKS
from hostile_chaos.audit import Audit
from hostile_chaos.pulse import Pulse
from hostile_chaos.servers import Drained, StagedServer
from hostile_chaos.stage import Stage
from syncer.testing.objects import configmap

#: Attacks a second, on average and at most.
RATE, FASTEST = 10.0, 25.0
#: Bounds: CPU seconds of a step, and memory in MB, of which seven virtual clusters take their part.
STEP, BASE_MB, KB_AN_OBJECT, STORED = 0.1, 110.0, 4.0, 3.0
#: The function of Python that loads a module.
_IMPORTING = "_find_and_load"
#: Seconds between two looks at requests and the process.
LOOK = 1.0


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that no tenant may be able to do."""

    translator: str
    kind: str
    fault: str


@dataclass
class Occurrences:
    """The first step with a violation, an example, and the number of times."""

    step: int
    example: str
    times: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a turn: its length, and its attacks."""

    translator: str
    seed: str
    seconds: float
    attacks: Sequence[str] = tuple(sorted(ATTACKS))
    #: The number of the first step.
    first: int = 0


@dataclass
class Turn:
    """The result of a turn."""

    plan: Plan
    executed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    violations: dict[Violation, Occurrences] = field(default_factory=dict)
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    rss: float = 0.0
    allowed: float = 0.0
    longest_step: float = 0.0
    loop_steps: int = 0

    @property
    def step(self) -> int:
        """The number of the current step, over all turns."""
        return self.plan.first + self.executed.total()

    def report(self, kind: str, fault: str, example: str = "") -> None:
        """Note a violation."""
        found = self.violations.setdefault(
            Violation(self.plan.translator, kind, fault), Occurrences(self.step, example)
        )
        found.times += 1

    def as_json(self) -> dict[str, Any]:
        """Return it for people and machines."""
        return {
            "translator": self.plan.translator,
            "seed": self.plan.seed,
            "steps": [self.plan.first, self.step],
            "latency_ms": self.latency,
            "rss_mb": round(self.rss),
            "rss_allowed_mb": round(self.allowed),
            "longest_step_ms": round(self.longest_step * 1e3),
            "loop_steps": self.loop_steps,
            "violations": [
                {
                    "kind": each.kind,
                    "fault": each.fault,
                    "step": first.step,
                    "times": first.times,
                    "example": first.example,
                }
                for each, first in self.violations.items()
            ],
        }


def play(plan: Plan, folder: Path, *, say: Callable[[str], object] = str) -> Turn:
    """Play a turn; each step is said before it is taken."""
    turn, seconds = Turn(plan), plan.seconds
    stage = Stage(plan.translator, folder, turn.report)
    audit = Audit(turn.report, stage.single, plan.translator == "per-namespace", ATTACKS)
    pulse = Pulse(stage.scene, stage.beside, stage.operator)
    begun = time.monotonic()
    try:
        stage.start()
        audit.squatted = stage.squatted
        stage.scene.quiet()
        end = max(begun + seconds, time.monotonic() + seconds / 2)
        _attack(stage, audit, pulse, turn, end, say)
        _end(stage, audit, pulse, turn)
    finally:
        pulse.stop()
        stage.close()
    turn.seconds = time.monotonic() - begun
    _steps(stage, turn)
    return turn


def _attack(stage: Stage, audit: Audit, pulse: Pulse, turn: Turn, end: float, say: Callable[[str], object]) -> None:
    """Attack until the end, each way as often as the others, and once at least; start the daemon again in
    the middle.
    """
    rng, deck = random.Random(turn.plan.seed), list[str]()
    due = looked = time.monotonic()
    middle = (due + end) / 2
    pulse.beats = True
    while (now := time.monotonic()) < end or turn.executed.keys() < set(turn.plan.attacks):
        if not deck:
            deck = list(turn.plan.attacks)
            rng.shuffle(deck)
        kind = deck.pop()
        name = f"{kind}-{turn.step}"
        say(f"{turn.step} {turn.plan.translator} {kind}")
        ATTACKS[kind](stage, rng, name)
        turn.executed[kind] += 1
        stage.tidy()
        if now - looked > LOOK:
            _look(stage, audit, turn)
            looked = now
        if middle and now > middle:
            middle = 0.0
            _restart(stage, audit, pulse, turn)
        due += 1 / RATE
        time.sleep(max(0.0, now + 1 / FASTEST - time.monotonic(), due - time.monotonic()))
    pulse.beats = False


def _restart(stage: Stage, audit: Audit, pulse: Pulse, turn: Turn) -> None:
    pulse.beats = False
    if stage.scene.lives:
        stage.wait_gone()
        _memory(turn, stage, _audit(stage, audit))
        if "\x1b" in stage.scene.output_of("parked"):
            turn.report("escapes", "syncer parked prints escape sequences of a tenant's")
        stage.scene.daemon.stop()
    _audit(stage, audit)
    audit.restarted()
    _start(stage, turn)
    pulse.beats = True


def _start(stage: Stage, turn: Turn) -> None:
    """Start the daemon again, if need be without what it doesn't start with."""
    stage.heal()
    try:
        stage.scene.daemon.start()
    except SystemExit as error:
        turn.report("process", "the daemon doesn't start", str(error).splitlines()[-1][:300])
        stage.be_honest()
        stage.scene.daemon.start()


def _look(stage: Stage, audit: Audit, turn: Turn) -> None:
    """Look at the process, its requests and its pages."""
    if not stage.scene.lives:
        last_line = [line for line in stage.scene.daemon.log_text().splitlines() if line][-1][:300]
        turn.report("process", "the daemon has ended", last_line)
        _start(stage, turn)
        return
    stage.read_page()
    _memory(turn, stage, _audit(stage, audit))


def _audit(stage: Stage, audit: Audit) -> Drained:
    """Look at what the daemon has done; return what the virtual cluster says of itself."""
    host, virtual = (server.call(StagedServer.drain) for server in (stage.operator, stage.tenant))
    for at, change in host.changes:
        audit.on_host(at, change)
    for _, change in virtual.changes:
        audit.on_virtual(change)
    for each in host.requests:
        audit.on_request(each)
    return virtual


def _memory(turn: Turn, stage: Stage, virtual: Drained) -> None:
    most = stage.scene.daemon.peak()
    allowed = BASE_MB + (STORED * virtual.most_stored + KB_AN_OBJECT * 1000 * virtual.most_objects) / 1e6
    if most - allowed > turn.rss - turn.allowed or not turn.allowed:
        turn.rss, turn.allowed = most, allowed
    if most > allowed:
        turn.report("memory", "more memory than what the tenant stores accounts for")


def _end(stage: Stage, audit: Audit, pulse: Pulse, turn: Turn) -> None:
    """Undo all, and look at what stays."""
    stage.tidy(everything=True)
    stage.be_honest()
    last = configmap("last", metadata={"annotations": {"vsyncer.dev/force-sync": "true"}})
    stage.tenant.put(last)
    try:
        stage.scene.copied(last)
    except AssertionError:
        turn.report("process", f"after the attacks, a ConfigMap of {NAMESPACE} isn't copied within {PATIENCE:g} s")
    stage.wait_gone()
    with contextlib.suppress(AssertionError):
        eventually(lambda: not stage.orphans(), "no copy is left of what is no longer there")
    for orphan in stage.orphans():
        turn.report("orphan", "a copy stays of what is no longer there", orphan)
    for key in stage.touched():
        turn.report("canary", "an object of the host's isn't as it was", key)
    _look(stage, audit, turn)
    turn.latency = pulse.figures()
    if pulse.missed:
        turn.report("latency", "ConfigMaps of another namespace aren't copied within 10 s", str(len(pulse.missed)))
    if slower := pulse.slower():
        turn.report("latency", "ConfigMaps of another namespace take longer than beside", slower)
    if stage.scene.lives:
        stage.scene.daemon.stop()


def _steps(stage: Stage, turn: Turn) -> None:
    for line in stage.records.read_text().splitlines():
        found = json.loads(line)
        turn.loop_steps += found.get("steps", 0)
        if any(_IMPORTING in each for each in found.get("stack", ())):
            continue  # the kubelet's server loads its libraries as it starts
        taken = found.get("cpu", 0.0)
        turn.longest_step = max(turn.longest_step, taken)
        if taken > STEP:
            fault = f"a step of over {STEP * 1e3:g} ms of CPU in {_location(found['stack'])}"
            turn.report("loop", fault, f"{taken * 1e3:.0f} ms in {found['callback']}")


def _location(stack: list[str]) -> str:
    """Return the functions of a stack without lines, so that the same ones count as one."""
    return " < ".join(each.split(" ")[0] for each in stack[:5]) or "(not looked at)"
