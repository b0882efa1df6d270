"""``syncer explain`` and ``syncer list`` query the daemon, and show states with reasons."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import cli_scene
import pytest
from cli_scene import Daemon, asking
from click.testing import Result

from syncer.cli.daemon import NoDaemon
from syncer.cli.explain import lines as lines_of
from syncer.config import Loaded
from syncer.daemon.pages.listing import ListPage
from syncer.daemon.pages.page import page_html

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "objects.md"

SKIPPED = {
    "cluster": "shop",
    "syncer": "configmaps",
    "kind": "ConfigMap",
    "key": "shop/hidden",
    "hostKey": "vc-shop/hidden-x-shop-x-shop",
    "onVirtual": True,
    "onHost": False,
    "state": "skipped",
    "code": "NotSelected",
    "reason": "its labels are not those of sync.toHost.configMaps.selector",
    "wayOut": "give it such labels",
    "class": "",
    "since": "2026-01-01T12:00:00Z",
    "seconds": 7300,
    "tried": 1,
    "nextTry": None,
    "wakes": ["a change of the object or its copy"],
}
IN_STEP = {
    **{name: SKIPPED[name] for name in ("cluster", "syncer", "kind", "hostKey", "onVirtual")},
    "key": "shop/shown",
    "onHost": True,
    "state": "in_step",
    "code": "",
    "reason": "",
    "wayOut": "",
}
EXPLAINED: dict[str, Any] = {
    **SKIPPED,
    "steps": [{"policy": "selection", "what": "decides: its labels"}],
    "decision": {"outcome": "skipped", "code": "NotSelected", "reason": SKIPPED["reason"], "writes": [], "after": None},
    "reads": [{"object": "the host Secret vc-shop/a", "exists": False}],
    "owners": {"virtual": ["data", "binaryData"]},
    "notKept": [],
    "ending": [],
    "hostEvents": [],
    "leftOut": ["metadata.labels[x]"],
    "frozen": [],
    "drift": [{"class": "field", "object": "the host ConfigMap vc-shop/a", "paths": ["data.a"]}],
    "managers": [
        {"side": "host", "manager": "vsyncer", "time": "2026-01-01T12:00:00Z", "subresource": "", "ours": True}
    ],
}


WROTE = {"side": "host", "time": "2026-01-01T12:00:00Z"}
FAILED = {"class": "QuotaExceeded", "message": "the quota is full", "time": "2026-01-01T11:57:00Z", "seconds": 180}
ENDING = {
    "object": "the host ConfigMap vc-shop/a",
    "time": "2026-01-01T12:00:00Z",
    "finalizers": ["a/b"],
    "conditions": [],
}
EVENT = {"type": "Warning", "reason": "Failed", "message": "no room", "count": 2, "time": "2026-01-01T12:00:00Z"}
#: An explanation that has everything.
FULL: dict[str, Any] = {
    **EXPLAINED,
    "decision": {
        "outcome": "skipped",
        "code": "Paused",
        "reason": "paused",
        "writes": [{"verb": "apply", "object": "the host ConfigMap vc-shop/a", "calls": 1}],
        "after": None,
    },
    "nextTry": 5,
    "lastWrite": WROTE,
    "lastError": FAILED,
    "lacks": [{"object": "Secret shop/a", "state": "skipped", "code": "Unused", "reason": "no object refers to it"}],
    "notKept": [{"object": "the host ConfigMap vc-shop/a", "field": "data.b"}],
    "ending": [ENDING],
    "hostEvents": [EVENT],
    "frozen": [{"field": "data.a", "object": "a", "until": "2026-01-01T12:00:00Z", "other": ""}],
}


class Pages:
    """A daemon that answers with these pages, one after the other."""

    def __init__(self, *pages: Any) -> None:
        self.pages = list(pages)
        self.asked: list[Mapping[str, Any]] = []

    def ask(
        self, found: Loaded, method: str, path: str, given: Mapping[str, Any] | None = None, *, one: bool = False
    ) -> Any:
        assert (method, path) == ("GET", "/list")
        self.asked.append(given or {})
        return self.pages.pop(0)


def page(*items: Any, begin: str = "") -> dict[str, Any]:
    return {"items": list(items), "next": begin, "unlisted": {}}


def call(*arguments: str, status: int = 0) -> Result:
    result = cli_scene.call(*arguments)
    assert result.exit_code == status, result.output
    return result


# -- explain ---------------------------------------------------------------------------------------


def test_explanation_names_both_sides_and_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = asking(Daemon([EXPLAINED]), monkeypatch, tmp_path)
    lines = call("explain", "configmaps", "shop/hidden").stdout.splitlines()
    assert there.asked == [("GET", "/explain", {"kind": "configmaps", "key": "shop/hidden"})]
    assert lines == [
        "ConfigMap shop/hidden in virtual cluster shop",
        "  syncer:      configmaps",
        "  state:       skipped (NotSelected) for 2h, 1 attempt",
        "  reason:      its labels are not those of sync.toHost.configMaps.selector",
        "  way out:     give it such labels",
        "  virtual:     shop/hidden",
        "  host:        vc-shop/hidden-x-shop-x-shop (not there)",
        "  decided by:  selection: decides: its labels",
        "  waits for:   a change of the object or its copy",
        "  reads:       the host Secret vc-shop/a (not there)",
        "  owners:      virtual: data, binaryData",
        "  left out:    metadata.labels[x]",
        "  drift:       field of the host ConfigMap vc-shop/a: data.a",
        "  writers:     host: vsyncer (this daemon) at 2026-01-01T12:00:00Z",
    ]


def names(lines: Iterable[str]) -> set[str]:
    """Return the names of the lines of an explanation."""
    found = (re.match(r"  ([a-z ]+):", line) for line in lines)
    return {each[1] for each in found if each}


def names_on_the_page(heading: str) -> set[str]:
    """Return the words in backquotes in the first column of the first table below a heading."""
    table = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n|---")[1].split("\n\n")[0]
    return {word for row in table.splitlines() if row for word in re.findall("`([^`]+)`", row.split("|")[1])}


def test_documentation_has_each_line_of_an_explanation() -> None:
    assert names_on_the_page("syncer explain") == names(lines_of(FULL)) - {"syncer"}


def test_documentation_of_a_symptom_names_lines_of_an_explanation() -> None:
    table = PAGE.read_text().split("\n## From the symptom to the command\n")[1].split("\n\n")[0]
    rows = [row.split("|") for row in table.splitlines() if "`syncer explain KIND" in row]
    assert len(rows) > 5
    for _, symptom, _, shown, _ in rows:
        assert set(re.findall("`([^`]+)`", shown)) <= names(lines_of(FULL)), symptom


def test_page_has_each_line_of_an_explanation() -> None:
    script = page_html().partition("function explanation(")[2].partition("\n}\n")[0]
    assert set(re.findall(r'(?:add|some)\("([a-z ]+)"', script)) == names(lines_of(FULL))


def test_explanation_names_what_holds_an_object_and_what_the_host_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asking(Daemon([FULL]), monkeypatch, tmp_path)
    found = call("explain", "configmaps", "shop/hidden").stdout.splitlines()
    held = "is being deleted, with the deletionTimestamp 2026-01-01T12:00:00Z; held by the finalizers a/b"
    assert f"  ending:      the host ConfigMap vc-shop/a {held}" in found
    assert "  host events: Warning Failed at 2026-01-01T12:00:00Z (2 times): no room" in found


def test_explanation_has_the_last_write_and_the_error_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mended = {**EXPLAINED, **IN_STEP, "lastError": FAILED, "lastWrite": WROTE}
    asking(Daemon([mended]), monkeypatch, tmp_path)
    lines = call("explain", "configmaps", "shop/shown").stdout.splitlines()
    assert "  last write:  to the host side at 2026-01-01T12:00:00Z" in lines
    assert "  last error:  3m ago: the quota is full" in lines


def test_error_that_is_the_reason_is_shown_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed = {"class": "Invalid", "message": EXPLAINED["reason"], "time": "2026-01-01T12:00:00Z", "seconds": 0}
    asking(Daemon([{**EXPLAINED, "lastError": failed}]), monkeypatch, tmp_path)
    assert "last error" not in call("explain", "configmaps", "shop/hidden").stdout


def test_decision_is_shown_where_it_is_not_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    decided = {**EXPLAINED["decision"], "reason": "the Service has a selector"}
    asking(Daemon([{**EXPLAINED, "decision": decided}]), monkeypatch, tmp_path)
    lines = call("explain", "configmaps", "shop/hidden").stdout.splitlines()
    assert "  decision:    the Service has a selector" in lines


def test_explanation_for_programs_is_the_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asking(Daemon([EXPLAINED]), monkeypatch, tmp_path)
    assert json.loads(call("explain", "configmaps", "shop/hidden", "-o", "json").stdout) == [EXPLAINED]


def test_text_of_a_tenant_does_nothing_to_the_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asking(Daemon([{**EXPLAINED, "reason": "\x1b[2Jgone"}]), monkeypatch, tmp_path)
    assert "\x1b" not in call("explain", "configmaps", "shop/hidden").stdout


@pytest.mark.parametrize("field", ["reason", "wayOut", "key", "hostKey"])
def test_text_of_a_tenant_stays_on_its_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: str) -> None:
    asking(Daemon([{**EXPLAINED, field: "one\n  state:       in step"}]), monkeypatch, tmp_path)
    lines = call("explain", "configmaps", "shop/hidden").stdout.splitlines()
    assert len([line for line in lines if line.startswith("  state:")]) == 1


def test_command_decides_by_itself_without_a_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def explain_once(config: Any, cluster: Any, *, kind: str, key: str) -> list[dict[str, Any]]:
        return [{**EXPLAINED, "key": key}]

    asking(Silent(), monkeypatch, tmp_path)
    monkeypatch.setattr("syncer.daemon.answer_once.explain_once", explain_once)
    result = call("explain", "configmaps", "shop/own")
    assert "ConfigMap shop/own" in result.stdout
    assert result.stderr == "no daemon answers\nSo this command decides once by itself.\n"


# -- list ------------------------------------------------------------------------------------------


class Silent:
    """No daemon."""

    def ask(
        self, found: Loaded, method: str, path: str, given: Mapping[str, Any] | None = None, *, one: bool = False
    ) -> Any:
        raise NoDaemon("no daemon answers")


def test_list_decides_by_itself_without_a_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def list_once(config: Any, cluster: Any, *, query: Mapping[str, str]) -> ListPage:
        assert query["kind"] == "configmaps"
        return ListPage([SKIPPED], "", {"shop/widgets": "the kind isn't served"})

    asking(Silent(), monkeypatch, tmp_path)
    monkeypatch.setattr("syncer.daemon.answer_once.list_once", list_once)
    result = call("list", "configmaps", "-o", "name")
    assert result.stdout == "configmaps/shop/hidden\n"
    assert result.stderr.splitlines() == [
        "no daemon answers",
        "So this command decides once by itself.",
        "not listed: shop/widgets: the kind isn't served",
    ]
    assert "--watch asks the daemon" in call("list", "-w", "--once", status=2).output


def test_watch_needs_a_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asking(Silent(), monkeypatch, tmp_path)
    assert "no daemon answers" in call("list", "-w", status=1).output


def test_list_has_a_line_for_each_object_of_all_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = asking(Pages(page(SKIPPED, begin="a"), page(IN_STEP)), monkeypatch, tmp_path)
    assert call("list", "--state", "all").stdout == (
        "CLUSTER   SYNCER       KEY           STATE     SINCE   CODE          REASON\n"
        "shop      configmaps   shop/hidden   skipped   2h      NotSelected   "
        "its labels are not those of sync.toHost.configMaps.selector\n"
        "shop      configmaps   shop/shown    in-step   -       -             -\n"
    )
    assert [each["begin"] for each in there.asked] == ["", "a"]
    assert there.asked[0]["states"] == "in_step,pending,skipped,failing,parked,paused,frozen"


def test_list_leaves_out_objects_in_step_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = asking(Pages(page()), monkeypatch, tmp_path)
    result = call("list", "pods", "-n", "shop", "-l", "app=web")
    assert (result.stdout, result.stderr) == ("", "there is no such object\n")
    assert there.asked == [
        {
            "kind": "pods",
            "states": "pending,skipped,failing,parked,paused,frozen",
            "namespace": "shop",
            "selector": "app=web",
            "begin": "",
        }
    ]


def test_list_has_the_forms_of_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asking(Pages(*[page(SKIPPED) for _ in range(4)]), monkeypatch, tmp_path)
    assert call("list", "-o", "name").stdout == "configmaps/shop/hidden\n"
    assert json.loads(call("list", "-o", "json").stdout) == [SKIPPED]
    wide = call("list", "-o", "wide", "--no-headers").stdout.strip()
    assert wide.endswith("give it such labels   a change of the object or its copy")
    assert "code: NotSelected" in call("list", "-o", "yaml").stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--state", "lost"), "there is no state 'lost'; there are all, in-step, pending"),
        (("-A", "-n", "shop"), "give either -n or -A"),
        (("-w", "-o", "json"), "--watch takes no -o json or yaml"),
    ],
)
def test_wrong_flags_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    asking(Pages(), monkeypatch, tmp_path)
    assert why in call("list", *arguments, status=2).output


def test_watch_prints_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Ended(Exception):
        pass

    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 4:
            raise Ended

    parked = {**SKIPPED, "state": "parked", "code": "NameCollision", "reason": "taken"}
    asking(Pages(page(SKIPPED), page(SKIPPED), page(parked), page()), monkeypatch, tmp_path)
    monkeypatch.setattr("syncer.cli.listing.time.sleep", sleep)
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr("syncer.cli.show.records", lambda rows, form, headers: lines.extend(rows))
    with pytest.raises(Ended):
        cli_scene.call("list", "-w")
    assert [(each["state"], each["code"]) for each in lines] == [
        ("skipped", "NotSelected"),
        ("parked", "NameCollision"),
        ("left the list", "-"),
    ]


# -- names list ------------------------------------------------------------------------------------


def test_names_of_all_objects_that_have_one_on_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = {**IN_STEP, "syncer": "nodes", "kind": "Node", "key": "n1", "hostKey": ""}
    there = asking(Pages(*[page(SKIPPED, fake, IN_STEP) for _ in range(4)]), monkeypatch, tmp_path)
    assert call("names", "list").stdout == (
        "CLUSTER   SYNCER       VIRTUAL       HOST\n"
        "shop      configmaps   shop/hidden   vc-shop/hidden-x-shop-x-shop\n"
        "shop      configmaps   shop/shown    vc-shop/hidden-x-shop-x-shop\n"
    )
    assert there.asked[0]["states"] == "in_step,pending,skipped,failing,parked,paused,frozen"
    wide = call("names", "list", "-o", "wide").stdout.splitlines()
    assert wide[0].split() == ["CLUSTER", "SYNCER", "VIRTUAL", "HOST", "ON-VIRTUAL", "ON-HOST"]
    assert wide[1].split()[-2:] == ["true", "false"]
    assert call("names", "list", "-o", "name").stdout == "vc-shop/hidden-x-shop-x-shop\n" * 2
    assert json.loads(call("names", "list", "-o", "json").stdout)[0] == {
        "cluster": "shop",
        "syncer": "configmaps",
        "virtual": "shop/hidden",
        "host": "vc-shop/hidden-x-shop-x-shop",
        "kind": "ConfigMap",
        "onVirtual": True,
        "onHost": False,
    }


def test_names_are_chosen_as_a_list_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = asking(Pages(page()), monkeypatch, tmp_path)
    result = call("names", "list", "pods", "-n", "shop", "-l", "app=web")
    assert (result.stdout, result.stderr) == ("", "there is no such object\n")
    assert {name: there.asked[0][name] for name in ("kind", "namespace", "selector")} == {
        "kind": "pods",
        "namespace": "shop",
        "selector": "app=web",
    }
    assert "give either -n or -A" in call("names", "list", "-A", "-n", "shop", status=2).output


def test_name_of_a_tenant_stays_on_its_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asking(Pages(*[page({**SKIPPED, "hostKey": "a\x1b[2J\nb"}) for _ in range(2)]), monkeypatch, tmp_path)
    for form in ("name", "table"):
        output = call("names", "list", "-o", form, "--no-headers").stdout
        assert "\x1b" not in output
        assert output.count("\n") == 1


@pytest.mark.parametrize("command", ["explain", "list", "parked", "status", "thaw", "clusters"])
def test_help_of_a_query_has_its_own_flags(command: str) -> None:
    text = call(command, "--help").stdout
    assert "--cluster" in text
    assert "--workers" not in text
