"""Measure the daemon between two real API servers; a JSON line for each phase.

Latency is from the response to the virtual write to the host's watch event (for pods with `--life`:
from the response to the creation to the virtual watch event that shows the pod Ready). CPU and
memory are the daemon's alone. With `--against PATH`, this checkout and the one at PATH are measured
in turns, with ConfigMaps, also at a steady rate, restarts, some rest, and the life of pods; the
last line has the ratios of this checkout's figures to the other's. With `--against floor` the other
one is the least that any syncer does (`hack/bench/floor`), without restarts and rest, which it
hasn't.
"""

import argparse
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import uvloop

from hack.bench import compare
from hack.bench.compare import Plan
from hack.bench.daemon import FLOOR, FLOOR_COMMAND, SYNCER
from hack.bench.phases import LATENCIES, RESOURCES, Bench, Figures, Load
from hack.bench.profile import Profile
from hack.bench.scene import Planes, fresh_planes, scene
from hack.checkout import THIS, Checkout, checkout
from hack.endings import interrupt_on_sigterm


def show(figures: Figures) -> None:
    """Print a line."""
    shown = {name: value for name, value in figures.items() if name != LATENCIES}
    print(json.dumps(shown), flush=True)


def steps(bench: Bench, options: argparse.Namespace) -> Iterator[Callable[[], Awaitable[Figures]]]:
    """Yield the chosen phases."""
    yield partial(bench.create, bench.names)
    if not options.life:
        yield partial(bench.update, bench.names)
    if options.restart:
        yield bench.restart
    if options.idle:
        yield partial(bench.idle, options.idle)
    yield partial(bench.delete, bench.names)


async def measure(options: argparse.Namespace, load: Load, planes: Planes) -> None:
    """Measure an installation, and print each phase."""
    profile = Profile(Path(options.profile)) if options.profile else None
    command = profile.command(options.syncer) if profile else (options.syncer,)
    async with scene(planes, command) as made:
        bench = made.bench(load)
        async with bench.watching():
            for step in steps(bench, options):
                begin = time.perf_counter()
                figures = await step()
                show(figures)
                if profile:
                    profile.phases.append((figures, begin, time.perf_counter()))
    if profile:
        profile.write()


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser for a number with a minimum."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is too few: at least {least}")
        return int(text)

    return number


def contender(given: str) -> Checkout | str:
    """Return `floor` as it is, and else the checkout at a path of the command line.

    Raises:
        argparse.ArgumentTypeError: As for `checkout`.
    """
    return given if given == FLOOR else checkout(given)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or these arguments."""
    parser = argparse.ArgumentParser(prog="hack/bench/sync", description=__doc__)
    add = parser.add_argument
    add("--kind", choices=sorted(RESOURCES), help="kind of the objects to write (configmaps)")
    add("-n", type=at_least(2), default=1000, help="objects (1000)")
    add("--size", type=int, default=1000, help="bytes of content an object (1000)")
    add("--rate", type=float, default=0, help="writes a second; 0: as fast as they go (0)")
    add("--concurrency", type=int, default=16, help="writers (16)")
    add("--restart", action="store_true", help="also restart the daemon with n objects present")
    add("--idle", type=float, help="also let nothing happen for so long (s; with --against: 20)")
    add("--life", action="store_true", help="pods: play scheduler and kubelet until they are Ready")
    add("--syncer", default=SYNCER, metavar="PATH", help="daemon to measure (this Python's)")
    add("--profile", metavar="FOLDER", help="also write CPU profiles by phase there")
    add(
        "--against",
        type=contender,
        metavar="PATH",
        help=f"measure this checkout too, or {FLOOR} for the least that any syncer does, by turns",
    )
    add("--rounds", type=at_least(1), help="with --against: turns of each (5)")
    add("--pods", type=at_least(2 * compare.PARTS), help="with --against: pods of a turn (300)")
    add(
        "--paced",
        type=at_least(2 * compare.PARTS),
        help=f"with --against: more objects of a turn, at {compare.PACE:g} writes a second (100)",
    )
    options = parser.parse_args(arguments)
    alone = {
        "--kind": options.kind,
        "--restart": options.restart,
        "--life": options.life,
        "--profile": options.profile,
    }
    by_turns = {"--rounds": options.rounds, "--pods": options.pods, "--paced": options.paced}
    wrong = [name for name, given in (alone if options.against else by_turns).items() if given]
    if wrong:
        why = "has all phases already" if options.against else "is missing"
        parser.error(f"--against {why}: leave out {', '.join(wrong)}")
    if options.against == FLOOR and options.idle:
        parser.error("--idle: the floor has no work at rest, so leave it out")
    if options.against and options.n < 2 * compare.PARTS:
        least = f"at least {2 * compare.PARTS}: two in each of the parts of a turn"
        parser.error(f"-n {options.n}: with --against, {least}")
    if options.life and options.kind != "pods":
        parser.error("--life needs --kind pods")
    return options


def main() -> None:
    """Measure an installation, or two in turns."""
    options = parse()
    load = Load(
        kind=options.kind or "configmaps",
        n=options.n,
        size=options.size,
        rate=options.rate,
        concurrency=options.concurrency,
        life=options.life,
    )
    if options.against:
        THIS.compile()
        other = FLOOR_COMMAND
        if options.against != FLOOR:
            options.against.compile()
            other = (str(options.against.syncer),)
        plan = Plan(
            this=options.syncer,
            other=other,
            rounds=options.rounds or 5,
            load=load,
            paced=options.paced or 100,
            pods=options.pods or 300,
            idle=options.idle or 20.0,
            is_floor=options.against == FLOOR,
        )
        for figures in compare.run(plan):
            show(figures)
        return
    with fresh_planes() as planes:
        uvloop.run(measure(options, load, planes))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
