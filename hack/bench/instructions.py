"""Count the processor instructions that the daemon executes for an object; a JSON line for each
phase.

The daemon runs under valgrind's callgrind between two real API servers. So the counts are those of
user space alone, caches and branches are simulated, and other processes don't change them: of two
runs they differ by some thousandths, as the daemon reads more or fewer events at a time. With
`--life` these are Pods, and the phases are their whole life: `create` until they are Ready, with
bind and statuses by a simulation of scheduler and kubelet, `update`, and `delete` until they have
gone. With `--against COMMIT`, or the path of a checkout, that is counted after this one, and the
last line has the ratios of this checkout's counts to the other's. With `--against floor` the other
one is the least that any syncer does (`hack/bench/floor`), which doesn't update Pods.
"""

import argparse
import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from hack.bench.daemon import FLOOR, FLOOR_COMMAND
from hack.bench.phases import RESOURCES, Arrival, Bench, Figures, Load, Write
from hack.bench.scene import Planes, fresh_planes, scene
from hack.checkout import THIS, Checkout, checkout_or_commit
from hack.commands import run
from hack.endings import interrupt_on_sigterm

#: Objects written and deleted before anything is counted.
WARM_UP = 50
#: The daemon is idle if it used less CPU than this in `STILL_SECONDS`: it is some 30 times slower
#: than by itself.
STILL_CPU_SECONDS = 0.25
#: Takes from the daemon the bounds in seconds that mean another thing under callgrind.
WITHOUT_BOUNDS = Path(__file__).with_name("without_bounds.py")
#: Names of the profiles that callgrind writes, in the daemon's folder; each has a number at its
#: end, from 1 on.
PROFILES = "counts"
#: The counts, and callgrind's names of the events that each adds up.
COUNTS = {
    "instructions": ("Ir",),
    "l1_misses": ("I1mr", "D1mr", "D1mw"),
    "mispredicted_branches": ("Bcm", "Bim"),
}


def counts(profile: str) -> dict[str, int]:
    """Return the counts of a profile that callgrind has written."""
    lines = dict(
        line.split(": ", 1)
        for line in profile.splitlines()
        if line.startswith(("events: ", "summary: "))
    )
    events = dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))
    return {name: sum(events[event] for event in added) for name, added in COUNTS.items()}


class Counting(Bench):
    """The phases of a run, whose figures are counts."""

    async def control(self, *arguments: str) -> None:
        """Tell callgrind something.

        Raises:
            CalledProcessError: It doesn't obey.
        """
        command = ["callgrind_control", *arguments, str(self.daemon.pid)]
        (await asyncio.to_thread(run, command)).check_returncode()

    async def _phase(
        self, phase: str, names: Sequence[str], write: Write, arrival: Arrival
    ) -> Figures:
        await self.control("--zero")
        await self._write(names, write, arrival)
        await asyncio.to_thread(self.daemon.wait_still, STILL_CPU_SECONDS)
        await self.control("--dump")
        newest = max(
            self.daemon.folder.glob(f"{PROFILES}.*"), key=lambda path: int(path.suffix[1:])
        )
        counted = counts(newest.read_text())
        per_object = {
            f"{name}_per_object": round(count / len(names)) for name, count in counted.items()
        }
        return {"phase": phase, "kind": self.load.kind, "n": len(names), **per_object}


def unbound(installed: Checkout) -> tuple[str, ...]:
    """Return the command of an installation's daemon, without some bounds in seconds."""
    return str(installed.python), "-I", str(WITHOUT_BOUNDS), str(installed.syncer)


def counted(program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a command that runs a program under callgrind, which counts nothing at first."""
    simulated = ("--cache-sim=yes", "--branch-sim=yes", "--instr-atstart=no")
    valgrind = (
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        *simulated,
        f"--callgrind-out-file={folder / PROFILES}",
    )
    return *valgrind, *program


async def measure(
    program: Sequence[str], load: Load, planes: Planes, *, updates: bool
) -> list[Figures]:
    """Return the figures of a program, by phase."""
    async with scene(planes, counted(program, planes.folder)) as made:
        found: list[Figures] = []
        for each in (replace(load, n=WARM_UP, prefix="warm-up"), load):
            bench = Counting(each, made.virtual, made.host, made.daemon)
            async with bench.watching():
                await bench.control("--instr=on")
                found = [await bench.create(bench.names)]
                if updates:
                    found.append(await bench.update(bench.names))
                found.append(await bench.delete(bench.names))
        return found


def ratios(this: Sequence[Figures], other: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Return the ratios of two installations' figures by phase, and of their sums."""

    def ratio(one: Mapping[str, Any], another: Mapping[str, Any]) -> dict[str, float]:
        return {
            name: round(one[f"{name}_per_object"] / another[f"{name}_per_object"], 3)
            for name in COUNTS
        }

    def whole(phases: Sequence[Figures]) -> Figures:
        return {
            f"{name}_per_object": sum(each[f"{name}_per_object"] for each in phases)
            for name in COUNTS
        }

    by_phase = {one["phase"]: ratio(one, another) for one, another in zip(this, other, strict=True)}
    return {**by_phase, "all": ratio(whole(this), whole(other))}


def contender(given: str) -> Checkout | str:
    """Return `floor` as it is, and else the checkout of a commit or at a path.

    Raises:
        argparse.ArgumentTypeError: As for `checkout_or_commit`.
    """
    return given if given == FLOOR else checkout_or_commit(given)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or these arguments."""
    parser = argparse.ArgumentParser(prog="hack/bench/instructions", description=__doc__)
    add = parser.add_argument
    add("--kind", choices=sorted(RESOURCES), help="what is written (configmaps, with --life pods)")
    add(
        "--life", action="store_true", help="the whole life of pods: simulate scheduler and kubelet"
    )
    add("-n", type=int, default=300, help="objects (300)")
    add("--size", type=int, default=1000, help="bytes of content an object (1000)")
    add(
        "--against",
        type=contender,
        metavar="COMMIT",
        help=f"a commit, the path of another checkout, or {FLOOR} for the least of any syncer",
    )
    options = parser.parse_args(arguments)
    if options.life and options.kind not in (None, "pods"):
        parser.error(f"--life is of pods, not of {options.kind}")
    if options.kind is None:
        options.kind = "pods" if options.life else "configmaps"
    if options.against == FLOOR and options.kind not in ("configmaps", "pods"):
        parser.error(f"--against {FLOOR}: it copies configmaps and pods, not {options.kind}")
    if options.n < 1:
        parser.error(f"-n {options.n}: at least 1")
    if not shutil.which("valgrind"):
        parser.error("valgrind isn't installed: apt-get install valgrind")
    return options


def main() -> None:
    """Count this checkout, and another one if configured."""
    options = parse()
    is_floor = options.against == FLOOR
    found: list[list[Figures]] = []
    for name, installed in {"this": THIS, "other": options.against}.items():
        if installed is None:
            continue
        program = FLOOR_COMMAND
        commit = THIS.commit
        if installed != FLOOR:
            program = unbound(installed)
            commit = installed.commit
        load = Load(kind=options.kind, n=options.n, size=options.size, life=options.life)
        updates = not (is_floor and options.kind == "pods")
        with fresh_planes() as planes:
            found.append(uvloop.run(measure(program, load, planes, updates=updates)))
        for figures in found[-1]:
            print(json.dumps({"installation": name, "commit": commit, **figures}), flush=True)
    if options.against:
        print(json.dumps({"phase": "ratios", "ratios": ratios(*found)}))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
