"""``syncer rbac`` prints roles, an admission policy or flow schemas as kubectl takes them."""

import json
from pathlib import Path

import pytest
import yaml
from cli_scene import CONFIG, LIST, bad, good


def test_rbac_output_is_accepted_by_kubectl(file: str) -> None:
    documents = list(yaml.safe_load_all(good("rbac", "-c", file, "--leader-elect")))
    assert {each["kind"] for each in documents} <= {"Role", "ClusterRole"}
    [lease] = [each for each in documents if each["metadata"]["name"].endswith(".lease")]
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in lease["rules"]] == [
        (["create"], None),
        (["get", "patch"], [lease["metadata"]["name"].removesuffix(".lease")]),
    ]


def test_rbac_of_the_daemon_alone_and_of_virtual_clusters_alone(file: str) -> None:
    Path(file).write_text(LIST + "leaderElection: {enabled: true, namespace: syncers, name: fleet}\n")

    def roles(*arguments: str) -> list[tuple[str, str, str]]:
        documents = yaml.safe_load_all(good("rbac", "-c", file, *arguments))
        found = [(each["kind"], each["metadata"]) for each in documents]
        return [(kind, metadata.get("namespace", ""), metadata["name"]) for kind, metadata in found]

    daemon = [("Role", "syncers", "fleet.lease")]
    cluster = [("Role", "vc-shop", "vsyncer-shop")]
    virtual = [("ClusterRole", "", "vsyncer-shop")]
    assert roles() == roles("--cluster", "shop") == virtual + daemon + cluster
    assert roles("--only", "daemon") == daemon
    assert roles("--only", "cluster", "--cluster", "shop") == virtual + cluster
    assert roles("--only", "cluster", "--side", "host") == cluster


def test_rbac_has_one_role_of_a_name_in_a_namespace(file: str) -> None:
    """As kubectl applies them after each other, the last of one name would replace the others."""
    shared = "virtualClusterSecrets: [{namespace: team-a, hostNamespaces: [vc-a, vc-b]}]\n"
    front = (
        "networking: {apiServer: {service: vc-a/api}}\nleaderElection: {enabled: true, namespace: home, name: fleet}\n"
    )
    Path(file).write_text("apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n" + shared + front)
    documents = list(yaml.safe_load_all(good("rbac", "-c", file, "--side", "host")))
    identities = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in documents]
    assert len(identities) == len(set(identities))
    [role] = [each for each in documents if each["metadata"].get("namespace") == "vc-a"]
    resources = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert {"pods", "services"} <= resources


def test_rbac_of_one_side_with_bindings(file: str) -> None:
    text = good("rbac", "-c", file, "--side", "virtual", "--service-account", "vc/syncer", "-o", "json")
    items = json.loads(text)["items"]
    assert [each["kind"] for each in items] == ["ClusterRole", "ClusterRoleBinding"]
    assert items[1]["subjects"] == [{"kind": "ServiceAccount", "name": "syncer", "namespace": "vc"}]


def test_rbac_follows_the_syncers_that_are_on(file: str) -> None:
    assert "- ingresses\n" not in good("rbac", "-c", file, "--side", "host")
    Path(file).write_text(CONFIG + "sync: {toHost: {ingresses: {enabled: true}}}\n")
    assert "- ingresses\n" in good("rbac", "-c", file, "--side", "host")


def test_rbac_prints_an_admission_policy_for_a_subject(file: str) -> None:
    text = good("rbac", "-c", file, "--admission", "--service-account", "vc/syncer", "-o", "json")
    assert '"ValidatingAdmissionPolicy"' in text
    assert 'request.userInfo.username == \\"system:serviceaccount:vc:syncer\\"' in text
    assert "--admission needs --service-account or --user" in bad("rbac", "-c", file, "--admission", code=2)


@pytest.mark.parametrize("other", [["--admission"], ["--side", "host"], ["--only", "daemon"]])
def test_rbac_prints_a_flow_schema_only_by_itself(file: str, other: list[str]) -> None:
    message = bad("rbac", "-c", file, "--flow-schema", "--service-account", "vc/syncer", *other, code=2)
    assert "--flow-schema takes no --admission, no --side and no --only" in message


@pytest.mark.parametrize("subject", [["--service-account", "syncer"], ["--service-account", "a/b", "--user", "c"]])
def test_rbac_refuses_a_wrong_subject(file: str, subject: list[str]) -> None:
    assert "--service-account" in bad("rbac", "-c", file, *subject, code=2)


def test_flow_schema_bounds_the_daemon_but_not_its_lease(file: str) -> None:
    text = good("rbac", "--flow-schema", "--service-account", "vc-shop-syncer/syncer", "--config", file)
    level, lease, rest = yaml.safe_load_all(text)
    assert (level["kind"], level["spec"]["type"]) == ("PriorityLevelConfiguration", "Limited")
    assert lease["spec"]["priorityLevelConfiguration"]["name"] == "leader-election"
    assert rest["spec"]["priorityLevelConfiguration"]["name"] == level["metadata"]["name"]
    assert lease["spec"]["matchingPrecedence"] < rest["spec"]["matchingPrecedence"]
    assert "--flow-schema needs the daemon's user" in bad("rbac", "--flow-schema", "--config", file, code=2)
