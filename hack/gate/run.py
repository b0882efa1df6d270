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
from typing import NamedTuple

from hack.endings import uninterrupted
from hack.gate import stages
from hack.gate.record import Record, read
from hack.gate.stages import PATIENCE, TOP, Stage

#: Lines of output that are shown again at the end, of a failed stage without a failing test.
_TAIL = 15
#: How nice a stage is to each that runs beside it and was started before. The third gets a fifth of
#: the processor while both others want all of it: tests with programs of their own give up after a
#: minute.
NICE = 2
#: Runs a command that is so nice. A stage has a session of its own, and Linux shares the processor
#: between sessions first (autogroup in sched(7)): how nice a process is counts within its session
#: alone.
_NICE = '{ echo "$0" >/proc/self/autogroup; } 2>/dev/null; exec nice -n "$0" "$@"'
#: Seconds in which a terminated stage may clean up, such as remove a node.
GRACE = 20.0


@dataclass(slots=True)
class Ran:
    """A stage that has run."""

    stage: Stage
    seconds: float
    #: CPU seconds of all its processes that ended and were waited for: not of what a daemon of the
    #: system did for it.
    cpu: float
    code: int
    #: Its last lines.
    tail: list[str]
    record: Record = field(default_factory=Record)

    @property
    def unexplained(self) -> bool:
        """True if it failed without a failing test: a step, a build, or a run of pytest that did
        not end well.

        1 is the exit status of failing tests, and of nothing else.
        """
        if not self.stage.tests:
            return self.code != 0
        return (
            not self.record.is_whole
            or self.code not in (0, 1)
            or (self.code == 1 and not self.record.of("failed"))
        )


def show(line: str) -> None:
    """Print a line of output at once."""
    print(line, end="", flush=True)


def run(stage: Stage, folder: Path, *, nice: int = 0, say: Callable[[str], None] = show) -> Ran:
    """Run a stage, whose record goes into the folder;
    ``nice`` lets those that run beside it go first.
    """
    started = time.monotonic()
    command = stage.command
    if nice:
        command = ("sh", "-c", _NICE, str(nice), *command)
    cpu = 0.0
    for _ in range(stage.tries):
        done = execute(command, folder, TOP, say)
        cpu += done.cpu
        if done.code == 0:
            break
    return Ran(stage, time.monotonic() - started, cpu, done.code, done.tail, read(folder))


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    #: Its last lines.
    tail: list[str]
    #: CPU seconds of its processes.
    cpu: float


class Beside:
    """A stage that runs beside others. Its output is shown when it has ended."""

    def __init__(self, stage: Stage, folder: Path, *, nice: int = 0) -> None:
        self.stage = stage
        self._lines: list[str] = []
        self._pool = ThreadPoolExecutor(1)
        self._ran = self._pool.submit(run, stage, folder, nice=nice, say=self._lines.append)

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
) -> Done:
    """Run a command for an hour at most.

    Its temporary files are in a folder of its own, which goes with it. Its path is short, as it is
    a part of sockets'.
    """
    temporary = folder / "t"
    temporary.mkdir(exist_ok=True)
    environment = {**stages.environment(), "VSYNCER_GATE": str(folder), "TMPDIR": str(temporary)}
    tail: deque[str] = deque(maxlen=_TAIL)
    process: subprocess.Popen[str] | None = None
    timer: threading.Timer | None = None
    try:
        with uninterrupted():
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            _running.add(process)
        timer = threading.Timer(PATIENCE, _end, [process])
        timer.daemon = True
        timer.start()
        for line in process.stdout or ():
            say(line)
            tail.append(line.rstrip())
        code, cpu = _wait(process)
        return Done(code, list(tail), cpu)
    finally:
        if timer is not None:
            timer.cancel()
        if process is not None:
            if process.poll() is None:
                _end(process)
                process.wait()
            _running.discard(process)
        shutil.rmtree(temporary, ignore_errors=True)


def _wait(process: "subprocess.Popen[str]") -> tuple[int, float]:
    """Wait for a process; return its exit status,
    and the CPU seconds of it and of those that it waited for.
    """
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:  # it was ended from another thread
        return process.wait(), 0.0
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


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
