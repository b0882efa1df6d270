"""An image with Debian's Python and the official Kubernetes client."""

import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from hack.realnode import debian
from hack.realnode.archive import Image, write

TAG = "vsyncer.dev/python-client:local"
#: The Python of Debian's release.
_PYTHON = "3.11"


def write_image(archive: Path, folder: Path) -> None:
    """Write the image's archive; the packages of the client are laid out in the folder.

    Raises:
        Failed: The base can't be made.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    # Of the image's Python and not of this one's: some have a part that is compiled.
    of_image = ["--only-binary=:all:", f"--python-version={_PYTHON}", f"--platform=manylinux2014_{platform.machine()}"]
    subprocess.run(
        [*pip, *of_image, f"--target={folder}", f"kubernetes=={version('kubernetes')}"], check=True, timeout=600
    )
    files: dict[str, Path | str] = {
        f"client/{path.relative_to(folder)}": path
        for path in folder.rglob("*")
        if path.is_file() and "aio" not in path.parts
    }
    base = debian.root("python", ["python3"])
    write(archive, [Image([TAG], ["/usr/bin/python3"], files, base=base)])
