"""Pods from end to end on real API servers, with a simulated scheduler and kubelet on the host."""

import base64
import json

import pytest
from api import PATIENCE, Sightings, eventually
from scene import MARKS, Scene

from hack.kubelet import is_ready
from syncer.api import Denied, Key, Obj, annotations_of, key_of, labels_of, uid_of
from syncer.resources.kinds import INGRESSES, PERSISTENT_VOLUME_CLAIMS, PRIORITY_CLASSES
from syncer.testing.objects import build, configmap, pod, pod_mounting, secret, serviceaccount

pytestmark = pytest.mark.controlplane

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example.org/web:1
        envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: login}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: swordfish}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""


def test_objects_are_copied_while_a_pod_uses_them(world: Scene, ns: str) -> None:
    for obj in (configmap("used", namespace=ns), configmap("unused", namespace=ns), secret("db", namespace=ns)):
        world.virtual.create(obj)
    world.virtual.create(pod_mounting("web", secret="db", configmap="used", namespace=ns))
    world.ready(Key(ns, "web"))
    assert world.copied("ConfigMap", Key(ns, "used"))["data"] == {"color": "blue"}
    assert world.copied("Secret", Key(ns, "db"))["data"] == {"password": base64.b64encode(b"swordfish").decode()}
    host = world.copied("Pod", Key(ns, "web"))
    sources = {volume["name"]: volume for volume in host["spec"]["volumes"]}
    assert sources["secret"]["secret"]["secretName"] == world.host_key("Secret", Key(ns, "db")).name
    assert sources["config"]["configMap"]["name"] == world.host_key("ConfigMap", Key(ns, "used")).name
    assert world.copy("ConfigMap", Key(ns, "unused")) is None
    world.virtual.delete("Pod", Key(ns, "web"), grace=1)
    for kind, name in (("ConfigMap", "used"), ("Secret", "db")):
        world.gone(kind, Key(ns, name))


def test_a_deployment_of_kubectl_becomes_available(world: Scene, ns: str) -> None:
    plane = world.virtual.plane
    plane.kubectl("apply", "--namespace", ns, "-f", "-", stdin=DEPLOYMENT)
    plane.kubectl("rollout", "status", "deployment/web", "--namespace", ns, f"--timeout={PATIENCE:g}s")
    pods = world.virtual.list("Pod", namespace=ns)
    assert len(pods) == 2
    for virtual in pods:
        host = world.copied("Pod", key_of(virtual))
        assert virtual["spec"]["nodeName"] == host["spec"]["nodeName"]
        assert virtual["status"]["podIP"] == host["status"]["podIP"]
        names = [each["name"] for source in host["spec"]["containers"][0]["envFrom"] for each in source.values()]
        assert names == [
            world.host_key("ConfigMap", Key(ns, "settings")).name,
            world.host_key("Secret", Key(ns, "login")).name,
        ]
        for other in names[:1]:
            assert world.host.get("ConfigMap", Key(world.host_namespace, other)) is not None
    node = world.virtual.get("Node", Key("", f"node-{world.name}"))
    assert node is not None
    assert is_ready(node)
    plane.kubectl("delete", "deployment", "web", "--namespace", ns)
    for virtual in pods:
        world.gone("Pod", key_of(virtual))
    eventually(lambda: world.virtual.list("Pod", namespace=ns) == [], "the virtual Pods are gone")


def test_the_token_in_a_pod_is_one_of_the_virtual_cluster(world: Scene, ns: str) -> None:
    world.virtual.create(serviceaccount("robot", namespace=ns))
    virtual = world.virtual.create(pod("web", namespace=ns, spec={"serviceAccountName": "robot"}))
    world.ready(key_of(virtual))
    host = world.copied("Pod", key_of(virtual))
    assert host["spec"]["serviceAccountName"] == world.host_key("ServiceAccount", Key(ns, "robot")).name
    assert host["spec"]["automountServiceAccountToken"] is False
    token = _token_in(world, host)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = world.virtual.plane.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)[1]["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{ns}:robot"
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-uid"] == [uid_of(virtual)]
    refused = world.host.plane.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)[1]["status"]
    assert not refused.get("authenticated")


def _token_in(world: Scene, host: Obj) -> str:
    """Return the token that the container finds at the usual place."""
    mounts = host["spec"]["containers"][0]["volumeMounts"]
    [mount] = [each for each in mounts if each["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"]
    [volume] = [each for each in host["spec"]["volumes"] if each["name"] == mount["name"]]
    [(source, item)] = [
        (each["secret"], item)
        for each in volume["projected"]["sources"]
        if "secret" in each
        for item in each["secret"]["items"]
        if item["path"] == "token"
    ]
    found = world.host.get("Secret", Key(world.host_namespace, source["name"]))
    assert found is not None
    return base64.b64decode(found["data"][item["key"]]).decode()


def test_the_secret_of_the_tokens_goes_with_the_pod(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    world.ready(key_of(virtual))
    host_key = world.host_key("Secret", Key(ns, "web.pod-tokens"))
    assert world.host.get("Secret", host_key) is not None
    world.virtual.delete("Pod", key_of(virtual), grace=1)
    eventually(lambda: world.host.get("Secret", host_key) is None, "the Secret of the tokens is gone")


def test_labels_and_annotations_of_a_running_pod_follow(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    world.virtual.create(pod("web", namespace=ns, metadata={"labels": {"app": "web", "old": "1"}}))
    before = world.ready(key)
    change = {"labels": {"app": "shop", "old": None}, "annotations": {"note": "new"}}
    world.virtual.patch("Pod", key, {"metadata": change})
    host = world.copied("Pod", key, "metadata.annotations.note", "new")
    assert labels_of(host)["app"] == "shop"
    assert "old" not in labels_of(host)
    world.virtual.patch("Pod", key, {"metadata": {"annotations": {"note": None}}})
    eventually(lambda: "note" not in annotations_of(world.copied("Pod", key)), "the annotation is gone")
    assert is_ready(world.copied("Pod", key))
    assert world.ready(key)["status"]["startTime"] == before["status"]["startTime"]


def test_conditions_of_a_readiness_gate_go_down_and_others_stay(world: Scene, ns: str) -> None:
    key, gate = Key(ns, "gated"), "example.org/load-balanced"
    world.virtual.create(pod("gated", namespace=ns, spec={"readinessGates": [{"conditionType": gate}]}))
    world.ready(key)
    condition = {"type": gate, "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}
    world.virtual.patch("Pod", key, {"status": {"conditions": [condition]}}, subresource="status", how="strategic")

    def conditions() -> dict[str, str]:
        return {one["type"]: one["status"] for one in world.copied("Pod", key)["status"]["conditions"]}

    eventually(lambda: conditions().get(gate) == "True", "the condition of the gate is on the host")
    assert conditions()["Ready"] == "True"


def test_a_virtual_deletion_has_its_grace_period_on_the_host(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("slow", namespace=ns))
    world.ready(key_of(virtual))
    sightings = Sightings(world.host, "Pod", world.host_namespace)
    watching = world.host.loop.start(sightings.run())
    eventually(lambda: sightings.states, "the watch stands")
    world.virtual.delete("Pod", key_of(virtual), grace=7)
    eventually(lambda: world.virtual.get("Pod", key_of(virtual)) is None, "the virtual Pod is gone")
    world.host.loop.end(watching)
    name = world.host_key("Pod", key_of(virtual)).name
    graces = [
        host["metadata"].get("deletionGracePeriodSeconds")
        for host in sightings.states
        if host["metadata"]["name"] == name
    ]
    assert [grace for grace in graces if grace][:1] == [7]


def test_a_pod_that_the_host_evicts_is_deleted_in_the_virtual_cluster(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    world.ready(key_of(virtual))
    host_key = world.host_key("Pod", key_of(virtual))
    world.host.delete("Pod", host_key, grace=1)
    eventually(lambda: world.virtual.get("Pod", key_of(virtual)) is None, "the virtual Pod is gone")
    assert world.host.get("Pod", host_key) is None


def test_a_pod_recreated_under_its_name_gets_a_new_copy(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    world.virtual.create(pod("web", namespace=ns))
    world.ready(key)
    first = world.copied("Pod", key)
    world.virtual.delete("Pod", key, grace=0)
    second = world.virtual.create(pod("web", namespace=ns))
    eventually(lambda: is_ready(world.virtual.get("Pod", key) or {}), "the new Pod is Ready")
    host = world.copied("Pod", key)
    assert uid_of(host) != uid_of(first)
    assert annotations_of(host)[MARKS.uid] == uid_of(second)


def test_the_stand_in_of_a_node_goes_with_the_last_pod(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    node = world.ready(key_of(virtual))["spec"]["nodeName"]
    assert world.virtual.get("Node", Key("", node)) is not None
    for namespace in world.namespaces:
        for each in world.virtual.list("Pod", namespace=namespace):
            world.virtual.delete("Pod", key_of(each), grace=0)
    eventually(lambda: world.virtual.get("Node", Key("", node)) is None, "the stand-in is gone")


def test_many_pods_at_once_all_become_ready(world: Scene, ns: str) -> None:
    names = [f"web-{number}" for number in range(40)]
    for name in names:
        world.virtual.create(pod(name, namespace=ns))
    eventually(lambda: all(map(is_ready, world.virtual.list("Pod", namespace=ns))), "all Pods are Ready")
    for name in names:
        world.virtual.delete("Pod", Key(ns, name), grace=1)
    eventually(lambda: world.virtual.list("Pod", namespace=ns) == [], "all virtual Pods are gone")
    label = f"{MARKS.selector(world.identity)},{MARKS.namespace_label}={ns}"
    assert world.host.list("Pod", selector=label) == []


def test_pod_with_an_unsynced_claim_stays_and_kubectl_shows_the_reason(world: Scene, ns: str) -> None:
    claim = {"name": "gpu", "resourceClaimName": "gpu"}
    virtual = world.virtual.create(pod("stateful", namespace=ns, spec={"resourceClaims": [claim]}))
    plane = world.virtual.plane
    found = ("get", "events", "--namespace", ns, "--field-selector", "involvedObject.name=stateful,reason=NotSynced")
    events = eventually(lambda: plane.kubectl(*found, "-o", "jsonpath={.items[*].message}").stdout, "there is an Event")
    assert "needs the ResourceClaim gpu" in events
    assert world.copy("Pod", key_of(virtual)) is None
    assert world.host_namespace not in events


def test_claim_goes_to_the_host_and_its_volume_and_status_come_up(world: Scene, ns: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    world.virtual.create(build(PERSISTENT_VOLUME_CLAIMS, "data", namespace=ns, spec=spec))
    kind, key = "PersistentVolumeClaim", Key(ns, "data")
    host = world.host_key(kind, key)
    eventually(lambda: world.host.get(kind, host), "the claim is on the host")
    world.host.patch(kind, host, {"spec": {"volumeName": "pv-1"}})
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    world.host.patch(kind, host, {"status": bound}, subresource="status")

    def came_up() -> bool:
        found = world.virtual.get(kind, key) or {}
        return (found["spec"].get("volumeName"), found.get("status")) == ("pv-1", bound)

    eventually(came_up, "the tenant sees volume and status")
    world.virtual.delete(kind, key)
    eventually(
        lambda: (
            "deletionTimestamp" in (world.host.get(kind, host) or {"metadata": {"deletionTimestamp": ""}})["metadata"]
        ),
        "it goes",
    )


def test_pull_secrets_of_a_service_account_go_to_the_host_with_its_pods(world: Scene, ns: str) -> None:
    """The virtual API server's admission names them in a Pod that names none itself."""
    host_name = world.host_key("Secret", Key(ns, "registry")).name
    world.virtual.create(secret("registry", namespace=ns))
    world.virtual.create(serviceaccount("puller", namespace=ns, imagePullSecrets=[{"name": "registry"}]))
    world.virtual.create(pod("web", namespace=ns, spec={"serviceAccountName": "puller"}))
    assert world.copied("Pod", Key(ns, "web"))["spec"]["imagePullSecrets"] == [{"name": host_name}]
    assert world.copied("Secret", Key(ns, "registry"))["metadata"]["name"] == host_name
    world.virtual.delete("Pod", Key(ns, "web"))
    world.gone("Secret", Key(ns, "registry"))


def test_pod_has_the_priority_that_its_tenants_class_may_have(world: Scene, ns: str) -> None:
    name, kind = f"{ns}-high", "PriorityClass"
    host = world.host_key(kind, Key("", name))
    world.virtual.create(build(PRIORITY_CLASSES, name, value=1000, preemptionPolicy="PreemptLowerPriority"))

    def made() -> bool:
        """The API server's admission looks for the class in a cache, which may lag behind."""
        try:
            return bool(world.virtual.create(pod("web", namespace=ns, spec={"priorityClassName": name})))
        except Denied:
            return False

    eventually(made, "the virtual API server knows the class")
    spec = world.copied("Pod", Key(ns, "web"))["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (host.name, 100, "Never")
    events = eventually(
        lambda: [one for one in world.virtual.list("Event", namespace="default") if one["reason"] == "PriorityLowered"],
        "there is an Event about the lower value",
    )
    assert "its value is 100" in events[0]["message"]
    world.virtual.delete(kind, Key("", name))
    eventually(lambda: world.host.get(kind, host) is None, "the copy is gone")


def test_ephemeral_containers_reach_the_running_copy(world: Scene, ns: str) -> None:
    """With the printed rights and under the printed admission policy, as all of this world."""
    key = Key(ns, "web")
    world.virtual.create(secret("db", namespace=ns))
    world.virtual.create(pod("web", namespace=ns))
    world.ready(key)
    for name in ("first", "second"):
        container = {
            "name": name,
            "image": "b",
            "targetContainerName": "app",
            "envFrom": [{"secretRef": {"name": "db"}}],
        }
        change = {"spec": {"ephemeralContainers": [container]}}
        world.virtual.patch("Pod", key, change, subresource="ephemeralcontainers", how="strategic")

        def there(name: str = name) -> bool:
            found = world.copied("Pod", key)["spec"].get("ephemeralContainers") or ()
            return name in {one["name"] for one in found}

        eventually(there, f"the copy has the container {name}")
    [source] = world.copied("Pod", key)["spec"]["ephemeralContainers"][0]["envFrom"]
    assert source["secretRef"]["name"] == world.host_key("Secret", Key(ns, "db")).name
    privileged: Obj = {"name": "root", "image": "b", "securityContext": {"privileged": True}}
    change = {"spec": {"ephemeralContainers": [privileged]}}
    world.virtual.patch("Pod", key, change, subresource="ephemeralcontainers", how="strategic")
    eventually(lambda: _events(world, ns, "EphemeralContainerRefused"), "the tenant reads why root isn't there")


def test_resized_pod_is_resized_on_the_host(world: Scene, ns: str) -> None:
    key, resources = Key(ns, "web"), {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
    containers = [{"name": "app", "image": "i", "resources": resources}]
    sidecar: Obj = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": resources}
    world.virtual.create(pod("web", namespace=ns, spec={"containers": containers, "initContainers": [sidecar]}))
    world.ready(key)
    larger = {"limits": {"cpu": "2"}}
    change = {
        "containers": [{"name": "app", "resources": larger}],
        "initContainers": [{"name": "side", "resources": larger}],
    }
    world.virtual.patch("Pod", key, {"spec": change}, subresource="resize", how="strategic")

    def limits() -> set[str]:
        spec = world.copied("Pod", key)["spec"]
        return {one["resources"]["limits"]["cpu"] for one in spec["containers"] + spec["initContainers"]}

    eventually(lambda: limits() == {"2"}, "both containers of the copy are resized")
    assert world.copied("Pod", key)["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m"}


SMALL, LARGER = {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        ({"resources": SMALL}, {"resources": LARGER}),
        (
            {"initContainers": [{"name": "first", "image": "i", "resources": SMALL}]},
            {"initContainers": [{"name": "first", "resources": LARGER}]},
        ),
    ],
    ids=["the Pod as a whole", "an init container"],
)
def test_resizing_that_needs_a_feature_of_the_node_is_done_on_the_host(
    world: Scene, ns: str, spec: Obj, change: Obj
) -> None:
    key = Key(ns, "web")
    world.virtual.create(pod("web", namespace=ns, spec=spec))
    world.ready(key)
    world.virtual.patch("Pod", key, {"spec": change}, subresource="resize", how="strategic")

    def is_larger() -> bool:
        found = world.copied("Pod", key)["spec"]
        resized = [found, *found.get("initContainers", ())]
        return LARGER["limits"] in [each["resources"]["limits"] for each in resized if "resources" in each]

    eventually(is_larger, "the copy is resized")


def test_resize_that_a_host_limit_refuses_gets_an_event_and_the_pod_stays_in_step(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    resources = {"requests": {"cpu": "100m"}}
    world.virtual.create(
        pod("web", namespace=ns, spec={"containers": [{"name": "app", "image": "i", "resources": resources}]})
    )
    world.ready(key)
    limits = {"limits": [{"type": "Container", "max": {"cpu": "200m"}}]}
    path = f"/api/v1/namespaces/{world.host_namespace}/limitranges"
    world.host.plane.request("POST", path, {"metadata": {"name": "small"}, "spec": limits})
    large = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    probe = pod("probe", namespace=world.host_namespace, spec={"containers": [large]})
    pods = f"/api/v1/namespaces/{world.host_namespace}/pods?dryRun=All"

    def is_enforced() -> bool:
        status, _ = world.host.plane.request("POST", pods, probe)
        return status == 422

    try:
        eventually(is_enforced, "the API server knows the limit")  # admission reads it from a cache
        change = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "500m"}}}]}}
        world.virtual.patch("Pod", key, change, subresource="resize", how="strategic")
        [event] = eventually(lambda: _events(world, ns, "SyncFailed"), "the tenant reads why")
        assert "cpu" in event["message"]
        assert world.host_namespace not in event["message"]
        world.virtual.patch("Pod", key, {"metadata": {"labels": {"still": "synced"}}})
        eventually(lambda: labels_of(world.copied("Pod", key)).get("still") == "synced", "labels go down all the same")
    finally:
        world.host.plane.request("DELETE", f"{path}/small")


def _events(world: Scene, ns: str, reason: str) -> list[Obj]:
    return [each for each in world.virtual.list("Event", namespace=ns) if each["reason"] == reason]


def test_ingress_that_is_not_synced_gets_an_event(world: Scene, ns: str) -> None:
    plane = world.virtual.plane
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    manifest = json.dumps(build(INGRESSES, "way", namespace=ns, spec={"defaultBackend": backend}))
    plane.kubectl("apply", "-f", "-", stdin=manifest)
    found = ("get", "events", "--namespace", ns, "--field-selector", "involvedObject.name=way,reason=NotSynced")
    message = ("-o", "jsonpath={.items[*].message}")
    events = eventually(lambda: plane.kubectl(*found, *message).stdout, "there is an Event")
    assert "kind Ingress are not synced" in events
    assert world.host_namespace not in events
