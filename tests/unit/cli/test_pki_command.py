"""``syncer pki`` reads its settings, prints what became of each file, and says what is wrong with either."""

import json
from typing import Any

import pytest
import yaml
from cli_scene import bad, good, typed

from syncer.clusters.client import SideClient
from syncer.pki import store
from syncer.pki.layout import PkiSettings
from syncer.pki.plan import FileOutcome
from syncer.pki.store import StoreReport

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]
current-context: a
"""
WHOSE = ("pki", "--namespace", "shop", "--service", "api")


class Asked:
    """Stands in for the run: keeps the settings, and returns a report."""

    def __init__(self) -> None:
        self.wanted: PkiSettings | None = None
        self.wait = -1.0
        self.report = StoreReport([FileOutcome("api-pki", "ca.crt", "made", "2036-04-28")])

    async def complete(self, host: SideClient, wanted: PkiSettings, *, wait: float) -> StoreReport:
        self.wanted, self.wait = wanted, wait
        return self.report


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Asked:
    made = Asked()
    monkeypatch.setattr(store, "complete", made.complete)
    (tmp_path / "host.yaml").write_text(KUBECONFIG)
    monkeypatch.setenv("SYNCER_HOST_KUBECONFIG", str(tmp_path / "host.yaml"))
    return made


def test_pki_names_all_by_the_service(asked: Asked) -> None:
    assert good(*WHOSE).splitlines()[1].split() == ["api-pki", "ca.crt", "made", "2036-04-28", '""']
    members = ("api-control-plane-0", "api-control-plane-1", "api-control-plane-2")
    assert asked.wanted == PkiSettings("shop", "api", "api-pki", "api-kubeconfig", "api-daemon", "api-etcd", members)
    assert asked.wait == 0


def test_pki_takes_other_names_and_a_server(asked: Asked) -> None:
    arguments = ["--secret", "a.b", "--kubeconfig-secret", "c", "--daemon-secret", "d", "--etcd-service", "e"]
    arguments += ["--etcd-members", "m-0, m-1", "--name", "API.example.com", "--name", "2001:DB8:0::1", "--name", "*.x"]
    good(*WHOSE, *arguments, "--server", "https://Api.example:6443/shop", "--wait", "9", "--keep")
    names = ("api.example.com", "2001:db8::1", "*.x")
    server = ("https://Api.example:6443/shop", "api.example")
    assert asked.wanted == PkiSettings("shop", "api", "a.b", "c", "d", "e", ("m-0", "m-1"), names, *server, keep=True)
    assert asked.wait == 9


@pytest.mark.parametrize(("given", "followed"), [("vc-shop/shop", ("shop", "vc-shop")), ("", ("", ""))])
def test_pki_marks_the_secret_of_a_virtual_cluster_that_other_daemons_serve(
    asked: Asked, given: str, followed: tuple[str, str]
) -> None:
    good(*WHOSE, "--virtual-cluster", given)
    assert asked.wanted is not None
    assert asked.wanted.followed == followed
    assert "--virtual-cluster" in bad(*WHOSE, "--virtual-cluster", "shop", code=2)


def test_pki_takes_its_settings_from_the_environment(asked: Asked) -> None:
    good("pki", env={"SYNCER_NAMESPACE": "shop", "SYNCER_SERVICE": "api", "SYNCER_WAIT": "5"})
    assert asked.wanted is not None
    assert (asked.wanted.service, asked.wait) == ("api", 5)


def test_pki_prints_for_programs_and_tells_people_besides(asked: Asked) -> None:
    asked.report.warnings.append("ca.crt ends")
    asked.report.is_awaited = True
    done = typed(*WHOSE, "-o", "json", env={"NO_COLOR": "1"})
    assert json.loads(done.stdout) == [
        {"secret": "api-pki", "file": "ca.crt", "action": "made", "ends": "2036-04-28", "why": ""}
    ]
    assert done.stderr == (
        "warning: ca.crt ends\nService shop/api has no address of a load balancer yet: the next run adds it.\n"
    )


def test_pki_prints_the_role_that_it_needs_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    printed = yaml.safe_load(good(*WHOSE, "--rbac"))
    assert printed == json.loads(good(*WHOSE, "--rbac", "-o", "json"))["items"][0]
    assert (printed["kind"], printed["metadata"]) == ("Role", {"name": "api-pki", "namespace": "shop"})
    rules = {(*rule["resources"], *rule.get("resourceNames", ())): rule["verbs"] for rule in printed["rules"]}
    assert rules == {
        ("services", "api"): ["get"],
        ("secrets", "api-daemon", "api-kubeconfig", "api-pki"): ["get", "update"],
        ("secrets",): ["create"],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--namespace", "Shop", "--service", "api"], "--namespace: 'Shop' is no name for it"),
        (["--namespace", "shop", "--service", "a" * 64], "--service: "),
        (["--namespace", "shop"], "Missing option '--service'"),
        ([*WHOSE[1:], "--etcd-members", "a,,b"], "--etcd-members: ''"),
        ([*WHOSE[1:], "--secret", "a b"], "--secret: 'a b' is no name of a Secret"),
        ([*WHOSE[1:], "--secret", "x", "--daemon-secret", "x"], "must differ"),
        ([*WHOSE[1:], "--name", "a_b"], "--name: 'a_b' is neither a DNS name nor an IP address"),
        ([*WHOSE[1:], "--name", "https://a"], "--name: 'https://a' is neither"),
        ([*WHOSE[1:], "--server", "api.example"], "--server: 'api.example' is no URL of an API server"),
        ([*WHOSE[1:], "--server", "http://api.example"], "is no URL"),
        ([*WHOSE[1:], "--server", "https://api.example:x"], "is no URL"),
        ([*WHOSE[1:], "--server", "https://u:p@api.example"], "is no URL"),
        ([*WHOSE[1:], "--server", "https://a_b"], "--server: 'a_b' is neither"),
        ([*WHOSE[1:], "--wait", "3601"], "3601 is not in the range"),
        ([*WHOSE[1:], "--host-context", "c"], "there is no context 'c'"),
    ],
)
def test_pki_refuses_unusable_input(asked: Asked, arguments: list[str], message: str) -> None:
    assert message in bad("pki", *arguments, code=2)
    assert asked.wanted is None


def test_pki_says_that_the_host_can_not_be_reached(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "host.yaml"
    file.write_text(KUBECONFIG)
    message = bad(*WHOSE, "--host-kubeconfig", str(file), code=1)
    assert "127.0.0.1:1" in message
