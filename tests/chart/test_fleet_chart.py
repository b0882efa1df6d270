"""The objects of the chart `syncer` with `fleet.enabled`, and of a virtual cluster that is handed to the fleet."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, Unrenderable, granted, helm, rendered
from click.testing import CliRunner
from virtual_cluster_scene import pods

from hack.chart_build import built
from syncer.api import Obj
from syncer.cli.app import app
from syncer.config import SyncerConfig, build, parse
from syncer.daemon.fleet.config_file import PROCESS
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

CHART = CHARTS / "syncer"
TEAM = {"namespace": "team-a", "hostNamespaces": ["team-a-pods", "team-a-more"]}
SHOP = {"name": "shop", "hostNamespace": "vc-shop", "kubeconfigSecret": {"name": "shop-kubeconfig", "key": "value"}}
BANK = {"name": "bank", "hostNamespace": "vc-bank", "kubeconfigSecret": {"name": "bank-kubeconfig"}}
#: The values that a fleet alone has.
_OF_FLEETS = ("virtualClusterSecrets", "leaderElection", "resources")
Objects = dict[tuple[str, str], Obj]


def values_of(**values: Any) -> Obj:
    """Return the values of a fleet; those that a fleet alone has go below its key."""
    given = values or {"virtualClusterSecrets": [TEAM]}
    fleet = {name: given[name] for name in _OF_FLEETS if name in given}
    others = {name: value for name, value in given.items() if name not in fleet}
    return {"nameOverride": "fleet", "fleet": {"enabled": True, **fleet}, **others}


def release(**values: Any) -> list[Obj]:
    """Return the objects of a release that is named as the values name the chart."""
    return rendered(CHART, values_of(**values), release="fleet")


def objects(**values: Any) -> Objects:
    """Return the objects of a release by kind and name."""
    return {(each["kind"], each["metadata"]["name"]): each for each in release(**values)}


def text(found: Objects) -> str:
    """Return the configuration of the daemons."""
    made: str = found["ConfigMap", "fleet"]["data"]["syncer.yaml"]
    return made


def config(**values: Any) -> SyncerConfig:
    """Return what the daemons make of their configuration."""
    return build(parse(text(objects(**values))), INSTALLED).config


def pod(found: Objects) -> Obj:
    """Return the template of the daemons' pods."""
    made: Obj = found["Deployment", "fleet"]["spec"]["template"]
    return made


def test_missing_namespace_of_copies_or_secrets_ends_an_install_before_anything_is_made() -> None:
    values = {"virtualClusterSecrets": [TEAM], "virtualClusters": [SHOP]}
    first = [
        each
        for each in release(**values)
        if "pre-install" in each["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    ]
    namespaces = [each["metadata"]["namespace"] for each in first]
    assert sorted(namespaces) == ["team-a", "team-a-more", "team-a-pods", "vc-shop"]
    assert all(each["kind"] == "Role" and each["rules"] == [] for each in first), "they give no right"
    assert not [name for _, name in objects(**values, rbac={"create": False}) if name == "fleet-check"]


def test_virtual_clusters_of_secrets_and_listed_ones_are_served() -> None:
    found = config(virtualClusterSecrets=[TEAM], virtualClusters=[SHOP, BANK])
    assert [each.name for each in found.clusters()] == ["shop", "bank"]
    [entry] = found.virtual_cluster_secrets
    assert (entry.namespace, list(entry.host_namespaces)) == ("team-a", TEAM["hostNamespaces"])
    spec = pod(objects(virtualClusters=[SHOP, BANK]))["spec"]
    [container] = spec["containers"]
    paths = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    secrets = {each["secret"]["secretName"]: paths[each["name"]] for each in spec["volumes"] if "secret" in each}
    assert [each.connection.kubeconfig for each in found.clusters()] == [
        f"{secrets['shop-kubeconfig']}/value",
        f"{secrets['bank-kubeconfig']}/config",
    ]


def test_notes_name_the_label_that_each_namespace_of_secrets_has() -> None:
    own = {"namespace": "team-b", "hostNamespaces": ["b"], "selector": "example.org/cluster=yes"}
    values = values_of(virtualClusterSecrets=[TEAM, own])
    message = helm("install", "fleet", str(built("syncer")), "--dry-run=client", values=values)
    notes = message.partition("\nNOTES:\n")[2]
    assert "namespace team-a, with the label vsyncer.dev/virtual-cluster: copies in team-a-pods, team-a-more" in notes
    assert "namespace team-b, with the label example.org/cluster=yes: copies in b" in notes


def test_names_begin_with_the_release_and_the_charts_own_name() -> None:
    values = {"fleet": {"enabled": True, "virtualClusterSecrets": [TEAM]}}
    found = rendered(CHART, values, release="fleet")
    assert [each["metadata"]["name"] for each in found if each["kind"] == "Deployment"] == ["fleet-syncer"]


def test_daemon_has_more_memory_than_one_for_a_virtual_cluster_unless_the_values_say_how_much() -> None:
    def resources(**values: Any) -> Obj:
        [container] = pod(objects(virtualClusterSecrets=[TEAM], **values))["spec"]["containers"]
        made: Obj = container["resources"]
        return made

    assert resources()["limits"] == {"memory": "1Gi"}
    alone = {"resources": {"requests": {"cpu": 1}, "limits": {"memory": "2Gi"}}}
    assert resources(**alone) == {"requests": {"cpu": 1, "memory": "96Mi"}, "limits": {"memory": "2Gi"}}


def test_network_policy_opens_the_kubelets_ports_of_every_virtual_cluster() -> None:
    more = {"kubelet": {"enabled": True, "firstPort": 30250, "ports": 10}}
    off = {"namespace": "team-b", "hostNamespaces": ["team-b-pods"], "kubelet": {"enabled": False}}
    found = objects(
        virtualClusterSecrets=[TEAM, off],
        virtualClusters=[{**SHOP, **more}],
        networkPolicy={"enabled": True},
        config={"kubelet": {"enabled": True}},
    )
    spec = found["NetworkPolicy", "fleet"]["spec"]
    assert spec["podSelector"]["matchLabels"].items() <= pod(found)["metadata"]["labels"].items()
    assert spec["ingress"] == [
        {"ports": [{"port": "metrics"}]},
        {"ports": [{"port": 30250, "endPort": 30259}, {"port": 20250, "endPort": 20749}]},
    ]


def test_replicas_share_them_by_leases_of_the_release() -> None:
    found = objects()
    assert found["Deployment", "fleet"]["spec"]["replicas"] == 2
    assert found["PodDisruptionBudget", "fleet"]["spec"]["maxUnavailable"] == 1
    election = config().leader_election
    assert (election.enabled, election.namespace, election.name, election.shards) == (True, "fleet", "fleet", 16)
    [rule] = found["Role", "fleet.lease"]["rules"]
    assert (rule["resources"], rule.get("resourceNames")) == (["leases"], None)
    assert {"list", "delete"} <= set(rule["verbs"])
    one = objects(virtualClusterSecrets=[TEAM], leaderElection={"shards": 1})["Role", "fleet.lease"]["rules"]
    assert [rule.get("resourceNames") for rule in one] == [None, ["fleet"]]


def test_replicas_are_on_nodes_of_their_own_unless_the_values_say_where() -> None:
    [preferred] = pod(objects())["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    labels = preferred["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert labels.items() <= pod(objects())["metadata"]["labels"].items()
    affinity: Obj = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert pod(objects(virtualClusterSecrets=[TEAM], affinity=affinity))["spec"]["affinity"] == affinity


def test_secrets_are_read_in_their_namespace_and_copies_written_in_those_that_are_assigned() -> None:
    found = [each for (kind, _), each in objects().items() if kind in ("Role", "ClusterRole")]
    roles = [each for each in release() if each in found]
    assert {each["metadata"]["namespace"] for each in roles} >= {"team-a", "fleet"}
    rights = granted(release())
    assert rights["Role", "team-a", "fleet.secrets"] == {("", "secrets", "", each) for each in ("get", "list", "watch")}
    namespaces = {namespace for _, namespace, name in rights if name == "vsyncer-secrets.team-a"}
    assert namespaces == {"team-a-pods", "team-a-more"}


def test_running_daemons_follow_virtual_clusters_that_join_and_only_a_change_of_their_own_restarts_them() -> None:
    def restarted(**values: Any) -> bool:
        return bool(pod(objects(virtualClusterSecrets=[TEAM], **values))["metadata"] != usual)

    usual = pod(objects())["metadata"]
    other = {"namespace": "team-b", "hostNamespaces": ["team-b-pods"]}
    assert pod(objects(virtualClusterSecrets=[TEAM, other]))["metadata"] == usual
    assert not restarted(config={"sync": {"toHost": {"ingresses": {"enabled": True}}}})
    assert restarted(leaderElection={"shards": 32})
    for option in map(camel, PROCESS):
        changed: Any = {"workers": 8, "gracePeriod": "9s", "leaderElection": {"leaseDuration": "16s"}}.get(option)
        changed = changed or {
            "host": {"qps": 7},
            "metrics": {"address": ":9090"},
            "health": {"address": ":9091"},
            "page": {"address": "0"},
            "control": {"socket": "/tmp/x"},
            "log": {"level": "debug"},
        }.get(option)
        assert restarted(config={option: changed}), option


def camel(option: str) -> str:
    """Return an option's name in the configuration."""
    first, *rest = option.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_test_lists_the_secrets_of_each_namespace_or_reads_both_sides_of_those_that_are_listed() -> None:
    def steps(**values: Any) -> list[str]:
        spec = objects(**values)["Pod", "fleet-test"]["spec"]
        return [each["name"] for each in (*spec["initContainers"], *spec["containers"])]

    assert steps(virtualClusterSecrets=[TEAM]) == ["secrets-0", "config-validate"]
    assert steps(virtualClusters=[SHOP]) == ["config-validate", "plugins-list", "dry-run"]
    assert steps(virtualClusters=[SHOP, BANK]) == ["config-validate", "dry-run"], "plugins are listed of one"
    [listing] = [
        each for each in objects()["Pod", "fleet-test"]["spec"]["initContainers"] if each["name"] == "secrets-0"
    ]
    assert {"--namespace=team-a", "--selector=vsyncer.dev/virtual-cluster"} <= set(listing["args"])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"replicas": 1}, "virtualClusterSecrets: name a namespace"),
        ({"virtualClusterSecrets": [{"namespace": "team-a"}]}, "/fleet/virtualClusterSecrets/0"),
        ({"virtualClusterSecrets": [{**TEAM, "hostNamespace": "x"}]}, "hostNamespace"),
        ({"virtualClusters": [{"name": "shop"}]}, "virtualClusters[0].kubeconfigSecret"),
        (
            {"virtualClusterSecrets": [TEAM], "config": {"virtualClusterSecrets": []}},
            "the value `fleet.virtualClusterSecrets`",
        ),
        ({"virtualClusterSecrets": [TEAM], "config": {"virtualClusters": []}}, "the value `virtualClusters`"),
        ({"virtualClusterSecrets": [TEAM], "config": {"leaderElection": {"shards": 2}}}, "leaderElection.shards"),
        ({"virtualClusterSecrets": [TEAM], "config": {"leaderElection": {"enabled": False}}}, "leaderElection.enabled"),
        ({"virtualClusterSecrets": [TEAM], "leaderElection": {"shards": 0}}, "/fleet/leaderElection/shards"),
        ({"virtualClusterSecrets": [TEAM], "uninstall": {"enabled": True}}, "uninstall.enabled: the copies of a fleet"),
        ({"fleet": {"virtualClusterSecrets": [TEAM]}}, "set fleet.enabled, too"),
    ],
)
def test_values_that_cannot_work_are_refused(values: Obj, reason: str) -> None:
    with pytest.raises(Unrenderable) as caught:
        objects(**values)
    assert reason in str(caught.value)


def test_virtual_cluster_of_a_fleet_has_no_daemon_and_its_secret_says_where_it_leads() -> None:
    found = rendered(CHARTS / "virtual-cluster", {"fleet": {"namespace": "vsyncer"}})
    assert not [each for each in found if each["kind"] in ("Deployment", "PodDisruptionBudget")]
    assert not [each for each in found if each["metadata"]["labels"]["vsyncer.dev/part"] in ("syncer", "uninstall")]
    specs = pods({(each["kind"], each["metadata"]["name"]): each for each in found})
    arguments = [spec["containers"][0]["args"] for _, spec in specs if spec["containers"][0]["name"] == "pki"]
    assert len(arguments) == 2
    for each in arguments:
        assert "--virtual-cluster=shop-virtual-cluster-workloads/shop-virtual-cluster" in each


def test_api_server_of_a_virtual_cluster_reaches_the_daemons_of_its_fleet() -> None:
    found = rendered(CHARTS / "virtual-cluster", {"fleet": {"namespace": "fleet"}})
    [policy] = [
        each
        for each in found
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "shop-virtual-cluster-control-plane"
    ]
    peers = [peer for rule in policy["spec"]["egress"] for peer in rule.get("to", ())]
    [selected] = [each["podSelector"]["matchLabels"] for each in peers if len(each) == 2]
    assert selected.items() <= pod(objects())["metadata"]["labels"].items()
    assert {"kubernetes.io/metadata.name": "fleet"} in [
        each["namespaceSelector"]["matchLabels"] for each in peers if "namespaceSelector" in each
    ]


def test_virtual_cluster_of_a_fleet_gives_it_the_rights_that_it_needs_there(tmp_path: Path) -> None:
    values: Obj = {"kubelet": {"enabled": True}, "sync": {"toHost": {"ingresses": {"enabled": True}}}}
    file = tmp_path / "syncer.yaml"
    file.write_text(text(objects(virtualClusterSecrets=[TEAM], config=values)))
    done = CliRunner().invoke(app, ["rbac", "--config", str(file), "--side", "virtual"])
    assert done.exit_code == 0, done.output
    [needed] = granted(yaml.safe_load_all(done.output)).values()
    member = {"fleet": {"namespace": "fleet"}, "syncer": {"config": {"sync": values["sync"]}}}
    [manifests] = [
        each["data"]["10-daemon.yaml"]
        for each in rendered(CHARTS / "virtual-cluster", member)
        if each["kind"] == "ConfigMap" and "10-daemon.yaml" in each["data"]
    ]
    [given] = granted(each for each in yaml.safe_load_all(manifests) if each).values()
    assert given == needed
