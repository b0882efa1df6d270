"""``syncer debug bundle`` writes what can be collected into one new file, and an index of it."""

import io
import json
import os
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_scene import asking, bad, call, typed

from syncer.cli import bundle, daemon
from syncer.cli.daemon import NoDaemon, Unanswered
from syncer.cli.redaction import HIDDEN
from syncer.config import Loaded
from syncer.daemon.pages import monitoring
from syncer.daemon.pages.listing import ListPage

PARTS = {
    "index.txt",
    "version.json",
    "config.json",
    "clusters.json",
    "status.json",
    "list.json",
    "doctor.json",
    "rbac.yaml",
    "metrics.txt",
    "readyz.txt",
    "livez.txt",
}
OF_DAEMON = {"clusters.json", "status.json", "metrics.txt", "readyz.txt", "livez.txt"}
PARKED = {"cluster": "shop", "syncer": "secrets", "kind": "Secret", "key": "shop/a", "class": "", "reason": "paused"}


class Answers:
    """A daemon that answers each path, with pages of a list."""

    def __init__(self, *pages: list[Mapping[str, Any]]) -> None:
        self.asked: list[str] = []
        self.pages = list(pages) or [[]]
        self.error: Exception | None = None

    def ask(
        self,
        found: Loaded,
        method: str,
        path: str,
        given: Mapping[str, Any] | None = None,
        *,
        one: bool = False,
        seconds: float = 0.0,
    ) -> Any:
        self.asked.append(path)
        if self.error:
            raise self.error
        if path in ("/metrics", "/readyz", "/livez"):
            return {"text": f"{path} is fine\n", "leftOut": 0}
        if path != "/list":
            return [{"path": path}]
        items = self.pages.pop(0)
        return {"items": items, "next": "more" if self.pages else "", "unlisted": {"shop/widgets": "not served"}}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Answers:
    def examined(found: Loaded) -> list[Any]:
        return []

    monkeypatch.setattr(bundle, "examined", examined)
    return asking(Answers(), monkeypatch, tmp_path)


def without_daemon(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def list_once(config: Any, cluster: Any, *, query: Mapping[str, str]) -> ListPage:
        return ListPage([dict(PARKED)], "", {})

    there.error = NoDaemon("no daemon answers at /tmp/other/bank.sock")
    there.error.__cause__ = FileNotFoundError(2, "No such file or directory")
    monkeypatch.setattr(bundle, "list_once", list_once)


def files(content: bytes) -> dict[str, str]:
    """Return the texts of a bundle by name."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        found: dict[str, str] = {}
        for member in tar.getmembers():
            folder, _, name = member.name.partition("/")
            assert (folder, member.mode, member.uid) == ("syncer-debug", 0o600, 0)
            file = tar.extractfile(member)
            assert file
            found[name] = file.read().decode()
        return found


def made(*arguments: str) -> dict[str, str]:
    """Return the texts of a new bundle."""
    result = call("debug", "bundle", "-o", "made.tar.gz", *arguments)
    assert result.exit_code == 0, result.output
    return files(Path("made.tar.gz").read_bytes())


def missing(found: Mapping[str, str]) -> set[str]:
    """Return the files that the index calls missing."""
    return set(re.findall(r"^(\S+) .*\n +MISSING: ", found["index.txt"], re.MULTILINE))


def here() -> list[str]:
    """Return the names of the files in the current folder."""
    return sorted(path.name for path in Path().iterdir())


def test_bundle_has_each_of_its_parts(there: Answers) -> None:
    there.pages = [[PARKED]]
    found = made()
    assert found.keys() == PARTS
    assert missing(found) == set()
    assert json.loads(found["version.json"]).keys() == {"version", "python", "platform"}
    assert json.loads(found["config.json"])["virtualClusters"][0]["name"] == "shop"
    assert json.loads(found["status.json"]) == [{"path": "/status"}]
    assert json.loads(found["list.json"]) == [PARKED]
    assert json.loads(found["doctor.json"]) == []
    assert "kind: ClusterRole" in found["rbac.yaml"]
    assert found["metrics.txt"] == "/metrics is fine\n"
    assert "not listed: shop/widgets: not served" in found["index.txt"]
    assert all(name in found["index.txt"] for name in PARTS - {"index.txt"})


def test_bundle_is_for_this_user_alone_and_says_where_it_is(there: Answers) -> None:
    result = call("debug", "bundle", "-o", "made.tar.gz")
    assert result.stdout == "made.tar.gz: complete\n"
    assert Path("made.tar.gz").stat().st_mode & 0o777 == 0o600


def test_bundle_without_a_name_has_the_time_in_it(there: Answers) -> None:
    result = call("debug", "bundle")
    [path] = Path().glob("syncer-debug-*.tar.gz")
    assert result.stdout == f"{path}: complete\n"


def test_bundle_goes_to_standard_output(there: Answers) -> None:
    result = call("debug", "bundle", "-o", "-")
    assert files(result.stdout_bytes).keys() == PARTS
    assert result.stderr == "the bundle: complete\n"
    assert here() == ["c.yaml"]


@pytest.mark.parametrize("is_link", [False, True], ids=["file", "dangling link"])
def test_file_that_is_there_is_left_as_it_is(there: Answers, is_link: bool) -> None:
    path = Path("made.tar.gz")
    if is_link:
        path.symlink_to("gone")
    else:
        path.write_text("mine")
    why = "made.tar.gz is there already, and is left as it is: choose another name\n"
    assert bad("debug", "bundle", "-o", "made.tar.gz", "-c", "c.yaml", code=1) == why
    assert path.is_symlink() or path.read_text() == "mine"
    assert there.asked == []


def test_file_that_comes_meanwhile_is_left_as_it_is(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(found: Loaded) -> list[Any]:
        Path("made.tar.gz").write_text("mine")
        return []

    monkeypatch.setattr(bundle, "examined", examined)
    assert "is there already" in bad("debug", "bundle", "-o", "made.tar.gz", "-c", "c.yaml", code=1)
    assert Path("made.tar.gz").read_text() == "mine"
    assert here() == ["c.yaml", "made.tar.gz"]


def test_bundle_that_cannot_be_written_leaves_nothing(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*paths: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    why = bad("debug", "bundle", "-o", "made.tar.gz", "-c", "c.yaml", code=1)
    assert why == (
        "made.tar.gz can't be written (Operation not permitted): choose another folder, or -o - for standard output\n"
    )
    assert here() == ["c.yaml"]
    assert "gone/made" in bad("debug", "bundle", "-o", "gone/made.tar.gz", "-c", "c.yaml", code=1)


def test_bundle_without_a_daemon_has_the_rest_and_says_why(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    without_daemon(there, monkeypatch)
    found = made()
    assert missing(found) == OF_DAEMON
    assert found.keys() == PARTS - OF_DAEMON
    assert json.loads(found["list.json"]) == [PARKED]
    assert "MISSING: no daemon answers at the control socket ([Errno 2] No such file" in found["index.txt"]
    assert "bank" not in found["index.txt"]
    assert there.asked == ["/livez"], "a daemon that doesn't answer is asked once"


def test_daemon_that_stands_by_is_named_in_the_index(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    without_daemon(there, monkeypatch)
    there.error = Unanswered("this daemon is on standby: pod-b leads; run the command there")
    assert "MISSING: this daemon is on standby: pod-b leads" in made()["index.txt"]


def test_fault_in_a_part_costs_no_other_part(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(found: Loaded) -> list[Any]:
        raise LookupError("swordfish")

    monkeypatch.setattr(bundle, "examined", examined)
    found = made()
    assert missing(found) == {"doctor.json"}
    assert "MISSING: it can't be collected: LookupError" in found["index.txt"]
    assert "swordfish" not in str(found)


def test_reason_that_may_quote_contents_is_hidden(there: Answers) -> None:
    rows: list[Mapping[str, Any]] = [
        {**PARKED, "key": "shop/denied", "class": "Denied", "reason": "swordfish is too weak"},
        {**PARKED, "key": "shop/map", "kind": "ConfigMap", "class": "Invalid", "reason": "swordfish"},
        {**PARKED, "key": "shop/taken", "class": "NameTaken", "reason": "taken"},
        {**PARKED, "key": "shop/pod", "kind": "Pod", "class": "Denied", "reason": "not privileged"},
        {name: value for name, value in PARKED.items() if name != "class"},
    ]
    there.pages = [rows]
    reasons = {row["key"]: row["reason"] for row in json.loads(made()["list.json"])}
    assert reasons == {
        "shop/denied": HIDDEN,
        "shop/map": HIDDEN,
        "shop/taken": "taken",
        "shop/pod": "not privileged",
        "shop/a": "paused",
    }


def test_list_is_cut_after_the_rows_that_fit_and_no_further_page_is_asked_for(
    there: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MOST_BYTES", 1000)
    there.pages = [[PARKED] * 5 for _ in range(5)]
    found = made()
    rows = json.loads(found["list.json"])
    assert 5 < len(rows) < 10
    assert len(found["list.json"]) <= 1000
    assert f"cut after {len(rows)} rows; --cluster NAME makes it smaller" in found["index.txt"]
    assert there.asked.count("/list") == 2


def test_text_is_cut_after_a_line(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "MOST_BYTES", 100)
    found = made()
    assert len(found["rbac.yaml"]) <= 100
    assert found["rbac.yaml"].endswith("\n")
    index = found["index.txt"]
    assert "cut: " in index.partition("rbac.yaml")[2].splitlines()[1]
    assert found["metrics.txt"] == "/metrics is fine\n"


def test_what_the_daemon_has_cut_is_named(there: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = there.ask

    def ask(found: Loaded, method: str, path: str, *arguments: Any, **more: Any) -> Any:
        answer = whole(found, method, path, *arguments, **more)
        return {**answer, "leftOut": 7} if path == "/metrics" else answer

    monkeypatch.setattr(daemon, "ask", ask)
    assert "cut: 7 bytes more are left out" in made()["index.txt"]


LISTED = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
virtualClusters: [{name: shop, hostNamespace: vc-shop}, {name: bank, hostNamespace: vc-bank}]
virtualClusterSecrets: [{namespace: team-bank, hostNamespaces: [pods-bank]}]
leaderElection: {namespace: syncers, name: fleet}
"""


@pytest.fixture
def several(there: Answers) -> Answers:
    Path("c.yaml").write_text(LISTED)
    return there


def test_bundle_about_a_virtual_cluster_names_no_other(several: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made("--cluster", "shop")
    assert "bank" not in str(found)
    assert "vc-shop" in found["rbac.yaml"]
    assert found["index.txt"].startswith("Debug bundle of virtual cluster shop, ")
    Path("made.tar.gz").unlink()
    without_daemon(several, monkeypatch)
    assert "bank" not in str(made("--cluster", "shop"))


def test_bundle_about_all_virtual_clusters_needs_a_name_for_the_list_without_a_daemon(
    several: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "vc-bank" in made()["rbac.yaml"]
    Path("made.tar.gz").unlink()
    without_daemon(several, monkeypatch)
    found = made()
    assert missing(found) == {*OF_DAEMON, "list.json"}
    assert "Name one, with --cluster" in found["index.txt"]


def test_wrong_configuration_is_an_error(there: Answers) -> None:
    Path("c.yaml").write_text("kind: SyncerConfig\n")
    result = typed("debug", "bundle", "-o", "made.tar.gz", "-c", "c.yaml")
    assert result.exit_code == 2
    assert not Path("made.tar.gz").exists()
