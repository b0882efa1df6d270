"""A command of this folder ends cleanly: what it started ends with it,
and its temporary files go.
"""

import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType


@dataclass
class Logs:
    """A temporary folder with logs."""

    folder: Path
    #: Set it to leave the folder at the end.
    kept: bool = False


@contextmanager
def logs(prefix: str) -> Iterator[Logs]:
    """Yield a temporary folder with logs. It is removed at the end, unless these are to be kept or
    an error ended the block.
    """
    found = Logs(Path(tempfile.mkdtemp(prefix=prefix)))
    try:
        yield found
    except Exception:
        found.kept = True
        raise
    finally:
        if not found.kept:
            shutil.rmtree(found.folder, ignore_errors=True)


def interrupt_on_sigterm() -> None:
    """Let SIGTERM, such as that of ``timeout``, end this process as Ctrl-C does; by default all
    that it has to clean up is left.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals that interrupt this process to the end of the block, such as while a process is
    started that has to be ended, too.

    Raises:
        KeyboardInterrupt: There was one.
    """
    received: list[int] = []

    def delay(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    former = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.default_int_handler:
                former[number] = signal.signal(number, delay)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt
