"""The workflow of a pushed tag: its permissions, and that its commands exist and do their work."""

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack import release

ROOT = Path(__file__).parents[3]
FILE = ROOT / ".github" / "workflows" / "release.yml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS: list[dict[str, Any]] = [step for job in JOBS.values() for step in job["steps"]]
SCRIPTS: dict[str, str] = {step["name"]: step["run"] for step in STEPS if "run" in step}
#: What GitHub's runners have, and the shell itself.
PROGRAMS = {"awk", "cp", "echo", "gh", "go", "gunzip", "helm", "mkdir", "sha256sum", "sudo", "test"}
#: What a step before has installed.
PROGRAMS |= {"crane"}
#: Begins what has a command after it, or none.
GRAMMAR = {"for", "do", "done", "if", "then", "fi"}


def commands(script: str) -> list[list[str]]:
    """Return the words of each command of a script, without assignments and the shell's grammar."""
    found = []
    for line in script.splitlines():
        words = shlex.split(line)
        if words and words[0] not in GRAMMAR and not re.match(r"\w+=", words[0]):
            found.append(words)
    return found


def ran(script: str, folder: Path, **environment: str) -> None:
    """Run a script as a runner does, with its folder first in PATH."""
    given = {**os.environ, **environment, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    subprocess.run(command, cwd=folder, env=given, check=True, capture_output=True, timeout=60)


def test_only_a_pushed_tag_of_a_version_starts_it() -> None:
    # YAML 1.1 reads the key `on` as true.
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}


def test_each_job_has_the_one_permission_that_it_needs() -> None:
    assert WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "build": {"contents": "read"},
        "registry": {"packages": "write"},
        "pypi": {"id-token": "write"},
        "github": {"contents": "write"},
    }


def test_permanent_publishing_comes_after_repeatable_steps() -> None:
    order = {name: job.get("needs") for name, job in JOBS.items()}
    assert order == {"build": None, "registry": "build", "pypi": "registry", "github": "pypi"}


def test_actions_are_pinned_by_their_commits_with_the_version_beside() -> None:
    lines = [line.strip("- ") for line in FILE.read_text().splitlines() if "uses:" in line]
    pinned = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert lines
    assert [line for line in lines if not pinned.fullmatch(line)] == []


def test_texts_of_events_are_given_to_scripts_by_the_environment() -> None:
    assert [script for script in SCRIPTS.values() if "${{" in script] == []


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_commands_exist(script: str) -> None:
    subprocess.run(["bash", "-n", "-c", script], check=True, timeout=60)
    for words in commands(script):
        program = words[0]
        if "/" in program:
            assert os.access(ROOT / program, os.X_OK), program
        else:
            assert program in PROGRAMS


def test_hack_release_takes_the_arguments() -> None:
    [words] = commands(SCRIPTS["Build"])
    assert words[0] == "hack/release"
    context = release.main.make_context("release", words[1:])
    [uploaded] = [step for step in STEPS if "upload-artifact" in step.get("uses", "")]
    assert str(context.params["into"]) == uploaded["with"]["path"]


def test_packages_are_chosen_without_images_and_charts(tmp_path: Path) -> None:
    packages = {"vsyncer-1.2.0-py3-none-any.whl", "vsyncer-1.2.0.tar.gz"}
    (tmp_path / "release").mkdir()
    for name in (*packages, "syncer-1.2.0-amd64.tar.gz", "syncer-1.2.0.tgz", "checksums.txt"):
        (tmp_path / "release" / name).touch()
    ran(SCRIPTS["Choose the packages"], tmp_path)
    assert {file.name for file in (tmp_path / "packages").iterdir()} == packages


def test_notes_are_the_section_of_the_version(tmp_path: Path) -> None:
    sections = "# Changes\n\n## [1.2.0] - 2026-11-27\n\n### Added\n\n- this\n\n## [1.1.0]\n- that\n"
    (tmp_path / "CHANGELOG.md").write_text(sections)
    ran(SCRIPTS["Take the notes from the changelog"], tmp_path, GITHUB_REF_NAME="v1.2.0")
    assert (tmp_path / "notes.md").read_text().split() == ["###", "Added", "-", "this"]


def test_version_without_a_section_is_not_released(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n")
    with pytest.raises(subprocess.CalledProcessError):
        ran(SCRIPTS["Take the notes from the changelog"], tmp_path, GITHUB_REF_NAME="v1.2.0")


def recorded(folder: Path, *programs: str) -> Path:
    """Put programs into a folder that note how they were called; return the file of the notes."""
    calls = folder / "calls"
    for name in programs:
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{calls}"\n')
        program.chmod(0o755)
    return calls


def test_an_index_of_both_images_and_each_chart_is_pushed(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    calls = recorded(folder, "crane", "helm", "sha256sum", "gunzip")
    for name in ("fleet-1.2.0.tgz", "syncer-1.2.0.tgz"):
        (folder / name).touch()
    script = SCRIPTS["Push the image and the charts"]
    ran(script, folder, GITHUB_REF_NAME="v1.2.0", REGISTRY="r.test/x")
    image = "r.test/x/syncer:1.2.0"
    assert calls.read_text().splitlines() == [
        "sha256sum --check --strict checksums.txt",
        *("gunzip --stdout syncer-1.2.0-amd64.tar.gz", f"crane push ../image.tar {image}-amd64"),
        *("gunzip --stdout syncer-1.2.0-arm64.tar.gz", f"crane push ../image.tar {image}-arm64"),
        f"crane index append --tag {image} --manifest {image}-amd64 --manifest {image}-arm64",
        "helm push fleet-1.2.0.tgz oci://r.test/x/charts",
        "helm push syncer-1.2.0.tgz oci://r.test/x/charts",
    ]


@pytest.mark.parametrize(("tag", "kind"), [("v1.2.0", "--latest"), ("v1.2.0-rc.1", "--prerelease")])
def test_pre_release_is_never_the_latest(tmp_path: Path, tag: str, kind: str) -> None:
    calls = recorded(tmp_path, "gh")
    ran(SCRIPTS["Make the release"], tmp_path, GITHUB_REF_NAME=tag)
    expected = f"gh release create {tag} --verify-tag {kind} --title {tag} --notes-file notes.md"
    assert calls.read_text().startswith(expected)
