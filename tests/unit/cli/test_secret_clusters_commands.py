"""Commands with a configuration whose virtual clusters are named by Secrets."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_scene import bad, good, typed

from syncer.cli import daemon
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.fleet import secret_lookup
from syncer.multicluster.logins import CannotConnect, Reason

TEXT = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
virtualClusterSecrets:
- {namespace: team, hostNamespaces: [pods-a, pods-b], kubelet: {enabled: true}}
- {namespace: team, selector: other, hostNamespaces: [pods-a]}
leaderElection: {enabled: true, namespace: syncers, name: fleet}
"""


@pytest.fixture
def secrets(file: str) -> str:
    Path(file).write_text(TEXT)
    return file


def test_validate_says_where_virtual_clusters_may_come_from(secrets: str) -> None:
    assert good("config", "validate", secrets).splitlines() == [
        "syncer.yaml is fine.",
        "Secrets in team: 100 virtual clusters at most, in pods-a, pods-b",
        "Secrets in team: 100 virtual clusters at most, in pods-a",
    ]


def test_roles_let_the_daemon_read_secrets_there_and_serve_any_in_each_host_namespace(secrets: str) -> None:
    documents = list(yaml.safe_load_all(good("rbac", "-c", secrets)))
    roles = {(each["metadata"].get("namespace", ""), each["metadata"]["name"]): each["rules"] for each in documents}
    assert len(roles) == len(documents)
    assert roles["team", "fleet.secrets"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
    ]
    assert roles.keys() == {
        ("", "vsyncer-secrets.team"),
        ("", "vsyncer-secrets.team.2"),
        ("syncers", "fleet.lease"),
        ("team", "fleet.secrets"),
        ("pods-a", "vsyncer-secrets.team"),
        ("pods-a", "vsyncer-secrets.team.2"),
        ("pods-b", "vsyncer-secrets.team"),
    }
    assert "pods/exec" in str(roles["pods-b", "vsyncer-secrets.team"])
    assert "pods/exec" not in str(roles["pods-a", "vsyncer-secrets.team.2"])


def test_roles_of_one_that_only_a_secret_names_are_those_of_all_of_them(secrets: str) -> None:
    documents = list(yaml.safe_load_all(good("rbac", "-c", secrets, "--cluster", "shop", "--only", "cluster")))
    assert len(documents) == 5


def test_policy_lets_any_mark_into_assigned_host_namespaces_alone(secrets: str) -> None:
    [policy, _] = yaml.safe_load_all(good("rbac", "-c", secrets, "--admission", "--user", "daemon"))
    variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
    assert (variables["places"], variables["lent"], variables["lentPods"]) == (
        "{}",
        '["pods-a", "pods-b"]',
        '["pods-a", "pods-b"]',
    )


def test_daemon_is_asked_about_one_that_only_a_secret_names(secrets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def exchange(socket_path: str, method: str, path: str, given: Any, seconds: float) -> tuple[int, bytes]:
        asked.append((path, given["cluster"]))
        return 200, b"[]"

    monkeypatch.setattr(daemon, "_exchange", exchange)
    good("parked", "-c", secrets, "--cluster", "shop")
    good("patrol", "-c", secrets, "--cluster", "shop", "--confirm")
    good("clusters", "-c", secrets)
    assert asked == [("/parked", "shop"), ("/confirm", "shop"), ("/clusters", "")]
    assert "Name one, with --cluster" in bad("patrol", "-c", secrets, "--confirm", code=2)


COMMANDS = [("names", "to-host", "secret", "a/b"), ("uninstall",), ("patrol", "--once"), ("patrol", "--confirm")]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_work_by_themselves_look_for_its_secret(
    secrets: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lookup(config: SyncerConfig, name: str, *, login: bool = True) -> VirtualCluster:
        raise CannotConnect(Reason.REFUSED, f"looked for {name}, with its kubeconfig: {login}")

    monkeypatch.setattr(secret_lookup, "secret_cluster", lookup)
    login = command[0] != "names"
    assert (
        f"looked for shop, with its kubeconfig: {login}" in typed(*command, "-c", secrets, "--cluster", "shop").output
    )
    assert "Name one, with --cluster" in bad(*command, "-c", secrets, code=2)


@pytest.mark.parametrize("side", ["host", "host-first"])
def test_kubeconfig_in_a_secret_is_not_read_for_the_host_side(
    secrets: str, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lookup(config: SyncerConfig, name: str, *, login: bool = True) -> VirtualCluster:
        raise CannotConnect(Reason.REFUSED, f"looked for {name}, with its kubeconfig: {login}")

    monkeypatch.setattr(secret_lookup, "secret_cluster", lookup)
    message = bad("uninstall", "-c", secrets, "--cluster", "shop", "--side", side, code=1)
    assert "looked for shop, with its kubeconfig: False" in message


def test_name_in_one_that_a_secret_names(secrets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(config: SyncerConfig, name: str, *, login: bool = True) -> VirtualCluster:
        return config.cluster_of(config.virtual_cluster_secrets[0], name, "pods-b")

    monkeypatch.setattr(secret_lookup, "secret_cluster", lookup)
    assert good("names", "to-host", "secret", "a/b", "-c", secrets, "--cluster", "shop") == "pods-b/b-x-a-x-shop\n"
    assert "configmaps" in good("plugins", "list", "-c", secrets, "--cluster", "shop", "-o", "name").splitlines()


def test_listed_one_is_found_without_the_host(secrets: str) -> None:
    Path(secrets).write_text(TEXT + "virtualClusters: [{name: bank, hostNamespace: pods-a}]\n")
    found = good("names", "to-host", "secret", "a/b", "-c", secrets, "--cluster", "bank", "--host-kubeconfig", "none")
    assert found == "pods-a/b-x-a-x-bank\n"
