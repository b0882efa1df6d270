"""Small Debians, of which images are made without a registry."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.commands import run
from hack.realnode import archive, outside
from hack.realnode.builds import BINARIES
from hack.realnode.inside import Failed

SUITE = "bookworm"
#: How long mmdebstrap may take, also in an emulator.
_SECONDS = 1800.0
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: Debian's packages that making takes, and a program or file of each.
_PACKAGES = {"mmdebstrap": "mmdebstrap", "debian-archive-keyring": KEYS}
#: What tells whether programs of another architecture run here; mmdebstrap asks it.
FOREIGN = {"arch-test": "arch-test"}
#: What is left out; licences stay, as an image is given to others.
_PATHS = (
    *(f"path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")),
    "path-include=/usr/share/doc/*/copyright",
)


def root(name: str, packages: Sequence[str], *, suite: str = SUITE, architecture: str = "") -> Path:
    """Return the tar of a root file system with these packages of Debian. It is made once.

    Args:
        name: The tar's name, without its ending.
        packages: The packages beside Debian's essential ones.
        suite: The release.
        architecture: Debian's name of it, by default this machine's. Another one needs binfmt_misc
            and an emulator.

    Raises:
        Failed: mmdebstrap can't be installed, or failed.
        Hung: It took too long.
    """
    tar = BINARIES / f"{name}.tar"
    stamp = BINARIES / f"{name}.sources"
    recipe = " ".join((suite, *([architecture] if architecture else ()), *_PATHS, *packages))
    if tar.exists() and stamp.exists() and stamp.read_text() == recipe:
        return tar
    outside.install(
        _PACKAGES | (FOREIGN if architecture not in ("", archive.architecture()) else {})
    )
    print(
        f"node: making {tar.name} from Debian's packages, about a minute",
        file=sys.stderr,
        flush=True,
    )
    BINARIES.mkdir(exist_ok=True)
    # Under another name first, so that no run trusts the rest of one that was cut off.
    new = tar.with_name(f"{name}.{os.getpid()}.new.tar")
    command = [
        "nice",
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=essential",
        f"--keyring={KEYS}",
    ]
    command += [f"--architectures={architecture}"] if architecture else []
    command += [
        *(f"--dpkgopt={path}" for path in _PATHS),
        f"--include={','.join(packages)}",
        suite,
        str(new),
    ]
    try:
        done = run(command, seconds=_SECONDS, cwd=BINARIES)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")
        stamp.unlink(missing_ok=True)
        new.replace(tar)
    finally:
        new.unlink(missing_ok=True)
    stamp.write_text(recipe)
    return tar
