"""The table of points names tests that exist."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "examples" / "multicluster"
LINK = re.compile(r"\[`(\w+)`\]\(([^)]+)\)")


def test_points_all_have_a_test_that_exists() -> None:
    rows = [line for line in (FOLDER / "points.md").read_text().splitlines() if re.match(r"\| (?!point|-)", line)]
    assert len(rows) > 50
    assert [row for row in rows if not LINK.search(row)] == []
    wrong = [
        (name, path)
        for name, path in LINK.findall("\n".join(rows))
        if not re.search(rf"^(async )?def test_{name}\(", (FOLDER / path).resolve().read_text(), re.MULTILINE)
    ]
    assert wrong == []
