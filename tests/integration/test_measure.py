"""The way of one ConfigMap can be counted in a daemon of its own."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hack.callpath.figures import figures, shortest
from hack.callpath.probe import Step
from hack.callpath.run import measure


def called(steps: Iterable[Step]) -> Counter[tuple[str, str]]:
    """Return how often each function is called."""
    return Counter((step.file, step.function) for step in steps if not step.resumed)


def test_way_of_a_configmap_is_the_same_each_time_and_ends_in_the_transport() -> None:
    found = asyncio.run(measure(Path(sys.executable), 3))
    assert figures(found.steps)["spread"]["objects"] == 3
    assert all(called(shortest(found.steps)) <= called(steps) for steps in found.steps), "the others may do more beside"
    first, last = found.steps[0][0], found.steps[0][-1]
    assert (first.file.partition("/")[0], last.file.partition("/")[0]) == ("clusters", "clusters")
    files = {step.file for steps in found.steps for step in steps}
    assert "resources/configmaps.py" in files
    assert not [file for file in files if file.startswith("testing/")]
