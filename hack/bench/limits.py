"""Measure how long a tenant waits while others follow 300 logs unread, and fill the memory.

The daemon runs in a control group with each limit of memory that its chart has, so root is needed.
Prints a line of JSON for each limit: the median of the time that the daemon takes for a ConfigMap
of another virtual cluster, in ms, before the attacks, while it reads and copies their large
objects, and with all of them in place, and the processes that the kernel has ended. The exit status
is 1 if there is any, or if the last median is more than twice the first.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from crowded_scene import CrowdedScene, limits_of_charts

from hack.memory_group import memory_group

#: The factor by which the median may grow.
SLOWER = 2.0
#: Seconds in which the daemon copies what it has room for.
SETTLING = 60.0


def measured(limit: int, folder: Path, times: int) -> dict[str, Any]:
    """Return the figures with a limit, in bytes."""
    with memory_group(limit) as group:
        scene = CrowdedScene(folder, group, limit)
        with scene.stack:
            scene.start()
            scene.beat(times)
            before = scene.beat(times)
            answers = scene.follow_logs()
            scene.fill()
            filling = scene.beat(times)
            time.sleep(SETTLING)
            filled = scene.beat(times)
            followed = [each for each in answers if each.startswith(b"HTTP/1.1 200")]
            return {
                "limit_mb": limit >> 20,
                "before_ms": round(before * 1e3, 2),
                "filling_ms": round(filling * 1e3, 2),
                "filled_ms": round(filled * 1e3, 2),
                "logs": len(followed),
                "peak_mb": round(scene.scene.daemon.peak()),
                "killed": group.killed(),
            }


def main() -> int:
    """Measure with each limit, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=100, help="ConfigMaps for each median (100)")
    options = parser.parse_args()
    status = 0
    for limit in limits_of_charts().values():
        with tempfile.TemporaryDirectory(prefix="syncer-limits-") as folder:
            figures = measured(limit, Path(folder), options.times)
        print(json.dumps(figures), flush=True)
        if figures["killed"] or figures["filled_ms"] > SLOWER * figures["before_ms"]:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
