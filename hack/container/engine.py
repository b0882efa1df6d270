"""A Docker engine: the one that runs, or one of this checkout's own for as long as it is needed."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.commands import SECONDS, run
from hack.realnode import outside
from hack.realnode.inside import Failed, wait
from hack.realnode.node_site import hierarchies, remove_group
from kube_envtest.controlplane.processes import spawn

#: What this folder's commands make; not in git.
OUTPUT = Path(__file__).parents[2] / "build" / "image"
#: Debian's packages that an engine takes, and a program of each.
_PACKAGES = {"docker.io": "dockerd"}
#: It leaves the machine's network alone; containers have the host's or none.
_NO_NETWORK = ("--bridge=none", "--iptables=false", "--ip6tables=false")
#: How long a command of ``docker`` may take: a build installs packages, in an emulator perhaps.
_SECONDS = 1800.0


class Engine:
    """A running Docker engine."""

    def __init__(self, host: str = "") -> None:
        """Create the client of an engine.

        Args:
            host: Its address; by default that of the environment.
        """
        #: The beginning of each command.
        self.docker = ["docker", *([f"--host={host}"] if host else [])]

    def answers(self) -> bool:
        """Return True if it runs and there is a client for it."""
        asked = ("version", "--format={{.Server.Version}}")
        return (
            bool(shutil.which("docker")) and not self._command(*asked, seconds=SECONDS).returncode
        )

    def has(self, image: str) -> bool:
        """Return True if the engine has the image."""
        return not self.command("image", "inspect", image).returncode

    def run(self, *arguments: str) -> str:
        """Run a command of ``docker``; return its output.

        Raises:
            Failed: It failed.
            Hung: It took too long.
        """
        done = self.command(*arguments)
        if done.returncode:
            raise Failed(
                f"docker {' '.join(arguments)}:\n{(done.stdout + done.stderr).strip()[-4000:]}"
            )
        return done.stdout.strip()

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of ``docker``, whether it fails or not.

        Raises:
            Hung: It took too long.
        """
        return self._command(*arguments, seconds=_SECONDS)

    def _command(self, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        return run([*self.docker, *arguments], seconds=seconds)


def why_not() -> str:
    """Return why no engine can be had here; empty if there is one or one can be started."""
    if Engine().answers():
        return ""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "no Docker engine answers, and only root on Linux can start one"
    if not shutil.which("apt-get") and not shutil.which("dockerd"):
        return "no Docker engine answers, there is no dockerd, and no apt-get to install it"
    return ""


@contextmanager
def engine() -> Iterator[Engine]:
    """Yield the engine that runs; where none does, one that ends with the block.

    Raises:
        Failed: There is none, and none can be started.
    """
    if reason := why_not():
        raise Failed(reason)
    found = Engine()
    if found.answers():
        yield found
        return
    outside.install(_PACKAGES)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    # Its sockets have short paths, and that of a checkout, or of a test's temporary files, may be
    # long.
    short = tempfile.TemporaryDirectory(prefix="vsyncer-docker-", dir="/tmp")
    with (OUTPUT / "docker.lock").open("w") as lock, short as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield from _started(Path(folder))


def _started(folder: Path) -> Iterator[Engine]:
    """Yield an engine of this checkout's own; its images are kept,
    and other files are in the folder.
    """
    own = Engine(f"unix://{folder}/sock")
    log = folder / "log"
    command = ["dockerd", f"--host=unix://{folder}/sock", f"--pidfile={folder}/pid", *_NO_NETWORK]
    # The groups of containers, which dockerd makes and leaves.
    groups = [group for root in hierarchies() if not (group := root / "docker").exists()]
    # Of its mounts, none is left at its end.
    apart = ["unshare", "--mount"]
    process = spawn(
        [*apart, *command, f"--data-root={OUTPUT}/docker", f"--exec-root={folder}/run"], log, folder
    )

    def is_ready() -> bool:
        if process.poll() is not None:
            raise Failed(f"dockerd ended:\n{log.read_text(errors='replace')[-2000:]}")
        return own.answers()

    try:
        wait("dockerd", is_ready)
        # What builds of other days left; the layers that the next one begins with are newer.
        own.run("image", "prune", "--force", "--filter=until=72h")
        yield own
    finally:
        process.terminate()
        process.wait(60)
        with contextlib.suppress(OSError):  # another engine has begun to use one
            for group in groups:
                remove_group(group)
