"""`syncer patrol` on real API servers: what kubectl has changed by hand is named, with kubectl, and put right."""

import json
from dataclasses import dataclass

import pytest
from api import eventually
from scene import Scene

from syncer.api import Key, Obj
from syncer.testing.objects import configmap, secret, service

pytestmark = pytest.mark.controlplane

ALL = {"toHost": {"configMaps": {"all": True}, "secrets": {"all": True}}}


@dataclass
class Shop:
    """Objects of a tenant with the copies that a user of the host works on with kubectl."""

    scene: Scene
    namespace: str

    @classmethod
    def open(cls, scene: Scene) -> "Shop":
        """Let the tenant have some."""
        shop = cls(scene, scene.namespace())
        for obj in (
            configmap("settings", {"color": "blue"}, namespace=shop.namespace),
            secret("login", {"password": "old"}, namespace=shop.namespace),
            service("web", [80], namespace=shop.namespace),
            configmap("lost", namespace=shop.namespace),
            configmap("left", namespace=shop.namespace),
        ):
            scene.virtual.create(obj)
        return shop

    def patch(self, kind: str, name: str, change: Obj) -> Key:
        """Change a copy; gives its place."""
        return self._kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(change))

    def delete(self, kind: str, name: str) -> Key:
        """Delete a copy; gives its place."""
        return self._kubectl("delete", kind, name)

    def _kubectl(self, verb: str, kind: str, name: str, *more: str) -> Key:
        host_key = self.scene.host_key(kind, Key(self.namespace, name))
        self.scene.host.plane.kubectl("-n", host_key.namespace, verb, kind, host_key.name, *more)
        return host_key


def test_a_scan_reports_and_repairs_changes_by_kubectl(scene: Scene) -> None:
    shop, daemon = Shop.open(scene), scene.daemon(scene.config(sync=ALL))
    namespace = shop.namespace
    assert daemon.run("run", "--once").returncode == 0

    settings = shop.patch("ConfigMap", "settings", {"data": {"color": "red"}})
    login = shop.patch("Secret", "login", {"data": {"password": "bmV3ZXI="}})
    web = shop.patch("Service", "web", {"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})
    lost = shop.delete("ConfigMap", "lost")
    scene.virtual.delete("ConfigMap", Key(namespace, "left"))
    left = scene.host_key("ConfigMap", Key(namespace, "left"))

    report = daemon.folder / "report.json"
    done = daemon.run("patrol", "--once", "--diff", "--report", str(report))
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

    again = daemon.run("patrol", "--once")
    assert again.returncode == 0, again
    assert again.stdout.startswith("nothing has drifted of "), again.stdout


def test_the_daemon_reports_its_scans_over_its_socket(scene: Scene) -> None:
    daemon = scene.start(scene.config(sync=ALL, patrol={"interval": "1s", "fresh": "1s"}))
    namespace = scene.namespace()
    scene.virtual.create(configmap("settings", {"color": "blue"}, namespace=namespace))
    scene.copied("ConfigMap", Key(namespace, "settings"))

    def has_report() -> bool:
        done = daemon.run("patrol", "ConfigMap")
        return done.returncode == 0 and "looked at" in done.stdout and "nothing has drifted of " in done.stdout

    eventually(has_report, "a report of the daemon's patroller says so")
    assert daemon.run("patrol", "--confirm").stdout == "nothing is held\n"
    unknown = daemon.run("patrol", "gizmos")
    assert unknown.returncode == 1
    assert "gizmos" in unknown.stderr
    labels = f'cluster="{scene.name}",result="verified",syncer="configmaps"'
    assert daemon.samples()["syncer_patrol_pairs_total", labels] > 0
