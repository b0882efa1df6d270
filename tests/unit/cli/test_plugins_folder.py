"""Packages of plugins in folders of their own, which no installer has put where Python looks."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_scene import bad, good

WIDGETS = """\
from syncer.api import *

class Widgets(Mirror):
    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
"""


@pytest.fixture
def folder(install: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of plugins with one of them, ``acme``, in it."""
    install("acme-widgets", WIDGETS, widgets="Widgets")
    acme = tmp_path / "plugins" / "acme"
    acme.mkdir(parents=True)
    for path in tmp_path.glob("acme_widgets*"):
        path.rename(acme / path.name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("SYNCER_PLUGINS_FOLDER", str(acme.parent))
    return acme.parent


def test_plugin_in_a_subfolder_is_found_and_sound(folder: Path) -> None:
    assert "acme-widgets 1.2   yes" in good("plugins", "check", "widgets")


def test_plugin_folder_given_as_a_flag_is_searched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNCER_PLUGINS_FOLDER")
    assert "acme-widgets" not in good("plugins", "list")
    assert "acme-widgets" in good("--plugins-folder", str(folder), "plugins", "list")


def test_package_of_the_environment_wins_over_the_same_in_a_plugin_folder(folder: Path) -> None:
    (folder / "acme" / "msgspec.py").write_text("raise RuntimeError('not the one that was installed')\n")
    (folder / "acme" / "vsyncer-9.dist-info").mkdir()
    (folder / "acme" / "vsyncer-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vsyncer\n")
    good("plugins", "check", "widgets")
    assert sys.path[-1] == str(folder / "acme")


def test_hidden_folders_and_files_in_a_plugin_folder_are_left_alone(folder: Path) -> None:
    (folder / "lost+found").mkdir()
    (folder / "..data").mkdir()
    (folder / "README").write_text("")
    good("plugins", "list")


def test_subfolder_without_a_package_is_refused(folder: Path) -> None:
    (folder / "beta" / "vsyncer_beta").mkdir(parents=True)
    output = bad("plugins", "list", code=3)
    assert f"plugin beta: {folder}/beta has no installed package" in output
    assert f"pip install --no-deps --target {folder}/beta" in output


def test_plugin_folder_that_is_missing_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNCER_PLUGINS_FOLDER", f"{folder}/none")
    assert f"Directory '{folder}/none' does not exist" in bad("plugins", "list", code=2)
