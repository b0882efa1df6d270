"""The way of one ConfigMap can be counted in a daemon of its own."""

import asyncio
import sys
from pathlib import Path

from hack.callpath.figures import figures
from hack.callpath.run import ways


def test_way_of_a_configmap_is_the_same_each_time_and_ends_in_the_transport() -> None:
    found = asyncio.run(ways(Path(sys.executable), 3))
    figured = figures(found.steps)
    assert figured["spread"]["objects"] == 3
    assert figured["spread"]["max"] < 1.2 * figured["calls"]
    first, last = found.steps[0][0], found.steps[0][-1]
    assert (first.file.partition("/")[0], last.file.partition("/")[0]) == ("clusters", "clusters")
    files = {step.file for steps in found.steps for step in steps}
    assert "resources/configmaps.py" in files
    assert not [file for file in files if file.startswith("testing/")]
