"""Checkouts of this repository, to compare versions; each has its own environment."""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from hack.commands import run

#: Where checkouts of commits are kept, each with its `.venv`.
COMMITS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vsyncer" / "commits"
#: Seconds that the environment of a checkout may take.
VENV_SECONDS = 1200.0


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


def checkout_or_commit(given: str) -> Checkout:
    """Return the checkout at a path of the command line, or that of a commit, which is made if it
    isn't there.

    Raises:
        argparse.ArgumentTypeError: It is neither, or the checkout can't be made.
    """
    if Path(os.environ.get("OLDPWD", "."), given).exists():
        return checkout(given)
    found = run(
        ["git", "-C", str(THIS.folder), "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}"]
    )
    if found.returncode:
        raise argparse.ArgumentTypeError(
            f"{given} is neither a folder nor a commit of this repository"
        )
    return _of_commit(found.stdout.strip())


def _of_commit(commit: str) -> Checkout:
    """Return the checkout of a commit with its environment.

    Raises:
        argparse.ArgumentTypeError: It can't be made.
    """
    made = Checkout(COMMITS / commit)
    steps: list[list[str | Path]] = []
    if not (made.folder / "hack" / "venv").exists():
        steps.append(
            ["git", "clone", "--quiet", "--shared", "--no-checkout", THIS.folder, made.folder]
        )
        steps.append(["git", "-C", made.folder, "checkout", "--quiet", "--detach", commit])
    steps.append([made.folder / "hack" / "venv"])
    print(f"{made.folder}: preparing the checkout of the commit", file=sys.stderr)
    for step in steps:
        ended = run(step, seconds=VENV_SECONDS)
        if ended.returncode:
            command = " ".join(map(str, step))
            raise argparse.ArgumentTypeError(
                f"{command} failed: {ended.stderr.strip()}. Remove {made.folder}"
            )
    return checkout(str(made.folder))
