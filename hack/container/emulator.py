"""An emulator for programs of another architecture: Debian's qemu, registered with the kernel."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hack.commands import line_of, run
from hack.realnode import archive, outside
from hack.realnode.inside import Failed

#: The names that qemu has for architectures.
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}
_FOLDER = "/proc/sys/fs/binfmt_misc"
#: True if an emulator of this name is registered. The mount is this shell's own.
_MOUNTED = (
    f"mountpoint --quiet {_FOLDER} || mount -t binfmt_misc binfmt_misc {_FOLDER}; "
    f"test -e {_FOLDER}/$1"
)
#: Registers it with the line of a file, says whether it is, and waits. The mount keeps it
#: registered.
_HOLD = f"{_MOUNTED} || cat $2 >{_FOLDER}/register || test -e {_FOLDER}/$1; echo $?; exec cat"


@contextmanager
def emulated(architecture: str) -> Iterator[None]:
    """Let the whole machine run programs of an architecture for as long as the block runs.

    The kernel opens the emulator at the registration, so that it is found from any root file
    system. Where the machine itself has binfmt_misc mounted, the registration stays. Nothing is
    done for this machine's own architecture, nor where the engine belongs to another user: without
    root, or on another system than Linux.

    Args:
        architecture: ``amd64`` or ``arm64``.

    Raises:
        Failed: The emulator can't be installed or registered.
        Hung: This took too long.
    """
    if architecture == archive.architecture() or sys.platform != "linux" or os.geteuid() != 0:
        yield
        return
    name = f"qemu-{_NAMES[architecture]}"
    line = f"/usr/lib/binfmt.d/{name}.conf"
    if run(_apart(_MOUNTED, name)).returncode:
        outside.install({"qemu-user-static": line})
    pipe = subprocess.PIPE
    with subprocess.Popen(_apart(_HOLD, name, line), stdin=pipe, stdout=pipe, text=True) as holder:
        if line_of(holder, holder.stdout) != "0\n":
            raise Failed(f"{name} can't be registered in {_FOLDER}")
        yield


def _apart(script: str, *arguments: str) -> list[str]:
    """Return the command that runs a shell with mounts of its own."""
    return ["unshare", "--mount", "sh", "-c", script, "sh", *arguments]
