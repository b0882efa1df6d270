"""Chaos between in-process API servers, with random seeds until the time is over: what was tried,
and what broke.

A line of JSON for each seed on standard error, and a summary on standard output at the end. Exit
status 1 if anything went wrong; the script in the output repeats it, and belongs into
tests/flow/test_chaos_found.py. `--real` and `--hostile` are about the daemon's own process: see
chaos_real.py and chaos_hostile.py.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from chaos.daemons import DAEMONS, TENANTS, Cast
from chaos.machine import Report, explore
from chaos.steps import written

from hack.endings import interrupt_on_sigterm
from syncer.observe.logs import configure

#: Runs of a seed; few, so that many seeds are tried.
PLAYS = 10


def attempt(seed: int, plays: int, length: int, cast: Cast) -> Report:
    """Try a seed, in a process of its own."""
    configure("error", "console")
    with contextlib.redirect_stdout(
        sys.stderr
    ):  # hypothesis reports that shortening a script takes long
        return explore(seed, plays=plays, length=length, cast=cast)


def reports(options: argparse.Namespace) -> Iterator[Report]:
    """Yield the reports of seeds until the time is over."""
    seeds = iter(range(options.seed, sys.maxsize))
    end = time.monotonic() + options.minutes * 60
    context = get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context, max_tasks_per_child=20) as pool:

        def more() -> Future[Report]:
            return pool.submit(
                attempt, next(seeds), options.plays, options.length, cast_of(options)
            )

        running = {more() for _ in range(options.workers)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                yield each.result()
                if time.monotonic() < end:
                    running.add(more())


def cast_of(options: argparse.Namespace) -> Cast:
    """Return who is in the plays."""
    return Cast.of(options.clusters, options.replicas)


def summary_of(report: Report, cast: Cast) -> dict[str, Any]:
    """Return the summary of a report."""
    tried = {
        "seed": report.seed,
        "plays": report.plays,
        "steps": report.steps,
        "restarts": report.restarts,
    }
    return tried | (
        {"wrong": report.wrong, "script": written(report.script, cast)} if report.wrong else {}
    )


def summed(found: list[Report], cast: Cast) -> dict[str, Any]:
    """Return the summary of all reports."""
    faults: Counter[str] = Counter()
    for report in found:
        faults += report.faults
    return {
        "seeds": [report.seed for report in found],
        "plays": sum(report.plays for report in found),
        "steps": sum(report.steps for report in found),
        "faults": {"all": faults.total(), **dict(faults.most_common())},
        "restarts": sum(report.restarts for report in found),
        "violations": [summary_of(report, cast) for report in found if report.wrong],
    }


def show(options: argparse.Namespace) -> list[Report]:
    """Try a seed in this process, and print each step before it is taken."""
    configure("error", "console")
    return [
        explore(
            options.seed,
            plays=options.plays,
            length=options.length,
            cast=cast_of(options),
            say=print,
        )
    ]


def in_process(options: argparse.Namespace) -> list[Report]:
    """Try seeds until the time is over, and report each."""
    found = []
    for report in reports(options):
        print(json.dumps(summary_of(report, cast_of(options))), file=sys.stderr, flush=True)
        found.append(report)
    return found


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="hack/chaos", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=1.0, help="how long to begin with new seeds (default: 1)"
    )
    parser.add_argument(
        "--seed", type=int, help="the first seed; the others count up from it (default: random)"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    parser.add_argument("--plays", type=int, default=PLAYS, help=f"plays a seed (default: {PLAYS})")
    parser.add_argument("--length", type=int, default=60, help="rules a play at most (default: 60)")
    most = len(TENANTS)
    parser.add_argument(
        "--clusters", type=int, default=3, choices=range(1, most + 1), help="virtual clusters"
    )
    replicas = (
        "so many replicas share the clusters by shards (default: two candidates for one Lease)"
    )
    parser.add_argument(
        "--replicas", type=int, default=0, choices=range(1, len(DAEMONS) + 1), help=replicas
    )
    parser.add_argument(
        "--real", action="store_true", help="on real API servers, see hack/chaos_real.py"
    )
    parser.add_argument(
        "--hostile", action="store_true", help="a hostile tenant, see hack/chaos_hostile.py"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ATTACK", help="with --hostile: make these attacks only"
    )
    parser.add_argument(
        "--print", action="store_true", dest="show", help="try one seed only, and print its steps"
    )
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6) * 1000
    return options


def main() -> None:
    """Try, report, and exit with 1 if anything went wrong."""
    interrupt_on_sigterm()
    options = parse()
    if options.real:
        from hack import chaos_real

        sys.exit(chaos_real.main(options))
    if options.hostile:
        from hack import chaos_hostile

        sys.exit(chaos_hostile.main(options))
    found = show(options) if options.show else in_process(options)
    result = summed(found, cast_of(options))
    print(json.dumps(result, indent=2))
    for violation in result["violations"]:
        print("\n".join([*violation["wrong"], violation["script"]]), file=sys.stderr)
    if result["violations"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
