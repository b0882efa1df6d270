"""`hack/chaos --hostile`: a tenant with all rights in their virtual cluster against the daemon's
own process, with each name translator by turns.

A line of JSON for each turn on standard error, with its violations. The last line of standard
output has the mix of attacks, and the violations with the first step of each; exit status 1 if
there are any. `--only variables templates` makes these attacks alone, which
tests/hostile/hostile_chaos/attacks.py lists; `HOSTILE_SYNCER=PATH/bin/syncer hack/chaos --hostile`
attacks another installation.
"""

import argparse
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile_chaos.attacks import ATTACKS
from hostile_chaos.run import Plan, Turn, play
from hostile_scene import TRANSLATORS

from hack.endings import logs

#: The longest turn, in seconds; each translator has one at least.
LONGEST = 90.0
#: The file that sets the priority of the session.
AUTOGROUP = Path("/proc/self/autogroup")
#: The priority of the session, as that of a process.
PREFERENCE = "-8"
#: Runs from this many minutes on must try each attack often enough.
MINUTES = 10.0
#: How often each attack must be tried in an hour.
AN_HOUR = 1000


def turns(options: argparse.Namespace, folder: Path) -> Iterator[Turn]:
    """Play a turn with each translator, and others until the time is over."""
    seconds = min(LONGEST, options.minutes * 60 / len(TRANSLATORS))
    end = time.monotonic() + options.minutes * 60
    step = 0
    for number, translator in enumerate(itertools.cycle(TRANSLATORS)):
        if number >= len(TRANSLATORS) and time.monotonic() + seconds / 2 > end:
            return
        run_folder = folder / str(number)
        run_folder.mkdir()
        say = print if options.show else str
        attacks = options.only or sorted(ATTACKS)
        turn = play(
            Plan(translator, f"{options.seed}-{number}", seconds, attacks, step),
            run_folder,
            say=say,
        )
        step = turn.step
        yield turn


def summed(found: list[Turn], options: argparse.Namespace) -> dict[str, Any]:
    """Return the summary of all turns."""
    executed: Counter[str] = sum((turn.executed for turn in found), Counter())
    seconds = sum(turn.seconds for turn in found)
    violations: list[dict[str, Any]] = []
    for turn in found:
        where = {"translator": turn.plan.translator, "seed": turn.plan.seed}
        violations.extend({**where, **each} for each in turn.as_json()["violations"])
    hourly = {name: round(number * 3600 / seconds) for name, number in sorted(executed.items())}
    if options.minutes >= MINUTES:
        violations += [
            {"kind": "rate", "what": f"{name} was tried {number} times an hour, not {AN_HOUR}"}
            for name, number in hourly.items()
            if number < AN_HOUR
        ]
    return {
        "seed": options.seed,
        "seconds": round(seconds),
        "steps": executed.total(),
        "mix": dict(sorted(executed.items())),
        "an_hour": hourly,
        "longest_step_ms": max(round(turn.longest_step * 1e3) for turn in found),
        "violations": violations,
    }


def prefer() -> None:
    """Give the processes of this session a larger part of a busy machine, where that is allowed.

    With autogroups each session has the same part (sched(7)), whatever the priority of its
    processes: daemons that get too little of it are late, and the attacked one more than the one
    beside.
    """
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(PREFERENCE)


def main(options: argparse.Namespace) -> int:
    """Attack, report, and return the exit status; the logs are kept if anything was violated."""
    prefer()
    found = []
    with logs("syncer-hostile-") as kept:
        for turn in turns(options, kept.folder):
            print(json.dumps(turn.as_json()), file=sys.stderr, flush=True)
            found.append(turn)
        result = summed(found, options)
        for violation in result["violations"]:
            print(json.dumps(violation), file=sys.stderr)
        if result["violations"]:
            kept.kept = True
            result["logs"] = str(kept.folder)
    print(json.dumps(result))
    return 1 if result["violations"] else 0
