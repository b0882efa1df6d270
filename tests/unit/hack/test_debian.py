"""The tar of a small Debian is whole or not there."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hack.commands import Hung
from hack.realnode import debian, outside
from hack.realnode.inside import Failed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of tars, where nothing need be installed."""
    monkeypatch.setattr(debian, "BINARIES", tmp_path)
    monkeypatch.setattr(outside, "install", lambda _: None)
    return tmp_path


def mmdebstrap(*, writes: str, then: Callable[[], int]) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return what stands for it: it writes this into its tar, and ends so."""

    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        Path(command[-1]).write_text(writes)
        return subprocess.CompletedProcess(command, then(), "", "no mirror")

    return run


def hangs() -> int:
    raise Hung("mmdebstrap: not done")


def is_interrupted() -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("then", "error"), [(is_interrupted, KeyboardInterrupt), (hangs, Hung), (lambda: 1, Failed)])
def test_run_that_is_cut_off_leaves_the_former_tar_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, then: Callable[[], int], error: type[BaseException]
) -> None:
    monkeypatch.setattr(debian, "run", mmdebstrap(writes="whole", then=lambda: 0))
    tar = debian.root("small", ["python3"])
    before = {each.name: each.read_text() for each in folder.iterdir()}
    monkeypatch.setattr(debian, "run", mmdebstrap(writes="ha", then=then))
    with pytest.raises(error):
        debian.root("small", ["python3", "git"])
    assert {each.name: each.read_text() for each in folder.iterdir()} == before
    assert debian.root("small", ["python3"]) == tar, "and it is not built again"


def test_tar_of_other_packages_is_rebuilt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for writes, package in (("first", "python3"), ("second", "git")):
        monkeypatch.setattr(debian, "run", mmdebstrap(writes=writes, then=lambda: 0))
        assert debian.root("small", [package]).read_text() == writes
    assert sorted(each.suffix for each in folder.iterdir()) == [".sources", ".tar"]
