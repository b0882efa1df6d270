"""Each kind from end to end on real API servers, by a daemon that may do exactly what `syncer rbac` prints."""

import base64
from collections.abc import Callable, Iterator

import pytest
from api import Api, Loop, Sightings, eventually
from scene import MARKS, Process, Scene, untouched

from hack.kubelet import Kubelet, is_ready
from syncer.api import Key, Obj, annotations_of, dig, key_of, labels_of, uid_of
from syncer.testing.objects import configmap, event, pod, pod_mounting, secret, service, serviceaccount

pytestmark = pytest.mark.real

#: Copied though no pod uses it.
FORCED = {"annotations": {f"{MARKS.prefix}/force-sync": "true"}}

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


@pytest.fixture(scope="module")
def world(apis: tuple[Api, Api], loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The virtual cluster of this module, its host with a kubelet, and a daemon without a right too many."""
    scene = Scene(*apis, tmp_path_factory.mktemp("kinds"))
    kubelet = Kubelet(scene.host.cluster, scene.host_namespace, node=f"node-{scene.name}")
    playing = loop.start(kubelet.run())
    daemon = scene.daemon(scene.config(user="daemon", sync={}))
    scene.grant(daemon, "daemon")
    daemon.start()
    yield scene
    assert kubelet.overwritten == 0, "somebody has overwritten what the kubelet had reported"
    playing.cancel()
    scene.close()


@pytest.fixture
def daemon(world: Scene) -> Iterator[Process]:
    """The daemon; fails the test if the API servers had to refuse it something, or it wrote what changed nothing."""
    running = world.daemons[0]
    yield running
    assert running.requests(code="403") == 0, running.said()
    assert running.requests("syncer_futile_writes_total") == 0, running.said()


@pytest.fixture
def ns(world: Scene, daemon: Process) -> str:
    """A virtual namespace of this test's own."""
    return world.namespace()


def wait_ready(world: Scene, key: Key) -> Obj:
    """The virtual Pod, as soon as the host's kubelet has made it Ready."""

    def ready() -> Obj | None:
        found = world.virtual.get("Pod", key)
        return found if found is not None and is_ready(found) else None

    return eventually(ready, f"the virtual Pod {key} is Ready")


def wait_virtual(world: Scene, kind: str, key: Key, path: str, wanted: object) -> None:
    eventually(lambda: dig(world.virtual.get(kind, key) or {}, path) == wanted, f"{kind} {key} has {path} {wanted}")


# -- ConfigMaps and Secrets ------------------------------------------------------------------------------------------


def test_what_a_pod_uses_is_copied_for_as_long_as_it_does(world: Scene, ns: str) -> None:
    for obj in (configmap("used", namespace=ns), configmap("unused", namespace=ns), secret("db", namespace=ns)):
        world.virtual.create(obj)
    world.virtual.create(pod_mounting("web", secret="db", configmap="used", namespace=ns))
    wait_ready(world, Key(ns, "web"))
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


@pytest.mark.parametrize("make", [configmap, secret], ids=["ConfigMap", "Secret"])
def test_contents_labels_and_annotations_follow_and_go_again(world: Scene, ns: str, make: Callable[..., Obj]) -> None:
    metadata = {"labels": {"tier": "gold", "old": "1"}, "annotations": {**FORCED["annotations"], "note": "x"}}
    virtual = world.virtual.create(make("a", {"one": "1", "two": "2"}, namespace=ns, metadata=metadata))
    kind, key = virtual["kind"], Key(ns, "a")
    host = world.copied(kind, key)
    assert host["data"] == virtual["data"]
    change = {"labels": {"tier": "iron", "old": None, "new": "1"}, "annotations": {"note": None}}
    changed = world.virtual.patch(kind, key, {"metadata": change, "data": {"one": virtual["data"]["two"], "two": None}})
    host = world.copied(kind, key, "data", {"one": virtual["data"]["two"]})
    eventually(lambda: world.disagreements([kind], ns) == [], f"the {kind} is as it should be")
    labels = labels_of(world.copied(kind, key))
    assert {name: value for name, value in labels.items() if not MARKS.is_mark(name)} == labels_of(changed)
    world.virtual.delete(kind, key)
    world.gone(kind, key)


def test_one_made_again_under_its_name_has_a_copy_of_its_own(world: Scene, ns: str) -> None:
    key = Key(ns, "a")
    world.virtual.create(configmap("a", namespace=ns, metadata=FORCED))
    first = world.copied("ConfigMap", key)
    world.virtual.delete("ConfigMap", key)
    second = world.virtual.create(configmap("a", {"color": "red"}, namespace=ns, metadata=FORCED))
    host = world.copied("ConfigMap", key, "data.color", "red")
    eventually(
        lambda: annotations_of(world.copied("ConfigMap", key))[MARKS.uid] == uid_of(second),
        "the copy names the new one",
    )
    assert uid_of(host) != uid_of(first)


def test_what_is_changed_or_deleted_on_the_host_is_put_right(world: Scene, ns: str) -> None:
    key = Key(ns, "a")
    world.virtual.create(configmap("a", namespace=ns, metadata=FORCED))
    host = key_of(world.copied("ConfigMap", key))
    world.host.patch(
        "ConfigMap", host, {"data": {"color": "red", "more": "x"}, "metadata": {"labels": {"theirs": "1"}}}
    )
    after = world.copied("ConfigMap", key, "data", {"color": "blue"})
    assert labels_of(after)["theirs"] == "1"
    world.host.delete("ConfigMap", host)
    again = world.copied("ConfigMap", key)
    assert uid_of(again) != uid_of(after)


def test_a_foreign_object_in_the_way_is_left_alone_and_the_tenant_is_told(world: Scene, ns: str) -> None:
    place = world.host_key("ConfigMap", Key(ns, "taken"))
    foreign = world.host.create(configmap(place.name, {"mine": "yes"}, namespace=place.namespace))
    with untouched(world.host, [foreign]):
        virtual = world.virtual.create(configmap("taken", namespace=ns, metadata=FORCED))
        told = eventually(lambda: world.virtual.list("Event", namespace=ns), "there is an Event")
        assert told[0]["involvedObject"]["uid"] == uid_of(virtual)
        assert (told[0]["type"], told[0]["reason"]) == ("Warning", "NameCollision")
        world.virtual.patch("ConfigMap", key_of(virtual), {"data": {"color": "red"}})
        world.virtual.delete("ConfigMap", key_of(virtual))
        marker = world.virtual.create(configmap("marker", namespace=ns, metadata=FORCED))
        world.copied("ConfigMap", key_of(marker))
    world.host.delete("ConfigMap", place)


# -- Services --------------------------------------------------------------------------------------------------------


def test_a_service_selects_the_pods_of_its_namespace_only(world: Scene, ns: str) -> None:
    world.virtual.create(service("web", (80,), namespace=ns))
    host = world.copied("Service", Key(ns, "web"))
    assert host["spec"]["selector"] == {"app": "web", **MARKS.labels(world.identity, Key(ns, "web"))}
    ports = [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": 80}]
    world.virtual.patch("Service", Key(ns, "web"), {"spec": {"ports": ports, "selector": {"app": None, "tier": "web"}}})
    world.copied("Service", Key(ns, "web"), "spec.ports", ports)
    eventually(lambda: world.disagreements(["Service"], ns) == [], "the Services are as they should be")
    world.virtual.delete("Service", Key(ns, "web"))
    world.gone("Service", Key(ns, "web"))


def test_node_ports_and_addresses_come_back_from_the_host(world: Scene, ns: str) -> None:
    key = Key(ns, "public")
    world.virtual.create(service("public", namespace=ns, spec={"type": "LoadBalancer"}))
    number = world.copied("Service", key)["spec"]["ports"][0]["nodePort"]
    eventually(
        lambda: dig(world.virtual.get("Service", key) or {}, "spec.ports")[0]["nodePort"] == number,
        "the virtual Service has the node port of the host",
    )
    ingress = [{"ip": "192.0.2.7", "ipMode": "VIP"}]
    world.host.patch(
        "Service",
        world.host_key("Service", key),
        {"status": {"loadBalancer": {"ingress": ingress}}},
        subresource="status",
    )
    wait_virtual(world, "Service", key, "status.loadBalancer.ingress", ingress)
    assert world.copied("Service", key)["spec"]["ports"][0]["nodePort"] == number


def test_a_service_can_change_its_type_and_become_headless(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    world.virtual.create(service("web", namespace=ns))
    first = world.copied("Service", key)
    world.virtual.patch("Service", key, {"spec": {"type": "NodePort"}})
    assert uid_of(world.copied("Service", key, "spec.type", "NodePort")) == uid_of(first)
    world.virtual.delete("Service", key)
    world.virtual.create(service("web", namespace=ns, spec={"clusterIP": "None"}))
    again = world.copied("Service", key, "spec.clusterIP", "None")
    assert uid_of(again) != uid_of(first)


# -- ServiceAccounts -------------------------------------------------------------------------------------------------


def test_service_accounts_are_copied_without_rights(world: Scene, ns: str) -> None:
    key = Key(ns, "robot")
    world.virtual.create(serviceaccount("robot", namespace=ns, metadata={"labels": {"team": "a"}}))
    host = world.copied("ServiceAccount", key, "metadata.labels.team", "a")
    assert host["automountServiceAccountToken"] is False
    world.virtual.patch("ServiceAccount", key, {"metadata": {"labels": {"team": "b"}}})
    world.copied("ServiceAccount", key, "metadata.labels.team", "b")
    world.virtual.delete("ServiceAccount", key)
    world.gone("ServiceAccount", key)


# -- Pods ------------------------------------------------------------------------------------------------------------


def test_a_deployment_of_kubectl_becomes_available(world: Scene, ns: str) -> None:
    plane = world.virtual.plane
    plane.kubectl("apply", "--namespace", ns, "-f", "-", stdin=DEPLOYMENT)
    plane.kubectl("rollout", "status", "deployment/web", "--namespace", ns, "--timeout=50s")
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
    wait_ready(world, key_of(virtual))
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
    """What the container finds at the usual place."""
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
    wait_ready(world, key_of(virtual))
    place = world.host_key("Secret", Key(ns, "web.pod-tokens"))
    assert world.host.get("Secret", place) is not None
    world.virtual.delete("Pod", key_of(virtual), grace=1)
    eventually(lambda: world.host.get("Secret", place) is None, "the Secret of the tokens is gone")


def test_labels_and_annotations_of_a_running_pod_follow(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    world.virtual.create(pod("web", namespace=ns, metadata={"labels": {"app": "web", "old": "1"}}))
    before = wait_ready(world, key)
    change = {"labels": {"app": "shop", "old": None}, "annotations": {"note": "new"}}
    world.virtual.patch("Pod", key, {"metadata": change})
    host = world.copied("Pod", key, "metadata.annotations.note", "new")
    assert labels_of(host)["app"] == "shop"
    assert "old" not in labels_of(host)
    world.virtual.patch("Pod", key, {"metadata": {"annotations": {"note": None}}})
    eventually(lambda: "note" not in annotations_of(world.copied("Pod", key)), "the annotation is gone")
    assert is_ready(world.copied("Pod", key))
    assert wait_ready(world, key)["status"]["startTime"] == before["status"]["startTime"]


def test_conditions_of_a_readiness_gate_go_down_and_others_stay(world: Scene, ns: str) -> None:
    key, gate = Key(ns, "gated"), "example.org/load-balanced"
    world.virtual.create(pod("gated", namespace=ns, spec={"readinessGates": [{"conditionType": gate}]}))
    wait_ready(world, key)
    condition = {"type": gate, "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}
    world.virtual.patch("Pod", key, {"status": {"conditions": [condition]}}, subresource="status", how="strategic")

    def conditions() -> dict[str, str]:
        return {one["type"]: one["status"] for one in world.copied("Pod", key)["status"]["conditions"]}

    eventually(lambda: conditions().get(gate) == "True", "the condition of the gate is on the host")
    assert conditions()["Ready"] == "True"


def test_a_virtual_deletion_has_its_grace_period_on_the_host(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("slow", namespace=ns))
    wait_ready(world, key_of(virtual))
    seen = Sightings(world.host, "Pod", world.host_namespace)
    watching = world.host.loop.start(seen.run())
    eventually(lambda: seen.states, "the watch stands")
    world.virtual.delete("Pod", key_of(virtual), grace=7)
    eventually(lambda: world.virtual.get("Pod", key_of(virtual)) is None, "the virtual Pod is gone")
    watching.cancel()
    name = world.host_key("Pod", key_of(virtual)).name
    graces = [
        host["metadata"].get("deletionGracePeriodSeconds") for host in seen.states if host["metadata"]["name"] == name
    ]
    assert [grace for grace in graces if grace][:1] == [7]


def test_a_pod_that_the_host_evicts_is_deleted_in_the_virtual_cluster(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    wait_ready(world, key_of(virtual))
    place = world.host_key("Pod", key_of(virtual))
    world.host.delete("Pod", place, grace=1)
    eventually(lambda: world.virtual.get("Pod", key_of(virtual)) is None, "the virtual Pod is gone")
    assert world.host.get("Pod", place) is None


def test_a_pod_made_again_under_its_name_runs_anew(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    world.virtual.create(pod("web", namespace=ns))
    wait_ready(world, key)
    first = world.copied("Pod", key)
    world.virtual.delete("Pod", key, grace=0)
    second = world.virtual.create(pod("web", namespace=ns))
    eventually(lambda: is_ready(world.virtual.get("Pod", key) or {}), "the new Pod is Ready")
    host = world.copied("Pod", key)
    assert uid_of(host) != uid_of(first)
    assert annotations_of(host)[MARKS.uid] == uid_of(second)


def test_the_stand_in_of_a_node_goes_with_the_last_pod(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    node = wait_ready(world, key_of(virtual))["spec"]["nodeName"]
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


# -- Events ----------------------------------------------------------------------------------------------------------


def test_events_about_a_copy_are_told_in_the_virtual_cluster_in_its_own_words(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    wait_ready(world, key_of(virtual))
    host = world.copied("Pod", key_of(virtual))
    name = host["metadata"]["name"]
    made = world.host.create(event(f"{name}.1", about=host, message=f"Back-off restarting {name}"))
    key = Key(ns, "web.1")
    found = eventually(lambda: world.virtual.get("Event", key), "the virtual Event is there")
    assert found["message"] == "Back-off restarting web"
    assert found["involvedObject"]["uid"] == uid_of(virtual)
    world.host.patch("Event", key_of(made), {"count": 5})
    wait_virtual(world, "Event", key, "count", 5)
