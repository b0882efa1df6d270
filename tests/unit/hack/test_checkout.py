"""A checkout to compare with is named by its path."""

import argparse
from pathlib import Path

import pytest

from hack import checkout as checkouts
from hack.checkout import THIS, Checkout, checkout, checkout_or_commit
from hack.commands import run


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


VENV = """#!/bin/sh
mkdir -p "$(dirname "$0")/../.venv/bin"
touch "$(dirname "$0")/../.venv/bin/syncer"
"""


def committed(folder: Path, text: str) -> str:
    """Commit a repository in a folder, and return the commit."""
    (folder / "hack").mkdir(parents=True, exist_ok=True)
    (folder / "hack" / "venv").write_text(VENV)
    (folder / "hack" / "venv").chmod(0o755)
    (folder / "text").write_text(text)
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "--message", text]):
        run(["git", "-C", folder, *arguments]).check_returncode()
    return run(["git", "-C", folder, "rev-parse", "HEAD"]).stdout.strip()


def test_commit_gets_a_checkout_of_its_own_and_a_path_stays_one(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    first = committed(repository, "first")
    committed(repository, "second")
    monkeypatch.setattr(checkouts, "THIS", Checkout(repository))
    monkeypatch.setattr(checkouts, "COMMITS", tmp_path / "commits")
    for _ in range(2):
        found = checkout_or_commit(first[:10])
        assert found.folder == tmp_path / "commits" / first
        assert (found.folder / "text").read_text() == "first"
        assert found.syncer.exists()
    assert checkout_or_commit(str(made)).folder == made
    with pytest.raises(argparse.ArgumentTypeError, match="neither a folder nor a commit"):
        checkout_or_commit("nonsense")


def test_checkout_is_that_of_these_tests() -> None:
    assert THIS.folder == Path(__file__).parents[3]
