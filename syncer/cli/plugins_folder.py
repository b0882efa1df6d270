"""Packages of plugins in folders of their own: in the container image, or on a volume in it."""

import sys
from pathlib import Path


def search(folder: Path) -> None:
    """Let Python find the packages in each subfolder, after all that are installed.

    A subfolder has the files that ``pip install --target`` writes. A package in it that is
    installed, too, isn't used: the installed one was tested with the daemon.

    Raises:
        PluginError: A subfolder has no package.
    """
    for path in sorted(folder.iterdir()):
        # A volume may have folders of the kubelet's or of its file system.
        if not path.is_dir() or path.name.startswith(".") or path.name == "lost+found":
            continue
        if not any(path.glob("*.dist-info")):
            from syncer.api import PluginError

            way_out = f"Fill it with `pip install --no-deps --target {path} PACKAGE`, or remove it"
            raise PluginError(
                path.name,
                f"{path} has no installed package (*.dist-info). {way_out}",
            )
        if str(path) not in sys.path:
            sys.path.append(str(path))
