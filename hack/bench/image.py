"""Measure the container image: its size, the seconds until the daemon in it is ready, and its
memory at rest; JSON.

The daemon runs between two real API servers, in a container with a read-only root, without
capabilities, and as a user that the image doesn't know.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from hack.bench.daemon import Daemon
from hack.bench.scene import Planes, fresh_planes
from hack.container.build import TAG, build, save
from hack.container.engine import Engine, engine
from hack.endings import interrupt_on_sigterm
from hack.realnode.archive import architecture

#: Another user and group than the image's own, as some clusters give each namespace.
USER = 70001
#: What Pod Security "restricted" demands, and a read-only root.
CONFINED = (
    f"--user={USER}:{USER}",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
)


@dataclass
class Contained(Daemon):
    """A daemon in a container on the machine's network."""

    engine: Engine = field(default_factory=Engine)

    @property
    def pid(self) -> int:
        """The id of the daemon's process, as the machine numbers it."""
        return int(self.engine.run("inspect", "--format={{.State.Pid}}", self.folder.name))


@contextmanager
def contained(engine: Engine, image: str, planes: Planes, *options: str) -> Iterator[Contained]:
    """Yield a running daemon in a container; its folder, which also has its control socket, is all
    it can write.

    Args:
        engine: Runs it.
        image: The image.
        planes: The control planes.
        options: More options of ``docker run``.
    """
    folder = planes.folder / f"daemon-{time.time_ns()}"
    folder.mkdir()
    config = planes.config()
    for side in ("virtual", "host"):
        copy = folder / f"{side}.kubeconfig"
        copy.write_text(Path(config[side]["kubeconfig"]).read_text())
        config[side]["kubeconfig"] = str(copy)
    for path in (folder, *folder.iterdir()):
        os.chown(path, USER, USER)
    run = (
        "run",
        "--rm",
        f"--name={folder.name}",
        "--network=host",
        *CONFINED,
        f"--volume={folder}:{folder}",
    )
    daemon = Contained(
        config, folder, command=(*engine.docker, *run, *options, image), engine=engine
    )
    daemon.spawn()
    try:
        daemon.wait_ready()
        yield daemon
    finally:
        daemon.stop()


def measured(engine: Engine, image: str, planes: Planes) -> dict[str, float]:
    """Start the daemon, and return its seconds until it is ready, and its memory in MB when it
    rests.

    Raises:
        SystemExit: It doesn't get ready.
    """
    before = time.perf_counter()
    with contained(engine, image, planes) as daemon:
        ready = time.perf_counter() - before
        daemon.wait_still()
        return {"ready_seconds": ready, "rss_mb": daemon.rss(), "peak_rss_mb": daemon.peak()}


def main() -> None:
    """Build the image, and print its figures: of the rounds, each figure's median."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often it is started (default: %(default)s)"
    )
    rounds = parser.parse_args().rounds
    with engine() as found, fresh_planes() as planes:
        build(found, TAG, architecture=architecture())
        saved = save(found, TAG, architecture())
        figures = [measured(found, TAG, planes) for _ in range(rounds)]
    report: dict[str, Any] = {"image": TAG, "compressed_bytes": saved.compressed, "rounds": rounds}
    print(
        json.dumps(
            report | {name: round(median(each[name] for each in figures), 2) for name in figures[0]}
        )
    )


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
