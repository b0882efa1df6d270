"""A command in a folder with a configuration, and a stand-in for the daemon."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
from click.testing import CliRunner, Result

from syncer.cli import daemon
from syncer.cli.app import app
from syncer.config import Loaded

CONFIG = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
cluster: shop
host: {namespace: vc-shop}
"""
#: The same in list form.
LIST = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
virtualClusters: [{name: shop, hostNamespace: vc-shop}]
"""


class Asked(Protocol):
    """Answers in the daemon's stead, or raises :class:`syncer.cli.daemon.NoDaemon`."""

    def ask(
        self, found: Loaded, method: str, path: str, given: Mapping[str, Any] | None = None, *, one: bool = False
    ) -> Any:
        """Return the daemon's answer."""


AskedT = TypeVar("AskedT", bound=Asked)


class Daemon:
    """The daemon of virtual cluster ``shop``: gives one answer to everything, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answer = answer

    def ask(
        self, found: Loaded, method: str, path: str, given: Mapping[str, Any] | None = None, *, one: bool = False
    ) -> Any:
        assert found.cluster.name == "shop"
        self.asked.append((method, path, given))
        return self.answer


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, *, cluster: str = "shop", more: str = "") -> None:
    """Go to a folder, and have a configuration there: ``c.yaml``."""
    monkeypatch.chdir(folder)
    head = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n"
    Path("c.yaml").write_text(f"{head}cluster: {cluster}\nhost: {{namespace: {cluster}-ns}}\n{more}")


def asking(found: AskedT, monkeypatch: pytest.MonkeyPatch, folder: Path, *, cluster: str = "shop") -> AskedT:
    """Return the same, and let commands ask this instead of a daemon."""
    written(monkeypatch, folder, cluster=cluster)
    monkeypatch.setattr(daemon, "ask", found.ask)
    return found


def typed(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """Run a command as a user types it. An error that is no exit is raised."""
    result = CliRunner().invoke(app, arguments, env=env, prog_name="syncer")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def good(*arguments: str, env: dict[str, str] | None = None) -> str:
    """Return the output of a command that exits 0."""
    result = typed(*arguments, env=env)
    assert result.exit_code == 0, result.output
    return result.stdout


def bad(*arguments: str, code: int) -> str:
    """Return the message of a command that exits with this code and prints nothing else."""
    result = typed(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    return result.stderr


def call(*arguments: str) -> Result:
    """Run a command with that configuration of :func:`written`."""
    return typed(*arguments, "--config", "c.yaml")
