"""Large steps of several tasks are made one in each turn of the event loop."""

import asyncio

import pytest

from syncer.steps import next_turn

pytestmark = pytest.mark.real_time

#: Tasks, and steps of each.
TASKS, STEPS = 5, 20


async def _steps(made: list[int]) -> None:
    for _ in range(STEPS):
        await next_turn()
        made[-1] += 1


async def _turns(made: list[int], tasks: "list[asyncio.Task[None]]") -> None:
    """Count the steps of each turn of the event loop, while others still make some."""
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        made.append(0)


async def test_tasks_with_large_steps_make_one_in_a_turn_however_many_they_are() -> None:
    made = [0]
    tasks = [asyncio.create_task(_steps(made)) for _ in range(TASKS)]
    await _turns(made, tasks)
    assert (sum(made), max(made)) == (TASKS * STEPS, 1)
    assert len(made) < 2 * TASKS * STEPS, "no turn is wasted"


async def test_tasks_with_large_steps_go_on_by_turns() -> None:
    order: list[int] = []

    async def steps(number: int) -> None:
        for _ in range(3):
            await next_turn()
            order.append(number)

    await asyncio.gather(*(steps(number) for number in range(3)))
    assert order == [0, 1, 2] * 3


async def test_cancelled_task_takes_no_turn_and_holds_up_nobody() -> None:
    made = [0]
    gone, *tasks = [asyncio.create_task(_steps(made)) for _ in range(3)]
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert sum(made) == 2 * STEPS
