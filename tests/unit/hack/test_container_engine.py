"""A Docker engine of a checkout's own leaves nothing but its images."""

from pathlib import Path
from typing import Any

import pytest

from hack.container import engine
from hack.realnode import node_site


class Dockerd:
    """What stands for dockerd: it makes its control groups, where they are not there yet."""

    def __init__(self, groups: Path) -> None:
        for each in groups.iterdir():
            (each / "docker" / "buildkit").mkdir(parents=True)

    def poll(self) -> None:
        """Return that it runs."""

    def terminate(self) -> None:
        """End."""

    def wait(self, seconds: float) -> int:
        """Return its exit status."""
        return 0


def test_control_groups_of_an_engine_go_with_it_and_those_of_another_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = tmp_path / "cgroup"
    (groups / "memory").mkdir(parents=True)
    (groups / "pids" / "docker").mkdir(parents=True)
    monkeypatch.setattr(node_site, "_CGROUPS", groups)
    monkeypatch.setattr(engine, "spawn", lambda *_: Dockerd(groups))
    monkeypatch.setattr(engine.Engine, "answers", lambda _: True)
    monkeypatch.setattr(engine.Engine, "run", lambda *_: "")
    started: Any = engine._started(tmp_path)
    next(started)
    assert (groups / "memory" / "docker").exists()
    started.close()
    assert not (groups / "memory" / "docker").exists()
    assert (groups / "pids" / "docker").exists()
