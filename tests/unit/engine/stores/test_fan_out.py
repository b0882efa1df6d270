"""A change that concerns many objects is told to them in steps, once however often it comes."""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

from hack.side_tasks import helped_by
from syncer.engine.stores.fan_out import FEW, LONG_SECONDS, STEP, FanOut

MANY = 3 * STEP + 1


class Told:
    """The objects that were told, by change."""

    def __init__(self) -> None:
        self.objects: list[tuple[str, int]] = []

    def of(self, change: str, number: int = MANY) -> Callable[[], Iterator[None]]:
        def tell() -> Iterator[None]:
            for at in range(number):
                self.objects.append((change, at))
                yield

        return tell


def run(scene: Callable[[FanOut, Told], object]) -> list[int]:
    """Run a scene while changes are told. Return how many objects had been told when other tasks had their turns."""

    async def turn() -> list[int]:
        fan_out, told = FanOut(), Told()
        async with helped_by(fan_out.run()):
            await asyncio.sleep(0)
            scene(fan_out, told)
            seen = [len(told.objects)]
            while fan_out:
                await asyncio.sleep(0)
                if seen[-1] != len(told.objects):
                    seen.append(len(told.objects))
        return seen

    return asyncio.run(turn())


def test_few_objects_are_told_at_once() -> None:
    assert run(lambda fan_out, told: fan_out.tell("a", FEW, told.of("a", FEW))) == [FEW]


def test_many_objects_are_told_in_steps_between_which_others_have_their_turn() -> None:
    seen = run(lambda fan_out, told: fan_out.tell("a", MANY, told.of("a")))
    assert (seen[0], seen[-1]) == (0, MANY)
    assert max(after - before for before, after in pairwise(seen)) <= STEP


def test_step_ends_after_an_object_that_took_long() -> None:
    def scene(fan_out: FanOut, told: Told) -> None:
        def tell() -> Iterator[None]:
            for each in range(5):
                told.objects.append(("a", each))
                end = time.perf_counter() + 1.1 * LONG_SECONDS
                while time.perf_counter() < end:
                    pass
                yield

        fan_out.tell("a", MANY, tell)

    assert run(scene) == [0, 1, 2, 3, 4, 5]


def test_change_that_comes_again_before_it_is_told_counts_once() -> None:
    def scene(fan_out: FanOut, told: Told) -> None:
        for _ in range(50):
            fan_out.tell("a", MANY, told.of("a"))
            fan_out.tell("b", MANY, told.of("b"))

    assert run(scene)[-1] == 2 * MANY


def test_change_that_comes_again_while_it_is_told_is_told_again() -> None:
    told: list[int] = []

    def scene(fan_out: FanOut, _: Told) -> None:
        def first() -> Iterator[None]:
            for at in range(MANY):
                told.append(at)
                if at == STEP and len(told) < MANY:
                    fan_out.tell("a", MANY, first)
                yield

        fan_out.tell("a", MANY, first)

    run(scene)
    assert len(told) == 2 * MANY


def test_error_in_one_change_ends_no_other() -> None:
    def wrong() -> Iterator[None]:
        yield
        raise ValueError("a bug")

    def scene(fan_out: FanOut, told: Told) -> None:
        fan_out.tell("a", MANY, wrong)
        fan_out.tell("b", MANY, told.of("b"))

    assert run(scene)[-1] == MANY


def test_everything_is_told_at_once_while_nothing_runs() -> None:
    fan_out, told = FanOut(), Told()
    fan_out.tell("a", MANY, told.of("a"))
    assert len(told.objects) == MANY


def test_what_is_pending_is_forgotten_when_telling_ends_and_changes_are_told_at_once_again() -> None:
    fan_out, told = FanOut(), Told()

    async def scene() -> None:
        async with helped_by(fan_out.run()):
            await asyncio.sleep(0)
            fan_out.tell("a", MANY, told.of("a"))

    asyncio.run(scene())
    assert (bool(fan_out), told.objects) == (False, [])
    fan_out.tell("a", MANY, told.of("a"))
    assert len(told.objects) == MANY
