"""The charts as Helm installs them: with the library chart that they depend on,
in a folder apart from the checkout.
"""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hack.commands import run
from hack.realnode import builds

CHARTS = Path(__file__).parents[1] / "charts"
#: Where Helm puts what a chart depends on.
_DEPENDENCIES = "charts"


@cache
def built(name: str) -> Path:
    """Return the folder of a chart with what it depends on: a copy, built once in a process and
    removed at its end.

    Raises:
        RuntimeError: There is no Helm, or it can't build the chart.
    """
    chart = _copies() / name
    done = run([builds.tool("helm"), "dependency", "build", chart])
    if done.returncode:
        raise RuntimeError(f"helm dependency build {name}: {done.stderr.strip()}")
    return chart


@cache
def _copies() -> Path:
    """Return a folder with copies of all charts, as a dependency's path is relative."""
    folder = Path(tempfile.mkdtemp(prefix="charts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for chart in CHARTS.iterdir():
        shutil.copytree(chart, folder / chart.name, ignore=_without_dependencies)
    return folder


def _without_dependencies(folder: str, names: list[str]) -> set[str]:
    """Leave out what was built in the checkout, which may be older than the library."""
    return {_DEPENDENCIES} & set(names)
