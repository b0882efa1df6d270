"""``syncer parked`` queries the daemon and shows the parked requests, and what they wait for."""

import json
from pathlib import Path
from typing import Any

import cli_scene
import pytest
from cli_scene import Daemon, asking
from click.testing import Result

ONE = {
    "cluster": "shop",
    "syncer": "pods",
    "key": "shop/web",
    "since": "2026-01-01T12:00:00Z",
    "seconds": 7300,
    "tried": 3,
    "class": "QuotaExceeded",
    "reason": "exceeded quota:\n small",
    "wakes": ["a change of the object or its copy", "room in the quotas of namespace vc-shop on the host cluster"],
    "nextTry": 90,
}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    return asking(Daemon([ONE]), monkeypatch, tmp_path)


def call(*arguments: str) -> Result:
    result = cli_scene.call("parked", *arguments)
    assert result.exit_code == 0, result.output
    return result


def test_line_has_object_age_tries_and_reason(there: Daemon) -> None:
    assert call().stdout == (
        "CLUSTER   SYNCER   KEY        SINCE   TRIED   CLASS           NEXT   REASON\n"
        "shop      pods     shop/web   2h      3       QuotaExceeded   90s    exceeded quota: small\n"
    )


def test_wide_output_has_the_wakeups_and_json_has_all(there: Daemon) -> None:
    assert call("-o", "wide").stdout.splitlines()[1].endswith("; ".join(ONE["wakes"]))  # type: ignore[arg-type]
    assert json.loads(call("-o", "json").stdout) == [ONE]


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ((), ("GET", "/parked", {"kind": "", "key": ""})),
        (("pods", "shop/web"), ("GET", "/parked", {"kind": "pods", "key": "shop/web"})),
        (("--retry",), ("POST", "/retry", {"kind": "", "key": ""})),
        (("--retry", "pods"), ("POST", "/retry", {"kind": "pods", "key": ""})),
    ],
)
def test_selection_goes_to_the_daemon(there: Daemon, arguments: tuple[str, ...], asked: Any) -> None:
    out = call(*arguments).stdout
    assert there.asked == [asked]
    assert out.endswith("They are tried again now.\n") == ("--retry" in arguments)


def test_empty_answer_is_no_failure(there: Daemon) -> None:
    there.answer = []
    assert call().stdout == "nothing is parked\n"
    assert call("pods").stdout == "no such object is parked; `syncer explain` has its state and the reason\n"
    for kind in ((), ("pods",)):
        again = "nothing to try again; `syncer explain` has an object's state and the reason\n"
        assert call(*kind, "--retry").stdout == again
    assert json.loads(call("-o", "json").stdout) == []


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")]
)
def test_age_is_as_kubectl_shows_it(there: Daemon, seconds: int, shown: str) -> None:
    there.answer = [{**ONE, "seconds": seconds}]
    assert call("--no-headers").stdout.split()[3] == shown


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_text_of_a_tenant_does_nothing_to_the_terminal(
    form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile = "no \x1b[2J\x9b31m\u202e\x07 way"
    asking(Daemon([{**ONE, "reason": hostile, "key": f"shop/{hostile}"}]), monkeypatch, tmp_path)
    message = call("-o", form).stdout
    assert not set(message) & set("\x1b\x9b\u202e\x07"), message
    if form == "json":
        assert json.loads(message)[0]["reason"] == hostile
