"""Pods: graceful deletion, binding, eviction, status, what can change."""

from typing import Any

import pytest
from contract_client import STRATEGIC, Answer, Api

Obj = dict[str, Any]


def pods(ns: str, name: str = "", part: str = "") -> str:
    return f"/api/v1/namespaces/{ns}/pods" + (f"/{name}" if name else "") + (f"/{part}" if part else "")


def make(api: Api, ns: str, name: str = "a", **spec: Any) -> Obj:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    return api.make(pods(ns), body)


def test_a_new_pod_has_its_defaults(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    pod = api.make(pods(ns), {**body, "status": {"phase": "Running"}})
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1
    spec = pod["spec"]
    volume = spec["volumes"][0]["name"]
    assert volume.startswith("kube-api-access-")
    mount = {"name": volume, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    container = {
        "name": "c",
        "image": "i",
        "imagePullPolicy": "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [mount],
    }
    assert spec["containers"] == [container]
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    assert {key: value for key, value in spec.items() if key not in ("containers", "volumes")} == {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": tolerations,
    }


def test_the_projected_token(api: Api, ns: str) -> None:
    volume = make(api, ns)["spec"]["volumes"][0]
    reference = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": [{"fieldRef": reference, "path": "namespace"}]}},
        ],
    }


def test_no_token_where_it_is_not_wanted(api: Api, ns: str) -> None:
    spec = make(api, ns, automountServiceAccountToken=False)["spec"]
    assert "volumes" not in spec
    account = f"/api/v1/namespaces/{ns}/serviceaccounts"
    api.make(account, {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False})
    assert "volumes" not in make(api, ns, "b", serviceAccountName="quiet")["spec"]


def test_the_service_account_must_exist(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"serviceAccountName": "x", "containers": [{"name": "c", "image": "i"}]}}
    answer = api.post(pods(ns), body)
    assert (answer.status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        f'pods "a" is forbidden: error looking up service account {ns}/x: serviceaccount "x" not found'
    )


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_quality_of_service(api: Api, ns: str, resources: Obj, quality: str) -> None:
    body = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    pod = api.make(pods(ns), {"metadata": {"name": "a"}, "spec": body})
    assert pod["status"]["qosClass"] == quality


def test_an_unbound_pod_is_deleted_at_once(api: Api, ns: str) -> None:
    make(api, ns)
    watch = api.watch(pods(ns))
    watch.next()
    answer = api.delete(pods(ns, "a"))
    assert (answer.status, answer["kind"]) == (200, "Pod")
    assert answer["metadata.deletionGracePeriodSeconds"] == 0
    assert api.get(pods(ns, "a")).status == 404
    first, second = watch.next(), watch.next()
    assert first is not None
    assert second is not None
    assert [first["type"], second["type"]] == ["MODIFIED", "DELETED"]
    assert first["object"]["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_bound_pod_waits_for_its_kubelet(api: Api, ns: str) -> None:
    make(api, ns, nodeName="n1")
    answer = api.delete(pods(ns, "a"))
    assert answer["metadata.deletionGracePeriodSeconds"] == 30
    assert answer["metadata.generation"] == 2
    assert api.delete(pods(ns, "a")).json == answer.json
    longer = api.delete(pods(ns, "a"), {"gracePeriodSeconds": 60})
    assert longer["metadata.deletionGracePeriodSeconds"] == 30
    shorter = api.delete(pods(ns, "a"), {"gracePeriodSeconds": 5})
    assert shorter["metadata.deletionGracePeriodSeconds"] == 5
    assert shorter["metadata.deletionTimestamp"] < answer["metadata.deletionTimestamp"]
    assert api.delete(pods(ns, "a"), {"gracePeriodSeconds": 0}).status == 200
    assert api.get(pods(ns, "a")).status == 404


def test_grace_from_the_pod_and_from_the_query(api: Api, ns: str) -> None:
    make(api, ns, nodeName="n1", terminationGracePeriodSeconds=7)
    assert api.delete(pods(ns, "a"))["metadata.deletionGracePeriodSeconds"] == 7
    make(api, ns, "b", nodeName="n1")
    assert api.delete(f"{pods(ns, 'b')}?gracePeriodSeconds=3")["metadata.deletionGracePeriodSeconds"] == 3


def test_a_pod_that_has_ended_is_deleted_at_once(api: Api, ns: str) -> None:
    make(api, ns, nodeName="n1")
    api.patch(pods(ns, "a", "status"), {"status": {"phase": "Succeeded"}})
    api.delete(pods(ns, "a"))
    assert api.get(pods(ns, "a")).status == 404


def test_a_bound_pod_with_a_finalizer(api: Api, ns: str) -> None:
    body = {"name": "a", "finalizers": ["example.com/a"]}
    api.make(pods(ns), {"metadata": body, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    assert api.delete(pods(ns, "a"))["metadata.deletionGracePeriodSeconds"] == 30
    assert api.delete(pods(ns, "a"), {"gracePeriodSeconds": 0})["metadata.deletionGracePeriodSeconds"] == 0
    assert api.get(pods(ns, "a")).status == 200
    api.patch(pods(ns, "a"), {"metadata": {"finalizers": None}})
    assert api.get(pods(ns, "a")).status == 404


def bind(api: Api, ns: str, name: str = "a", node: str = "n1", **metadata: Any) -> Answer:
    body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
    return api.post(pods(ns, name, "binding"), {"apiVersion": "v1", "kind": "Binding", **body})


def test_binding(api: Api, ns: str) -> None:
    made = make(api, ns)
    answer = bind(api, ns, annotations={"x": "y"})
    assert (answer.status, answer["status"]) == (201, "Success")
    pod = api.get(pods(ns, "a")).json
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"] == {"x": "y"}
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert pod["metadata"]["uid"] == made["metadata"]["uid"]


def test_binding_twice(api: Api, ns: str) -> None:
    make(api, ns)
    bind(api, ns)
    answer = bind(api, ns, node="n2")
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    )
    assert answer["details"] == {"name": "a", "kind": "pods/binding"}


def test_binding_of_another_pod(api: Api, ns: str) -> None:
    assert bind(api, ns).status == 404
    made = make(api, ns)
    answer = bind(api, ns, uid="other")
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    assert f"UID in object meta: {made['metadata']['uid']}" in answer["message"]


def test_eviction(api: Api, ns: str) -> None:
    make(api, ns, nodeName="n1")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    answer = api.post(pods(ns, "a", "eviction"), body)
    assert (answer.status, answer["status"]) == (201, "Success")
    pod = api.get(pods(ns, "a"))
    assert pod["metadata.deletionTimestamp"]


def test_eviction_that_a_budget_forbids(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.make(pods(ns), body)
    ready = {"type": "Ready", "status": "True"}
    api.patch(pods(ns, "a", "status"), {"status": {"phase": "Running", "conditions": [ready]}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"x": "y"}}}
    api.make(f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": spec})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    answer = api.post(pods(ns, "a", "eviction"), eviction)
    assert (answer.status, answer["reason"]) == (429, "TooManyRequests")
    assert answer["message"] == "Cannot evict pod as it would violate the pod's disruption budget."


def test_status_is_apart(api: Api, ns: str) -> None:
    make(api, ns)
    wanted = {"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}
    answer = api.patch(pods(ns, "a", "status"), {**wanted, "spec": {"activeDeadlineSeconds": 9}})
    assert (answer["status.phase"], answer["spec.activeDeadlineSeconds"]) == ("Running", None)
    main = api.patch(pods(ns, "a"), {"status": {"phase": "Failed"}, "metadata": {"labels": {"x": "y"}}})
    assert (main["status.phase"], main["metadata.labels"]) == ("Running", {"x": "y"})
    assert api.get(pods(ns, "a", "status")).json == main.json


def test_conditions_are_merged_by_type(api: Api, ns: str) -> None:
    make(api, ns)
    for kind in ("Ready", "Initialized"):
        change = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        answer = api.patch(pods(ns, "a", "status"), change, STRATEGIC)
    assert {one["type"] for one in answer["status.conditions"]} == {"Ready", "Initialized"}


def test_most_of_the_spec_stays(api: Api, ns: str) -> None:
    made = make(api, ns)
    answer = api.patch(pods(ns, "a"), {"spec": {"hostNetwork": True}})
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert "pod updates may not change fields other than" in answer["message"]
    container = {**made["spec"]["containers"][0], "image": "j"}
    image = api.patch(pods(ns, "a"), {"spec": {"containers": [container]}})
    assert (image.status, image["spec.containers.0.image"], image["metadata.generation"]) == (200, "j", 2)


def debugger(name: str = "debug", **fields: Any) -> Obj:
    return {"spec": {"ephemeralContainers": [{"name": name, "image": "busybox", **fields}]}}


def test_ephemeral_containers_are_added_through_their_subresource_alone(api: Api, ns: str) -> None:
    make(api, ns)
    change = {**debugger(targetContainerName="c"), "metadata": {"labels": {"x": "y"}}}
    answer = api.patch(pods(ns, "a", "ephemeralcontainers"), change, STRATEGIC)
    assert (answer.status, answer["metadata.generation"], answer["metadata.labels"]) == (200, 2, None)
    assert answer["spec.ephemeralContainers"] == [
        {
            "name": "debug",
            "image": "busybox",
            "imagePullPolicy": "Always",
            "resources": {},
            "targetContainerName": "c",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ]
    assert api.patch(pods(ns, "a"), debugger(), STRATEGIC).status == 200, "nothing changes"
    refused = api.patch(pods(ns, "a"), debugger("other"), STRATEGIC)
    assert (refused.status, refused["reason"]) == (422, "Invalid")
    assert "pod updates may not change fields other than" in refused["message"]
    again = api.patch(pods(ns, "a", "ephemeralcontainers"), debugger("other"), STRATEGIC)
    assert [one["name"] for one in again["spec.ephemeralContainers"]] == ["other", "debug"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (debugger("c"), 'name: Duplicate value: "c"'),
        (debugger(targetContainerName="x"), 'targetContainerName: Not found: "x"'),
        (debugger(ports=[{"containerPort": 80}]), "ports: Forbidden: cannot be set for an Ephemeral Container"),
        (
            debugger(resources={"limits": {"cpu": "1"}}),
            "resources: Forbidden: cannot be set for an Ephemeral Container",
        ),
        (debugger(volumeMounts=[{"name": "v", "mountPath": "/v"}]), 'volumeMounts[0].name: Not found: "v"'),
    ],
)
def test_ephemeral_container_that_is_refused(api: Api, ns: str, change: Obj, problem: str) -> None:
    make(api, ns)
    answer = api.patch(pods(ns, "a", "ephemeralcontainers"), change, STRATEGIC)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert f"spec.ephemeralContainers[0].{problem}" in answer["message"]


def test_ephemeral_container_is_added_to_the_version_that_its_patch_names_alone(api: Api, ns: str) -> None:
    """So a container that somebody else has added meanwhile is not taken for that of the patch."""
    version = make(api, ns)["metadata"]["resourceVersion"]
    theirs = api.patch(pods(ns, "a", "ephemeralcontainers"), debugger(), STRATEGIC)
    again = {**debugger(), "metadata": {"resourceVersion": version}}
    answer = api.patch(pods(ns, "a", "ephemeralcontainers"), again, STRATEGIC)
    assert (answer.status, answer["reason"]) == (409, "Conflict")
    again["metadata"]["resourceVersion"] = theirs["metadata.resourceVersion"]
    assert api.patch(pods(ns, "a", "ephemeralcontainers"), again, STRATEGIC).status == 200, "nothing changes"


def test_ephemeral_containers_stay_as_they_are(api: Api, ns: str) -> None:
    make(api, ns)
    api.patch(pods(ns, "a", "ephemeralcontainers"), debugger(), STRATEGIC)
    for change, problem in (
        ({"spec": {"ephemeralContainers": None}}, 'existing ephemeral containers "debug" may not be removed'),
        (debugger(command=["sh"]), 'existing ephemeral containers "debug" may not be changed'),
    ):
        answer = api.patch(pods(ns, "a", "ephemeralcontainers"), change)
        assert (answer.status, answer["reason"]) == (422, "Invalid")
        assert f"spec.ephemeralContainers: Forbidden: {problem}" in answer["message"]


SIZE = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}


def sized(api: Api, ns: str, **spec: Any) -> Obj:
    body = {"containers": [{"name": "c", "image": "i", "resources": SIZE}], **spec}
    return api.make(pods(ns), {"metadata": {"name": "a"}, "spec": body})


def resize(part: str = "containers", **resources: Obj) -> Obj:
    return {"spec": {part: [{"name": "c", "resources": resources}]}}


def test_resources_are_changed_through_resize_alone(api: Api, ns: str) -> None:
    sized(api, ns)
    wanted = resize(requests={"cpu": "0.2"})
    refused = api.patch(pods(ns, "a"), wanted, STRATEGIC)
    assert (refused.status, refused["reason"]) == (422, "Invalid")
    assert "pod updates may not change fields other than" in refused["message"]
    wanted["spec"]["containers"][0]["image"] = "j"
    wanted |= {"metadata": {"labels": {"x": "y"}}}
    answer = api.patch(pods(ns, "a", "resize"), wanted, STRATEGIC)
    assert (answer.status, answer["metadata.generation"], answer["metadata.labels"]) == (200, 2, None)
    [container] = answer["spec.containers"]
    assert container["image"] == "i"
    assert container["resources"] == {**SIZE, "requests": {"cpu": "200m", "memory": "64Mi"}}


def test_sidecar_is_resized(api: Api, ns: str) -> None:
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": SIZE}
    sized(api, ns, initContainers=[sidecar])
    change = {"spec": {"initContainers": [{"name": "s", "resources": {"limits": {"cpu": "2"}}}]}}
    answer = api.patch(pods(ns, "a", "resize"), change, STRATEGIC)
    assert (answer.status, answer["spec.initContainers.0.resources.limits.cpu"]) == (200, "2")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            resize(requests={"cpu": "1", "memory": "128Mi"}),
            "Pod QOS Class may not change as a result of resizing",
        ),
        (resize(requests={"cpu": "2"}), "spec.containers[0].resources.requests: Invalid value"),
        (resize(limits={"cpu": None}), "spec.containers[0].resources.limits: Forbidden: resource limits cannot be"),
        (resize(requests={"ephemeral-storage": "1Gi"}), "spec: Forbidden: only cpu and memory resources are mutable"),
        (
            {"spec": {"containers": [{"name": "d", "image": "i"}]}},
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
    ],
)
def test_resize_that_is_refused(api: Api, ns: str, change: Obj, problem: str) -> None:
    sized(api, ns)
    answer = api.patch(pods(ns, "a", "resize"), change, STRATEGIC)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert problem in answer["message"]


@pytest.mark.parametrize("part", ["ephemeralcontainers", "resize"])
def test_subresource_of_another_pod_of_the_name_is_not_patched(api: Api, ns: str, part: str) -> None:
    """The uid in a patch is a precondition, as for the other parts of a pod."""
    sized(api, ns)
    change = debugger() if part == "ephemeralcontainers" else resize(limits={"cpu": "2"})
    answer = api.patch(pods(ns, "a", part), {**change, "metadata": {"uid": "other"}}, STRATEGIC)
    plain = api.patch(pods(ns, "a"), {"metadata": {"uid": "other"}}, STRATEGIC)
    assert (answer.status, answer["reason"]) == (plain.status, plain["reason"])
    missing = api.patch(pods(ns, "b", part), change, STRATEGIC)
    assert (missing.status, missing["reason"]) == (404, "NotFound")


def test_selected_by_node(api: Api, ns: str) -> None:
    make(api, ns, nodeName="n1")
    make(api, ns, "b")
    listed = api.get(f"{pods(ns)}?fieldSelector=spec.nodeName=n1").json
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    watch = api.watch(f"{pods(ns)}?fieldSelector=spec.nodeName=n2")
    bind(api, ns, "b", "n2")
    event = watch.next()
    assert event is not None
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


def test_delete_of_the_collection_is_graceful(api: Api, ns: str) -> None:
    make(api, ns, nodeName="n1")
    make(api, ns, "b")
    assert api.delete(pods(ns)).status == 200
    listed = api.get(pods(ns)).json
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    assert listed["items"][0]["metadata"]["deletionTimestamp"]
