"""`syncer patrol` on real API servers: what kubectl has changed by hand is named, with kubectl, and put right."""

import json
import subprocess

import pytest
from api import eventually
from scene import Process, Scene

from syncer.api import Key, Obj
from syncer.testing.objects import configmap, secret, service

pytestmark = pytest.mark.real

ALL = {"toHost": {"configMaps": {"all": True}, "secrets": {"all": True}}}


def syncer(daemon: Process, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    daemon.write()
    first, *rest = arguments
    command = [*daemon.command, first, "--config", str(daemon.file), *rest]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_scan_says_what_kubectl_has_changed_and_puts_it_right(scene: Scene) -> None:
    namespace, daemon = scene.namespace(), scene.daemon(scene.config(sync=ALL))
    for obj in (
        configmap("settings", {"color": "blue"}, namespace=namespace),
        secret("login", {"password": "old"}, namespace=namespace),
        service("web", [80], namespace=namespace),
        configmap("lost", namespace=namespace),
        configmap("left", namespace=namespace),
    ):
        scene.virtual.create(obj)
    assert syncer(daemon, "run", "--once").returncode == 0

    def patch(kind: str, name: str, change: Obj) -> Key:
        place = scene.host_key(kind, Key(namespace, name))
        scene.host.plane.kubectl(
            "-n", place.namespace, "patch", kind, place.name, "--type=merge", "-p", json.dumps(change)
        )
        return place

    settings = patch("ConfigMap", "settings", {"data": {"color": "red"}})
    login = patch("Secret", "login", {"data": {"password": "bmV3ZXI="}})
    web = patch("Service", "web", {"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})
    lost = scene.host_key("ConfigMap", Key(namespace, "lost"))
    scene.host.plane.kubectl("-n", lost.namespace, "delete", "configmap", lost.name)
    scene.virtual.delete("ConfigMap", Key(namespace, "left"))
    left = scene.host_key("ConfigMap", Key(namespace, "left"))

    report = daemon.folder / "report.json"
    done = syncer(daemon, "patrol", "--once", "--diff", "--report", str(report))
    print(done.stdout)
    assert done.returncode == 0, done
    for line in (
        f"repaired: host configmaps {settings}, of {namespace}/settings: field: data.color\n",
        '    data.color: "blue" -> "red"  changed by kubectl-patch at 20',
        f"repaired: host secrets {login}, of {namespace}/login: field: data.password\n",
        "    data.password: (4 bytes) -> (8 bytes)  changed by kubectl-patch at 20",
        f"repaired: host services {web}, of {namespace}/web: field: spec.ports[0].",
        "    spec.ports[0].port: 80 -> 8080  changed by kubectl-patch at 20",
        f"repaired: host configmaps {lost}, of {namespace}/lost: missing\n",
        f"repaired: host configmaps {left}, of {namespace}/left: orphan\n",
        "5 drifted of ",
    ):
        assert line in done.stdout
    assert "bmV3ZXI=" not in done.stdout + done.stderr + report.read_text()
    copy = scene.copy("ConfigMap", Key(namespace, "settings"))
    assert copy
    assert copy["data"] == {"color": "blue"}

    again = syncer(daemon, "patrol", "--once")
    assert again.returncode == 0, again
    assert again.stdout.startswith("nothing has drifted of "), again.stdout


def test_the_daemon_tells_of_its_scans_over_its_socket(scene: Scene) -> None:
    config = scene.config(sync=ALL, patrol={"interval": "1s", "fresh": "1s"})
    config["control"] = {"socket": str(scene.daemon().folder / "control.sock")}
    daemon = scene.start(config)
    namespace = scene.namespace()
    scene.virtual.create(configmap("settings", {"color": "blue"}, namespace=namespace))
    scene.copied("ConfigMap", Key(namespace, "settings"))

    def told() -> str | None:
        done = syncer(daemon, "patrol", "ConfigMap")
        return done.stdout if done.returncode == 0 and "looked at" in done.stdout else None

    assert "nothing has drifted of " in eventually(told, "a report of the daemon's patroller")
    assert syncer(daemon, "patrol", "--confirm").stdout == "nothing is held\n"
    unknown = syncer(daemon, "patrol", "gizmos")
    assert unknown.returncode == 1
    assert "gizmos" in unknown.stderr
    assert daemon.samples()["syncer_patrol_pairs_total", 'result="verified",syncer="configmaps"'] > 0
