"""Defaults, as a real API server 1.36 fills them in."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver.defaults import DecodeError, default

Obj = dict[str, Any]


def defaulted(kind: str, obj: Obj) -> Obj:
    """Default an object, and check that the input stays and that a second time changes nothing."""
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **obj}
    before = copy.deepcopy(obj)
    result = default(kind, obj)
    assert obj == before
    assert default(kind, result) == result
    return result


def pod(*containers: Obj, **spec: Any) -> Obj:
    return {"spec": {"containers": list(containers) or [{"name": "c", "image": "i"}], **spec}}


def test_a_pod_of_one_container() -> None:
    assert defaulted("Pod", pod())["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
        ("nginx:latest@sha256:abc", "Always"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    [container] = defaulted("Pod", pod({"name": "c", "image": image}))["spec"]["containers"]
    assert container["imagePullPolicy"] == policy


def test_the_details_of_a_container() -> None:
    container = {
        "name": "c",
        "image": "i:1",
        "env": [
            {"name": "EMPTY", "value": ""},
            {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        "ports": [{"containerPort": 80, "hostPort": 0}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
        "livenessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 0},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}],
    }
    [result] = defaulted("Pod", pod(container))["spec"]["containers"]
    assert result["env"][0] == {"name": "EMPTY"}
    assert result["env"][1]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert result["env"][2]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"
    assert result["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert result["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
    }
    assert result["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert result["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]


def test_volumes() -> None:
    sources = [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [{"path": "l", "fieldRef": {}}]}}]
    volumes = [{"name": "e"}, {"name": "s", "secret": {"secretName": "x"}}, {"name": "h", "hostPath": {"path": "/"}}]
    empty, secret, host, projected = defaulted(
        "Pod", pod(volumes=[*volumes, {"name": "p", "projected": {"sources": sources}}])
    )["spec"]["volumes"]
    assert empty == {"name": "e", "emptyDir": {}}
    assert secret["secret"]["defaultMode"] == 420
    assert host["hostPath"]["type"] == ""
    assert projected["projected"]["defaultMode"] == 420
    assert projected["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert projected["projected"]["sources"][1]["downwardAPI"]["items"][0]["fieldRef"] == {"apiVersion": "v1"}


def test_a_template_gets_no_requests_from_its_limits() -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = defaulted("Deployment", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})["spec"]
    assert spec["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert "enableServiceLinks" not in spec["template"]["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }


def test_a_pods_status_is_handed_out_whole() -> None:
    status = {
        "podIP": "10.1.1.1",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "c"}],
    }
    result = defaulted("Pod", {**pod(), "status": status})["status"]
    assert result["podIPs"] == [{"ip": "10.1.1.1"}]
    assert result["conditions"][0]["lastProbeTime"] is None
    assert result["containerStatuses"][0] == {
        "name": "c",
        "image": "",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {},
        "lastState": {},
    }


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        ({"type": "ClusterIP"}, {"internalTrafficPolicy": "Cluster"}),
        ({"type": "NodePort"}, {"internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster"}),
        ({"type": "LoadBalancer"}, {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True}),
        ({"sessionAffinity": "ClientIP"}, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}),
    ],
)
def test_services(spec: Obj, more: Obj) -> None:
    ports = [{"port": 80}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]
    result = defaulted("Service", {"spec": {"ports": ports, **spec}})
    assert result["spec"]["ports"] == [
        {"port": 80, "protocol": "TCP", "targetPort": 80},
        {"port": 53, "protocol": "UDP", "targetPort": "dns"},
    ]
    assert result["spec"].items() >= more.items()
    assert result["status"] == {"loadBalancer": {}}


def test_an_external_name_gets_no_policies() -> None:
    spec = defaulted("Service", {"spec": {"type": "ExternalName", "externalName": "a.b"}})["spec"]
    assert spec == {"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"}


def test_a_secrets_texts_are_folded_into_its_data() -> None:
    secret = defaulted("Secret", {"stringData": {"a": "b"}, "data": {"z": "eg==", "a": "Yg=="}})
    assert secret["data"] == {"z": "eg==", "a": "Yg=="}
    assert (secret["type"], "stringData" in secret) == ("Opaque", False)


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value"),
    [
        ("Namespace", {}, ("metadata", "labels"), {"kubernetes.io/metadata.name": "x"}),
        (
            "PersistentVolumeClaim",
            {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}},
            ("spec",),
            {
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeMode": "Filesystem",
            },
        ),
        ("ResourceQuota", {"spec": {"hard": {"cpu": "1000m"}}}, ("spec", "hard"), {"cpu": "1"}),
        ("Node", {"status": {"capacity": {"cpu": "4000m"}}}, ("status", "allocatable"), {"cpu": "4"}),
        (
            "NetworkPolicy",
            {"spec": {"egress": [{"ports": [{"port": 1}]}]}},
            ("spec", "policyTypes"),
            ["Ingress", "Egress"],
        ),
        ("Role", {}, ("rules",), None),
        ("RoleBinding", {"roleRef": {"kind": "Role"}}, ("roleRef", "apiGroup"), "rbac.authorization.k8s.io"),
        ("Job", {"spec": {}}, ("spec", "completions"), 1),
        ("Job", {"spec": {"parallelism": 3}}, ("spec", "parallelism"), 3),
        ("CronJob", {"spec": {}}, ("spec", "successfulJobsHistoryLimit"), 3),
        (
            "StatefulSet",
            {"spec": {}},
            ("spec", "updateStrategy"),
            {
                "type": "RollingUpdate",
                "rollingUpdate": {"partition": 0},
            },
        ),
        ("HorizontalPodAutoscaler", {"spec": {}}, ("spec", "minReplicas"), 1),
        ("Event", {}, ("reportingComponent",), ""),
        ("EndpointSlice", {"ports": [{}]}, ("ports",), [{"name": "", "protocol": "TCP"}]),
        ("StorageClass", {}, ("reclaimPolicy",), "Delete"),
    ],
)
def test_other_kinds(kind: str, obj: Obj, path: tuple[str, ...], value: Any) -> None:
    found: Any = defaulted(kind, obj)
    for key in path:
        found = found[key]
    assert found == value


def test_empty_values_that_go_omits_are_dropped() -> None:
    metadata: Obj = {"name": "x", "labels": {}, "annotations": None, "finalizers": [], "creationTimestamp": None}
    assert default("ConfigMap", {"metadata": metadata, "data": {}}) == {"metadata": {"name": "x"}}
    spec = pod(hostNetwork=False, nodeName="", tolerations=[], serviceAccountName=None)
    assert default("Pod", spec)["spec"].keys().isdisjoint({"hostNetwork", "nodeName", "tolerations"})


def test_empty_values_that_go_writes_are_kept() -> None:
    secret = default("Secret", {"metadata": {"name": "x", "labels": {"a": ""}}, "immutable": False, "data": {"a": ""}})
    assert (secret["metadata"]["labels"], secret["immutable"], secret["data"]) == ({"a": ""}, False, {"a": ""})
    claim = default("PersistentVolumeClaim", {"metadata": {}, "spec": {"storageClassName": ""}})
    assert claim["spec"]["storageClassName"] == ""
    assert default("Lease", {"metadata": {}, "spec": {"holderIdentity": ""}})["spec"] == {"holderIdentity": ""}
    assert default("Deployment", {"metadata": {}, "spec": {"replicas": 0}})["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    ("kind", "obj", "why"),
    [
        (
            "ConfigMap",
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "Pod",
            {"metadata": {"labels": {"a": True}}},
            "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels",
        ),
        ("Secret", {"data": {"a": "###"}}, "illegal base64 data at input byte 0"),
        (
            "Pod",
            pod({"name": "c", "resources": {"limits": {"cpu": "x"}}}),
            "quantities must match the regular expression",
        ),
        ("Lease", {"spec": {"renewTime": "2024-01-01T00:00:00Z"}}, 'cannot parse "Z" as ".000000"'),
        ("Service", {"spec": {"ports": ["x"]}}, "cannot unmarshal"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(kind: str, obj: Obj, why: str) -> None:
    with pytest.raises(DecodeError) as caught:
        default(kind, {"apiVersion": "g/v1", **obj})
    assert str(caught.value).startswith(f'{kind} in version "v1" cannot be handled as a {kind}: ')
    assert why in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["spec", "x"]), inner, max_size=2),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["spec", "status", "x"]), JSON, max_size=3))
def test_decoding_twice_is_decoding_once(obj: Obj) -> None:
    defaulted("Unheard", obj)
