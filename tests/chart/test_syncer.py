"""The objects of the chart `syncer`."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, Unrenderable, rendered

from syncer.api import Obj
from syncer.config import build, parse
from syncer.plugins import installed

CHART = CHARTS / "syncer"
SHOP: Mapping[str, Any] = {
    "name": "shop",
    "hostNamespace": "vc-shop",
    "kubeconfigSecret": {"name": "shop-kubeconfig", "key": "value"},
    "networking": {"apiServer": {"host": "10.0.0.1"}},
}


def objects(**values: Any) -> dict[tuple[str, str], Obj]:
    """Return the objects by kind and name, of a release that has the chart's name."""
    found = rendered(CHART, {"virtualClusters": [SHOP], **values}, release="syncer")
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_virtual_cluster_is_served_with_the_kubeconfig_of_its_secret() -> None:
    found = objects(config={"workers": 8})
    config = build(parse(found["ConfigMap", "syncer"]["data"]["syncer.yaml"]), installed()).config
    [cluster] = config.clusters()
    assert (cluster.name, cluster.host_namespace, config.workers) == ("shop", "vc-shop", 8)
    assert cluster.networking.api_server.host == "10.0.0.1"
    spec = found["Deployment", "syncer"]["spec"]["template"]["spec"]
    [volume] = [each for each in spec["volumes"] if "secret" in each]
    assert volume["secret"]["secretName"] == "shop-kubeconfig"
    [mount] = [each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]]
    assert cluster.connection.kubeconfig == f"{mount['mountPath']}/value"


def test_rights_are_in_the_namespace_of_the_copies_and_of_the_lease() -> None:
    roles = [each for (kind, _), each in objects().items() if kind in ("Role", "ClusterRole")]
    assert {each["metadata"].get("namespace") for each in roles} == {"vc-shop", "syncer"}
    none = objects(rbac={"create": False})
    assert not [kind for kind, _ in none if kind in ("Role", "RoleBinding")]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"virtualClusters": []}, "name a virtual cluster"),
        ({"virtualClusters": [{"name": "shop"}]}, "virtualClusters[0].kubeconfigSecret"),
        ({"config": {"virtualClusters": []}}, "the value `virtualClusters`"),
        ({"config": {"host": {"namespace": "x"}}}, "hostNamespace"),
        ({"config": {"leaderElection": {"enabled": False}}}, "several replicas would all write"),
    ],
)
def test_values_that_cannot_work_are_refused(values: Obj, reason: str) -> None:
    with pytest.raises(Unrenderable) as caught:
        objects(**values)
    assert reason in str(caught.value)


def test_daemon_is_the_same_in_both_charts() -> None:
    values = {
        "replicas": 2,
        "podLabels": {"team": "shop"},
        "nodeSelector": {"disk": "ssd"},
        "extraArgs": ["--workers=4"],
    }
    config = {"kubelet": {"enabled": True}}
    alone = objects(config=config, **values)["Deployment", "syncer"]
    whole = rendered(CHARTS / "virtual-cluster", {"syncer": {**values, "config": config}})
    [beside] = [each for each in whole if each["kind"] == "Deployment"]
    containers = []
    for deployment in (alone, beside):
        spec = deployment["spec"]["template"]["spec"]
        assert deployment["spec"]["replicas"] == 2
        assert deployment["spec"]["template"]["metadata"]["labels"]["team"] == "shop"
        assert spec["nodeSelector"] == {"disk": "ssd"}
        [container] = spec["containers"]
        containers.append({name: part for name, part in container.items() if name != "volumeMounts"})
    assert containers[0] == containers[1]
    assert containers[0]["args"] == ["run", "--workers=4"]


def test_configuration_is_text_that_the_daemon_reads() -> None:
    """Such as a number that YAML would write as another type after a way through Helm."""
    given = {"patrol": {"breaker": {"count": 1000000}}, "health": {"address": ":9091"}, "metrics": {"address": "0"}}
    found = objects(config=given)
    made = yaml.safe_load(found["ConfigMap", "syncer"]["data"]["syncer.yaml"])
    assert {name: made[name] for name in given} == given
    [container] = found["Deployment", "syncer"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "health", "containerPort": 9091}]
    assert container["livenessProbe"]["httpGet"]["port"] == "health"
