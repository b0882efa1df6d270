"""Checkouts of this repository, to compare versions; each has its own environment."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from hack.commands import run


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with a version of the sources and the `.venv` that `hack/venv` created there."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ".venv" / "bin" / "python"

    @property
    def syncer(self) -> Path:
        """Its command."""
        return self.folder / ".venv" / "bin" / "syncer"

    def compile(self) -> None:
        """Compile its modules: a start that has to do so takes some 0.2 s of CPU longer.

        Raises:
            CalledProcessError: One can't be compiled.
            Hung: It took too long.
        """
        run([self.python, "-m", "compileall", "-q", self.folder / "syncer"]).check_returncode()

    @property
    def commit(self) -> str:
        """Return the commit, with `-dirty` if files differ from it; empty outside git.

        Raises:
            Hung: git took too long.
        """
        command = [
            "git",
            "-C",
            str(self.folder),
            "describe",
            "--always",
            "--dirty",
            "--abbrev=7",
            "--exclude=*",
        ]
        return run(command).stdout.strip()


#: The checkout that this file belongs to.
THIS = Checkout(Path(__file__).parents[1])


def checkout(path: str) -> Checkout:
    """Return the checkout at a path of the command line.

    Commands in `hack/` change to the root of their own checkout first, so a relative path is
    relative to `OLDPWD`.

    Raises:
        argparse.ArgumentTypeError: There is no checkout at this path, or it has no `.venv`.
    """
    found = Checkout(Path(os.environ.get("OLDPWD", "."), path).resolve())
    if not (found.folder / "hack" / "venv").exists():
        why = f"{found.folder} is no checkout of this repository: it has no hack/venv"
        raise argparse.ArgumentTypeError(why)
    if not found.syncer.exists():
        why = f"{found.folder} has no .venv/bin/syncer"
        raise argparse.ArgumentTypeError(f"{why}. Make it with: cd {found.folder} && hack/venv")
    return found
