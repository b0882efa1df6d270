"""The address of the virtual API server: the daemon's requirements, the address in pods, and ``default/kubernetes``."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from api import eventually
from scene import API_SERVER, Scene

from hack.bench.daemon import Process
from syncer.api import Key, Obj, dig
from syncer.resources.services import KUBERNETES
from syncer.testing.objects import pod

pytestmark = pytest.mark.controlplane

#: In the range of the virtual cluster, and not its first.
OTHER = "10.97.12.34"


def kubernetes(scene: Scene, path: str = "spec.clusterIP") -> Any:
    """Return a value of the virtual cluster's ``default/kubernetes``."""
    return dig(scene.virtual.get("Service", KUBERNETES) or {}, path)


def at(scene: Scene, address: str) -> None:
    """Wait until ``default/kubernetes`` has this ClusterIP."""
    eventually(lambda: kubernetes(scene) == address, f"default/kubernetes is at {address}")


@pytest.fixture
def restored(scene: Scene) -> Iterator[Scene]:
    """A scene whose virtual cluster keeps its own ``default/kubernetes`` in the end."""
    yield scene
    for daemon in scene.daemons:
        daemon.kill()
    scene.start(scene.config())
    at(scene, API_SERVER)


def configured(scene: Scene, **api_server: Any) -> Obj:
    """Return a configuration with this ``networking.apiServer``."""
    return scene.config(networking={"apiServer": api_server})


def front(scene: Scene) -> str:
    """Create a host Service in front of the virtual API server; return its ClusterIP."""
    spec = {"ports": [{"name": "metrics", "port": 8443}, {"name": "https", "port": 443}]}
    metadata = {"name": "api", "namespace": scene.host_namespace}
    made = scene.host.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    return str(made["spec"]["clusterIP"])


def refusal(daemon: Process) -> str:
    """Return the message of a daemon that doesn't start."""
    done = daemon.run("run", "--once")
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_address_that_pods_cannot_reach_is_refused_with_the_option_to_set(scene: Scene) -> None:
    daemon = scene.daemon(configured(scene))
    message = refusal(daemon)
    assert "networking.apiServer of virtual cluster" in message
    assert "one of the daemon's own machine" in message
    assert "Set networking.apiServer.service" in message
    command = [*daemon.command, "config", "validate", "--offline", str(daemon.file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (checked.returncode, "Set networking.apiServer.service" in checked.stderr) == (2, True)


def test_daemon_needs_no_address_without_pods(scene: Scene) -> None:
    config = {**configured(scene), "sync": {"toHost": {"pods": {"enabled": False}}}}
    assert scene.daemon(config).run("run", "--once").returncode == 0


def test_missing_service_or_one_without_an_address_is_named(scene: Scene) -> None:
    config = configured(scene, service=f"{scene.host_namespace}/api")
    assert f"the host has no Service {scene.host_namespace}/api" in refusal(scene.daemon(config))
    metadata, spec = {"name": "api", "namespace": scene.host_namespace}, {"clusterIP": "None", "ports": [{"port": 1}]}
    scene.host.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    assert "has no address of its own" in refusal(scene.daemon(config))


def test_pod_gets_the_address_of_the_host_service_of_its_api_server(scene: Scene) -> None:
    address, namespace = front(scene), scene.namespace()
    scene.start(configured(scene, service=f"{scene.host_namespace}/api"))
    scene.virtual.create(pod("web", namespace=namespace, spec={"enableServiceLinks": False}))
    spec = scene.copied("Pod", Key(namespace, "web"))["spec"]
    env = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
    assert (env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]) == (address, "443")
    [alias] = spec["hostAliases"]
    assert alias["ip"] == address
    assert "kubernetes.default.svc" in alias["hostnames"]


def test_kubernetes_service_has_the_address_and_keeps_it_over_restarts_and_tenants(restored: Scene) -> None:
    scene = restored
    daemon = scene.start(configured(scene, host=OTHER))
    at(scene, OTHER)
    uid = kubernetes(scene, "metadata.uid")
    assert kubernetes(scene, "spec.type") == "ClusterIP"
    assert kubernetes(scene, "spec.externalName") is None
    assert scene.copy("Service", KUBERNETES) is None
    scene.virtual.plane.restart_apiserver()
    eventually(lambda: scene.virtual.plane.request("GET", "/readyz")[0] == 200, "the API server is ready")
    assert (kubernetes(scene), kubernetes(scene, "metadata.uid")) == (OTHER, uid)
    change = '{"spec": {"type": "ExternalName", "externalName": "evil.example"}}'
    scene.virtual.plane.kubectl("patch", "service", "kubernetes", "--type=merge", "-p", change)
    at(scene, OTHER)
    scene.virtual.delete("Service", KUBERNETES)
    at(scene, OTHER)
    assert "/default/kubernetes degraded" not in daemon.readyz()[1]


def test_kubernetes_service_follows_the_port(restored: Scene) -> None:
    restored.start(configured(restored, host=OTHER, port=6443))
    eventually(lambda: kubernetes(restored, "spec.ports")[0]["port"] == 6443, "default/kubernetes has the port")
    at(restored, OTHER)


def test_kubernetes_service_leads_to_a_name(restored: Scene) -> None:
    restored.start(configured(restored, host="api.shop.example"))
    eventually(lambda: kubernetes(restored, "spec.externalName") == "api.shop.example", "it has the name")


def test_kubernetes_service_leads_nowhere_if_its_range_lacks_the_address(restored: Scene) -> None:
    uid = kubernetes(restored, "metadata.uid")
    daemon = restored.start(configured(restored, host="10.96.0.77"))
    eventually(lambda: "degraded: default/kubernetes can't have" in daemon.readyz()[1], "the status page says so")
    assert (kubernetes(restored), kubernetes(restored, "metadata.uid")) == (None, uid)
    assert kubernetes(restored, "spec.externalName") == "10.96.0.77"
    change = '{"spec": {"externalName": "evil.example"}}'
    restored.virtual.plane.kubectl("patch", "service", "kubernetes", "--type=merge", "-p", change)
    eventually(lambda: kubernetes(restored, "spec.externalName") == "10.96.0.77", "it is set back")


def test_certificate_without_the_address_is_reported(scene: Scene) -> None:
    daemon = scene.start(configured(scene, host="127.0.0.2"))
    eventually(lambda: "degraded: clients in pods don't trust" in daemon.readyz()[1], "the status page says so")
    assert "doesn't name 127.0.0.2" in daemon.log_text()
