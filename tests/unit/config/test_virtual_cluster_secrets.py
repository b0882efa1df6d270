"""Secrets of the host with kubeconfigs of virtual clusters: what an entry takes, and what is refused."""

from typing import Any

import jsonschema
import pytest
from config_fakes import Gadgets, Straight, Widgets, loaded, problems

from syncer.api import ConfigError
from syncer.config import Override, config_with
from syncer.config.render import schema
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n"
SECRETS = HEAD + "virtualClusterSecrets:\n- namespace: team\n  hostNamespaces: [pods, more]\n"
MODEL = config_with([Widgets, Gadgets], translator=Straight)


@pytest.mark.parametrize("listed", ["", "virtualClusters: []\n"])
def test_no_virtual_cluster_need_be_listed_beside_secrets(plugins: Any, listed: str) -> None:
    config = loaded(plugins, SECRETS + listed).config
    [entry] = config.virtual_cluster_secrets
    assert config.clusters() == ()
    assert (entry.namespace, entry.host_namespaces) == ("team", ("pods", "more"))
    assert (entry.selector, entry.key, entry.max_clusters) == ("vsyncer.dev/virtual-cluster", "config", 100)


@pytest.mark.parametrize(
    "short", ["cluster: shop\nhost: {namespace: vc}\n", "virtualClusters: [{name: shop, hostNamespace: vc}]\n"]
)
def test_secrets_stand_beside_either_form(plugins: Any, short: str) -> None:
    assert [each.name for each in loaded(plugins, SECRETS + short).config.clusters()] == ["shop"]


def test_sections_at_the_top_lie_under_those_of_an_entry(plugins: Any) -> None:
    own = "  sync: {toHost: {widgets: {size: 5}}}\n  weight: 2\n  qps: 7\n"
    config = loaded(plugins, SECRETS + own + "sync: {toHost: {widgets: {size: 3, enabled: true}}}\n").config
    made = config.cluster_of(config.virtual_cluster_secrets[0], "shop", "more")
    section: Any = made.section_of(Widgets)
    assert (made.name, made.host_namespace, made.weight, made.connection.qps) == ("shop", "more", 2, 7)
    assert (section.size, section.enabled) == (5, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- hostNamespaces: [a]\n", "f.yaml:4: virtualClusterSecrets[0].namespace: is required and not given."),
        ("- namespace: team\n", "f.yaml:4: virtualClusterSecrets[0].hostNamespaces: is required and not given."),
        (
            "- namespace: team\n  hostNamespaces: []\n",
            "f.yaml:5: virtualClusterSecrets[0].hostNamespaces: must not be empty.",
        ),
        (
            "- namespace: team\n  hostNamespaces: [pods, '']\n",
            "f.yaml:5: virtualClusterSecrets[0].hostNamespaces[1]: must not be empty.",
        ),
        (
            "- namespace: team\n  hostNamespaces: [pods, kube-system]\n",
            "f.yaml:5: virtualClusterSecrets[0].hostNamespaces[1]: kube-system is a namespace of the host cluster",
        ),
        (
            "- namespace: team\n  hostNamespaces: [pods]\n  maxClusters: 0\n",
            "f.yaml:6: virtualClusterSecrets[0].maxClusters: expected at least 1, found 0.",
        ),
        (
            "- namespace: team\n  hostNamespaces: [pods]\n  selector: 'a=b&limit=1'\n",
            "f.yaml:6: virtualClusterSecrets[0].selector: expected",
        ),
        (
            "- namespace: team\n  hostNamespaces: [pods]\n  hostNamespce: x\n",
            "f.yaml:6: virtualClusterSecrets[0].hostNamespce: no such option. Did you mean hostNamespaces?",
        ),
        (
            "- {namespace: team, hostNamespaces: [a]}\n- {namespace: team, hostNamespaces: [b]}\n",
            "f.yaml:5: virtualClusterSecrets[1].namespace: is read by virtualClusterSecrets[0], too, with the same sel",
        ),
        (
            "- {namespace: team, hostNamespaces: [a], sync: {toHost: {widgets: {size: x}}}}\n",
            "f.yaml:4: virtualClusterSecrets[0].sync.toHost.widgets.size: expected",
        ),
        (
            "- {namespace: team, hostNamespaces: [a], names: {translator: anywere}}\n",
            "f.yaml:4: virtualClusterSecrets[0].names.translator: no name translator is called 'anywere'; ",
        ),
    ],
)
def test_wrong_entry_is_refused_where_it_is(plugins: Any, text: str, expected: str) -> None:
    found = problems(plugins, f"{HEAD}virtualClusterSecrets:\n{text}")
    assert [each for each in found if each.startswith(expected)], found


def test_translator_that_lets_tenants_name_host_namespaces_is_refused() -> None:
    for where in ("names: {translator: per-namespace}\n", "  names: {translator: per-namespace}\n"):
        [problem] = problems(INSTALLED, SECRETS + where)
        assert "names.translator: puts copies into host namespaces that tenants name, so a Secret could" in problem


def test_lease_is_to_be_named_as_there_may_be_several(plugins: Any) -> None:
    found = problems(plugins, SECRETS + "leaderElection: {enabled: true}\n")
    assert [each.partition(" is required")[0] for each in found] == [
        "f.yaml:6: leaderElection.name:",
        "f.yaml:6: leaderElection.namespace:",
    ]


def test_flag_for_a_listed_virtual_cluster_is_refused_where_none_is(plugins: Any) -> None:
    flag = Override("virtual.kubeconfig", "k", "--virtual-kubeconfig")
    assert problems(plugins, SECRETS, flag) == ["--virtual-kubeconfig: is about a virtual cluster that is listed."]
    assert problems(plugins, SECRETS, flag, Override("cluster", "shop", "--cluster"))


def test_virtual_cluster_that_is_not_listed_may_be_selected(plugins: Any) -> None:
    found = loaded(plugins, SECRETS, Override("cluster", "shop", "--cluster"))
    assert found.chosen == "shop"
    with pytest.raises(ConfigError, match="no virtual cluster is called 'shop'"):
        _ = found.cluster


def test_one_that_is_listed_must_be_named_beside_secrets(plugins: Any) -> None:
    with pytest.raises(ConfigError, match="several virtual clusters: shop, those of Secrets in team"):
        _ = loaded(plugins, SECRETS + "virtualClusters: [{name: shop, hostNamespace: vc}]\n").cluster


def test_unnamed_entry_gets_the_selected_name_beside_secrets(plugins: Any) -> None:
    listed = SECRETS + "virtualClusters: [{hostNamespace: vc}]\n"
    found = loaded(plugins, listed, Override("cluster", "shop", "--cluster"))
    assert found.chosen == "shop"
    assert found.cluster.host_namespace == "vc"


def test_control_socket_is_named_by_the_namespace_of_the_secrets(plugins: Any) -> None:
    assert loaded(plugins, SECRETS).config.control_socket({"TMPDIR": "/x"}).endswith("/team.pods.sock")


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        ({"virtualClusterSecrets": [{"namespace": "a", "hostNamespaces": ["b"]}]}, True),
        ({"virtualClusterSecrets": [{"namespace": "a", "hostNamespaces": ["b"]}], "virtualClusters": []}, True),
        ({"virtualClusterSecrets": [{"namespace": "a", "hostNamespaces": ["b"]}], "cluster": "c"}, True),
        ({"virtualClusterSecrets": [{"namespace": "a", "hostNamespaces": []}]}, False),
        ({"virtualClusterSecrets": [{"hostNamespaces": ["b"]}]}, False),
        ({"virtualClusters": []}, False),
    ],
)
def test_schema_for_editors_says_the_same(data: dict[str, Any], *, fits: bool) -> None:
    whole = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig", **data}
    assert jsonschema.Draft202012Validator(schema(MODEL)).is_valid(whole) is fits
