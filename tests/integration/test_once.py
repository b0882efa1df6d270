"""`syncer run --once` brings both sides in step and ends; `--dry-run` lists its writes, and makes none."""

import pytest
from api import RESOURCES
from scene import OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from syncer.api import Key, uid_of
from syncer.testing.objects import secret, service

pytestmark = pytest.mark.controlplane

#: All that a daemon could write.
KINDS = ("ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "Event", "Node", "Lease")


def shop(scene: Scene) -> str:
    """Return a namespace with one of each, as a tenant has it before anything was synced."""
    return scene.shop(settings="settings", login="login")


@pytest.fixture
def daemon(scene: Scene) -> Process:
    """Not started; it copies what pods use."""
    return scene.daemon(scene.config(sync=OWN_ADDRESSES))


def test_once_brings_both_sides_in_step_and_lists_its_writes(scene: Scene, daemon: Process) -> None:
    namespace = shop(scene)
    done = daemon.run("run", "--once")
    assert done.returncode == 0, done
    for line in ("configmaps: create on the host side: ", "pods: create on the host side: 1", "pods: in step: 1"):
        assert f"{scene.name}/{line}" in done.stdout
    for kind, name in (("ConfigMap", "settings"), ("Secret", "login"), ("Service", "web"), ("Pod", "web")):
        assert scene.copy(kind, Key(namespace, name)) is not None
    before = scene.versions(*KINDS)
    again = daemon.run("run", "--once")
    assert scene.versions(*KINDS) == before
    assert again.returncode == 0
    assert "create" not in again.stdout


def test_once_lists_objects_that_stay_out_of_step(scene: Scene, daemon: Process) -> None:
    namespace = scene.namespace()
    host_key = scene.host_key("Service", Key(namespace, "taken"))
    scene.host.create(service(host_key.name, namespace=host_key.namespace))
    scene.virtual.create(service("taken", namespace=namespace))
    scene.virtual.create(service("free", namespace=namespace))
    done = daemon.run("run", "--once")
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if line.startswith("not in step: ")]
    assert line.startswith(
        f"not in step: {scene.name}/services {namespace}/taken: the host cluster has a Service {host_key} that is not"
    )
    assert scene.copy("Service", Key(namespace, "free")) is not None


def test_dry_run_lists_its_writes_and_makes_none(scene: Scene, daemon: Process) -> None:
    namespace = shop(scene)
    before = scene.versions(*KINDS)
    done = daemon.run("run", "--dry-run")
    assert scene.versions(*KINDS) == before
    assert done.returncode == 0, done
    would = [line for line in done.stdout.splitlines() if line.startswith("would ")]
    for kind, name in (("ConfigMap", "settings"), ("Secret", "login"), ("Service", "web"), ("Pod", "web")):
        host_key = scene.host_key(kind, Key(namespace, name))
        assert would.count(f"would create {RESOURCES[kind].plural} {host_key} on the host side") == 1, done.stdout
    assert "Traceback" not in done.stderr
    print(done.stdout)


def test_dry_run_shows_changes_and_deletions_too(scene: Scene, daemon: Process) -> None:
    namespace = shop(scene)
    assert daemon.run("run", "--once").returncode == 0
    scene.virtual.patch("ConfigMap", Key(namespace, "settings"), {"data": {"color": "red"}})
    scene.virtual.delete("Service", Key(namespace, "web"))
    again = scene.virtual.create(secret("again", namespace=namespace))
    assert uid_of(again)
    before = scene.versions(*KINDS)
    done = daemon.run("run", "--dry-run")
    assert scene.versions(*KINDS) == before
    settings, web = (
        scene.host_key(kind, Key(namespace, name)) for kind, name in (("ConfigMap", "settings"), ("Service", "web"))
    )
    would = sorted(line for line in done.stdout.splitlines() if line.startswith("would "))
    assert would == [
        f"would delete services {web} on the host side",
        f"would patch configmaps {settings} on the host side",
    ]
    assert daemon.run("run", "--once").returncode == 0
    after = daemon.run("run", "--dry-run")
    assert (after.returncode, "would" in after.stdout) == (0, False), after.stdout
