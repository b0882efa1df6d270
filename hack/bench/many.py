"""One virtual cluster with few ConfigMaps, and one with many: CPU of an object when its copy is
made and at a start with all in place, CPU of a scan of the stores, and the longest step of the
event loop; JSON lines.

The API servers are in a separate process, so CPU and steps are the daemon's alone; the time of a
step is its CPU time. Ends with 1 if the many cost more an object than they may, a scan takes too
long, or a step does.
"""

import io
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import uvloop

from hack import loop_steps
from hack.bench.patrol import in_step, scanned, served
from hack.endings import interrupt_on_sigterm
from syncer.cli.run import spare_memory
from syncer.observe.logs import configure

#: The most that an object of many may cost, in units of one of few.
CPU = 1.1
#: The most CPU seconds that a scan of the stores may take.
SCAN = 1.0
#: The longest step of the event loop, in CPU seconds.
STEP = 0.05
#: Scans, of which the middle one counts.
SCANS = 5
#: ConfigMaps that are copied before anything is measured.
WARM_UP = 500

Figures = dict[str, float]


class Steps:
    """The steps of the event loop that take long."""

    def __init__(self) -> None:
        self._notes = io.StringIO()
        loop_steps.measure(uvloop.Loop, loop_steps.Recorder(self._notes))

    def longest(self) -> dict[str, Any]:
        """Return the longest step since the last call, in ms of CPU, and what it was."""
        steps = [json.loads(line) for line in self._notes.getvalue().splitlines()]
        self._notes.seek(0)
        self._notes.truncate()
        if not steps:
            return {"step_ms": 0.0, "step": ""}
        step = max(steps, key=lambda each: float(each["cpu"]))
        what = " < ".join(step["stack"]) or step["callback"]
        return {"step_ms": round(step["cpu"] * 1000, 1), "step": what}


async def copied(folder: Path, count: int, steps: Steps, what: str) -> Figures:
    """Run the daemon until all is in step, print what that cost, and return it."""
    steps.longest()
    begun = time.process_time()
    async with in_step(folder) as (process, pair):
        cpu = time.process_time() - begun
        figures = {"cpu_ms_an_object": round(cpu * 1000 / count, 4)}
        longest = steps.longest()
        show(what, count, **figures, **longest)
        figures["step_ms"] = longest["step_ms"]
        first, _ = await scanned(process, pair, fresh=False)
        scans = [(await scanned(process, pair, fresh=False))[0] for _ in range(SCANS)]
        longest = steps.longest()
        show("scan", count, first_cpu_s=round(first, 3), cpu_s=round(median(scans), 3), **longest)
        figures["scan_s"] = median(scans)
        figures["step_ms"] = max(figures["step_ms"], longest["step_ms"])
    return figures


def measure(count: int, steps: Steps) -> dict[str, Figures]:
    """Return the figures of a virtual cluster with so many ConfigMaps, by phase."""
    with served(count) as folder:
        return {
            what: uvloop.run(copied(folder, count, steps, what)) for what in ("create", "restart")
        }


def over(few: dict[str, Figures], many: dict[str, Figures]) -> list[str]:
    """Return which limits are exceeded."""
    found = []
    for phase in many:
        ratio = many[phase]["cpu_ms_an_object"] / few[phase]["cpu_ms_an_object"]
        show(f"{phase}: ratio of CPU an object", 0, ratio=round(ratio, 3))
        if ratio > CPU:
            found.append(f"{phase}: an object of many costs over {CPU} times one of few")
        if many[phase]["scan_s"] > SCAN:
            found.append(f"{phase}: a scan takes over {SCAN:g} s")
        if many[phase]["step_ms"] > STEP * 1000:
            found.append(f"{phase}: a step takes over {STEP * 1000:g} ms")
    return found


def show(what: str, count: int, **figures: Any) -> None:
    """Print a line."""
    print(json.dumps({"bench": "many", "what": what, "n": count, **figures}), flush=True)


@click.command(help=__doc__)
@click.option("--few", default=9_000, show_default=True, help="ConfigMaps of the one.")
@click.option("--many", default=100_000, show_default=True, help="ConfigMaps of the other.")
def main(few: int, many: int) -> None:
    """Measure both, few first."""
    configure("warning", "console")
    spare_memory()
    steps = Steps()
    measure(WARM_UP, steps)
    figures: Sequence[dict[str, Figures]] = [measure(count, steps) for count in (few, many)]
    exceeded = over(*figures)
    print(json.dumps({"over": exceeded}))
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
