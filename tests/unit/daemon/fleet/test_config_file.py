"""The configuration file of a running daemon, read again when it changes."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from hack.side_tasks import helped_by
from kube_envtest import virtual_time
from syncer.config import SyncerConfig, VirtualCluster, load
from syncer.daemon.fleet.config_file import LOOK_SECONDS, ConfigFile
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n"
ONE = HEAD + "virtualClusters:\n- {name: shop, hostNamespace: vcs}\n"
TWO = ONE + "- {name: bank, hostNamespace: vcs}\n"


class FollowedFile:
    """A configuration file, and the virtual clusters that its follower got."""

    def __init__(self, path: Path) -> None:
        self.path, self.names, self.loads = path, list[list[str]](), 0
        path.write_text(ONE)
        self.file = ConfigFile(path, self._load)

    def _load(self) -> SyncerConfig:
        self.loads += 1
        return load(str(self.path), INSTALLED).config

    def take(self, _: SyncerConfig, clusters: Sequence[VirtualCluster]) -> None:
        self.names.append([each.name for each in clusters])

    def play(self, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            async with helped_by(self.file.follow(load(str(self.path), INSTALLED).config, self.take)):
                await scenario()

        virtual_time.run(run())

    async def write(self, text: str | None) -> None:
        """Write or remove the file, and wait for two looks."""
        if text is None:
            self.path.unlink()
        else:
            self.path.write_text(text)
        await asyncio.sleep(2 * LOOK_SECONDS)


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FollowedFile:
    async def at_once(read: Callable[[], Any]) -> Any:
        """Stand in for a thread, which virtual time doesn't wait for."""
        return read()

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    return FollowedFile(tmp_path / "syncer.yaml")


def test_file_that_stays_is_not_read_again(followed: FollowedFile) -> None:
    followed.play(lambda: asyncio.sleep(5 * LOOK_SECONDS))
    assert (followed.loads, followed.names) == (0, [])


def test_virtual_cluster_that_joins_or_leaves_is_handed_on(followed: FollowedFile) -> None:
    async def scenario() -> None:
        await followed.write(TWO)
        await followed.write(ONE + "workers: 7\n")

    followed.play(scenario)
    assert followed.names == [["shop", "bank"], ["shop"]]


@pytest.mark.parametrize("text", [TWO + "bad: [\n", TWO + "- {name: shop}\n", None])
def test_file_that_is_wrong_or_missing_changes_nothing_until_it_is_mended(
    followed: FollowedFile, text: str | None
) -> None:
    async def scenario() -> None:
        await followed.write(text)
        assert followed.names == []
        await followed.write(TWO)

    followed.play(scenario)
    assert followed.names == [["shop", "bank"]]


def test_option_of_the_process_that_changes_is_named_and_not_taken_over(
    followed: FollowedFile, capsys: pytest.CaptureFixture[str]
) -> None:
    followed.play(lambda: followed.write(ONE + "workers: 7\n"))
    assert "applies only from the next start on" in capsys.readouterr().err
