"""A checkout to compare with is named by its path."""

import argparse
from pathlib import Path

import pytest

from hack.checkout import THIS, checkout


@pytest.fixture
def made(tmp_path: Path) -> Path:
    for name in ("hack/venv", ".venv/bin/syncer"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def test_checkout_knows_its_commands(made: Path) -> None:
    found = checkout(str(made))
    assert (found.python, found.syncer) == (made / ".venv/bin/python", made / ".venv/bin/syncer")


def test_relative_path_counts_from_oldpwd(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLDPWD", str(made / "hack"))
    assert checkout("..").folder == made


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no checkout of this repository"):
        checkout(str(tmp_path))


def test_checkout_without_environment_is_refused_with_the_way_out(made: Path) -> None:
    (made / ".venv/bin/syncer").unlink()
    with pytest.raises(
        argparse.ArgumentTypeError,
        match=rf"has no .venv/bin/syncer. Make it with: cd {made} && hack/",
    ):
        checkout(str(made))


def test_commit_is_empty_outside_git(made: Path) -> None:
    assert checkout(str(made)).commit == ""


def test_checkout_is_that_of_these_tests() -> None:
    assert THIS.folder == Path(__file__).parents[3]
