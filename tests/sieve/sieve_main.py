"""Disturbs every workload at every point, once a run, in several processes: hack/sieve prints what came of it."""

import argparse
import gc
import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import sieve_custom
import sieve_fleet
import sieve_kinds
import sieve_pods
from chaos.daemons import DAEMONS, Cast
from sampled import MADE
from sieve_points import PERTURBATIONS, RECENT, described, points
from sieve_run import Lost, Point, Ran, Stuck, run
from sieve_workload import Workload

from syncer.observe.logs import configure

#: Points that a process takes at a time.
CHUNK = 40
#: The names of what is done to a run.
NAMES: Mapping[type[Point], str] = {**PERTURBATIONS, Lost: "replica lost"}

Chosen = tuple[str, int, Point]


@cache
def workloads() -> Mapping[str, Workload]:
    """All workloads by name."""
    makers = (
        sieve_kinds.configmaps,
        sieve_kinds.all_configmaps,
        sieve_kinds.secrets,
        sieve_kinds.all_secrets,
        sieve_kinds.services,
        sieve_kinds.addresses,
        sieve_kinds.classes,
        sieve_kinds.csi,
        sieve_kinds.volumes,
        sieve_kinds.restored,
        sieve_kinds.listed,
        sieve_kinds.listed_services,
        sieve_kinds.published_services,
        sieve_kinds.priorities,
        sieve_kinds.ingresses,
        sieve_kinds.serviceaccounts,
        sieve_pods.events,
        sieve_pods.pods,
        sieve_pods.changes,
        sieve_pods.tokens,
        sieve_pods.stand_ins,
        sieve_pods.nodes_of_host,
        sieve_kinds.namespaces,
        sieve_custom.public_crds,
        sieve_custom.tenant_crds,
        sieve_custom.certificates,
        sieve_custom.issuers_from_host,
        sieve_custom.retained,
        sieve_custom.monitors,
    )
    found = [make() for make in makers]
    # A workload bears the name of the syncer that it is about, if it is about one.
    known = {workload.name for workload in found}
    found += [sieve_kinds.sampled(sample) for name, sample in MADE.items() if name not in known]
    return {workload.name: workload for workload in found}


@cache
def undisturbed(name: str, cast: Cast | None = None) -> Ran:
    """The run of a workload in which nothing goes wrong; ``cast``: by replicas, in several virtual clusters."""
    return sieve_fleet.run(workloads()[name], cast) if cast else run(workloads()[name])


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a disturbed run, which ``again`` repeats."""

    kind: str
    perturbation: str
    number: int
    point: str
    problems: list[str]
    again: str


def tried(name: str, number: int, point: Point, cast: Cast | None = None) -> Violation | None:
    """Disturb a workload at a point; gives what went wrong, if anything did."""
    normal, workload = undisturbed(name, cast), workloads()[name]
    again = f"hack/sieve --kinds {name} --point {number}"
    try:
        if isinstance(point, Lost):
            assert cast is not None
            again += f" --clusters {len(cast.tenants)} --replicas {len(cast.daemons)}"
            problems = sieve_fleet.run(workload, cast, point, normal.end).problems
        else:
            problems = run(workload, point, normal.end).problems
    except (Exception, Stuck):  # whatever a disturbed run raises is its result
        problems = [traceback.format_exc(limit=-4)]
    if not problems:
        return None
    return Violation(name, NAMES[type(point)], number, described(point, normal.trace), problems, again)


def tried_all(chunk: Sequence[Chosen], cast: Cast | None = None) -> list[Violation]:
    """Disturb at some points."""
    return [found for each in chunk if (found := tried(*each, cast))]


def numbered(kinds: Sequence[str], recent: int = RECENT, cast: Cast | None = None) -> Iterator[Chosen]:
    """The points of some workloads, each with its number there."""
    for name in kinds:
        if cast and name in sieve_fleet.CONTESTED:
            continue
        trace = undisturbed(name, cast).trace
        found: Iterator[Point] = sieve_fleet.points(trace) if cast else points(trace, recent)
        yield from ((name, number, point) for number, point in enumerate(found))


def sieve(chosen: Sequence[Chosen], workers: int, cast: Cast | None = None) -> list[Violation]:
    """Disturb at all of these points; the processes are forked, so that they know what was learnt here."""
    chunks = [chosen[start : start + CHUNK] for start in range(0, len(chosen), CHUNK)]
    if workers == 1:
        return [found for chunk in chunks for found in tried_all(chunk, cast)]
    gc.collect()
    gc.freeze()  # what is imported by now is looked through by no process again
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        return [found for part in pool.map(tried_all, chunks, repeat(cast)) for found in part]


def counted(chosen: Sequence[Chosen]) -> Mapping[str, Mapping[str, int]]:
    """Points by kind and perturbation."""
    counts: dict[str, Counter[str]] = {}
    for name, _, point in chosen:
        counts.setdefault(name, Counter())[NAMES[type(point)]] += 1
    return counts


def report(chosen: Sequence[Chosen], violations: Sequence[Violation], seconds: float) -> Any:
    """Return the report that is printed as JSON."""
    return {
        "points": len(chosen),
        "violations": len(violations),
        "seconds": round(seconds, 1),
        "by kind": counted(chosen),
        "found": [asdict(each) for each in violations],
    }


def table_of(result: Any) -> Iterator[str]:
    """The same for people."""
    columns = [each for each in NAMES.values() if any(each in counts for counts in result["by kind"].values())]
    yield "".join([f"{'':40}", *(f"{column:>21}" for column in columns)])
    for kind, counts in result["by kind"].items():
        yield "".join([f"{kind:40}", *(f"{counts.get(column, 0):21}" for column in columns)])
    yield f"{result['points']} points, {result['violations']} violations, {result['seconds']} s"
    for each in result["found"]:
        yield f"\n{each['kind']}: {each['point']} (again: {each['again']})"
        yield from (f"  {problem}" for problem in each["problems"])


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="hack/sieve", description=__doc__)
    parser.add_argument("--kinds", default=",".join(workloads()), help="workloads, separated by commas")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--recent", type=int, default=RECENT, help="how many steps an older state is old at most")
    parser.add_argument("--point", type=int, help="only the point of this number, of one kind, with the daemon's log")
    parser.add_argument("--every", type=int, default=1, help="only each n-th point")
    parser.add_argument("--first", type=int, default=0, help="with --every: how many points to leave out at first")
    fleet = "put so many virtual clusters through it at once (with --replicas; default: 3)"
    parser.add_argument("--clusters", type=int, default=3, choices=range(1, len(sieve_fleet.NAMES) + 1), help=fleet)
    replicas = "instead: so many replicas share the clusters by shards, and one is lost at each write"
    parser.add_argument("--replicas", type=int, default=0, choices=range(2, len(DAEMONS) + 1), help=replicas)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    given.kinds = given.kinds.split(",")
    if unknown := set(given.kinds) - workloads().keys():
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are: {', '.join(workloads())}")
    return given


def main() -> int:
    """Run from the command line; gives the exit status."""
    given, start = arguments(), time.monotonic()
    with Path(os.devnull).open("w") as nowhere:
        configure("error", stream=nowhere)
        cast = sieve_fleet.cast(given.clusters, given.replicas) if given.replicas else None
        chosen = list(numbered(given.kinds, given.recent, cast))[given.first :: given.every]
        if given.point is not None:
            configure("debug")
            chosen = [each for each in chosen if each[1] == given.point]
        result = report(chosen, sieve(chosen, given.workers, cast), time.monotonic() - start)
    print(json.dumps(result, indent=2) if given.json else "\n".join(table_of(result)))
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
