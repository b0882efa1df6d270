"""A command of this folder ends cleanly: what it started ends with it,
and its temporary files go.
"""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


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
