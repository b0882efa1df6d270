"""Programs are built once from the same sources, whichever checkout asks, and are whole or not there."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hack.realnode import builds


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the packages that are built, of a module with a single file."""
    packages: list[str] = []

    def go(folder: str, arguments: Sequence[str]) -> str:
        packages.append(arguments[-1])
        Path(arguments[arguments.index("-o") + 1]).write_text(f"number {len(packages)}")
        return ""

    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "go.mod").write_text("module one")
    monkeypatch.setattr(builds, "_HERE", tmp_path)
    monkeypatch.setattr(builds, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(builds, "go", go)
    monkeypatch.setattr(shutil, "which", lambda name: f"/{name}")
    return packages


def test_program_is_rebuilt_only_from_other_sources_or_options(built: list[str], tmp_path: Path) -> None:
    first = builds.build("module", "example.org/cmd/helm")
    assert (first.name, builds.build("module", "example.org/cmd/helm")) == ("helm", first)
    assert built == ["example.org/cmd/helm"]
    others = [builds.build("module"), builds.build("module", tests=True), builds.build("module", tags="small")]
    (tmp_path / "module" / "go.mod").write_text("module two")
    others.append(builds.build("module", "example.org/cmd/helm"))
    assert [each.name for each in others] == ["module", "module.test", "module", "helm"]
    assert len({first, *others}) == len(built) == 5
    assert first.read_text() == "number 1", "another checkout may still use it"


def test_build_that_fails_leaves_no_program(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(folder: str, arguments: Sequence[str]) -> str:
        Path(arguments[arguments.index("-o") + 1]).write_text("half of it")
        raise RuntimeError("no space left")

    works = builds.go
    monkeypatch.setattr(builds, "go", fails)
    with pytest.raises(RuntimeError):
        builds.build("module")
    monkeypatch.setattr(builds, "go", works)
    assert builds.build("module").read_text() == "number 1"
