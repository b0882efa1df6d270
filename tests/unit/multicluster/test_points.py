"""The tables of points name tests that exist, and leave no point out."""

import re
from collections import Counter
from pathlib import Path

FILE = Path(__file__).parents[3] / "docs" / "multicluster" / "points.md"
LINK = re.compile(r"\[`(\w+)`\]\(([^)]+)\)")
TABLES, _, VOID = FILE.read_text().partition("\n## Void in Python\n")


def numbered(letters: str, first: int, last: int, form: str = "02") -> list[str]:
    return [f"{letters}{number:{form}}" for number in range(first, last + 1)]


#: The points and faults of the Go projects that are this library's.
POINTS = [
    *numbered("CM-", 1, 13),
    *numbered("CM-T", 1, 8, ""),
    *numbered("CC-", 1, 39),
    *numbered("CC-T", 1, 7, ""),
    *numbered("AD-", 1, 14),
    *numbered("AD-T", 1, 9, ""),
    *numbered("CR-", 4, 10),
]
#: Those that say nothing in Python.
WITHOUT_TEST = ["AD-T8", "CC-03", "CR-10"]


def rows_of(text: str) -> list[list[str]]:
    """Return the rows of the tables in a text: id, point, tests or reason."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not re.match(r"\| id |\|-", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def ids_in(rows: list[list[str]]) -> list[str]:
    return [each for row in rows for each in row[0].split(", ") if each]


def test_points_all_have_a_test_that_exists() -> None:
    rows = rows_of(TABLES)
    assert len(rows) > 100
    assert [row for row in rows if len(row) != 3 or not LINK.search(row[2])] == []
    wrong = [
        (name, path)
        for row in rows
        for name, path in LINK.findall(row[2])
        if not re.search(rf"^(async )?def test_{name}\(", (FILE.parent / path).resolve().read_text(), re.MULTILINE)
    ]
    assert wrong == []


def test_no_point_is_missing() -> None:
    known = {*ids_in(rows_of(TABLES)), *ids_in(rows_of(VOID))}
    assert [each for each in POINTS if each not in known] == []


def test_points_without_a_test_have_a_reason_and_are_few() -> None:
    rows = rows_of(VOID)
    assert sorted(ids_in(rows)) == WITHOUT_TEST
    assert [row for row in rows if len(row) != 3 or len(row[2]) < 40] == []
    assert [each for each in ids_in(rows_of(TABLES)) if each in WITHOUT_TEST] == []


def test_rows_of_the_tables_differ() -> None:
    twice = [row for row, number in Counter(row[1] for row in rows_of(TABLES)).items() if number > 1]
    assert twice == []
