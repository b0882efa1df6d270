"""A message about bad input names the place and the way out, and bad input stops no more than it has to."""

import datetime
import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from api import PATIENCE, eventually
from scene import Scene

from hack.bench.daemon import Process
from kube_envtest.controlplane.folder import free_ports
from syncer.api import Key, Obj
from syncer.testing.objects import configmap, secret, service

pytestmark = pytest.mark.controlplane


def ended(daemon: Process) -> "subprocess.CompletedProcess[str]":
    """Return the daemon's end, by itself and soon."""
    return daemon.run()


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the last line of the log, which is JSON."""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    return "\n".join(lines)


def whole_lines(daemon: Process, text: str) -> list[Obj]:
    """Return the lines of the log so far with a text in their message."""
    lines = [json.loads(line) for line in daemon.log_text().splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if text in line["message"]]


def host_config(scene: Scene, change: Callable[[Obj], None], folder: Path) -> dict[str, Any]:
    """Return a configuration whose host kubeconfig is the administrator's, changed."""
    kubeconfig = json.loads(scene.host.plane.kubeconfig().read_text())
    change(kubeconfig)
    file = folder / "host.kubeconfig"
    file.write_text(json.dumps(kubeconfig))
    return scene.config(host={"kubeconfig": str(file), "namespace": scene.host_namespace})


def test_a_bad_configuration_names_every_line(scene: Scene) -> None:
    daemon = scene.daemon(scene.config(workers="many", sync={"toHost": {"secrts": {"all": True}}}))
    done = ended(daemon)
    assert done.returncode == 2
    lines = last_line(done).splitlines()
    file = re.escape(str(daemon.file))
    assert any(re.match(rf"{file}:\d+: workers: ", line) for line in lines), lines
    assert any(re.match(rf"{file}:\d+: sync\.toHost\.secrts: .*secrets", line) for line in lines), lines
    assert lines[-1] == "2 problems. Nothing was started."


def test_a_configuration_that_is_not_there(scene: Scene, tmp_path: Path) -> None:
    command = [*scene.daemon().command, "--config", str(tmp_path / "none.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert str(tmp_path / "none.yaml") in last_line(done)


def test_a_kubeconfig_that_is_not_there(scene: Scene) -> None:
    daemon = scene.daemon(scene.config(host={"kubeconfig": "/nowhere/config", "namespace": scene.host_namespace}))
    done = ended(daemon)
    assert done.returncode == 2
    assert "/nowhere/config" in last_line(done)
    assert "host.kubeconfig" in last_line(done)


def test_both_sides_on_one_api_server(scene: Scene) -> None:
    same = {"kubeconfig": str(scene.virtual.plane.kubeconfig()), "namespace": scene.host_namespace}
    done = ended(scene.daemon(scene.config(host=same)))
    assert done.returncode == 2
    assert scene.virtual.plane.url.removeprefix("https://") in last_line(done)


def test_an_unreachable_host_is_named_while_it_is_tried_again(scene: Scene, tmp_path: Path) -> None:
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    daemon = scene.daemon(host_config(scene, lambda found: _point(found, f"https://{address}"), tmp_path))
    daemon.spawn()
    lines = eventually(lambda: whole_lines(daemon, "no answer yet; retrying"), "it says that it tries again")
    line = lines[0]
    for part in (address, str(tmp_path / "host.kubeconfig")):
        assert part in line["error"]
    assert line["side"] == "host"
    daemon.send(signal.SIGTERM)
    assert daemon.wait() == 0, "it stops on SIGTERM"


def _point(kubeconfig: Obj, url: str) -> None:
    kubeconfig["clusters"][0]["cluster"]["server"] = url


def test_an_expired_client_certificate_is_named_with_its_end(scene: Scene, tmp_path: Path) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    folder = scene.host.plane.folder
    authority = trustme.CA.from_pem((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    pair = authority.issue_cert(
        "admin",
        common_name="admin",
        organization_name="system:masters",
        not_before=past,
        not_after=past.replace(year=2021),
    )
    certificate, key = tmp_path / "old.crt", tmp_path / "old.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in pair.cert_chain_pems))
    pair.private_key_pem.write_to_path(key)

    def change(kubeconfig: Obj) -> None:
        kubeconfig["users"][0]["user"] = {"client-certificate": str(certificate), "client-key": str(key)}

    done = ended(scene.daemon(host_config(scene, change, tmp_path)))
    assert done.returncode == 1
    message = last_line(done)
    assert message.startswith("syncer: host cluster answers 401")
    assert "expired at 2021-01-01" in message
    assert str(certificate) in message or str(tmp_path / "host.kubeconfig") in message


def test_a_server_with_a_certificate_of_an_unknown_ca_is_reported(scene: Scene, tmp_path: Path) -> None:
    stranger = trustme.CA()
    file = tmp_path / "ca.crt"
    stranger.cert_pem.write_to_path(file)

    def change(kubeconfig: Obj) -> None:
        cluster = kubeconfig["clusters"][0]["cluster"]
        del cluster["certificate-authority-data"]
        cluster["certificate-authority"] = str(file)

    daemon = scene.daemon(host_config(scene, change, tmp_path))
    daemon.spawn()
    eventually(lambda: "certificate" in daemon.log_text(), "the log names the certificate")
    assert scene.host.plane.url.removeprefix("https://") in daemon.log_text()


def test_a_user_who_may_do_nothing_in_the_virtual_cluster(scene: Scene) -> None:
    virtual = {"kubeconfig": str(scene.virtual.plane.kubeconfig("nobody"))}
    daemon = scene.daemon(scene.config(virtual=virtual))
    done = daemon.run("run", "--once")
    assert done.returncode == 1
    message = last_line(done)
    assert "virtual cluster" in message
    assert "forbidden" in message
    assert 'resources: ["configmaps"], verbs: ["get"]' in message
    daemon.spawn()
    eventually(lambda: "a right that the start needs is missing" in daemon.readyz()[1], "it waits for the right")


def test_a_port_in_use_names_the_setting(scene: Scene) -> None:
    daemon = scene.daemon()
    with socket.create_server(("127.0.0.1", daemon.port)):
        done = ended(daemon)
    assert done.returncode == 2
    assert f"metrics.address: can't listen on 127.0.0.1:{daemon.port}: the port is in use" in last_line(done)


def test_a_missing_host_namespace_is_reported_and_waited_for(scene: Scene) -> None:
    namespace = scene.namespace()
    scene.host_namespace += "-late"
    daemon = scene.daemon(scene.config())
    daemon.spawn()
    virtual = scene.virtual.create(configmap("a", namespace=namespace))
    eventually(
        lambda: f"the namespace {scene.host_namespace} doesn't exist" in daemon.log_text(),
        "the log names the missing namespace",
    )
    scene.host.make_namespace(scene.host_namespace)
    daemon.wait_ready()
    scene.names = type(scene.names)(cluster=scene.name, namespace=scene.host_namespace)
    scene.copied("ConfigMap", Key(namespace, virtual["metadata"]["name"]))


# -- what degrades one kind only -------------------------------------------------------------------

WIDGETS = """
from syncer.api import *

class Widgets(Mirror):
    \"\"\"Copies widgets.\"\"\"

    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
    down = ("spec",)
"""

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin for a kind that neither cluster serves."""
    (tmp_path / "widgets_plugin.py").write_text(WIDGETS)
    info = tmp_path / "widgets_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: widgets-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[syncer.syncers]\nwidgets = widgets_plugin:Widgets\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def degraded(daemon: Process) -> dict[str, str]:
    """Return the degraded syncers of ``/readyz?verbose``, but for pods: in some networks a server answers at
    the address that is given to them, and isn't theirs.
    """
    found = dict(re.findall(r"^\[!\]\w+/(\S+) degraded: (.*)$", daemon.readyz()[1], re.MULTILINE))
    return {syncer: why for syncer, why in found.items() if syncer != "pods"}


def test_a_missing_right_or_kind_degrades_that_kind_only_and_heals_without_a_restart(
    scene: Scene, plugin: None
) -> None:
    namespace = scene.namespace()
    everything, own = {"all": True}, {"clusterIP": "own"}
    kinds = {"configMaps": everything, "secrets": everything, "services": own, "widgets": {"enabled": True}}
    daemon = scene.daemon(scene.config(user="alice", sync={"toHost": kinds}))
    scene.grant(daemon, "alice", without="configmaps")
    daemon.start()
    pid = daemon.pid
    for obj in (
        configmap("a", namespace=namespace),
        secret("a", namespace=namespace),
        service("a", namespace=namespace),
    ):
        scene.virtual.create(obj)
    for kind in ("Secret", "Service"):
        scene.copied(kind, Key(namespace, "a"))
    assert daemon.readyz()[0] == 200
    found = degraded(daemon)
    assert found.keys() == {"configmaps", "widgets"}
    assert found["configmaps"] == "Forbidden", "anybody may read that page"
    reasons = {row["syncer"]: row["reason"] for row in json.loads(daemon.run("status", "-o", "json").stdout)}
    assert 'rule for alice: {apiGroups: [""], resources: ["configmaps"], verbs: ["list"]}' in reasons["configmaps"]
    assert "the host cluster does not serve widgets.example.org" in found["widgets"]
    assert scene.copy("ConfigMap", Key(namespace, "a")) is None

    scene.grant(daemon, "alice")
    for api in (scene.virtual, scene.host):
        api.plane.kubectl("apply", "-f", "-", stdin=CRD)
    scene.copied("ConfigMap", Key(namespace, "a"))
    eventually(lambda: degraded(daemon) == {}, "nothing is degraded any more")
    widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    path = "/apis/example.org/v1/namespaces/{}/widgets"
    assert scene.virtual.plane.request("POST", path.format(namespace), widget)[0] == 201
    copies = path.format(scene.host_namespace)
    eventually(lambda: scene.host.plane.request("GET", copies)[1]["items"], "the widget is on the host")
    assert (daemon.pid, daemon.process and daemon.process.poll()) == (pid, None)
