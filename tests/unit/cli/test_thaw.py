"""``syncer thaw`` asks the daemon and says what it has done."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from syncer.cli import daemon
from syncer.cli.app import app
from syncer.config import SyncerConfig

CONFIG = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"
THAWED = [{"syncer": "services", "key": "shop/web", "side": "host", "field": "spec.type"}]


class Daemon:
    """Answers and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answer: Any = THAWED

    def ask(self, config: SyncerConfig, method: str, path: str, given: Mapping[str, Any] | None = None) -> Any:
        assert config.cluster == "shop"
        self.asked.append((method, path, given))
        return self.answer


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(CONFIG)
    found = Daemon()
    monkeypatch.setattr(daemon, "ask", found.ask)
    return found


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["thaw", *arguments, "--config", "c.yaml"], prog_name="syncer")


def test_what_is_meant_goes_to_the_daemon(there: Daemon) -> None:
    for arguments in ((), ("services",), ("services", "shop/web")):
        assert call(*arguments).exit_code == 0
    meant = [("", ""), ("services", ""), ("services", "shop/web")]
    assert there.asked == [("POST", "/thaw", {"kind": kind, "key": key}) for kind, key in meant]


def test_what_was_thawed_is_shown(there: Daemon) -> None:
    assert call().stdout == "SYNCER     KEY        SIDE   FIELD\nservices   shop/web   host   spec.type\n"
    assert json.loads(call("-o", "json").stdout) == THAWED


def test_nothing_is_said_to_be_nothing(there: Daemon) -> None:
    there.answer = []
    assert call().stdout == "nothing is frozen\n"
    assert call("services").stdout == "nothing of that is frozen\n"
    assert json.loads(call("-o", "json").stdout) == []


def test_without_a_daemon_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(f"{CONFIG}control: {{socket: {tmp_path}/s}}\n")
    result = call()
    assert result.exit_code == 1
    assert "no daemon of virtual cluster shop answers" in result.stderr
