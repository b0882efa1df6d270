"""What stands in the way of a release is found all at once, with the file and what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest
from release_scene import commit, git

from hack.release_checks import Finding, findings, published

SETUP = "[metadata]\nname = {name}\nversion = {version}\n{more}"
PRIVATE = "classifiers =\n    Private :: Do Not Upload\n"
CHART = 'type: {kind}\nversion: {version}\nappVersion: "{version}"\n'
DEPENDENCY = """dependencies:
- {{name: shared, version: {version}, repository: "file://../shared"}}
- {{name: other, version: 7.0.0, repository: "https://charts.example.org"}}
"""
LIBRARY = "type: library\nversion: {version}\n"
#: A tree that can be released as 1.2.0.
FILES = {
    "setup.cfg": SETUP.format(name="vsyncer", version="1.2.0", more=""),
    "plugins/one/setup.cfg": SETUP.format(name="one", version="1.2.0", more=""),
    "plugins/one/CHANGELOG.md": "# Changelog\n\n## [1.2.0] - 2026-11-27\n",
    "plugins/two/setup.cfg": SETUP.format(name="two", version="1.2.0", more=""),
    "plugins/example/setup.cfg": SETUP.format(name="example", version="0.1", more=PRIVATE),
    "charts/syncer/Chart.yaml": (CHART + DEPENDENCY).format(kind="application", version="1.2.0"),
    "charts/syncer/Chart.lock": DEPENDENCY.format(version="1.2.0"),
    "charts/shared/Chart.yaml": LIBRARY.format(version="1.2.0"),
    "Dockerfile": "FROM scratch\nARG VERSION=1.2.0\n",
    "README.md": "# vsyncer\n",
    "docs/operate/image.md": "Use `ghcr.io/vsyncer/syncer:1.2.0`.\n",
    "charts/syncer/README.md": "    targetRevision: v1.2.0\n",
    "CHANGELOG.md": "# Changelog\n\n## [1.2.0] - 2026-11-27\n\n## [1.1.0] - 2026-10-01\n",
}

Write = Callable[[str, str], None]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with a commit that can be released."""
    commit(tmp_path, FILES)
    return tmp_path


@pytest.fixture
def write(tree: Path) -> Write:
    """Writes a file, and commits it."""

    def committed(name: str, text: str) -> None:
        (tree / name).write_text(text)
        git(tree, "commit", "--quiet", "--all", "--allow-empty", "--message=more")

    return committed


def test_nothing_is_found_where_everything_agrees(tree: Path) -> None:
    assert findings(tree, "1.2.0") == []


@pytest.mark.parametrize("version", ["1.2", "v1.2.0", "1.2.0rc1", "01.2.0", "1.2.0-x.1", "1.2.0+x"])
def test_version_must_be_one_of_semver_and_of_pep_440(tree: Path, version: str) -> None:
    [found] = findings(tree, version)
    assert found.where == "VERSION"
    assert version in found.found


def test_everything_of_another_version_is_found_at_once(tree: Path) -> None:
    found = findings(tree, "1.3.0")
    assert [each.where for each in found] == [
        "setup.cfg",
        "plugins/one/setup.cfg",
        "plugins/two/setup.cfg",
        "charts/shared/Chart.yaml",
        *("charts/syncer/Chart.yaml", "charts/syncer/Chart.yaml", "charts/syncer/Chart.yaml"),
        "charts/syncer/Chart.lock",
        "Dockerfile",
        "docs/operate/image.md",
        "charts/syncer/README.md",
        "CHANGELOG.md",
        "plugins/one/CHANGELOG.md",
    ]
    remedies = [each.remedy for each in found if "1.3.0" not in each.remedy]
    assert remedies == ["Run helm dependency update charts/syncer"]
    shown = "setup.cfg: the version of vsyncer is 1.2.0. Set version = 1.3.0"
    assert str(found[0]) == shown
    assert not any(each.is_pending for each in found[:-2])


def test_pre_release_is_written_as_each_file_takes_it(tree: Path, write: Write) -> None:
    for name, text in FILES.items():
        python = name.endswith(("setup.cfg", "Dockerfile"))
        write(name, text.replace("1.2.0", "1.3.0rc2" if python else "1.3.0-rc.2"))
    assert findings(tree, "1.3.0-rc.2") == []


def test_each_plugin_but_examples_moves_with_the_product(tree: Path) -> None:
    assert [each.name for each in published(tree)] == ["vsyncer", "one", "two"]


def test_application_of_a_library_is_compared_if_it_names_one(tree: Path, write: Write) -> None:
    write("charts/shared/Chart.yaml", CHART.format(kind="library", version="1.1.0"))
    found = [each.found for each in findings(tree, "1.2.0")]
    assert found == ["version is 1.1.0", "appVersion is 1.1.0"]


def test_fields_that_are_missing_are_found(tree: Path, write: Write) -> None:
    write("charts/syncer/Chart.yaml", "type: application\nversion: 1.2.0\n")
    write("Dockerfile", "FROM scratch\n")
    assert [each.found for each in findings(tree, "1.2.0")] == [
        "appVersion is missing",
        "ARG VERSION is missing",
    ]


@pytest.mark.parametrize("rest", ["", " - unreleased", " - 2026-13-01", " 2026-11-27"])
def test_section_without_a_date_is_pending(tree: Path, write: Write, rest: str) -> None:
    write("CHANGELOG.md", f"# Changelog\n\n## [1.2.0]{rest}\n")
    [found] = findings(tree, "1.2.0")
    assert found.where == "CHANGELOG.md"
    assert found.is_pending


def test_missing_section_is_found(tree: Path, write: Write) -> None:
    write("plugins/one/CHANGELOG.md", "# Changelog\n\n## [1.1.0] - 2026-10-01\n")
    [found] = findings(tree, "1.2.0")
    assert (found.where, found.found) == ("plugins/one/CHANGELOG.md", "no section for 1.2.0")


def test_files_that_are_not_committed_are_named(tree: Path) -> None:
    (tree / "README.md").write_text("changed")
    for number in range(7):
        (tree / f"new-{number}").touch()
    differs = "files differ from HEAD: README.md, new-0, new-1, new-2, new-3 and 3 more"
    expected = Finding("git", differs, "Commit or remove them", is_pending=True)
    assert findings(tree, "1.2.0") == [expected]


def test_tag_must_be_head_if_there_is_one(tree: Path, write: Write) -> None:
    git(tree, "tag", "--annotate", "--message=x", "v1.2.0")
    assert findings(tree, "1.2.0") == []
    write("README.md", "# vsyncer, later\n")
    [found] = findings(tree, "1.2.0")
    assert found.found == "the tag v1.2.0 is another commit than HEAD"


def test_tree_outside_git_is_refused(tree: Path) -> None:
    (tree / ".git").rename(tree.parent / "away")
    [found] = findings(tree, "1.2.0")
    assert found.where == "git"
    assert not found.is_pending


def test_published_distributions_have_the_licence_in_their_folders() -> None:
    root = Path(__file__).parents[3]
    folders = {each.name: root / each.folder for each in published(root)}
    assert {"vsyncer", "kube-envtest", "vsyncer-cert-manager"} <= folders.keys()
    licence = (root / "LICENSE").read_bytes()
    assert [name for name, folder in folders.items() if (folder / "LICENSE").read_bytes() != licence] == []
