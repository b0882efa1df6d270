"""Programs that tools and tests run: one that hangs is ended, and named with its last lines."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from typing import IO, Any

#: Seconds that a program may take which does nothing special.
SECONDS = 600.0
#: Lines of its output that are shown of a program that hangs.
_TAIL = 15


class Hung(RuntimeError):
    """A program took too long, and was ended."""


def run(
    command: Sequence[str | Path], *, seconds: float = SECONDS, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a program, whether it fails or not, and return its end and its output.

    Args:
        command: The program and its arguments.
        seconds: How long it may take.
        options: More for :func:`subprocess.run`.

    Raises:
        Hung: It took longer.
    """
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        return subprocess.run(
            command, **pipes | options, text=True, errors="replace", check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as late:
        printed = b"".join(each for each in (late.stdout, late.stderr) if each)
        raise Hung(complaint(command, seconds, printed)) from late


def line_of(
    process: "subprocess.Popen[str]", output: IO[str] | None, *, seconds: float = SECONDS
) -> str:
    """Return the next line that a running program writes to its output; it is killed if it writes
    none in time.

    Raises:
        Hung: It wrote none, or has ended.
    """
    assert output is not None
    end = Timer(seconds, process.kill)
    end.start()
    try:
        line = output.readline()
    finally:
        end.cancel()
    if not line:
        raise Hung(f"{_shown(process.args)}: ended without a line, or wrote none in {seconds:g} s")
    return line


def complaint(command: Sequence[str | Path], seconds: float, printed: bytes) -> str:
    """Return the message about a program that has not ended in time."""
    lines = [f"{_shown(command)}: not done after {seconds:g} s"]
    if tail := printed.decode(errors="replace").splitlines()[-_TAIL:]:
        lines += ["its output ends with:", *tail]
    return "\n".join(lines)


def _shown(command: Any) -> str:
    return command if isinstance(command, str) else " ".join(map(str, command))
