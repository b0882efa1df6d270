"""The lock files satisfy what the daemon, its build and development require, and name no index."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hack.container.build import LOCKS
from hack.container.lock import BUILD, CONSTRAINTS, PROGRAMS, RUNTIME, development, wanted

_PINNED = re.compile(r"^([\w.-]+)==([\w.]+)(?: ;.*)? \\((?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+)$", re.MULTILINE)


def pins(path: Path) -> dict[str, str]:
    """Return the version of each package, all of which have hashes."""
    text = path.read_text()
    found = {match[1]: match[2] for match in _PINNED.finditer(text)}
    assert _PINNED.sub("", text).strip() == "", "a lock file has versions with hashes, and nothing else"
    return found


@pytest.mark.parametrize("name", [RUNTIME, BUILD, PROGRAMS])
def test_lock_has_a_version_that_fits_each_requirement(name: str) -> None:
    found = pins(LOCKS / name)
    for requirement in map(Requirement, wanted(name)):
        version = found.get(canonicalize_name(requirement.name))
        assert version, f"{name} lacks {requirement.name}: run hack/lock"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement}, not {version}: run hack/lock"


def test_constraints_have_a_version_that_fits_each_requirement_of_development() -> None:
    """A package may have several versions, each for other versions of Python."""
    text = CONSTRAINTS.read_text()
    lines = re.findall(r"^([\w.-]+)==([\w.]+)(?: ;.*)?$", text, re.MULTILINE)
    assert len(lines) == len(text.splitlines())
    found: dict[str, list[str]] = {}
    for name, version in lines:
        found.setdefault(name, []).append(version)
    for requirement in map(Requirement, development()):
        versions = found.get(canonicalize_name(requirement.name), [""])
        for version in versions:
            fits = requirement.specifier.contains(version, prereleases=True)
            assert fits, f"{requirement}, not {version!r}: run hack/lock"
