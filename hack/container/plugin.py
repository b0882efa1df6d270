"""A plugin's packages in a folder, as an image carries them."""

import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory

from hack.commands import run

_PIP = (
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--no-compile",
)


def install(plugin: Path, target: Path) -> None:
    """Install the plugin of a source folder into another folder, without the packages it requires.

    Raises:
        RuntimeError: pip failed, or took too long.
    """
    with TemporaryDirectory() as folder:
        # A copy: setuptools builds beside the sources, and packs what an earlier build has left
        # there.
        source = copytree(
            plugin, Path(folder) / plugin.name, ignore=ignore_patterns("build", "*.egg-info")
        )
        command = [sys.executable, *_PIP, f"--target={target}", str(source)]
        done = run(command)
    if done.returncode:
        raise RuntimeError(f"pip install {plugin}: {done.stderr.strip()[-1000:]}")
