"""What a plain ``docker build`` takes of the tree, and from where."""

import json
import re
from pathlib import Path

from syncer.version import VERSION

ROOT = Path(__file__).parents[3]
LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()


def instructions(name: str) -> list[str]:
    """Return the arguments of all instructions of a name."""
    return [line.removeprefix(f"{name} ").strip() for line in LINES if line.startswith(f"{name} ")]


def test_dockerfile_has_the_version_of_the_daemon() -> None:
    assert f"ARG VERSION={VERSION}\n" in (ROOT / "Dockerfile").read_text()


def test_dockerfile_copies_exactly_the_files_of_its_context() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {file for files in copied for file in files.split()} == let_in


def test_base_has_a_version_and_may_be_given_with_a_digest() -> None:
    [base] = [each.partition("=")[2] for each in instructions("ARG") if each.startswith("BASE=")]
    assert re.fullmatch(r"[a-z0-9./-]+:\d+\.\d+-slim", base)
    assert {each.partition(" ")[0] for each in instructions("FROM")} == {"${BUILDER}", "packages", "${BASE}", "scratch"}


def test_everything_from_an_index_has_a_hash_or_is_ours() -> None:
    installs = re.findall(r"pip\S*(?: --python \S+)? install (.*?)(?:&&|$)", "\n".join(LINES), re.MULTILINE)
    assert len(installs) == 3
    assert [each for each in installs if "--require-hashes" not in each and "/wheel/" not in each] == []


def test_last_stage_runs_as_a_user_without_a_name_by_the_exec_form() -> None:
    assert instructions("USER") == ["65532:65532"]
    for name in ("ENTRYPOINT", "CMD"):
        [instruction] = instructions(name)
        assert isinstance(json.loads(instruction), list)


def test_nothing_looks_like_a_secret() -> None:
    names = [each.partition("=")[0].upper() for each in (*instructions("ARG"), *instructions("ENV"))]
    assert [each for each in names if re.search(r"TOKEN|PASSWORD|SECRET|KEY", each)] == []


def test_everything_that_is_copied_exists() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [file for files in copied for file in files.split() if not (ROOT / file).exists()] == []
