"""Changes that a real API server 1.36 refuses, with its words."""

from typing import Any

import pytest
from validated_objects import made, pod

from kube_envtest.apiserver.validation import validate_create, validate_status_update, validate_update

Obj = dict[str, Any]


def refused(kind: str, old: Obj, new: Obj) -> list[str]:
    return [str(error) for error in validate_update(kind, old, new)]


def changed(obj: Obj, **spec: Any) -> Obj:
    return {**obj, "spec": {**obj["spec"], **spec}}


POD = pod({"name": "a"}, {"name": "b"}, activeDeadlineSeconds=10, tolerations=[{"key": "k", "tolerationSeconds": 1}])
CONTAINERS = POD["spec"]["containers"]


@pytest.mark.parametrize(
    "new",
    [
        POD,
        changed(POD, containers=[{**CONTAINERS[0], "image": "other"}, CONTAINERS[1]]),
        changed(POD, activeDeadlineSeconds=5),
        changed(POD, tolerations=[{"key": "k", "tolerationSeconds": 9}, {"key": "new"}]),
        {**POD, "metadata": {**POD["metadata"], "labels": {"a": "b"}}},
    ],
)
def test_a_pod_may_change_in_a_few_ways(new: Obj) -> None:
    assert refused("Pod", POD, new) == []


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        (
            changed(POD, nodeSelector={"a": "b"}),
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,",
        ),
        (
            changed(POD, containers=[{**CONTAINERS[0], "command": ["x"]}, CONTAINERS[1]]),
            "spec: Forbidden: pod updates may not change",
        ),
        (changed(POD, nodeName="n"), "spec: Forbidden: pod updates may not change"),
        (changed(POD, terminationGracePeriodSeconds=1), "spec: Forbidden: pod updates may not change"),
        (
            changed(POD, containers=CONTAINERS[:1]),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            changed(POD, activeDeadlineSeconds=11),
            "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value",
        ),
        (changed(POD, activeDeadlineSeconds=None), "must not update from a positive integer to nil value"),
        (
            changed(POD, tolerations=[]),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (changed(POD, schedulingGates=[{"name": "g"}]), "only deletion is allowed, but found new scheduling gate 'g'"),
    ],
)
def test_a_pod_may_not_change_in_others(new: Obj, problem: str) -> None:
    if new["spec"].get("activeDeadlineSeconds", 0) is None:
        del new["spec"]["activeDeadlineSeconds"]
    found = refused("Pod", POD, new)
    assert any(problem in one for one in found), found


def test_a_grace_period_below_zero_may_become_one() -> None:
    old = changed(POD, terminationGracePeriodSeconds=-1)
    assert refused("Pod", old, changed(old, terminationGracePeriodSeconds=1)) == []


def test_a_gated_pod_may_be_narrowed_down() -> None:
    gated = pod(schedulingGates=[{"name": "g"}], nodeSelector={"a": "b"})
    affinity: Obj = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    assert refused("Pod", gated, changed(gated, nodeSelector={"a": "b", "c": "d"}, affinity=affinity)) == []
    assert refused("Pod", gated, changed(gated, schedulingGates=[])) == []
    [problem] = refused("Pod", gated, changed(gated, nodeSelector={"a": "c"}))
    assert problem.startswith("spec: Forbidden: pod updates may not change")


@pytest.mark.parametrize("key", ["name", "namespace", "uid", "creationTimestamp"])
def test_the_identity_of_an_object_is_immutable(key: str) -> None:
    old = made("ConfigMap", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    new = {**old, "metadata": {**old["metadata"], key: "other"}}
    assert refused("ConfigMap", old, new) == [f'metadata.{key}: Invalid value: "other": field is immutable']


def test_an_object_being_deleted_gets_no_new_finalizer() -> None:
    old = made("ConfigMap", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]})
    new = {**old, "metadata": {**old["metadata"], "finalizers": ["a.b/c", "d.e/f"]}}
    [problem] = refused("ConfigMap", old, new)
    assert problem.endswith('found new finalizers []string{"d.e/f"}')
    assert refused("ConfigMap", new, old) == []


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_immutable_data_stays(kind: str) -> None:
    old = made(kind, immutable=True, data={"a": "Yg=="})
    assert refused(kind, old, {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}) == []
    why = "Forbidden: field is immutable when `immutable` is set"
    assert refused(kind, old, {**old, "data": {"a": "YQ=="}}) == [f"data: {why}"]
    assert refused(kind, old, {**old, "immutable": False}) == [f"immutable: {why}"]


def test_a_secrets_type_stays() -> None:
    old = made("Secret", type="a.b/c")
    assert refused("Secret", old, {**old, "type": "d"}) == ['type: Invalid value: "d": field is immutable']


def test_a_services_address_stays_except_through_an_external_name() -> None:
    old = made("Service", spec={"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 1}]})
    moved = changed(old, clusterIP="10.0.0.2", clusterIPs=["10.0.0.2"])
    assert refused("Service", old, moved) == [
        'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'
    ]
    away = made("Service", spec={"type": "ExternalName", "externalName": "a.b"})
    assert refused("Service", old, away) == refused("Service", away, old) == []


def test_a_claims_spec_stays_but_for_its_size_once_bound() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    old = made("PersistentVolumeClaim", spec=spec, status={"phase": "Bound"})
    bigger = changed(old, resources={"requests": {"storage": "2Gi"}})
    assert refused("PersistentVolumeClaim", old, bigger) == []
    assert refused("PersistentVolumeClaim", old, changed(old, volumeName="v")) == []
    [problem] = refused("PersistentVolumeClaim", old, changed(old, storageClassName="x"))
    assert problem.startswith("spec: Forbidden: spec is immutable after creation except resources.requests")


def test_a_deployments_selector_stays_and_must_fit_its_template() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    old = made("Deployment", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
    assert validate_create("Deployment", old) == []
    assert refused("Deployment", old, changed(old, selector={"matchLabels": {"a": "c"}})) == [
        'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        'spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable',
    ]


def test_a_status_is_checked_too() -> None:
    service = made("Service", spec={"ports": [{"port": 1}]})
    shown = {**service, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    [error] = validate_status_update("Service", service, shown)
    assert str(error) == "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
    assert validate_status_update("Service", service, changed(shown, type="LoadBalancer")) == []
