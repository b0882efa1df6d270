"""Helm refuses values that are misspelt, before it makes anything."""

from typing import Any

import pytest
from chart_rendering import CHARTS, Unrenderable, rendered

from syncer.api import Obj

VIRTUAL_CLUSTER, SYNCER = CHARTS / "virtual-cluster", CHARTS / "syncer"
ENTRY = {"name": "shop", "hostNamespace": "vc-shop", "kubeconfigSecret": {"name": "shop-kubeconfig"}}


def _configured(config: dict[str, Any]) -> dict[str, Any]:
    return {"syncer": {"config": config}}


@pytest.mark.parametrize(
    ("values", "path", "word"),
    [
        ({"controlplane": {}}, "''", "controlplane"),
        ({"controlPlane": {"replicas": "three"}}, "/controlPlane/replicas", "integer"),
        ({"service": {"type": "Loadbalancer"}}, "/service/type", "LoadBalancer"),
        ({"etcd": {"persistence": {"enabled": "yes"}}}, "/etcd/persistence/enabled", "boolean"),
        ({"workloads": {"resourceQuota": {"pods": "5"}}}, "/workloads/resourceQuota", "pods"),
        ({"etcd": {"persistence": {"size": "5GB"}}}, "/etcd/persistence/size", "pattern"),
        ({"etcd": {"resources": {"limit": {"memory": "2Gi"}}}}, "/etcd/resources", "limit"),
        ({"etcd": {"image": {"digest": "abc"}}}, "/etcd/image/digest", "pattern"),
        ({"etcd": {"extraArgs": {"--v": 2}}}, "/etcd/extraArgs", "--v"),
        ({"apiServer": {"extraArgs": {"v": {"a": 1}}}}, "/apiServer/extraArgs/v", "object"),
        ({"apiServer": {"extraArgs": {"v": None}}}, "/apiServer/extraArgs/v", "null"),
        ({"apiServer": {"names": ["https://a.example.com"]}}, "/apiServer/names/0", "pattern"),
        ({"apiServer": {"serviceClusterIPRange": "10.96.0.0"}}, "/apiServer/serviceClusterIPRange", "pattern"),
        ({"apiServer": {"authentication": {"jtw": []}}}, "/apiServer/authentication", "jtw"),
        ({"apiServer": {"audit": {"policy": {"rule": []}}}}, "/apiServer/audit/policy", "rule"),
        ({"apiServer": {"extraEnv": ["A=b"]}}, "/apiServer/extraEnv/0", "object"),
        ({"apiServer": {"extraVolumes": [{"nam": "x"}]}}, "/apiServer/extraVolumes/0", "name"),
        ({"ingress": {"enabled": True, "host": "https://a.example.com"}}, "/ingress/host", "pattern"),
        ({"gateway": {"host": "*.example.com"}}, "/gateway/host", "pattern"),
        ({"gateway": {"parentRefs": ["public"]}}, "/gateway/parentRefs/0", "object"),
        ({"kubeconfig": {"server": "shop.example.com"}}, "/kubeconfig/server", "pattern"),
        ({"imagePullSecrets": ["registry"]}, "/imagePullSecrets/0", "object"),
        ({"service": {"annotations": {"a": True}}}, "/service/annotations/a", "string"),
        ({"commonLabels": {"a": 1}}, "/commonLabels/a", "string"),
        ({"controlPlane": {"nodeSelector": {"a": True}}}, "/controlPlane/nodeSelector/a", "string"),
        ({"backup": {"keep": 0}}, "/backup/keep", "minimum"),
        ({"restore": {"snapshot": "../x"}}, "/restore/snapshot", "pattern"),
        ({"syncer": {"plugins": [{"name": "foo"}]}}, "/syncer/plugins/0", "image"),
        ({"syncer": {"plugins": [{"name": "foo", "image": "x", "subpath": "y"}]}}, "/syncer/plugins/0", "subpath"),
        (_configured({"kubelett": {}}), "/syncer/config", "kubelett"),
        (
            _configured({"sync": {"toHost": {"pods": {"checkSelector": True}}}}),
            "/syncer/config/sync/toHost/pods",
            "checkSelector",
        ),
        (_configured({"sync": {"custom": {"a.example.org": {"dwon": []}}}}), "/custom/a.example.org", "dwon"),
        (_configured({"gracePeriod": "soon"}), "/syncer/config/gracePeriod", "pattern"),
    ],
)
def test_misspelt_values_of_a_virtual_cluster_are_refused_with_their_path(
    values: dict[str, Any], path: str, word: str
) -> None:
    with pytest.raises(Unrenderable) as caught:
        rendered(VIRTUAL_CLUSTER, values)
    assert path in str(caught.value)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"hostNamespac": "vc-shop"},
        {"kubeconfigSecret": {"nam": "x"}},
        {"kubeconfigSecret": {}},
        {"kubeconfig": "/file"},
    ],
)
def test_misspelt_entries_of_the_daemon_are_refused(change: dict[str, Any]) -> None:
    rendered(SYNCER, {"virtualClusters": [ENTRY]})
    with pytest.raises(Unrenderable, match="/virtualClusters/0"):
        rendered(SYNCER, {"virtualClusters": [ENTRY | change]})


def test_values_at_the_edges_are_taken() -> None:
    server = {
        "names": ["203.0.113.7", "fd00::7", "*.example.com"],
        "serviceClusterIPRange": "10.96.0.0/12,fd00::/108",
        "extraArgs": {"v": 2, "profiling": True, "feature-gates": ["A=true"], "event-ttl": "2h"},
        "authentication": {"jwt": [{"issuer": {"url": "https://id.example.com", "audiences": ["kubernetes"]}}]},
        "audit": {"policy": {"rules": [{"level": "Metadata"}], "omitStages": ["RequestReceived"]}},
        "resources": None,
    }
    given = {
        "apiServer": server,
        "etcd": {"persistence": {"size": 5368709120}, "image": {"digest": "sha256:" + 64 * "a"}},
        "kubeconfig": {"server": "https://[fd00::7]:6443/"},
        "kubernetesVersion": "v1.37.0-rc.1",
        "restore": {"snapshot": "shop-virtual-cluster-backup-29388263"},
        "backup": {"enabled": True, "persistence": {"size": "1.5Gi"}},
        "syncer": {"plugins": [{"name": "foo", "image": "x", "subPath": "plugin", "initContainer": None}]},
    }
    assert rendered(VIRTUAL_CLUSTER, given)


def test_mappings_of_kubernetes_take_other_keys_than_by_default() -> None:
    resources = {"requests": {"cpu": 1, "ephemeral-storage": "1Gi"}, "limits": {"memory": "1Gi"}}
    assert rendered(VIRTUAL_CLUSTER, {"etcd": {"resources": resources}})


def test_misspelt_kind_is_refused_and_that_of_a_plugin_isnt() -> None:
    config = {"sync": {"toHost": {"configmaps": {"all": True}}}}
    with pytest.raises(Unrenderable, match="configmaps: there is no such kind"):
        rendered(VIRTUAL_CLUSTER, _configured(config))
    foo = {"name": "foo", "image": "registry.example.org/foo:1"}
    assert rendered(VIRTUAL_CLUSTER, {"syncer": {"config": config, "plugins": [foo]}})
    rule = {"apiGroups": ["example.org"], "resources": ["foos"], "verbs": ["get"]}
    for side in ("host", "hostCluster", "virtual"):
        # An image with the plugin in it.
        assert rendered(VIRTUAL_CLUSTER, {"syncer": {"config": config, "extraRules": {side: [rule]}}})


def test_quota_takes_the_fields_of_its_spec_and_may_be_left_out() -> None:
    spec = {"hard": {"requests.cpu": "10"}, "scopes": ["NotBestEffort"]}
    quotas = [each for each in rendered(VIRTUAL_CLUSTER, {"workloads": {"resourceQuota": spec}}) if _is_quota(each)]
    assert [each["spec"]["hard"]["requests.cpu"] for each in quotas] == ["10"]
    assert not any(map(_is_quota, rendered(VIRTUAL_CLUSTER, {"workloads": {"resourceQuota": None}})))


def _is_quota(made: Obj) -> bool:
    return bool(made["kind"] == "ResourceQuota")
