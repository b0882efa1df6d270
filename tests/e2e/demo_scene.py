"""A run of the demo, as a newcomer starts it."""

import os
import subprocess
from pathlib import Path

from hack.realnode.node_site import ROOT


def demo(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the demo on a node of its own to its end, with its files in the folder."""
    return subprocess.run(
        [ROOT / "hack" / "demo", "--node", *options, "--once"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
