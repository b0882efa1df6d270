"""A node that can't start leaves nothing but its logs."""

import shutil
from pathlib import Path

import pytest

from hack.realnode import builds, outside
from hack.realnode.place import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place in a folder of the test, where a node could run."""
    monkeypatch.setattr(Place, "folder", tmp_path / "node")
    monkeypatch.setattr(outside, "why_not", lambda: "")
    monkeypatch.setattr(outside, "install", lambda: None)
    monkeypatch.setattr(outside, "KUBELET_SETTINGS", ())
    monkeypatch.setattr("hack.realnode.place.hierarchies", list)
    if not shutil.which("ip"):  # which deletes the link of a node that ran
        monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    return Place("0badcafe")


def test_node_whose_images_cannot_be_built_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise RuntimeError("no Go here")

    monkeypatch.setattr(builds, "write_images", broken)
    with pytest.raises(RuntimeError, match="no Go here"):
        outside.up(place)
    assert not place.folder.exists()
