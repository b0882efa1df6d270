"""A release's packages and charts are the same bytes in each build; its folder is complete."""

import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from release_scene import commit

from hack import release, release_builds
from hack.checkout import Checkout
from hack.realnode import builds
from hack.realnode.inside import Failed

PYPROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
SETUP = "[metadata]\nname = {name}\nversion = 1.2.0\n\n[options]\npackages = {package}\n"
CHART = "apiVersion: v2\nname: {name}\nversion: 1.2.0\ntype: {kind}\n"
DEPENDENCY = """appVersion: 1.2.0
dependencies:
- {name: shared, version: 1.2.0, repository: "file://../shared"}
"""
FILES = {
    ".gitignore": "*.egg-info/\nbuild/\ndist/\n",
    "LICENSE": "ours\n",
    "README.md": "# vsyncer\n",
    "CHANGELOG.md": "## [1.2.0] - 2026-11-27\n",
    "Dockerfile": "ARG VERSION=1.2.0\n",
    "pyproject.toml": PYPROJECT,
    "setup.cfg": SETUP.format(name="vsyncer", package="syncer"),
    "syncer/__init__.py": "one = 1\n",
    "plugins/one/pyproject.toml": PYPROJECT,
    "plugins/one/setup.cfg": SETUP.format(name="vsyncer-one", package="vsyncer_one"),
    "plugins/one/vsyncer_one/__init__.py": "one = 1\n",
    "charts/shared/Chart.yaml": CHART.format(name="shared", kind="library"),
    "charts/shared/templates/_names.tpl": '{{- define "shared.name" }}x{{ end }}\n',
    "charts/syncer/Chart.yaml": CHART.format(name="syncer", kind="application") + DEPENDENCY,
    "charts/syncer/templates/x.yaml": "{{- /* nothing */ -}}\n",
}
PACKAGES = [
    "vsyncer-1.2.0-py3-none-any.whl",
    "vsyncer-1.2.0.tar.gz",
    "vsyncer_one-1.2.0-py3-none-any.whl",
    "vsyncer_one-1.2.0.tar.gz",
]
EPOCH = 1_700_000_000


@contextmanager
def umask(mask: int) -> Iterator[None]:
    former = os.umask(mask)
    try:
        yield
    finally:
        os.umask(former)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a commit, which is that of the command."""
    folder = tmp_path / "tree"
    commit(folder, FILES)
    monkeypatch.setattr(release, "THIS", Checkout(folder))
    return folder


@pytest.fixture
def helm() -> None:
    """Skips the test if Helm has never been built, except with ``CI=true``."""
    if not builds.is_built("helm") and os.environ.get("CI") != "true":
        pytest.skip("helm not built: python -m hack.realnode.builds")


def hack_release(*arguments: str) -> Result:
    return CliRunner().invoke(release.main, arguments)


def packages_of(tree: Path, scratch: Path) -> dict[str, bytes]:
    """Return the contents of all packages, built in a folder of their own."""
    into = scratch / "files"
    into.mkdir(parents=True)
    release_builds.copy_sources(tree, scratch / "sources")
    release_builds.build_packages(scratch / "sources", into, epoch=EPOCH)
    return {file.name: file.read_bytes() for file in sorted(into.iterdir())}


def test_links_of_a_packages_readme_lead_to_the_repository() -> None:
    page = "[a](docs/a.md#b) [c](../c.md) [d](#d) [e](https://e.example)\n```python\nx[0](y)\n```\n[f](f)"
    at = "https://github.com/vsyncer/vsyncer/blob/main"
    assert release_builds.with_absolute_links(page, Path("plugins/one")) == (
        f"[a]({at}/plugins/one/docs/a.md#b) [c]({at}/plugins/c.md) [d](#d) [e](https://e.example)\n"
        f"```python\nx[0](y)\n```\n[f]({at}/plugins/one/f)"
    )
    assert release_builds.with_absolute_links("[a](docs/a.md)", Path()) == f"[a]({at}/docs/a.md)"


@pytest.mark.slow
def test_descriptions_of_packages_have_no_relative_links(tree: Path, tmp_path: Path) -> None:
    setup = SETUP.replace("version", "long_description = file: README.md\nversion")
    (tree / "setup.cfg").write_text(setup.format(name="vsyncer", package="syncer"))
    (tree / "README.md").write_text("[Operations](docs/operate/index.md)\n")
    packages_of(tree, tmp_path)
    with zipfile.ZipFile(tmp_path / "files" / "vsyncer-1.2.0-py3-none-any.whl") as wheel:
        metadata = wheel.read("vsyncer-1.2.0.dist-info/METADATA").decode()
    assert "(https://github.com/vsyncer/vsyncer/blob/main/docs/operate/index.md)" in metadata


@pytest.mark.slow
def test_packages_are_the_same_whatever_umask_and_times_are(tree: Path, tmp_path: Path) -> None:
    first = packages_of(tree, tmp_path / "first")
    for name in FILES:
        os.utime(tree / name, (1, 1))
    with umask(0o077):
        second = packages_of(tree, tmp_path / "second")
    assert list(first) == PACKAGES
    assert [name for name in first if first[name] != second[name]] == []


@pytest.mark.slow
def test_packages_have_nothing_that_git_ignores(tree: Path, tmp_path: Path) -> None:
    (tree / "build/lib/syncer").mkdir(parents=True)
    (tree / "build/lib/syncer/stale.py").touch()
    (tree / "syncer/new.py").touch()
    packages_of(tree, tmp_path / "built")
    with zipfile.ZipFile(tmp_path / "built/files/vsyncer-1.2.0-py3-none-any.whl") as wheel:
        modules = [name for name in wheel.namelist() if name.endswith(".py")]
    assert sorted(modules) == ["syncer/__init__.py", "syncer/new.py"]
    with tarfile.open(tmp_path / "built/files/vsyncer-1.2.0.tar.gz") as source:
        members = source.getmembers()
    assert {member.mtime for member in members} == {EPOCH}
    assert {(member.uid, member.uname) for member in members} == {(0, "")}


def test_build_that_fails_is_named_with_its_output(tree: Path, tmp_path: Path) -> None:
    (tree / "setup.cfg").write_text(SETUP.format(name="vsyncer", package="gone"))
    with pytest.raises(Failed, match=r"^vsyncer: the build failed:[\s\S]*gone"):
        packages_of(tree, tmp_path / "built")


@pytest.mark.usefixtures("helm")
def test_charts_are_the_same_and_have_their_dependencies(tree: Path, tmp_path: Path) -> None:
    packed = []
    for name in ("first", "second"):
        sources = tmp_path / name / "sources"
        into = tmp_path / name / "files"
        into.mkdir(parents=True)
        release_builds.copy_sources(tree, sources)
        release_builds.package_charts(sources, into, epoch=EPOCH)
        packed.append({file.name: file.read_bytes() for file in into.iterdir()})
    assert packed[0] == packed[1]
    assert list(packed[0]) == ["syncer-1.2.0.tgz"]
    with tarfile.open(tmp_path / "first/files/syncer-1.2.0.tgz") as chart:
        names = chart.getnames()
    assert "syncer/charts/shared/templates/_names.tpl" in names
    assert "syncer/Chart.lock" not in names


@pytest.mark.slow
def test_dry_run_lists_built_files_and_remaining_steps(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "package_charts", lambda sources, into, *, epoch: None)
    (tree / "CHANGELOG.md").write_text("## [1.2.0] - unreleased\n")
    result = hack_release("--dry-run", f"--into={tmp_path / 'out'}")
    assert result.exit_code == 0, result.output
    listed = re.findall(r"^ +[\d,]+  (.*)$", result.stdout, re.MULTILINE)
    assert listed == ["checksums.txt", *PACKAGES]
    assert "before the release: CHANGELOG.md: the section of 1.2.0 has no date" in result.stderr
    assert "before the release: git: files differ from HEAD: CHANGELOG.md" in result.stderr
    checked = ["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"]
    subprocess.run(checked, cwd=tmp_path / "out", check=True, timeout=60)


def test_release_is_refused_with_all_that_is_wrong(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("## [1.2.0] - unreleased\n")
    with pytest.raises(Failed) as refusal:
        release.main(["1.2.0"], standalone_mode=False)
    lines = str(refusal.value).splitlines()
    assert lines[0] == "1.2.0 can't be released:"
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["CHANGELOG.md", "git"]


def test_dry_run_is_refused_where_versions_differ(tree: Path) -> None:
    with pytest.raises(Failed, match=r"the version of vsyncer-one is 1\.2\.0"):
        release.main(["1.3.0", "--dry-run"], standalone_mode=False)
    assert not (tree / "dist").exists()


def test_release_needs_a_version(tree: Path) -> None:
    result = hack_release()
    assert result.exit_code == 2
    assert "VERSION is missing" in result.stderr


def test_folder_that_is_not_empty_is_refused(tree: Path) -> None:
    (tree / "dist/1.2.0").mkdir(parents=True)
    (tree / "dist/1.2.0/old.whl").touch()
    with pytest.raises(Failed, match=r"dist/1\.2\.0 is not empty"):
        release.main(["1.2.0"], standalone_mode=False)


def test_release_has_an_image_for_each_architecture_and_its_bill(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def save(engine: object, tag: str, architecture: str) -> SimpleNamespace:
        built.append((engine, tag, architecture))
        archive = tmp_path / f"syncer-{architecture}.tar.gz"
        bill = tmp_path / f"syncer-{architecture}.cdx.json"
        archive.write_text(architecture)
        bill.write_text(architecture)
        return SimpleNamespace(archive=archive, bill=bill)

    monkeypatch.setattr(release, "build_packages", lambda sources, into, *, epoch: None)
    monkeypatch.setattr(release, "package_charts", lambda sources, into, *, epoch: None)
    monkeypatch.setattr(release_builds, "emulated", lambda architecture: nullcontext())
    monkeypatch.setattr(release_builds, "engine", lambda: nullcontext("engine"))
    monkeypatch.setattr(release_builds, "build_image", lambda *given, **more: None)
    monkeypatch.setattr(release_builds, "save_image", save)
    result = hack_release("1.2.0")
    assert result.exit_code == 0, result.output
    image = "ghcr.io/vsyncer/syncer:1.2.0"
    assert built == [("engine", image, "amd64"), ("engine", image, "arm64")]
    assert sorted(file.name for file in (tree / "dist").rglob("*") if file.is_file()) == [
        "checksums.txt",
        "syncer-amd64.cdx.json",
        "syncer-amd64.tar.gz",
        "syncer-arm64.cdx.json",
        "syncer-arm64.tar.gz",
    ]


def test_failed_build_leaves_no_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(sources: Path, into: Path, *, epoch: int) -> None:
        raise Failed("no")

    monkeypatch.setattr(release, "build_packages", fail)
    with pytest.raises(Failed, match="no"):
        release.main(["1.2.0"], standalone_mode=False)
    assert list((tree / "dist").iterdir()) == []
