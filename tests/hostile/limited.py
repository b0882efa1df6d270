"""Runs `syncer` as if its container had a limit of memory: `limited.py FILE [ARGUMENT…]`, with the bytes in a file."""

import importlib.metadata
import sys
from pathlib import Path

from syncer.daemon.fleet import memory_limit


def main() -> None:
    """Run the command."""
    _, file, *arguments = sys.argv
    memory_limit.FILES = (Path(file), Path(file))
    [command] = importlib.metadata.entry_points(group="console_scripts", name="syncer")
    sys.argv = ["syncer", *arguments]
    command.load()()


if __name__ == "__main__":
    main()
