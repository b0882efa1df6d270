"""Run the command `syncer` and sample what its main thread does with its CPU time.

    python -I sampler.py FOLDER syncer-argument...

This file runs in the interpreter of the installation that is measured, and imports the standard
library alone. The kernel sends a signal each time that the process has used some CPU time, at most
once a tick (4 ms as a rule). So neither waiting nor other processes are sampled. When the command
ends, `FOLDER/PID.json` has the stacks, and the sample of each signal: the time by
`time.perf_counter`, which is the same in all processes, and the number of its stack.

Python runs the handler at the next chance: where a function begins, a loop turns, or a call
returns. Where a function has only just begun, the time was its caller's.
"""

import dis
import importlib.metadata
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

#: Seconds of CPU time between samples; the kernel rounds it up to a tick.
INTERVAL = 0.001


class Sampler:
    """Collects the stack of the main thread at each SIGPROF."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, int]] = []
        self._stacks: dict[tuple[CodeType, ...], int] = {}

    def start(self) -> None:
        """Start sampling."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def stop(self) -> None:
        """Stop sampling."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def write(self, path: Path) -> None:
        """Write stacks, from the outermost frame to the innermost, and samples as JSON."""
        stacks = [[_named(code) for code in reversed(stack)] for stack in self._stacks]
        path.write_text(json.dumps({"stacks": stacks, "samples": self.samples}))

    def _sample(self, _: int, frame: FrameType | None) -> None:
        if Sampler._sample.__code__ in _codes(frame):
            return  # a signal during the handler of the one before
        if frame is not None and frame.f_lasti in _resumes(frame.f_code):
            frame = frame.f_back
        stack = tuple(_codes(frame))
        number = self._stacks.setdefault(stack, len(self._stacks))
        self.samples.append((time.perf_counter(), number))


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


@cache
def _resumes(code: CodeType) -> frozenset[int]:
    """Return the instructions at which a function begins or resumes."""
    return frozenset(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


def _named(code: CodeType) -> str:
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def main() -> None:
    """Run the command and write the samples."""
    _, folder, *arguments = sys.argv
    [command] = importlib.metadata.entry_points(group="console_scripts", name="syncer")
    sys.argv = ["syncer", *arguments]
    sampler = Sampler()
    sampler.start()
    try:
        command.load()()
    finally:
        sampler.stop()
        sampler.write(Path(folder) / f"{os.getpid()}.json")


if __name__ == "__main__":
    main()
