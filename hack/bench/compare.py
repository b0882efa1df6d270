"""Measure two installations in turns, and the ratios of their figures with their spread."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from statistics import median

import uvloop

from hack.bench.phases import LATENCIES, Bench, Figures, Load, percentiles
from hack.bench.scene import Planes, fresh_planes, scene

#: Objects created and deleted before anything is measured.
WARM_UP = 50
#: Parts that the objects of a phase are written in, in turns.
PARTS = 4
#: Restarts in a round; the middle one counts.
RESTARTS = 3
#: Objects a second in the phases whose names begin with `paced`.
PACE = 20.0
#: The phases in which objects are written as fast as they go, and those in which they are written
#: at a pace.
FAST = ("create", "update", "delete", "pods", "pods_delete")
PACED = ("paced_create", "paced_update", "paced_delete")
#: The compared figures of writes, and the phases that have them.
OF_WRITES = {
    "cpu_ms_per_object": (*FAST, *PACED),
    "objects_per_s": FAST,
    "p50_ms": (*FAST, *PACED),
    "p99_ms": (*FAST, *PACED),
    "wakeups_per_object": PACED,
}
#: All compared figures of installations.
COMPARED = {
    **OF_WRITES,
    "seconds": ("restart",),
    "cpu_s": ("restart",),
    "rss_mb": ("update", "restart"),
    "cpu_percent": ("idle",),
}

#: The figures of one installation in one round, by phase.
Phases = Mapping[str, Figures]
#: The figures of both installations, `this` and `other`, in one round.
Round = Mapping[str, Phases]


@dataclass(frozen=True, slots=True)
class Plan:
    """The commands of two installations, and the load for each in a round."""

    this: str
    #: A command line, as the floor's has several words.
    other: Sequence[str]
    rounds: int
    #: The ConfigMaps.
    load: Load
    #: The number of ConfigMaps that are written at `PACE`.
    paced: int
    #: The number of Pods, from creation to Ready.
    pods: int
    #: Seconds of rest.
    idle: float
    #: True if the other one is the floor, which has only writes: no state to restart with, and no
    #: work at rest.
    is_floor: bool = False


@dataclass(frozen=True, slots=True)
class Contender:
    """An installation in a round."""

    maps: Bench
    paced: Bench
    pods: Bench
    #: Its figures so far.
    phases: dict[str, Figures] = field(default_factory=dict)


def order(turn: int) -> tuple[str, str]:
    """Return the order of a turn: A B, B A, A B, …,
    so that drift of the machine favours neither.
    """
    return ("this", "other") if turn % 2 == 0 else ("other", "this")


def run(plan: Plan) -> Iterator[Figures]:
    """Yield the figures of each phase of each round, then the ratios.

    Each round has fresh control planes, and each installation has its own. So neither is burdened
    by leftovers of the other or of an earlier round.
    """
    rounds: list[Round] = []
    for number in range(plan.rounds):
        with ExitStack() as stack:
            planes = {name: stack.enter_context(fresh_planes()) for name in order(number)}
            rounds.append(uvloop.run(_round(plan, number, planes)))
        for name, phases in rounds[-1].items():
            for phase, figures in phases.items():
                yield {"round": number, "installation": name, **figures, "phase": phase}
    commands = {"this": plan.this, "other": " ".join(plan.other)}
    compared = OF_WRITES if plan.is_floor else COMPARED
    yield {"phase": "ratios", "rounds": plan.rounds, **commands, "ratios": ratios(rounds, compared)}


async def _round(plan: Plan, number: int, planes: Mapping[str, Planes]) -> Round:
    """Run all phases with both installations."""
    async with AsyncExitStack() as stack:
        both = {
            "this": await _contender(plan, planes["this"], (plan.this,), stack),
            "other": await _contender(plan, planes["other"], plan.other, stack),
        }
        turns = [both[name] for name in order(number)]
        await _write(turns, "create", lambda one: one.maps, Bench.create)
        await _write(turns, "update", lambda one: one.maps, Bench.update)
        if not plan.is_floor:
            await _rest(plan, turns)
        await _write(turns, "delete", lambda one: one.maps, Bench.delete)
        async with AsyncExitStack() as watches:
            for one in turns:
                await watches.enter_async_context(one.paced.watching())
            await _write(turns, "paced_create", lambda one: one.paced, Bench.create)
            await _write(turns, "paced_update", lambda one: one.paced, Bench.update)
            await _write(turns, "paced_delete", lambda one: one.paced, Bench.delete)
        await _write(turns, "pods", lambda one: one.pods, Bench.create)
        await _write(turns, "pods_delete", lambda one: one.pods, Bench.delete)
    return {name: one.phases for name, one in both.items()}


async def _rest(plan: Plan, turns: Sequence[Contender]) -> None:
    """Restart with all ConfigMaps, and then do nothing."""
    restarts = await by_turns(turns, RESTARTS, lambda one, _: one.maps.restart())
    idle = await by_turns(turns, 1, lambda one, _: one.maps.idle(plan.idle))
    for one, restarted, rested in zip(turns, restarts, idle, strict=True):
        one.phases.update(restart=middle(restarted), idle=rested[0])


async def _contender(
    plan: Plan, planes: Planes, command: Sequence[str], stack: AsyncExitStack
) -> Contender:
    """Start a daemon, and create and delete some objects, so that it is warm."""
    made = await stack.enter_async_context(scene(planes, command))
    warm_up = made.bench(replace(plan.load, n=WARM_UP, prefix="warm-up"))
    async with warm_up.watching():
        await warm_up.create(warm_up.names)
        await warm_up.delete(warm_up.names)
    maps = made.bench(plan.load)
    paced = made.bench(replace(plan.load, n=plan.paced, rate=PACE, prefix="paced"))
    pods = made.bench(replace(plan.load, kind="pods", n=plan.pods, life=True))
    await stack.enter_async_context(maps.watching())
    await stack.enter_async_context(pods.watching())
    return Contender(maps, paced, pods)


async def _write(
    turns: Sequence[Contender],
    phase: str,
    bench: Callable[[Contender], Bench],
    write: Callable[[Bench, Sequence[str]], Awaitable[Figures]],
) -> None:
    """Write the objects of a phase in parts."""

    def part(one: Contender, number: int) -> Awaitable[Figures]:
        return write(bench(one), bench(one).names[number::PARTS])

    for one, parts in zip(turns, await by_turns(turns, PARTS, part), strict=True):
        one.phases[phase] = joined(parts)


async def by_turns(
    turns: Sequence[Contender], times: int, act: Callable[[Contender, int], Awaitable[Figures]]
) -> list[list[Figures]]:
    """Run ``act`` in turns, A B, B A, A B, …; return the figures of each installation."""
    found: list[list[Figures]] = [[] for _ in turns]
    for time in range(times):
        for number in (0, 1) if time % 2 == 0 else (1, 0):
            found[number].append(await act(turns[number], time))
    return found


def middle(runs: Sequence[Figures]) -> Figures:
    """Return the run with the median duration."""
    return sorted(runs, key=lambda figures: figures["seconds"])[len(runs) // 2]


def joined(parts: Sequence[Figures]) -> Figures:
    """Return the figures of a phase from those of its parts; memory is that at the end."""
    n, seconds, cpu = (sum(part[name] for part in parts) for name in ("n", "seconds", "cpu_s"))
    writes = sum(part["n"] * part["writes_per_object"] for part in parts)
    wakeups = sum(part["wakeups"] for part in parts)
    latencies: list[float] = []
    for part in parts:
        latencies.extend(part[LATENCIES])
    return {
        "kind": parts[-1]["kind"],
        "n": n,
        "seconds": round(seconds, 3),
        "objects_per_s": round(n / seconds, 1),
        "cpu_ms_per_object": round(cpu * 1000 / n, 4),
        "cpu_s": round(cpu, 4),
        "rss_mb": parts[-1]["rss_mb"],
        "futile": sum(part["futile"] for part in parts),
        "writes_per_object": round(writes / n, 3),
        "wakeups": wakeups,
        "wakeups_per_object": round(wakeups / n, 2),
        **percentiles(latencies),
    }


def ratios(
    rounds: Sequence[Round], compared: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Figures]]:
    """Return the ratios of this installation to the other, by figure and phase.

    A ratio is taken in each round, as its turns are close in time: `median`, `min` and `max` are of
    these. `this` and `other` are the medians of the figures themselves.
    """
    found: dict[str, dict[str, Figures]] = {}
    for figure, phases in compared.items():
        found[figure] = {phase: _ratio(rounds, phase, figure) for phase in phases}
    return found


def _ratio(rounds: Sequence[Round], phase: str, figure: str) -> Figures:
    this, other = ([turns[name][phase][figure] for turns in rounds] for name in ("this", "other"))
    found = [one / another for one, another in zip(this, other, strict=True) if another]
    spread = {"median": median(found), "min": min(found), "max": max(found)} if found else {}
    rounded = {name: round(value, 3) for name, value in spread.items()}
    return rounded | {"this": round(median(this), 4), "other": round(median(other), 4)}
