"""What a tenant reaches of a host pod is what was sent there, and nothing that the host has put in."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hostile_scene import CLUSTER, HOME, NAMESPACE, TOKENS, HostileScene, Server, eventually
from kubelet_client import OF_CONTAINERS, UPGRADE, KubeletClient, ReviewingServer

from kube_envtest import ApiServer, Rule
from syncer.api import Marks, Obj, dig
from syncer.testing.objects import pod

NODE = "node-1"
#: What the host and its operator have put into the pod: a sidecar with a token, and a debugger.
SIDECAR, DEBUGGER, TOKEN = "istio-proxy", "debugger-7xk2p", "istio-token"
POD = pod("web", spec={"containers": [{"name": "app", "image": "i"}]})
KEY = f"{NAMESPACE}/web"


class Reviewing(Server):
    """A reviewing server on a thread of its own."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self._server = ReviewingServer(seed=seed, tokens=TOKENS)


class RelayScene(HostileScene):
    """A scene whose daemon serves as the kubelet of the virtual Nodes."""

    client: KubeletClient

    def serve(self, *, ports: int = 10) -> None:
        """Start the daemon with the kubelet's server."""
        self.client = KubeletClient()
        self.tenant.put(self.client.authority())
        self.start(kubelet=self.client.section(ports))

    def run(self) -> Obj:
        """Run the Pod on the host, where it gets a sidecar, a volume and a debugger; return the copy."""
        self.tenant.put(POD)
        copy = self.copied(POD)
        spec = copy["spec"]
        parts: Obj = {
            "nodeName": NODE,
            "containers": [*spec["containers"], {"name": SIDECAR, "image": "proxy"}],
            "ephemeralContainers": [{"name": DEBUGGER, "image": "tools"}],
            "volumes": [*spec.get("volumes", ()), {"name": TOKEN, "emptyDir": {}}],
        }
        running = self.operator.change(copy, {"spec": parts, "status": {"phase": "Running"}})
        assert running
        return running

    def port(self, node: str = NODE) -> int:
        """Return the port of a virtual Node's kubelet; 0 if there is none."""
        return dig(self.tenant.get("nodes", node) or {}, "status.daemonEndpoints.kubeletEndpoint.Port") or 0

    def relayed(self) -> list[str]:
        """Return the paths of the requests about a pod's containers that have reached the host."""
        paths = [each.path for each in self.operator.requests()]
        return [path for path in paths if path.endswith(OF_CONTAINERS)]

    def debug(self, *containers: Obj) -> None:
        """Show ephemeral containers in the virtual Pod, as its API server likes."""
        self.tenant.patch("pods", KEY, spec={"ephemeralContainers": [{"image": "i", **each} for each in containers]})


def lie(server: ApiServer, *, verb: str, rewrite: Callable[[bytes], bytes]) -> None:
    """Have a server rewrite what the daemon gets to know about Pods."""
    server.faults.add(Rule(verb=verb, resource="pods", rewrite=rewrite))


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[RelayScene]:
    scene = RelayScene("single-namespace", tmp_path, tenant=Reviewing("virtual"))
    try:
        yield scene
    finally:
        scene.close()


def test_containers_of_the_host_are_not_reached_by_their_names(relay: RelayScene) -> None:
    relay.serve()
    relay.run()
    relay.debug({"name": DEBUGGER}, {"name": SIDECAR})
    message = relay.event_message(POD, "EphemeralContainerRefused")
    assert f"{DEBUGGER}: the host has a container of this name in the pod already" in message
    port = eventually(relay.port, "the node has a port")
    eventually(
        lambda: relay.client.ask(f"/containerLogs/{KEY}/app", port) and relay.relayed(), "the host is asked for app"
    )
    before = relay.relayed()
    for name in (DEBUGGER, SIDECAR):
        assert relay.client.ask(f"/containerLogs/{KEY}/{name}", port) == 404
        assert relay.client.ask(f"/exec/{KEY}/{name}?command=id&output=1", port, UPGRADE) == 404
        assert relay.client.ask(f"/attach/{KEY}/{name}?output=1", port, UPGRADE) == 404
    assert relay.relayed() == before, "the host isn't asked"


def test_debug_containers_get_at_nothing_that_the_host_has_put_in(relay: RelayScene) -> None:
    relay.serve()
    copy = relay.run()
    shown: Obj = {"volumes": [*copy["spec"]["volumes"]], "containers": copy["spec"]["containers"]}
    relay.tenant.patch("pods", KEY, spec=shown)
    mounts = [{"name": TOKEN, "mountPath": "/token"}]
    relay.debug(
        {"name": "mounting", "volumeMounts": mounts},
        {"name": "beside", "targetContainerName": SIDECAR},
        {"name": "good", "targetContainerName": "app"},
    )
    message = relay.event_message(POD, "EphemeralContainerRefused")
    assert f"mounting: spec: a container uses the volume {TOKEN}, which is none of this Pod" in message
    assert f"beside: its target {SIDECAR} is no container of this Pod" in message

    def there() -> set[str]:
        found = (relay.copy(POD) or {})["spec"]["ephemeralContainers"]
        return {each["name"] for each in found}

    eventually(lambda: "good" in there(), "a container of the tenant's own is added")
    relay.quiet()
    assert there() == {DEBUGGER, "good"}


def test_pod_mounts_no_volume_that_the_host_will_add(relay: RelayScene) -> None:
    """The API server of the tenant's own checks nothing, and the host's admission comes before its checks."""
    mounts = [{"name": "mine", "mountPath": "/token"}]
    spec: Obj = {"containers": [{"name": "app", "image": "i", "volumeMounts": mounts}]}
    thief = pod("thief", spec={**spec, "volumes": [{"name": "mine", "emptyDir": {}}]})

    def falsified(answer: bytes) -> bytes:
        """Return an answer in which the volume has another name than its mount."""
        return answer.replace(b'"name":"mine","emptyDir"', b'"name":"other","emptyDir"')

    for verb in ("list", "watch", "get"):
        relay.tenant.call(partial(lie, verb=verb, rewrite=falsified))
    relay.serve()
    relay.tenant.put(thief)
    assert "a container uses the volume mine, which is none of this Pod" in relay.event_message(thief, "SyncRefused")
    relay.serves_others()
    assert relay.copy(thief) is None


def test_event_about_a_container_of_the_host_does_not_come_up(relay: RelayScene) -> None:
    relay.serve()
    copy = relay.run()

    def event(name: str, path: str) -> Obj:
        about = {"apiVersion": "v1", "kind": "Pod", "fieldPath": path}
        about |= {key: copy["metadata"][key] for key in ("name", "namespace", "uid")}
        metadata = {"name": f"{copy['metadata']['name']}.{name}", "namespace": copy["metadata"]["namespace"]}
        base = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "type": "Normal", "reason": "Started"}
        return {**base, "involvedObject": about, "message": f"Started container {name}"}

    relay.operator.put(event("debugger", f"spec.ephemeralContainers{{{DEBUGGER}}}"))
    relay.operator.put(event("sidecar", f"spec.containers{{{SIDECAR}}}"))
    relay.operator.put(event("app", "spec.containers{app}"))
    assert relay.event_message(POD, "Started") == "Started container app"
    relay.quiet()
    messages = [each["message"] for each in relay.tenant.objects("events") if each["reason"] == "Started"]
    assert messages == ["Started container app"]


def test_forged_nodes_take_no_kubelet_ports(relay: RelayScene) -> None:
    most = 3
    marks: dict[str, Any] = {"labels": {Marks().cluster: f"{CLUSTER}.{HOME}"}}
    relay.serve(ports=most)
    forged = [f"aa{number}" for number in range(most)]
    for name in forged:
        relay.tenant.put(pod(name, spec={"nodeName": name}))
        relay.tenant.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **marks}})
    relay.serves_others()
    relay.quiet()
    assert [relay.port(name) for name in forged] == [0] * most
    relay.run()
    port = eventually(partial(relay.port, NODE), "the node that runs a Pod has a port")
    assert relay.client.ask("/healthz", port) == 200
    assert [relay.port(name) for name in forged] == [0] * most
