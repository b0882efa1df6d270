"""Nodes of the host in the virtual cluster: fields that appear, and fields that stay behind."""

from typing import Any

import pytest

from syncer.api import Obj, Side
from syncer.plugins import installed
from syncer.resources.host_nodes import HostNodeSyncer
from syncer.resources.nodes import FEATURES
from syncer.rights.rbac import needed
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import node, pod, serviceaccount

CLUSTER = "vsyncer.dev/cluster"
#: A node as a kubelet of a cloud reports it.
REAL: dict[str, Any] = {
    "metadata": {
        "labels": {
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/arch": "arm64",
            "topology.kubernetes.io/zone": "a",
            "team.example.org/secret": "merger",
        },
        "annotations": {"csi.volume.kubernetes.io/nodeid": "{}"},
    },
    "spec": {"podCIDR": "10.0.0.0/24", "providerID": "aws:///i-1", "taints": []},
    "status": {
        "capacity": {"cpu": "64", "memory": "256Gi", "pods": "250", "nvidia.com/gpu": "4"},
        "allocatable": {"cpu": "63", "memory": "250Gi", "pods": "250", "nvidia.com/gpu": "4"},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet on ip-10-0-0-1 is posting ready status",
                "lastHeartbeatTime": "2026-01-01T00:05:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
            {"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock"},
        ],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "images": [{"names": ["registry.secret/app:1"], "sizeBytes": 1}],
        "nodeInfo": {"architecture": "arm64", "kubeletVersion": "v1.36.0", "machineID": "abc", "kernelVersion": "6.1"},
    },
}


@pytest.fixture
def nodes() -> World:
    return World().configure(config())


def config(**options: Any) -> dict[str, Any]:
    return {"sync": {"fromHost": {"nodes": {"enabled": True, **options}}}}


def real(name: str = "n1", **parts: Any) -> Obj:
    return merged(node(name, **REAL), parts)


def shown(world: World, name: str = "n1") -> Obj:
    found = world.virtual("Node", name)
    assert found is not None
    return found


def test_node_without_pods_shows_only_fields_for_scheduling(nodes: World) -> None:
    nodes.given(host=[real()])
    assert "host-nodes n1" in map(str, nodes.woken())
    nodes.settle("host-nodes", "n1")
    made = shown(nodes)
    assert made["metadata"]["labels"].keys() == {
        "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/zone", CLUSTER,
    }  # fmt: skip
    assert made["metadata"]["annotations"].keys() <= {"vsyncer.dev/fields"}
    assert made["spec"].keys() <= {"taints"}
    assert made["status"]["allocatable"] == {"cpu": "63", "memory": "250Gi", "pods": "250", "nvidia.com/gpu": "4"}
    assert made["status"]["nodeInfo"] == {"architecture": "arm64", "kubeletVersion": "v1.36.0"}
    assert [each["type"] for each in made["status"]["conditions"]] == ["Ready"]
    assert "images" not in made["status"]
    for secret in ("secret", "10.0.0.1", "10.0.0.0", "i-1", "abc", "6.1", "ip-10-0-0-1", "Deadlock"):
        assert secret not in str(made), secret


def test_node_follows_readiness_and_capacity_but_heartbeats_write_nothing(nodes: World) -> None:
    nodes.given(host=[real()]).settle("host-nodes", "n1")
    beat = real()
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:10:00Z"
    beat["status"]["images"] = []
    nodes.given(host=[beat])
    assert nodes.settle("host-nodes", "n1") == []
    beat["status"]["conditions"][0] |= {"status": "Unknown", "lastTransitionTime": "2026-01-01T00:11:00Z"}
    del beat["status"]["capacity"]["nvidia.com/gpu"]
    nodes.given(host=[beat]).settle("host-nodes", "n1")
    status = shown(nodes)["status"]
    assert (status["conditions"][0]["status"], status["conditions"][0]["lastTransitionTime"][11:16]) == (
        "Unknown",
        "00:11",
    )
    assert "nvidia.com/gpu" not in status["capacity"]


def test_node_shows_taints_by_key_but_for_those_that_every_pod_tolerates() -> None:
    given = config(taints=["node.kubernetes.io/*", "dedicated"])
    given["sync"]["toHost"] = {"pods": {"tolerations": [{"key": "dedicated", "value": "tenants"}]}}
    world = World().configure(given)
    taints = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "dedicated", "value": "tenants", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "others", "effect": "NoSchedule"},
        {"key": "merger", "effect": "NoSchedule"},
    ]
    world.given(host=[real(spec={"taints": taints, "unschedulable": True})]).settle("host-nodes", "n1")
    assert shown(world)["spec"] == {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
            {"key": "dedicated", "value": "others", "effect": "NoSchedule"},
        ],
    }
    world.given(host=[real()]).settle("host-nodes", "n1")
    assert shown(world)["spec"] in ({"taints": []}, {})


def test_taints_and_cordon_of_the_tenant_stay_and_those_of_the_node_are_put_right(nodes: World) -> None:
    nodes.given(host=[real()]).settle("host-nodes", "n1")
    mine = {"key": "mine", "effect": "NoSchedule"}
    change = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, mine], "unschedulable": True}
    nodes.given(virtual=[merged(shown(nodes), {"spec": change})]).settle("host-nodes", "n1")
    assert shown(nodes)["spec"] == {"taints": [mine], "unschedulable": True}


def test_capacity_can_be_set_and_the_rest_stays_that_of_the_host() -> None:
    world = World().configure(config(cpu="2"))
    world.given(host=[real()]).settle("host-nodes", "n1")
    assert shown(world)["status"]["capacity"] == {"cpu": "2", "memory": "256Gi", "pods": "250", "nvidia.com/gpu": "4"}


def test_label_is_shown_if_the_configuration_names_it() -> None:
    allow = {"labels": {"allow": ["*", "team.example.org/secret"]}}
    world = World().configure(config(metadata=allow))
    world.given(host=[real()]).settle("host-nodes", "n1")
    labels = shown(world)["metadata"]["labels"]
    assert (labels["team.example.org/secret"], labels["kubernetes.io/arch"]) == ("merger", "arm64")


def test_selected_nodes_are_those_that_pods_are_placed_on() -> None:
    world = World().configure(config(nodeSelector={"pool": "tenants"}))
    syncer = HostNodeSyncer()
    assert syncer.host_selector(world.settings) == "pool=tenants"
    world.given(
        virtual=[pod("web", spec={"nodeSelector": {"disk": "ssd", "pool": "infra"}}), serviceaccount("default")]
    )
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", "shop/web")
    copy = world.host("Pod", "vc-ns/web-x-shop-x-vc") or {}
    assert copy["spec"]["nodeSelector"] == {"disk": "ssd", "pool": "tenants"}


def test_node_that_is_gone_or_not_selected_has_a_stand_in_while_a_pod_is_there(nodes: World) -> None:
    nodes.given(host=[real()], virtual=[pod("web", spec={"nodeName": "n1"})]).settle("host-nodes", "n1")
    nodes.gone(host=[real()])
    nodes.settle("host-nodes", "n1")
    assert shown(nodes)["status"]["capacity"] == {"cpu": "16", "memory": "32Gi", "pods": "110"}
    nodes.gone(virtual=[pod("web")])
    assert [str(sent) for sent in nodes.settle("host-nodes", "n1")] == ["delete virtual nodes n1"]


def test_node_of_the_tenant_is_left_alone(nodes: World) -> None:
    nodes.given(host=[real()], virtual=[node("n1", spec={"unschedulable": True})])
    with pytest.raises(Exception, match="not ours"):
        nodes.settle("host-nodes", "n1")
    assert shown(nodes)["spec"] == {"unschedulable": True}


def test_either_the_nodes_of_the_host_or_stand_ins_are_made() -> None:
    for world, name in ((World(), "nodes"), (World().configure(config()), "host-nodes")):
        assert {"nodes", "host-nodes"} & set(world.settings.sections) == {name}


def test_rights_on_nodes_of_the_host_are_to_read_and_only_where_they_appear() -> None:
    for options, verbs in (({}, []), (config(), [("get", "list", "watch")])):
        world = World().configure(options)
        on = (each() for each in installed().syncers() if each.name in world.settings.sections)
        rights = needed(on, settings=world.settings)
        found = [each for each in rights if each.side is Side.HOST and each.resource.plural == "nodes"]
        assert ([each.verbs for each in found], [each.subresource for each in found if each.subresource]) == (verbs, [])


def declaring(*features: str) -> Obj:
    found = real()
    found["status"]["declaredFeatures"] = list(features)
    return found


@pytest.mark.parametrize("feature", FEATURES)
def test_node_declares_the_features_that_the_host_declares_and_no_others(nodes: World, feature: str) -> None:
    nodes.given(host=[real()]).settle("host-nodes", "n1")
    assert "declaredFeatures" not in shown(nodes)["status"]
    nodes.given(host=[declaring(feature, "OfTheFuture")]).settle("host-nodes", "n1")
    assert shown(nodes)["status"]["declaredFeatures"] == sorted([feature, "OfTheFuture"])
    changed = merged(shown(nodes), {"status": {"declaredFeatures": ["Mine"]}})
    nodes.given(virtual=[changed]).settle("host-nodes", "n1")
    assert shown(nodes)["status"]["declaredFeatures"] == sorted([feature, "OfTheFuture"])
    nodes.given(host=[real()]).settle("host-nodes", "n1")
    assert not shown(nodes)["status"].get("declaredFeatures")
    assert nodes.settle("host-nodes", "n1") == []


def test_node_declares_nothing_to_an_api_server_that_would_drop_it(nodes: World) -> None:
    nodes.minor_versions[Side.VIRTUAL] = 35
    nodes.given(host=[declaring(*FEATURES)]).settle("host-nodes", "n1")
    assert "declaredFeatures" not in shown(nodes)["status"]
