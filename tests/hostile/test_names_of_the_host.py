"""Fields that come up, and texts of the daemon, reveal little about the host to a tenant."""

import http.client
import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from hostile_scene import DAEMON, HostileScene, eventually

from kube_envtest import ApiServer, Rule
from syncer.api import Resource, annotations_of
from syncer.testing.objects import build, crd, pod

CLASSES = Resource("example.org/v1", "Class", "classes", namespaced=False)
#: Annotations in which tools keep a whole object.
NOTES = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "kopf.zalando.org/last-handled-configuration",
    "objectset.rio.cattle.io/applied",
)


def test_notes_of_tools_dont_come_up(hostile: HostileScene) -> None:
    """On 0aeb964 the three last ones come up, with the spec that the patch hides."""
    names = {"plural": "classes", "singular": "class", "kind": "Class", "listKind": "ClassList"}
    for server in (hostile.tenant, hostile.operator):
        server.put(crd(str(CLASSES), scope="Cluster", spec={"names": names}))
    spec = {"password": "of-the-host"}
    annotations = {**dict.fromkeys(NOTES, json.dumps({"spec": spec})), "example.org/note": "shown"}
    hostile.operator.put(build(CLASSES, "gold", spec=spec, metadata={"annotations": annotations}))
    hidden = {"op": "replace", "path": "/spec", "value": {}}
    options = {"direction": "fromHost", "scope": "Cluster", "patches": {"up": [hidden]}}
    hostile.start(sync={"custom": {str(CLASSES): options}})
    shown = eventually(lambda: hostile.tenant.get(CLASSES, "gold"), "the object is shown")
    assert annotations_of(shown)["example.org/note"] == "shown"
    assert not annotations_of(shown).keys() & set(NOTES)
    assert "of-the-host" not in json.dumps(shown)


def test_status_of_a_pod_has_virtual_names(hostile: HostileScene) -> None:
    """On 0aeb964 the messages come up as they are."""
    hostile.start()
    made = hostile.tenant.put(pod("web"))
    copy = hostile.copied(made)
    host_key = hostile.host_key(made)
    message = (
        f'pod "{host_key.name}" in namespace "{host_key.namespace}": {host_key.namespace}/{host_key.name} not found'
    )
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    states = [{"name": "app", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}]
    condition = {"type": "Ready", "status": "False", "message": message, "lastTransitionTime": "2024-01-01T00:00:00Z"}
    status = {"phase": "Pending", "message": message, "conditions": [condition], "containerStatuses": states}
    hostile.operator.change(copy, {"status": status})
    found = eventually(
        lambda: (hostile.tenant.get("pods", "shop/web") or {}).get("status", {}).get("containerStatuses"), "it comes up"
    )
    assert "web" in found[0]["state"]["waiting"]["message"]
    whole = json.dumps((hostile.tenant.get("pods", "shop/web") or {})["status"])
    assert [each for each in {host_key.name, host_key.namespace} - {"web", "shop"} if each in whole] == []


def test_pod_reads_no_marks_of_its_copy(hostile: HostileScene) -> None:
    """On 0aeb964 the variables are the copy's: its host namespace and name."""
    hostile.start()
    keys = [f"metadata.annotations['vsyncer.dev/{name}']" for name in ("host-namespace", "host-name")]
    keys.append("metadata.labels['vsyncer.dev/cluster']")
    env = [{"name": f"E{at}", "valueFrom": {"fieldRef": {"fieldPath": key}}} for at, key in enumerate(keys)]
    items = [{"path": f"p{at}", "fieldRef": {"fieldPath": key}} for at, key in enumerate(keys)]
    volume = {"name": "v", "downwardAPI": {"items": items}}
    spec = {"containers": [{"name": "c", "image": "i", "env": env}], "volumes": [volume]}
    copy = hostile.copied(hostile.tenant.put(pod("web", spec=spec)))
    assert [each for each in keys if each in json.dumps(copy["spec"])] == []


# -- pages -----------------------------------------------------------------------------------------


def _page(hostile: HostileScene, port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


@pytest.mark.translators("single-namespace", reason="no translator sees the pages")
def test_pages_of_a_daemon_in_trouble_name_no_address_file_or_user(hostile: HostileScene) -> None:
    """On 0aeb964 `/readyz` has the address of the virtual API server: `assert ['127.0.0.1'] == []`."""
    hostile.start()
    hostile.tenant.call(_cut_off)
    page = eventually(lambda: text if "secrets" in (text := hostile.degraded()) else "", "the page says so")
    page += _page(hostile, hostile.daemon.health, "/readyz")
    assert [each for each in ("127.0.0.1", str(hostile.folder), "user", "vc-ns") if each in page] == []


def _cut_off(server: ApiServer) -> None:
    """Let the daemon list Secrets again, and reset its connections."""
    server.faults.add(Rule(user=DAEMON.name, resource="secrets", reset="before"))
    server.lag(server.revision, user=DAEMON.name, resource="secrets", relist=True).end()


@pytest.mark.translators("single-namespace", reason="no translator sees the pages")
def test_silent_clients_delay_no_probe(hostile: HostileScene) -> None:
    """On 0aeb964 each has a thread of its own: `assert 131 < 80`."""
    hostile.start()
    with ExitStack() as opened:
        for port in (hostile.daemon.health, hostile.daemon.port) * 60:
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        assert _page(hostile, hostile.daemon.health, "/livez") == "ok"
        assert "process_cpu" in _page(hostile, hostile.daemon.port, "/metrics")
        status = Path(f"/proc/{hostile.daemon.pid}/status").read_text().splitlines()
        assert int(next(line for line in status if line.startswith("Threads:")).split()[1]) < 80
    hostile.serves_others()
