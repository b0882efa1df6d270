"""A configuration where commands look for it."""

from pathlib import Path

import pytest
from cli_scene import CONFIG


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a good configuration: ``syncer.yaml`` in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("syncer.yaml").write_text(CONFIG)
    return "syncer.yaml"
