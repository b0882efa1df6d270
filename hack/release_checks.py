"""What must agree before a release: versions in files, changelogs, the git tree and its tag."""

import configparser
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

from hack.commands import run

#: Where the image is published, without its tag.
IMAGE = "ghcr.io/vsyncer/syncer"
#: SemVer that PEP 440 reads as well; no build metadata, as indexes and registries refuse that.
_NUMBER = r"(?:0|[1-9]\d*)"
_FORM = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-(?:a|alpha|b|beta|rc)\.{_NUMBER})?")
#: The contents of a Chart.yaml, or of its lock.
Chart = dict[str, Any]
#: The classifier with which an index refuses an upload.
_PRIVATE = "Private :: Do Not Upload"
#: What pages say of the current version: the image, and the tag that Argo CD follows.
_QUOTED = re.compile(rf"(?:{re.escape(IMAGE)}:|targetRevision: v)(\d[\w.-]*\w)")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that stands in the way of a release."""

    #: The file, relative to the tree, or `git`, or `VERSION`.
    where: str
    found: str
    remedy: str
    #: True if only the release itself settles it (a date, a commit, a tag): a dry run goes on.
    is_pending: bool = False

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.where}: {self.found}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution for the package index."""

    #: Its folder, relative to the tree.
    folder: Path
    name: str
    version: str


def published(tree: Path) -> Iterator[Distribution]:
    """Yield the distributions of a tree that are published: the product, and those of plugins/.

    Those with the classifier ``Private :: Do Not Upload`` are examples with versions of their own.
    """
    for file in (tree / "setup.cfg", *sorted((tree / "plugins").glob("*/setup.cfg"))):
        setup = configparser.ConfigParser()
        setup.read(file)
        metadata = setup["metadata"]
        if _PRIVATE not in metadata.get("classifiers", "").splitlines():
            yield Distribution(file.parent.relative_to(tree), metadata["name"], metadata["version"])


def charts(tree: Path) -> dict[Path, Chart]:
    """Return the contents of each Chart.yaml, by the path of its folder, relative to the tree."""
    files = sorted((tree / "charts").glob("*/Chart.yaml"))
    return {file.parent.relative_to(tree): yaml.safe_load(file.read_text()) for file in files}


def findings(tree: Path, version: str) -> list[Finding]:
    """Return everything that stands in the way of releasing a tree as a version.

    Raises:
        Hung: git took too long.
    """
    if not _FORM.fullmatch(version):
        form = "Write MAJOR.MINOR.PATCH, or a pre-release such as 1.2.0-rc.1"
        return [Finding("VERSION", f"{version} is not a version of both SemVer and PEP 440", form)]

    return [
        *_of_distributions(tree, version),
        *_of_charts(tree, version),
        *_of_texts(tree, version),
        *_of_changelogs(tree, version),
        *_of_git(tree, version),
    ]


def _of_distributions(tree: Path, version: str) -> Iterator[Finding]:
    for each in published(tree):
        if not _is_same(each.version, version):
            where = str(each.folder / "setup.cfg")
            differs = f"the version of {each.name} is {each.version}"
            yield Finding(where, differs, f"Set version = {Version(version)}")


def _is_same(written: str, version: str) -> bool:
    """Return True if they are the same version to Python, which writes 1.2.0-rc.1 as 1.2.0rc1."""
    try:
        return Version(written) == Version(version)
    except InvalidVersion:
        return False


def _of_charts(tree: Path, version: str) -> Iterator[Finding]:
    for folder, chart in charts(tree).items():
        where = str(folder / "Chart.yaml")
        fields = ["version"]
        # A library may name no application.
        if chart.get("type") != "library" or "appVersion" in chart:
            fields.append("appVersion")

        for field in fields:
            found = chart.get(field, "missing")
            if found != version:
                yield Finding(where, f"{field} is {found}", f'Set {field}: "{version}"')

        remedy = f'Set version: "{version}" there'
        yield from _of_dependencies(where, chart, version, remedy)

        lock = folder / "Chart.lock"
        if (tree / lock).exists():
            locked = yaml.safe_load((tree / lock).read_text())
            remedy = f"Run helm dependency update {folder}"
            yield from _of_dependencies(str(lock), locked, version, remedy)


def _of_dependencies(where: str, chart: Chart, version: str, remedy: str) -> Iterator[Finding]:
    """Yield the charts of this tree that a chart, or its lock, takes in another version."""
    for dependency in chart.get("dependencies", []):
        is_ours = dependency["repository"].startswith("file:")
        if is_ours and dependency["version"] != version:
            differs = f"the dependency {dependency['name']} is {dependency['version']}"
            yield Finding(where, differs, remedy)


def _of_texts(tree: Path, version: str) -> Iterator[Finding]:
    dockerfile = (tree / "Dockerfile").read_text()
    argument = re.search(r"^ARG VERSION=(.*)$", dockerfile, re.MULTILINE)
    found = argument[1] if argument else "missing"
    if not _is_same(found, version):
        remedy = f"Set ARG VERSION={Version(version)}"
        yield Finding("Dockerfile", f"ARG VERSION is {found}", remedy)

    pages = [tree / "README.md"]
    for folder in ("docs", "charts"):
        pages += sorted((tree / folder).rglob("*.md"))
    for page in pages:
        quoted = set(_QUOTED.findall(page.read_text()))
        for other in sorted(quoted - {version}):
            where = str(page.relative_to(tree))
            differs = f"the page names the image or tag of {other}"
            yield Finding(where, differs, f"Write {version}")


def _of_changelogs(tree: Path, version: str) -> Iterator[Finding]:
    for each in published(tree):
        file = each.folder / "CHANGELOG.md"
        # The changes of other plugins are in the first one.
        if each.folder != Path() and not (tree / file).exists():
            continue

        text = (tree / file).read_text()
        heading = re.search(rf"^## \[{re.escape(version)}\](.*)$", text, re.MULTILINE)
        wanted = f"## [{version}] - {date.today().isoformat()}"
        if not heading:
            missing = f"no section for {version}"
            yield Finding(str(file), missing, f"Add one: {wanted}", is_pending=True)
        elif not _is_dated(heading[1]):
            undated = f"the section of {version} has no date"
            yield Finding(str(file), undated, f"Write {wanted}", is_pending=True)


def _is_dated(rest: str) -> bool:
    """Return True if the rest of a heading is a date, such as ` - 2026-11-27`."""
    if not rest.startswith(" - "):
        return False
    try:
        date.fromisoformat(rest.removeprefix(" - ").strip())
    except ValueError:
        return False
    return True


def _of_git(tree: Path, version: str) -> Iterator[Finding]:
    status = git(tree, "status", "--porcelain")
    if status is None:
        yield Finding("git", "the tree is not a git checkout", "Release from a clone")
        return
    if status:
        changed = status.splitlines()
        which = ", ".join(line[3:] for line in changed[:5])
        if len(changed) > 5:
            which += f" and {len(changed) - 5} more"
        differs = f"files differ from HEAD: {which}"
        yield Finding("git", differs, "Commit or remove them", is_pending=True)

    tag = f"v{version}"
    tagged = git(tree, "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}^{{commit}}")
    head = git(tree, "rev-parse", "HEAD")
    if tagged and tagged != head:
        remedy = f"Check out {tag}, or release the next version"
        yield Finding("git", f"the tag {tag} is another commit than HEAD", remedy, is_pending=True)


def git(tree: Path, *arguments: str) -> str | None:
    """Return the output of a command of git in a tree; None if it fails.

    Raises:
        Hung: git took too long.
    """
    done = run(["git", "-C", tree, *arguments])
    if done.returncode:
        return None
    return done.stdout.rstrip("\n")
