"""What a plain ``docker build`` takes of the tree, and from where."""

import re
from pathlib import Path

from syncer.version import VERSION

ROOT = Path(__file__).parents[3]


def test_dockerfile_has_the_version_of_the_daemon() -> None:
    assert f"ARG VERSION={VERSION}\n" in (ROOT / "Dockerfile").read_text()


def test_dockerfile_copies_only_what_its_context_lets_in() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {file for files in copied for file in files.split()} == let_in
