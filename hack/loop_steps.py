"""Run the command `syncer` and record the steps of its event loop that take long.

    python -P loop_steps.py RECORDS syncer-argument...

This file runs in the interpreter of the installation that is measured, so it imports the standard
library alone. A step is a callback of the event loop, such as a task up to its next wait, or a
protocol that gets bytes; its time is the CPU time of the loop's thread, garbage collection
included, so a busy machine lengthens no step. RECORDS gets a line of JSON for each step over
`LEAST` seconds, with the functions on the stack at a sampled moment of it, if any, and a last line
with the number of steps when the command ends. A daemon that isn't started through this file has
none of it.
"""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

#: Steps of fewer CPU seconds are never written.
LEAST = 0.01
#: Interval of looking at the loop's stack, in seconds.
LOOK = 0.03
#: The functions of the stack that are kept.
FUNCTIONS = 8

Callback = Callable[..., Any]


class Recorder:
    """Measures callbacks, and writes those that take long."""

    def __init__(self, records: TextIO) -> None:
        self.steps = 0
        self._records = records
        self._thread = threading.get_ident()
        #: The last sampled stack, and the number of the step that it is of.
        self._last_step: tuple[int, list[str]] = (-1, [])
        threading.Thread(target=self._look, name="loop-steps", daemon=True).start()

    def timed(self, callback: Callback) -> Callback:
        """Return a callback that is measured."""

        def step(*given: Any, **options: Any) -> Any:
            if threading.get_ident() != self._thread:
                return callback(*given, **options)
            self.steps += 1
            number = self.steps
            began = time.thread_time()
            try:
                return callback(*given, **options)
            finally:
                taken = time.thread_time() - began
                if taken > LEAST:
                    self._write(taken, number, callback)

        return step

    def _write(self, taken: float, number: int, callback: Callback) -> None:
        seen, stack = self._last_step
        found = {"cpu": round(taken, 4), "at": time.time(), "callback": repr(callback)[:200]}
        self._put(found | {"stack": stack if seen == number else []})

    def end(self) -> None:
        """Write the last line."""
        self._put({"steps": self.steps})

    def _put(self, found: dict[str, Any]) -> None:
        self._records.write(json.dumps(found) + "\n")
        self._records.flush()

    def _look(self) -> None:
        """Remember the loop's stack from time to time, if a step is still the one of last time."""
        before = -1
        while True:
            time.sleep(LOOK)
            now = self.steps
            if now == before and (frame := sys._current_frames().get(self._thread)):
                self._last_step = now, _functions(frame)
            before = now


def _functions(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < FUNCTIONS:
        code = frame.f_code
        if code.co_filename != __file__:
            found.append(f"{code.co_qualname} {Path(code.co_filename).name}:{frame.f_lineno}")
        frame = frame.f_back
    return found


class _Measured(asyncio.BaseProtocol):
    """The daemon's protocol of a connection, with its callbacks measured."""

    reads: str

    def __init__(self, inner: Any, recorder: Recorder) -> None:
        for name in ("connection_made", self.reads, "eof_received", "connection_lost"):
            setattr(self, name, recorder.timed(getattr(inner, name)))
        self.inner = inner

    def pause_writing(self) -> None:
        """Pass it on to the daemon's protocol."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on to the daemon's protocol."""
        self.inner.resume_writing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class MeasuredProtocol(_Measured, asyncio.Protocol):
    """A protocol that gets bytes."""

    reads = "data_received"


class MeasuredBufferedProtocol(_Measured, asyncio.BufferedProtocol):
    """A protocol that has a buffer of its own."""

    reads = "buffer_updated"

    def get_buffer(self, sizehint: int) -> Any:
        """Pass it on to the daemon's protocol."""
        return self.inner.get_buffer(sizehint)


def measured(inner: Any, recorder: Recorder) -> asyncio.BaseProtocol:
    """Return a protocol with its callbacks measured."""
    kind = MeasuredBufferedProtocol if hasattr(inner, "get_buffer") else MeasuredProtocol
    return kind(inner, recorder)


def measure(loop: Any, recorder: Recorder) -> None:
    """Measure all callbacks of event loops of this class from now on."""
    for name, position in (
        ("call_soon", 0),
        ("call_soon_threadsafe", 0),
        ("call_later", 1),
        ("call_at", 1),
    ):
        setattr(loop, name, _measuring(getattr(loop, name), position, recorder))
    connect = loop.create_connection

    async def create_connection(self: Any, factory: Callback, *given: Any, **options: Any) -> Any:
        made = await connect(self, lambda: measured(factory(), recorder), *given, **options)
        return made[0], made[1].inner

    loop.create_connection = create_connection


def _measuring(schedule: Callback, position: int, recorder: Recorder) -> Callback:
    """Return a method of a loop that schedules the callback at this position, measured."""

    def scheduling(self: Any, *given: Any, **options: Any) -> Any:
        before = given[:position]
        callback = given[position]
        after = given[position + 1 :]
        return schedule(self, *before, recorder.timed(callback), *after, **options)

    return scheduling


def main() -> None:
    """Run the command."""
    _, records, *arguments = sys.argv
    loops: list[type] = [asyncio.BaseEventLoop]
    if importlib.util.find_spec("uvloop"):
        loops.append(importlib.import_module("uvloop").Loop)
    with Path(records).open("a") as lines:
        recorder = Recorder(lines)
        for loop in loops:
            measure(loop, recorder)
        [command] = importlib.metadata.entry_points(group="console_scripts", name="syncer")
        sys.argv = ["syncer", *arguments]
        try:
            command.load()()
        finally:
            recorder.end()


if __name__ == "__main__":
    main()
