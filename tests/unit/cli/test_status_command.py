"""``syncer status`` queries the daemon, and shows a line for each syncer."""

import json
from pathlib import Path

import pytest
from cli_scene import Daemon, asking, call

COUNTS = {"inStep": 7, "pending": 1, "skipped": 2, "failing": 0, "parked": 3, "paused": 4, "frozen": 0, "collisions": 1}
ONE = {"cluster": "shop", "syncer": "pods", "state": "degraded", "mapped": 9, **COUNTS, "reason": "no right"}
FAKES = {**ONE, "syncer": "nodes", "state": "ready", "mapped": None, "reason": ""}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    return asking(Daemon([ONE, FAKES]), monkeypatch, tmp_path)


def test_line_of_a_syncer_has_its_state_counts_and_reason(there: Daemon) -> None:
    heads, first, second = (line.split() for line in call("status").stdout.splitlines())
    states = ["IN-STEP", "PENDING", "SKIPPED", "FAILING", "PARKED", "PAUSED", "FROZEN", "COLLISIONS"]
    assert heads == ["CLUSTER", "SYNCER", "STATE", "MAPPED", *states, "REASON"]
    assert first == ["shop", "pods", "degraded", "9", "7", "1", "2", "0", "3", "4", "0", "1", "no", "right"]
    assert second == ["shop", "nodes", "ready", "-", "7", "1", "2", "0", "3", "4", "0", "1", "-"]
    assert there.asked == [("GET", "/status", None)]


def test_json_has_all(there: Daemon) -> None:
    assert json.loads(call("status", "-o", "json").stdout) == [ONE, FAKES]
