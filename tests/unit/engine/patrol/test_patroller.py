"""A scan verifies what has changed, waits a grace, says why it can't be made, and comes round at intervals."""

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest
from patroller_bench import Bench, Happens, asked, counts, reported, unrepaired

from syncer.api import Side
from syncer.engine.controllers.builder import leave
from syncer.engine.patrol.findings import Scan
from syncer.engine.patrol.patroller import GRACE_SECONDS, SLICE, Patroller
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.secrets import SecretSyncer
from syncer.testing import World
from syncer.testing.objects import configmap

# -- what it looks at ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happens", "found"),
    [
        pytest.param(lambda bench: None, (4, 0, 0), id="nothing"),
        pytest.param(lambda bench: bench.edit("a"), (3, 1, 0), id="a copy has changed"),
        pytest.param(lambda bench: bench.remove("a"), (3, 1, 0), id="a copy is gone"),
        pytest.param(
            lambda bench: bench.world.given(virtual=[configmap("a")]), (3, 1, 0), id="an original has changed"
        ),
        pytest.param(lambda bench: bench.lose("ab"), (2, 2, 0), id="originals are gone"),
        pytest.param(lambda bench: bench.world.given(virtual=[configmap("e")]), (4, 1, 0), id="an object is new"),
        pytest.param(lambda bench: (bench.edit("a"), bench.busy.add(asked("a"))), (3, 0, 1), id="it is known trouble"),
        pytest.param(lambda bench: bench.busy.add(asked("a")), (4, 0, 0), id="it is in work, and has not changed"),
    ],
)
async def test_objects_that_have_changed_since_they_were_in_step_are_verified(
    happens: Happens, found: tuple[int, int, int]
) -> None:
    bench = Bench()
    assert counts(await bench.scan()) == (0, 4, 0)
    happens(bench)
    assert counts(await bench.scan()) == found


async def test_object_that_is_not_in_step_is_verified_each_time() -> None:
    bench = Bench()
    bench.repair = unrepaired
    bench.edit("a")
    assert [counts(await bench.scan()) for _ in range(3)] == [(0, 4, 0), (3, 1, 0), (3, 1, 0)]


async def test_object_that_was_repaired_is_skipped() -> None:
    bench = Bench()
    bench.edit("a")
    await bench.scan()
    assert counts(await bench.scan()) == (4, 0, 0)


async def test_scan_lets_others_run() -> None:
    bench = Bench()
    bench.world.given(virtual=[configmap(f"x{number}") for number in range(SLICE)])
    bench.busy = {asked(f"x{number}") for number in range(SLICE)}
    scanning = asyncio.create_task(bench.scan())
    turns = 0
    while not scanning.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10


# -- the grace -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meanwhile", "found", "problem"),
    [
        pytest.param(lambda bench: None, [("a", "field", "repaired", "")], "", id="nothing"),
        pytest.param(lambda bench: bench.mend(), [], "", id="it was put in step"),
        pytest.param(lambda bench: bench.busy.add(asked("a")), [], "", id="it is in work"),
        pytest.param(lambda bench: bench.remove(), [("a", "missing", "repaired", "")], "", id="it drifts otherwise"),
        pytest.param(lambda bench: bench.refuse(), [], "", id="it is refused"),
        pytest.param(lambda bench: bench.edit("b"), [("a", "field", "repaired", "")], "", id="another one drifts"),
        pytest.param(lambda bench: setattr(bench, "trouble", "no host"), [], "no host", id="a cluster is silent"),
    ],
)
async def test_write_must_still_be_needed_after_the_grace(
    meanwhile: Happens, found: list[tuple[str, str, str, str]], problem: str
) -> None:
    bench = Bench()
    bench.edit("a")
    scanning = asyncio.create_task(bench.scan())
    await asyncio.sleep(GRACE_SECONDS - 0.1)
    assert (scanning.done(), bench.asked) == (False, [])
    meanwhile(bench)
    scan = await scanning
    assert (reported(scan), scan.problem) == (found, problem)
    assert scan.seconds == pytest.approx(GRACE_SECONDS)
    assert bench.asked == [name for name, *_ in found]


async def test_scan_that_finds_nothing_takes_no_time() -> None:
    bench = Bench()
    assert (await bench.scan()).seconds == 0
    assert bench.asked == []


# -- why not -------------------------------------------------------------------------------------------------------


def unfill(bench: Bench, *sides: Side) -> None:
    for side in sides:
        bench.world.pair.informers.store(side, CONFIG_MAPS).synced = False


@pytest.mark.parametrize(
    ("happens", "problem"),
    [
        pytest.param(lambda bench: setattr(bench, "trouble", "the host is silent"), "the host is silent", id="silent"),
        pytest.param(
            lambda bench: setattr(bench.controller, "ready", False), "the syncer is not at work", id="not ready"
        ),
        pytest.param(lambda bench: leave(bench.world.pair, "maps"), "the syncer is not at work", id="has stopped"),
        pytest.param(
            lambda bench: unfill(bench, Side.HOST), "caches are not filled: host configmaps", id="a store is not filled"
        ),
        pytest.param(
            lambda bench: unfill(bench, Side.VIRTUAL),
            "caches are not filled: virtual configmaps",
            id="the other is not filled",
        ),
    ],
)
async def test_kind_that_can_not_be_scanned_says_why(happens: Happens, problem: str) -> None:
    bench = Bench()
    bench.edit("a")
    controller = bench.controller
    happens(bench)
    scan = await bench.patroller.scan(controller, fresh=False)
    assert (scan.problem, counts(scan), scan.findings, bench.asked) == (problem, (0, 0, 0), [], [])
    assert bench.patroller.reports == {"maps": scan}


async def test_kind_is_scanned_again_when_its_trouble_is_over() -> None:
    bench = Bench()
    bench.trouble = "the host is silent"
    bench.edit("a")
    await bench.scan()
    bench.trouble = None
    scan = await bench.scan()
    assert (scan.problem, reported(scan)) == ("", [("a", "field", "repaired", "")])


async def test_time_of_the_latest_complete_scan_is_kept_while_none_is_possible() -> None:
    bench = Bench()
    completed = bench.patroller.tally.completed
    assert completed == {}
    bench.trouble = "the host cluster does not answer"
    await bench.scan()
    assert completed == {("maps",): 0.0}
    bench.trouble = None
    await bench.scan()
    assert completed == {("maps",): bench.now.timestamp()}
    bench.now += timedelta(hours=1)
    bench.trouble = "the host cluster does not answer"
    await bench.scan()
    assert completed == {("maps",): (bench.now - timedelta(hours=1)).timestamp()}


async def test_fresh_scan_needs_a_list() -> None:
    bench = Bench()
    scan = await bench.patroller.scan(bench.controller, fresh=True)
    assert (scan.fresh, counts(scan)) == (True, (0, 0, 0))
    assert scan.problem in {f"{side} configmaps is being listed" for side in Side}


@pytest.mark.parametrize(
    ("age", "fresh"),
    [
        pytest.param(0, False, id="at the start"),
        pytest.param(890, False, id="before its time"),
        pytest.param(900, True, id="about its time"),
        pytest.param(2000, True, id="late"),
    ],
)
async def test_fresh_list_is_due_after_its_time(age: float, fresh: bool) -> None:
    bench = Bench(interval="100s", fresh="1000s")
    await asyncio.sleep(age)
    assert (await bench.patroller.scan(bench.controller)).fresh is fresh


# -- rounds --------------------------------------------------------------------------------------------------------


async def patrolled(patroller: Patroller, seconds: float) -> list[tuple[float, str]]:
    """Let a patroller run for some seconds, and return when it scanned which kind."""
    loop = asyncio.get_running_loop()
    scans: list[tuple[float, str]] = []
    scan = patroller.scan

    async def noted(controller: BoundSyncer, **options: Any) -> Scan:
        scans.append((loop.time(), controller.name))
        if len(scans) == 1:
            raise ValueError("a bug")
        return await scan(controller, **options)

    patroller.scan = noted  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await patroller.run()
    return scans


async def test_rounds_come_at_intervals_although_a_scan_fails() -> None:
    bench = Bench(interval="100s")
    times = [0.0, *(time for time, _ in await patrolled(bench.patroller, 1000))]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert len(pauses) in (9, 10, 11)
    assert all(90 <= pause <= 110 for pause in pauses)
    assert len(set(pauses)) > 1, "they vary, so that not all clusters are patrolled at a time"


async def test_kind_with_an_interval_of_its_own_has_its_own_rounds() -> None:
    bench = Bench()
    sections = {"configMaps": {"all": True, "patrolInterval": "300s"}, "secrets": {"all": True}}
    world = World(
        [ConfigMapSyncer, SecretSyncer], config={"sync": {"toHost": sections}, "patrol": {"interval": "100s"}}
    )
    patroller = bench.patroller_of(world)
    names = [name for _, name in await patrolled(patroller, 3000)]
    assert 9 <= names.count("configmaps") <= 11
    assert 27 <= names.count("secrets") <= 33
