"""Backup, loss and restore of a virtual cluster's etcd, with etcdctl and etcdutl, while the daemon runs on."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from api import Api, Loop, eventually
from scene import Scene

from hack.bench.daemon import Process
from hack.kubelet import Kubelet
from hack.planes import HOST_CONTROLLERS, VIRTUAL_CONTROLLERS
from kube_envtest import ControlPlane, Programs, start_all
from syncer.api import Key, Obj, Side, key_of, uid_of
from syncer.testing.objects import configmap, pod_mounting

pytestmark = pytest.mark.controlplane

KINDS = ("ConfigMap", "Secret", "Service", "Pod")
#: Nothing that a list lacks is deleted before a person has confirmed it: what the chart sets for a restore.
NO_DELETIONS = {"breaker": {"percent": 0, "count": 0}}
#: Longer than an unconfirmed deletion waits after a list.
LONG = 8.0


@pytest.fixture
def scene(loop: Loop, tmp_path: Path, control_plane_programs: Programs) -> Iterator[Scene]:
    """A virtual cluster with an etcd of its own that may be lost, and its host with a kubelet."""
    virtual = ControlPlane("virtual", programs=control_plane_programs, controllers=VIRTUAL_CONTROLLERS)
    host = ControlPlane("host", programs=control_plane_programs, controllers=HOST_CONTROLLERS)
    start_all(virtual, host)
    made = Scene(Api(loop, virtual, Side.VIRTUAL), Api(loop, host, Side.HOST), tmp_path)
    playing = loop.start(Kubelet(made.host.cluster, made.host_namespace).run())
    yield made
    for daemon in made.daemons:
        print(daemon.log_text()[-8000:])
        daemon.kill()
    for api in made.sides:
        api.close()
        api.plane.stop()
    loop.end(playing)


def copies(scene: Scene) -> dict[tuple[str, Key], tuple[str, str]]:
    """Return uid and resourceVersion of each copy."""
    return {
        (kind, key_of(obj)): (uid_of(obj), obj["metadata"]["resourceVersion"])
        for kind in KINDS
        for obj in scene.host.list(kind, selector=scene.selector)
    }


def saved(scene: Scene, folder: Path) -> Path:
    """Return a snapshot of the virtual cluster's etcd, made while nothing changes."""
    file = folder / "snapshot.db"
    scene.virtual.plane.save_etcd(file)
    return file


def running_shop(scene: Scene) -> tuple[str, Obj]:
    """Return a namespace with one of each kind, and its Pod, which is Ready."""
    shop = scene.shop(settings="settings", login="login")
    return shop, scene.ready(Key(shop, "web"))


def agree(scene: Scene) -> None:
    """Wait until both sides agree, but for what Kubernetes itself puts into each namespace."""
    eventually(
        lambda: not [line for line in scene.disagreements() if "kube-root-ca.crt" not in line], "both sides agree"
    )


def again(scene: Scene, shop: str) -> None:
    """Wait until changes go down again."""
    scene.virtual.create(configmap("afterwards", namespace=shop))
    scene.copied("ConfigMap", Key(shop, "afterwards"))


def stopped_deletions(daemon: Process) -> float:
    return daemon.requests("syncer_deletions_held", side="host")


def test_loss_and_restore_touch_no_copy(scene: Scene, tmp_path: Path) -> None:
    """The state of the backup is that of the loss: uid and version of each copy stay, those of Pods, too."""
    daemon = scene.start()
    shop, _ = running_shop(scene)
    agree(scene)
    snapshot, before = saved(scene, tmp_path), copies(scene)

    scene.virtual.plane.replace_etcd(None)
    assert scene.virtual.get("Pod", Key(shop, "web")) is None
    lost = Key("kube-system", "lost")
    scene.virtual.create(configmap("lost", namespace="kube-system"))
    scene.copied("ConfigMap", lost)  # the daemon has listed what is left, and is at work
    time.sleep(LONG)
    assert {path: copies(scene).get(path) for path in before} == before
    assert daemon.requests("syncer_parked", reason="IdentityLost") > 0

    second = scene.daemon()
    with pytest.raises(SystemExit, match="was never synced as that, or has lost its data"):
        second.start()

    scene.virtual.plane.replace_etcd(snapshot)
    scene.gone("ConfigMap", lost)
    agree(scene)
    again(scene, shop)
    assert {path: copies(scene).get(path) for path in before} == before
    eventually(lambda: daemon.requests("syncer_parked") == 0, "nothing is parked")
    eventually(lambda: daemon.readyz()[0] == 200, "the daemon is ready")


def test_copies_that_are_younger_than_the_backup_stay_until_a_person_confirms(scene: Scene, tmp_path: Path) -> None:
    daemon = scene.start(scene.config(patrol=NO_DELETIONS))
    shop, _ = running_shop(scene)
    scene.virtual.create(configmap("gone", namespace=shop))
    agree(scene)
    snapshot = saved(scene, tmp_path)
    old = copies(scene)

    young = pod_mounting("young", secret="login", configmap="settings", namespace=shop)
    scene.virtual.create(young)
    scene.ready(Key(shop, "young"))
    scene.virtual.create(configmap("young", namespace=shop))
    scene.virtual.patch("ConfigMap", Key(shop, "settings"), {"data": {"changed": "since"}})
    scene.virtual.delete("ConfigMap", Key(shop, "gone"))
    agree(scene)
    since = copies(scene)

    scene.virtual.plane.replace_etcd(snapshot)
    settings = eventually(lambda: scene.virtual.get("ConfigMap", Key(shop, "settings")), "the settings are back")
    scene.copied("ConfigMap", Key(shop, "settings"), "data", settings["data"])
    scene.copied("ConfigMap", Key(shop, "gone"))
    eventually(lambda: stopped_deletions(daemon) >= 2, "deletions are held")
    time.sleep(LONG)
    now = copies(scene)
    kept = [
        *old.keys() & since.keys(),
        *((kind, scene.host_key(kind, Key(shop, "young"))) for kind in ("Pod", "ConfigMap")),
    ]
    assert {path: now[path][0] for path in kept} == {path: since[path][0] for path in kept}
    assert now["Pod", scene.host_key("Pod", Key(shop, "web"))] == since["Pod", scene.host_key("Pod", Key(shop, "web"))]

    done = subprocess.run(
        [*daemon.command, "patrol", "--confirm", "--config", str(daemon.file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    scene.gone("Pod", Key(shop, "young"))
    scene.gone("ConfigMap", Key(shop, "young"))
    agree(scene)
    assert (
        copies(scene)["Pod", scene.host_key("Pod", Key(shop, "web"))]
        == since["Pod", scene.host_key("Pod", Key(shop, "web"))]
    )
