"""Packages under `plugins/` in the daemon of a test: by their entry points, without an installation."""

import configparser
import os
from collections.abc import Iterable
from pathlib import Path


def python_path(packages: Iterable[Path], folder: Path) -> str:
    """Return the PYTHONPATH with which a daemon finds these packages; what it knows them by is written into the
    folder, which lives as long as the daemon.
    """
    paths = [str(folder)]
    for package in packages:
        config = configparser.ConfigParser()
        config.read_string((package / "setup.cfg").read_text())
        info = folder / f"{package.name.replace('-', '_')}-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {config['metadata']['name']}\nVersion: 1\n")
        lines = config["options.entry_points"]["syncer.syncers"].strip()
        (info / "entry_points.txt").write_text(f"[syncer.syncers]\n{lines}\n")
        paths.append(str(package))
    inherited = os.environ.get("PYTHONPATH")
    if inherited:
        paths.append(inherited)
    return os.pathsep.join(paths)
