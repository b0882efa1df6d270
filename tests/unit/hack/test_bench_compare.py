"""Two installations are measured by turns, and their figures become ratios."""

import asyncio
from typing import cast

import pytest

from hack.bench.compare import (
    COMPARED,
    OF_WRITES,
    Contender,
    by_turns,
    joined,
    middle,
    order,
    ratios,
)
from hack.bench.daemon import FLOOR
from hack.bench.phases import Bench, Figures
from hack.bench.sync import at_least, parse


def figures_of(factor: float) -> dict[str, Figures]:
    """Return the figures of a round that are so many times those of another."""
    phases: dict[str, Figures] = {}
    for figure, names in COMPARED.items():
        for phase in names:
            phases.setdefault(phase, {})[figure] = 2.0 * factor
    return phases


def test_ratios_are_taken_round_by_round() -> None:
    factors = ((1, 1), (8, 10), (3, 6), (2, 1))
    rounds = [{"this": figures_of(a), "other": figures_of(b)} for a, b in factors]
    found = ratios(rounds, COMPARED)
    assert found["cpu_ms_per_object"]["pods_delete"] == {
        "median": 0.9,
        "min": 0.5,
        "max": 2.0,
        "this": 5.0,
        "other": 7.0,
    }
    assert {figure: tuple(phases) for figure, phases in found.items()} == COMPARED


def test_ratio_to_zero_is_left_out() -> None:
    found = ratios([{"this": figures_of(1), "other": figures_of(0)}], COMPARED)
    assert found["cpu_percent"]["idle"] == {"this": 2.0, "other": 0.0}


def test_floor_is_compared_by_its_writes_alone() -> None:
    found = ratios([{"this": figures_of(2), "other": figures_of(1)}], OF_WRITES)
    assert found.keys() == {
        "cpu_ms_per_object",
        "objects_per_s",
        "p50_ms",
        "p99_ms",
        "wakeups_per_object",
    }
    phases = {phase for figure in found.values() for phase in figure}
    assert not phases & {"restart", "idle"}
    assert found["p50_ms"]["paced_create"]["median"] == 2.0


def part(n: int, *, seconds: float, cpu: float, rss: float, writes: float, wakeups: int) -> Figures:
    return {
        "phase": "create",
        "kind": "configmaps",
        "n": n,
        "seconds": seconds,
        "cpu_s": cpu,
        "rss_mb": rss,
        "futile": 1.0,
        "writes_per_object": writes,
        "wakeups": wakeups,
        "latencies_ms": [float(number) for number in range(n)],
    }


def test_parts_of_a_phase_are_joined_by_their_objects() -> None:
    parts = [
        part(30, seconds=1.0, cpu=0.03, rss=60.0, writes=1.0, wakeups=150),
        part(10, seconds=3.0, cpu=0.03, rss=59.0, writes=2.0, wakeups=10),
    ]
    assert joined(parts) == {
        "kind": "configmaps",
        "n": 40,
        "seconds": 4.0,
        "objects_per_s": 10.0,
        "cpu_ms_per_object": 1.5,
        "cpu_s": 0.06,
        "rss_mb": 59.0,
        "futile": 2.0,
        "writes_per_object": 1.25,
        "wakeups": 160,
        "wakeups_per_object": 4.0,
        "p50_ms": 9.5,
        "p95_ms": 27.95,
        "p99_ms": 29.59,
    }


def test_contenders_act_in_turns() -> None:
    acted: list[str] = []

    async def act(contender: Contender, time: int) -> Figures:
        acted.append(f"{contender.maps}{time}")
        return {"n": time}

    absent = cast("Bench", None)
    turns = [Contender(cast("Bench", letter), absent, absent) for letter in "ab"]
    assert asyncio.run(by_turns(turns, 3, act)) == [[{"n": 0}, {"n": 1}, {"n": 2}]] * 2
    assert acted == ["a0", "b0", "b1", "a1", "a2", "b2"]


def test_middle_restart_counts() -> None:
    runs = [{"seconds": seconds} for seconds in (1.4, 9.0, 1.2)]
    assert middle(runs) == {"seconds": 1.4}


def test_installation_that_begins_changes_from_turn_to_turn() -> None:
    assert [order(turn)[0] for turn in range(4)] == ["this", "other", "this", "other"]


def test_number_below_the_least_is_refused() -> None:
    with pytest.raises(Exception, match="1 is too few: at least 2"):
        at_least(2)("1")
    assert at_least(2)("2") == 2


def test_floor_takes_no_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["--against", FLOOR, "--paced", "8"]).against == FLOOR
    with pytest.raises(SystemExit):
        parse(["--against", FLOOR, "--idle", "5"])
    assert "the floor has no work at rest" in capsys.readouterr().err
