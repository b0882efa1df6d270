"""Objects are notified of a change in steps if they are many, and once however often the change is repeated."""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

from hack.side_tasks import helped_by
from syncer.engine.stores.fan_out import FEW, LONG_SECONDS, STEP, FanOut

MANY = 3 * STEP + 1


class Notified:
    """The objects that were notified, by change."""

    def __init__(self) -> None:
        self.objects: list[tuple[str, int]] = []

    def of(self, change: str, number: int = MANY) -> Callable[[], Iterator[None]]:
        def notify() -> Iterator[None]:
            for at in range(number):
                self.objects.append((change, at))
                yield

        return notify


def run(scene: Callable[[FanOut, Notified], object]) -> list[int]:
    """Run a scene beside a fan-out. Return how many objects had been notified when other tasks had their turns."""

    async def turn() -> list[int]:
        fan_out, notified = FanOut(), Notified()
        async with helped_by(fan_out.run()):
            await asyncio.sleep(0)
            scene(fan_out, notified)
            counts = [len(notified.objects)]
            while fan_out:
                await asyncio.sleep(0)
                if counts[-1] != len(notified.objects):
                    counts.append(len(notified.objects))
        return counts

    return asyncio.run(turn())


def test_few_objects_are_notified_at_once() -> None:
    assert run(lambda fan_out, notified: fan_out.notify("a", FEW, notified.of("a", FEW))) == [FEW]


def test_many_objects_are_notified_in_steps_between_which_others_have_their_turn() -> None:
    counts = run(lambda fan_out, notified: fan_out.notify("a", MANY, notified.of("a")))
    assert (counts[0], counts[-1]) == (0, MANY)
    assert max(after - before for before, after in pairwise(counts)) <= STEP


def test_step_ends_after_an_object_that_took_long() -> None:
    def scene(fan_out: FanOut, notified: Notified) -> None:
        def notify() -> Iterator[None]:
            for each in range(5):
                notified.objects.append(("a", each))
                end = time.perf_counter() + 1.1 * LONG_SECONDS
                while time.perf_counter() < end:
                    pass
                yield

        fan_out.notify("a", MANY, notify)

    assert run(scene) == [0, 1, 2, 3, 4, 5]


def test_change_that_is_repeated_before_its_objects_are_notified_counts_once() -> None:
    def scene(fan_out: FanOut, notified: Notified) -> None:
        for _ in range(50):
            fan_out.notify("a", MANY, notified.of("a"))
            fan_out.notify("b", MANY, notified.of("b"))

    assert run(scene)[-1] == 2 * MANY


def test_change_that_is_repeated_while_its_objects_are_notified_counts_twice() -> None:
    notified: list[int] = []

    def scene(fan_out: FanOut, _: Notified) -> None:
        def first() -> Iterator[None]:
            for at in range(MANY):
                notified.append(at)
                if at == STEP and len(notified) < MANY:
                    fan_out.notify("a", MANY, first)
                yield

        fan_out.notify("a", MANY, first)

    run(scene)
    assert len(notified) == 2 * MANY


def test_error_in_one_change_ends_no_other() -> None:
    def wrong() -> Iterator[None]:
        yield
        raise ValueError("a bug")

    def scene(fan_out: FanOut, notified: Notified) -> None:
        fan_out.notify("a", MANY, wrong)
        fan_out.notify("b", MANY, notified.of("b"))

    assert run(scene)[-1] == MANY


def test_everything_is_notified_at_once_while_nothing_runs() -> None:
    fan_out, notified = FanOut(), Notified()
    fan_out.notify("a", MANY, notified.of("a"))
    assert len(notified.objects) == MANY


def test_pending_changes_are_forgotten_at_the_end_and_later_ones_notify_at_once() -> None:
    fan_out, notified = FanOut(), Notified()

    async def scene() -> None:
        async with helped_by(fan_out.run()):
            await asyncio.sleep(0)
            fan_out.notify("a", MANY, notified.of("a"))

    asyncio.run(scene())
    assert (bool(fan_out), notified.objects) == (False, [])
    fan_out.notify("a", MANY, notified.of("a"))
    assert len(notified.objects) == MANY
