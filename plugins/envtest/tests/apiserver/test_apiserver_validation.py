"""Objects that a real API server 1.36 refuses, with its words."""

from typing import Any

import pytest
from validated_objects import made, pod

from kube_envtest.apiserver.validation import validate_create

Obj = dict[str, Any]

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def problems(kind: str, obj: Obj) -> list[str]:
    return [str(error) for error in validate_create(kind, obj)]


VALID = [
    ("ConfigMap", made("ConfigMap", "a.b-c", data={"a.b": "", "_x": "1"}, metadata={"labels": {"a.b/C": "d_e"}})),
    ("Secret", made("Secret", data={"a": "Yg=="})),
    ("Pod", pod({"ports": [{"containerPort": 80, "name": "web"}], "env": [{"name": "A B"}]})),
    ("Service", made("Service", spec={"ports": [{"port": 1}]})),
    ("Service", made("Service", spec={"clusterIP": "None"})),
    ("Role", made("Role", "system:node")),
    (
        "PersistentVolumeClaim",
        made(
            "PersistentVolumeClaim",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        ),
    ),
    ("ConfigMap", made("ConfigMap", metadata={"annotations": {"Example.com/X": "y"}, "finalizers": ["a.b/c"]})),
]


@pytest.mark.parametrize(("kind", "obj"), VALID)
def test_a_valid_object_has_no_problems(kind: str, obj: Obj) -> None:
    assert problems(kind, obj) == []


@pytest.mark.parametrize(
    ("kind", "obj", "problem"),
    [
        ("ConfigMap", made("ConfigMap", "Upper"), f'metadata.name: Invalid value: "Upper": {SUBDOMAIN}'),
        ("ConfigMap", made("ConfigMap", ""), "metadata.name: Required value: name or generateName is required"),
        ("ConfigMap", made("ConfigMap", "a" * 254), "must be no more than 253 characters"),
        ("Namespace", made("Namespace", "a.b"), 'metadata.name: Invalid value: "a.b": must not contain dots'),
        ("Namespace", made("Namespace", "a" * 64), "must be no more than 63 characters"),
        ("Role", made("Role", "a/b"), "metadata.name: Invalid value: \"a/b\": may not contain '/'"),
        (
            "ConfigMap",
            made("ConfigMap", metadata={"labels": {"a b": "c"}}),
            'metadata.labels: Invalid value: "a b": name part',
        ),
        ("ConfigMap", made("ConfigMap", metadata={"labels": {"a": "x" * 64}}), "must be no more than 63 bytes"),
        ("ConfigMap", made("ConfigMap", metadata={"labels": {"/c": ""}}), "prefix part must be non-empty"),
        (
            "ConfigMap",
            made("ConfigMap", metadata={"annotations": {"a": "b" * 262144}}),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            "ConfigMap",
            made("ConfigMap", metadata={"finalizers": ["x"]}),
            'metadata.finalizers[0]: Invalid value: "x": name is neither a standard',
        ),
        (
            "ConfigMap",
            made("ConfigMap", metadata={"ownerReferences": [{"kind": "K", "name": "n", "uid": "u"}]}),
            "metadata.ownerReferences.apiVersion: Invalid",
        ),
        (
            "ConfigMap",
            made("ConfigMap", data={"a b": ""}),
            'data[a b]: Invalid value: "a b": a valid config key must consist of',
        ),
        ("ConfigMap", made("ConfigMap", data={"..": ""}), "data[..]: Invalid value: \"..\": must not be '..'"),
        ("ConfigMap", made("ConfigMap", data={"a": "x" * 1048577}), "[]: Too long: may not be more than 1048576 bytes"),
        (
            "ConfigMap",
            made("ConfigMap", data={"a": ""}, binaryData={"a": ""}),
            "duplicate of key present in binaryData",
        ),
        ("Secret", made("Secret", data={"a": "AAAA" * 349526}), "data: Too long: may not be more than 1048576 bytes"),
        ("Secret", made("Secret", type="kubernetes.io/tls", data={"tls.crt": ""}), "data[tls.key]: Required value"),
        (
            "Secret",
            made("Secret", type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "Yg=="}),
            "<secret contents redacted>",
        ),
        (
            "Secret",
            made("Secret", type="kubernetes.io/service-account-token"),
            "metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ),
        ("Pod", made("Pod"), "spec.containers: Required value"),
        ("Pod", pod({"name": ""}), "spec.containers[0].name: Required value"),
        ("Pod", pod({"image": ""}), "spec.containers[0].image: Required value"),
        ("Pod", pod({}, {}), 'spec.containers[1].name: Duplicate value: "c"'),
        (
            "Pod",
            pod(restartPolicy="X"),
            'spec.restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            "Pod",
            pod({"ports": [{"containerPort": 70000}]}),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ("Pod", pod({"ports": [{"containerPort": 1, "name": "--"}]}), "must not contain consecutive hyphens"),
        ("Pod", pod({"env": [{"name": "a=b"}]}), "spec.containers[0].env[0].name: Invalid value"),
        (
            "Pod",
            pod({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            "Pod",
            pod(volumes=[{"name": "v", "emptyDir": {}, "secret": {}}]),
            "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
        ),
        (
            "Pod",
            pod({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        ("Pod", pod({"resources": {"limits": {"cpu": "-1"}}}), "must be greater than or equal to 0"),
        (
            "Pod",
            pod(nodeName="n", schedulingGates=[{"name": "g"}]),
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            "Pod",
            pod(ephemeralContainers=[{"name": "e"}]),
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        ("Service", made("Service", spec={}), "spec.ports: Required value"),
        ("Service", made("Service", spec={"ports": [{"port": 1}, {"port": 2}]}), "spec.ports[0].name: Required value"),
        (
            "Service",
            made("Service", spec={"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}),
            'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP"',
        ),
        (
            "Service",
            made("Service", spec={"type": "X", "ports": [{"port": 1}]}),
            'spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName"',
        ),
        ("Service", made("Service", spec={"type": "ExternalName"}), "spec.externalName: Required value"),
        (
            "Service",
            made("Service", spec={"type": "NodePort", "clusterIP": "None", "ports": [{"port": 1}]}),
            "may not be set to 'None' for NodePort services",
        ),
        ("PersistentVolumeClaim", made("PersistentVolumeClaim"), "spec.resources[storage]: Required value"),
        ("Deployment", made("Deployment", spec={}), "spec.selector: Required value"),
        ("Ingress", made("Ingress", spec={}), "either `defaultBackend` or `rules` must be specified"),
        (
            "Lease",
            made("Lease", spec={"leaseDurationSeconds": 0}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
    ],
)
def test_an_invalid_object_is_refused_with_the_servers_message(kind: str, obj: Obj, problem: str) -> None:
    found = problems(kind, obj)
    assert any(problem in one for one in found), found


def test_a_problem_is_a_cause_of_a_status() -> None:
    [error] = validate_create("ConfigMap", made("ConfigMap", ""))
    assert error.cause == {
        "reason": "FieldValueRequired",
        "message": "Required value: name or generateName is required",
        "field": "metadata.name",
    }
