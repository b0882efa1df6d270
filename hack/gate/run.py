"""Running a stage: its output goes on to whoever looks, and its last lines are kept."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hack.gate import stages
from hack.gate.record import Record, read
from hack.gate.stages import PATIENCE, TOP, Stage

#: Lines of output that are shown again at the end, of a failed stage without a failing test.
_TAIL = 15
#: How nice a stage is to one that runs beside it: that one gets the processor whenever it needs it.
NICE = 15
#: Seconds in which a terminated stage may clean up, such as remove a node.
GRACE = 20.0


@dataclass(slots=True)
class Ran:
    """A stage that has run."""

    stage: Stage
    seconds: float
    code: int
    #: Its last lines.
    tail: list[str]
    record: Record = field(default_factory=Record)

    @property
    def unexplained(self) -> bool:
        """True if it failed without a failing test: a step, a build, or a run of pytest that did not end well.

        1 is the exit status of failing tests, and of nothing else.
        """
        if not self.stage.tests:
            return self.code != 0
        return not self.record.is_whole or self.code not in (0, 1) or (self.code == 1 and not self.record.of("failed"))


def show(line: str) -> None:
    """Print a line of output at once."""
    print(line, end="", flush=True)


def run(stage: Stage, folder: Path, *, nice: bool = False, say: Callable[[str], None] = show) -> Ran:
    """Run a stage, whose record goes into the folder; ``nice`` lets what runs beside it go first."""
    started = time.monotonic()
    command = (*(("nice", "-n", str(NICE)) if nice else ()), *stage.command)
    for _ in range(stage.tries):
        code, tail = execute(command, folder, TOP, say)
        if code == 0:
            break
    return Ran(stage, time.monotonic() - started, code, tail, read(folder))


class Beside:
    """A stage that runs beside others. Its output is shown when it has ended."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self._lines: list[str] = []
        self._pool = ThreadPoolExecutor(1)
        self._ran = self._pool.submit(run, stage, folder, say=self._lines.append)

    def ran(self) -> Ran:
        """Wait for its end, and show its output."""
        found = self._ran.result()
        for line in self._lines:
            show(line)
        return found

    def end(self) -> None:
        """End it now, if it still runs."""
        for process in list(_running):
            _end(process)
        self._pool.shutdown()


#: What runs now.
_running: set["subprocess.Popen[str]"] = set()


def execute(
    command: Sequence[str], folder: Path, cwd: Path, say: Callable[[str], None] = show
) -> tuple[int, list[str]]:
    """Run a command for an hour at most; return its exit status and its last lines.

    Its temporary files are in a folder of its own, which goes with it. Its path is short, as it is a part of sockets'.
    """
    temporary = folder / "t"
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**stages.environment(), "VSYNCER_GATE": str(folder), "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    _running.add(process)
    timer = threading.Timer(PATIENCE, _end, [process])
    timer.start()
    tail: deque[str] = deque(maxlen=_TAIL)
    try:
        for line in process.stdout or ():
            say(line)
            tail.append(line.rstrip())
        return process.wait(), list(tail)
    finally:
        timer.cancel()
        if process.poll() is None:
            _end(process)
            process.wait()
        _running.discard(process)
        shutil.rmtree(temporary, ignore_errors=True)


def _end(process: "subprocess.Popen[str]") -> None:
    """End a stage as Ctrl-C does, then by force, with all that it has started in its session."""
    print(f"gate: ending a process that still runs: {' '.join(map(str, process.args))}", flush=True)  # type: ignore[arg-type]
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
