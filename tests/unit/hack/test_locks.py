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
    found = dict(re.findall(r"^([\w.-]+)==([\w.]+)(?: ;.*)?$", CONSTRAINTS.read_text(), re.MULTILINE))
    assert len(found) == len(CONSTRAINTS.read_text().splitlines())
    for requirement in map(Requirement, development()):
        version = found.get(canonicalize_name(requirement.name), "")
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement}, not {version!r}: run hack/lock"
        )
