"""``syncer thaw`` queries the daemon and shows the thawed fields."""

import json
from pathlib import Path

import cli_scene
import pytest
from cli_scene import Daemon, asking, written
from click.testing import Result

THAWED = [{"cluster": "shop", "syncer": "services", "key": "shop/web", "side": "host", "field": "spec.type"}]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    return asking(Daemon(THAWED), monkeypatch, tmp_path)


def call(*arguments: str) -> Result:
    return cli_scene.call("thaw", *arguments)


def test_selection_goes_to_the_daemon(there: Daemon) -> None:
    for arguments in ((), ("services",), ("services", "shop/web")):
        assert call(*arguments).exit_code == 0
    meant = [("", ""), ("services", ""), ("services", "shop/web")]
    assert there.asked == [("POST", "/thaw", {"kind": kind, "key": key}) for kind, key in meant]


def test_thawed_fields_are_shown(there: Daemon) -> None:
    assert call().stdout == (
        "CLUSTER   SYNCER     KEY        SIDE   FIELD\nshop      services   shop/web   host   spec.type\n"
    )
    assert json.loads(call("-o", "json").stdout) == THAWED


def test_empty_answer_is_no_failure(there: Daemon) -> None:
    there.answer = []
    assert call().stdout == "nothing is frozen\n"
    assert call("services").stdout == "no such object has frozen fields\n"
    assert json.loads(call("-o", "json").stdout) == []


def test_missing_daemon_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written(monkeypatch, tmp_path, more=f"control: {{socket: {tmp_path}/s}}\n")
    result = call()
    assert result.exit_code == 1
    assert "no daemon of virtual cluster shop answers" in result.stderr
    assert "kubectl -n NAMESPACE exec" in result.stderr, "the daemon isn't in the host namespace of the copies"
