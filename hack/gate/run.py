"""Running a stage: its output goes on to whoever looks, and its last lines are kept."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack.gate import stages
from hack.gate.record import Record, read
from hack.gate.stages import PATIENCE, TOP, Stage

#: Lines of output that are shown again at the end, of a stage that failed and can't say by which test.
_TAIL = 15


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
        """True if it failed, and no test says so: a step, a build, or a run of pytest that did not end well.

        1 is the exit status of failing tests, and of nothing else.
        """
        if not self.stage.tests:
            return self.code != 0
        return not self.record.is_whole or self.code not in (0, 1) or (self.code == 1 and not self.record.of("failed"))


def run(stage: Stage, folder: Path) -> Ran:
    """Run a stage, whose record goes into the folder."""
    started = time.monotonic()
    for _ in range(stage.tries):
        code, tail = execute(stage.command, folder, TOP)
        if code == 0:
            break
    return Ran(stage, time.monotonic() - started, code, tail, read(folder))


def execute(command: Sequence[str], folder: Path, place: Path) -> tuple[int, list[str]]:
    """Run a command for an hour at most; return its exit status and its last lines.

    Its temporary files are in a folder of its own, which goes with it. Its path is short, as it is a part of sockets'.
    """
    temporary = folder / "t"
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        command,
        cwd=place,
        env={**stages.environment(), "VSYNCER_GATE": str(folder), "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timer = threading.Timer(PATIENCE, _end, [process])
    timer.start()
    tail: deque[str] = deque(maxlen=_TAIL)
    try:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            tail.append(line.rstrip())
        return process.wait(), list(tail)
    finally:
        timer.cancel()
        if process.poll() is None:
            _end(process)
            process.wait()
        shutil.rmtree(temporary, ignore_errors=True)


def _end(process: "subprocess.Popen[str]") -> None:
    """End a stage that hangs, with all that it has started in its session."""
    print(f"gate: ending what has not ended: {' '.join(map(str, process.args))}", flush=True)  # type: ignore[arg-type]
    os.killpg(process.pid, signal.SIGKILL)
