"""Checkouts of files that may be released."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def git(tree: Path, *arguments: str) -> None:
    """Run git in a checkout, as an author of the tests."""
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(tree), *identity, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def commit(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder a checkout with one commit of these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=one")
