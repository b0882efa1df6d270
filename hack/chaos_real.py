"""`hack/chaos --real`: chaos between real API servers with the real daemon,
one seed after the other.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from real_chaos.run import Play, Report, run
from real_chaos.stage import Planes, planes

from hack.endings import logs

#: Steps of a seed.
STEPS = 12


def played(found: Planes, folder: Path, options: argparse.Namespace) -> Iterator[Report]:
    """Run the first seed, and others until the time is over; odd seeds with two daemons."""
    end = time.monotonic() + options.minutes * 60
    seed = options.seed
    say: Callable[[str], object] = str
    if options.show:
        say = print
    while True:
        run_folder = folder / str(seed)
        run_folder.mkdir()
        played_seed = Play(seed, STEPS, pair=bool(seed % 2))
        report = run(found, run_folder, played_seed, say=say)
        if not report.violations:
            shutil.rmtree(run_folder)
        yield report
        seed += 1
        if options.show or time.monotonic() > end:
            return


def summed(found: list[Report], folder: Path) -> dict[str, Any]:
    """Return the summary of all reports."""
    broken = [report for report in found if report.violations]
    return {
        "seeds": [report.seed for report in found],
        "steps": sum(report.faults.total() for report in found),
        "edits": dict(sum((report.edits for report in found), Counter[str]()).most_common()),
        "faults": dict(sum((report.faults for report in found), Counter[str]()).most_common()),
        "violations": [
            {**report.as_json(), "logs": str(folder / str(report.seed))} for report in broken
        ],
    }


def main(options: argparse.Namespace) -> int:
    """Run, report, and return the exit status.

    The daemons' logs are kept if an invariant was violated.
    """
    found = []
    with logs("syncer-chaos-") as kept, planes(kept.folder) as clusters:
        for report in played(clusters, kept.folder, options):
            print(json.dumps(report.as_json()), file=sys.stderr, flush=True)
            found.append(report)
        result = summed(found, kept.folder)
        kept.kept = bool(result["violations"])
    print(json.dumps(result, indent=2))
    return 1 if result["violations"] else 0
