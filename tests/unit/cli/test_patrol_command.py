"""``syncer patrol`` queries the daemon or scans by itself, prints the findings, and exits by what is left."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cli_scene
import pytest
from cli_scene import asking
from click.testing import Result

from syncer.cli import daemon
from syncer.config import Loaded, SyncerConfig, VirtualCluster
from syncer.daemon import patrol_once

CHANGE = {
    "path": "spec.ports[0].port",
    "wanted": "80",
    "found": "8080",
    "changedBy": "kubectl-edit",
    "at": "2026-01-01",
}
FOUND = {
    "syncer": "services",
    "object": "host services vc-shop/web-x-shop-x-shop",
    "of": "shop/web",
    "class": "field",
    "policy": "repair",
    "outcome": "repaired",
    "changes": [CHANGE],
}


def kind(*found: Mapping[str, Any], name: str = "services", **parts: Any) -> dict[str, Any]:
    counts = {"verified": 3, "skipped": 1, "problem": "", "corrected": [], "troubles": {}}
    return {"syncer": name, **counts, "found": list(found), **parts}


def report(*kinds: Mapping[str, Any], stopped: Sequence[str] = (), only: str = "") -> dict[str, Any]:
    return {"cluster": "shop", "kinds": list(kinds), "held": list(stopped), "reportedOnly": only}


class World:
    """A daemon that may answer, and scans that a command makes."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.scanned: list[tuple[tuple[str, ...], bool]] = []
        self.scan = report(kind())

    def ask(
        self, found: Loaded, method: str, path: str, given: Mapping[str, Any] | None = None, *, one: bool = False
    ) -> Any:
        self.asked.append((method, path, given))
        if path not in self.answers:
            raise daemon.NoDaemon("no daemon answers")
        return self.answers[path]

    async def once(
        self, config: SyncerConfig, cluster: VirtualCluster, *, kinds: Sequence[str] = (), confirm: bool = False
    ) -> dict[str, Any]:
        self.scanned.append((tuple(kinds), confirm))
        return self.scan


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    found = asking(World(), monkeypatch, tmp_path)
    monkeypatch.setattr(patrol_once, "patrol_once", found.once)
    return found


def call(*arguments: str) -> Result:
    return cli_scene.call("patrol", *arguments)


def test_once_scans_and_shows_each_field_and_its_manager(world: World) -> None:
    world.scan = report(kind(FOUND))
    result = call("--once", "--diff", "services", "pods")
    assert world.scanned == [(("services", "pods"), False)]
    assert world.asked == []
    assert result.stdout.splitlines() == [
        "repaired: host services vc-shop/web-x-shop-x-shop, of shop/web: field: spec.ports[0].port",
        "    spec.ports[0].port: 80 -> 8080  changed by kubectl-edit at 2026-01-01",
        "1 drifted of 4 looked at: 1 repaired",
    ]
    assert result.exit_code == 0


def test_finding_without_diff_is_a_line(world: World) -> None:
    world.scan = report(kind(FOUND))
    assert len(call("--once").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("scan", "text"),
    [
        (report(kind(FOUND | {"outcome": "failed", "reason": "quota"})), "spec.ports[0].port (quota)"),
        (report(kind(FOUND | {"outcome": "reported"})), "1 reported"),
        (report(kind(), stopped=["150 of 200 configmaps"]), "150 of 200"),
        (report(kind(FOUND, omitted={"failed": 2})), "services: 2 more, which are only counted\n3 drifted of 4"),
        (report(kind(problem="the host cluster does not answer")), "services: not looked at: the host"),
        (report(kind(troubles={"pods shop/web": "no image"})), "pods shop/web: not in step: no image"),
    ],
)
def test_drift_that_is_left_is_shown_and_ends_with_1(world: World, scan: dict[str, Any], text: str) -> None:
    world.scan = scan
    result = call("--once")
    assert result.exit_code == 1
    assert text in result.stdout


def test_exit_status_is_0_without_drift_and_with_ignored_drift(world: World) -> None:
    result = call("--once")
    assert (result.exit_code, result.stdout) == (0, "nothing has drifted of 4 looked at\n")
    world.scan = report(kind(FOUND | {"outcome": "ignored"}))
    assert call("--once").exit_code == 0


def test_report_is_all_of_it_as_json(world: World) -> None:
    world.scan = report(kind(FOUND))
    assert call("--once", "--report", "found.json").exit_code == 0
    assert json.loads(Path("found.json").read_text()) == [world.scan]


def test_report_that_cant_be_written_is_refused_before_anything_is_done(world: World) -> None:
    result = call("--once", "--report", "nowhere/found.json")
    assert (result.exit_code, world.scanned) == (2, [])
    assert "nowhere" in result.stderr


def test_objects_that_fail_already_are_counted_apart(world: World) -> None:
    world.scan = report(kind(busy=3))
    assert call("--once").stdout.splitlines() == [
        "nothing has drifted of 4 looked at",
        "3 more are worked on, wait or fail already; `syncer parked` says why they fail",
    ]


def test_daemon_reports_its_latest_scans(world: World) -> None:
    world.answers["/patrol"] = [report(kind(FOUND), kind(name="pods"))]
    assert "repaired: host services" in call().stdout
    call("pods", "Secret")
    assert world.asked == [("GET", "/patrol", {"kinds": ""}), ("GET", "/patrol", {"kinds": "pods,Secret"})]
    world.answers["/patrol"] = [report()]
    result = call()
    assert (result.exit_code, result.stdout) == (1, "no scan yet\n"), "nobody knows that nothing has drifted"
    assert world.scanned == []


def test_missing_daemon_is_an_error(world: World) -> None:
    result = call()
    assert result.exit_code == 1
    assert "no daemon answers" in result.stderr


def test_confirm_goes_to_the_daemon(world: World) -> None:
    world.answers["/confirm"] = [{"cluster": "shop", "syncer": "configmaps", "side": "host", "deletions": 150}]
    result = call("--confirm", "configmaps")
    assert world.asked == [("POST", "/confirm", {"kinds": ["configmaps"]})]
    assert result.stdout == "shop/configmaps: 150 deletions on the host side are made now\n"
    world.answers["/confirm"] = []
    assert call("--confirm").stdout == "nothing is held\n"
    assert world.scanned == []


def test_confirm_without_a_daemon_scans_and_holds_nothing(world: World) -> None:
    result = call("--confirm")
    assert (result.exit_code, world.scanned) == (1, [])
    assert "add --once" in result.stderr, "without a Lease one may run elsewhere"
    assert call("--confirm", "--once").exit_code == 0
    assert call("--confirm", "--leader-elect").exit_code == 0
    assert world.scanned == [((), True), ((), True)]
