"""The image of the daemon, and the engine that runs it."""

from pathlib import Path
from typing import NamedTuple

from hack.bench.image import CONFINED
from hack.container.build import TAG, Saved
from hack.container.engine import Engine


class Built(NamedTuple):
    """The image, and the engine that runs it."""

    engine: Engine
    saved: Saved

    def syncer(self, *arguments: str, image: str = TAG, options: tuple[str, ...] = ()) -> str:
        """Return the output of a command of the daemon, confined as a pod of the chart is."""
        return self.engine.run("run", "--rm", "--network=none", *CONFINED, *options, image, *arguments)

    def build(self, folder: Path, tag: str) -> str:
        """Build the Dockerfile in a folder; return the tag."""
        self.engine.run("build", f"--tag={tag}", str(folder))
        return tag
