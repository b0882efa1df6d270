"""Fields that admission and strategy of a real API server 1.36 give to a new object."""

from typing import Any

import pytest

from kube_envtest.apiserver.defaults import default
from kube_envtest.apiserver.prepare import prepare, prepare_update

Obj = dict[str, Any]


def defaulted(kind: str, obj: Obj) -> Obj:
    return default(kind, {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **obj})


def pod(*containers: Obj, **spec: Any) -> Obj:
    return {"spec": {"containers": list(containers) or [{"name": "c", "image": "i"}], **spec}}


def test_a_new_pod_waits_with_its_tolerations() -> None:
    given_ = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    result = prepare("Pod", defaulted("Pod", pod(tolerations=[given_])))
    assert result["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert (result["spec"]["priority"], result["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert result["spec"]["tolerations"] == [
        given_,
        {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        },
    ]
    assert prepare_update("Pod", result) is result


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"requests": {"memory": "1"}}, "Burstable"),
        ({"limits": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_the_quality_of_service_follows_the_resources(resources: Obj, quality: str) -> None:
    made = defaulted("Pod", pod({"name": "c", "image": "i", "resources": resources}))
    assert prepare("Pod", made)["status"]["qosClass"] == quality


def test_a_new_service_gets_addresses() -> None:
    made = defaulted("Service", {"spec": {"ports": [{"port": 80}]}})
    spec = prepare("Service", made, allocate_cluster_ip=lambda _: ["10.0.0.1"])["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("10.0.0.1", ["10.0.0.1"])
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    headless = defaulted("Service", {"spec": {"clusterIP": "None"}})
    assert prepare("Service", headless, allocate_cluster_ip=lambda _: ["x"])["spec"]["clusterIPs"] == ["None"]
    external = defaulted("Service", {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    assert prepare("Service", external, allocate_cluster_ip=lambda _: ["x"])["spec"] == external["spec"]


def test_a_new_job_selects_its_own_pods() -> None:
    job = prepare("Job", defaulted("Job", {"metadata": {"name": "j", "uid": "u"}, "spec": {}}))
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert job["spec"]["template"]["metadata"]["labels"]["job-name"] == "j"


def test_finalizers_of_the_system() -> None:
    assert prepare("Namespace", defaulted("Namespace", {}))["spec"] == {"finalizers": ["kubernetes"]}
    claim = defaulted("PersistentVolumeClaim", {"metadata": {"finalizers": ["a/b"]}})
    assert prepare("PersistentVolumeClaim", claim)["metadata"]["finalizers"] == ["a/b", "kubernetes.io/pvc-protection"]
