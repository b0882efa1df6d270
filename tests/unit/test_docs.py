"""The links of the documentation lead somewhere, and so do the files that the architecture names."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from hack.planes import VIRTUAL_CONTROLLERS

ROOT = Path(__file__).parents[2]
_FOLDERS = ("charts", "docs", "examples", "hack", "plugins", "syncer", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in _FOLDERS for page in (ROOT / folder).rglob("*.md"))])
_FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|yaml|md))`")


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    counts: Counter[str] = Counter()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for link in _LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.exists()
        if is_there and anchor and target.suffix == ".md":
            is_there = anchor in anchors(target)
        if not is_there:
            broken.append(link)
    assert broken == []


@cache
def tree() -> tuple[str, ...]:
    """Return the paths of all files of the tree, each with a slash before."""
    folders = (ROOT / folder for folder in _FOLDERS)
    return tuple(f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in folder.rglob("*.*"))


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "architecture").glob("*.md")), ids=lambda page: page.stem)
def test_files_that_an_architecture_page_names_exist(page: Path) -> None:
    assert [name for name in _NAMED.findall(prose(page)) if not any(path.endswith(f"/{name}") for path in tree())] == []


def where_to_look() -> list[tuple[str, str]]:
    """Return the rows of "Where to look": a question, and the cells with its files."""
    section = (ROOT / "docs" / "ARCHITECTURE.md").read_text().split("\n## Where to look\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|", 1) for line in section.splitlines() if line.startswith("| ")]
    return [(row[0].strip(), row[1]) for row in rows[1:]]


@pytest.mark.parametrize(("question", "cells"), where_to_look(), ids=lambda cell: cell[:40])
def test_files_of_where_to_look_exist(question: str, cells: str) -> None:
    last = ROOT
    missing = []
    for name in _NAMED.findall(cells):
        candidates = (ROOT / name, ROOT / "syncer" / name, last / name)
        found = [path for path in candidates if path.exists()]
        if not found:
            missing.append(name)
            continue
        last = found[0].parent
    assert missing == []


def threats() -> list[tuple[str, str]]:
    """Return the rows of the tables of threats in SECURITY.md: the threat, and the cell with its tests."""
    rows = [
        line.strip("|").split(" | ") for line in (ROOT / "SECURITY.md").read_text().splitlines() if line[:2] == "| "
    ]
    return [(row[0].strip(), row[2]) for row in rows if len(row) == 3 and row[0].strip() != "threat"]


@pytest.mark.parametrize(("threat", "cell"), threats(), ids=lambda cell: cell[:40])
def test_threat_in_the_promises_has_a_test_that_exists(threat: str, cell: str) -> None:
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", cell)
    assert named
    for file, function in named:
        text = (ROOT / "tests" / file).read_text()
        assert f"def {function or 'test_'}" in text


def test_controllers_that_must_be_off_are_those_of_the_chart() -> None:
    page = (ROOT / "docs" / "operate" / "control-plane.md").read_text()
    chart = (ROOT / "charts" / "virtual-cluster" / "templates" / "_control-plane.tpl").read_text()
    assert f"--controllers='{VIRTUAL_CONTROLLERS}'" in page
    assert f"\n{VIRTUAL_CONTROLLERS}\n" in chart
    section = page.split("\n## Controllers that must be off\n")[1].split("\n## ")[0]
    rows = "".join(line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `"))
    assert {f"-{name}" for name in re.findall(r"`([\w-]+)`", rows)} == set(VIRTUAL_CONTROLLERS.split(",")[1:])
