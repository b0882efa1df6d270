"""The size of a step of the event loop, and the turns in which large steps are made.

More is done in several steps, and other tasks run in between. The renewal of a Lease, the answers
to probes, and the requests of other virtual clusters wait for a step at most.
"""

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

#: Objects, or lines of a watch, that are processed in a step.
STEP_OBJECTS = 100
#: Bytes of JSON that are processed in a step. An object of more bytes has steps of its own.
STEP_BYTES = 256 << 10

_Turns = deque["asyncio.Future[None]"]
#: The tasks that wait for a turn, by event loop.
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def next_turn() -> None:
    """Wait for a turn of the event loop in which no other task makes a large step.

    With ``asyncio.sleep(0)`` instead, each of the tasks that read much would make a step in each
    turn, and all others would wait for all of these steps.
    """
    loop = asyncio.get_running_loop()
    waiting = _waiting.setdefault(loop, deque())
    turn = loop.create_future()
    if not waiting:
        loop.call_soon(_hand_out, loop, waiting)
    waiting.append(turn)
    await turn


def _hand_out(loop: asyncio.AbstractEventLoop, waiting: _Turns) -> None:
    """Let the first task that waits go on, and the next one in the next turn."""
    while waiting:
        turn = waiting.popleft()
        if not turn.done():  # else its task is cancelled
            turn.set_result(None)
            break
    if waiting:
        loop.call_soon(_hand_out, loop, waiting)
