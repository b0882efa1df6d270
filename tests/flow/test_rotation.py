"""Kubeconfigs that change under a running daemon: a process of its own between two API servers, over TLS."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from harness import place

from hack.bench.daemon import Process
from kube_envtest import ADMIN, BackgroundApiServer, User
from syncer.testing.objects import configmap, namespace

pytestmark = pytest.mark.slow

DAEMON = User("syncer", ("system:masters", "system:authenticated"))
TOKENS = {"admin-token": ADMIN, "token-0": DAEMON}
HOME = "vc-ns"
#: Seconds between two rotations, and how many there are.
EVERY, ROTATIONS = 2.0, 4
#: Seconds, after which a test gives up.
PATIENCE = 120.0


def eventually(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.05)


class Scene:
    """A virtual cluster and its host, with the daemon's kubeconfig for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.virtual, self.host = (BackgroundApiServer(seed=each, tokens=TOKENS, tls=True) for each in ("v", "h"))
        for server, name in ((self.virtual, "virtual"), (self.host, "host")):
            server.start()
            server.kubeconfig(folder / name, DAEMON.name)
        self.host.put(namespace(HOME))
        self.virtual.put(namespace("shop"))
        config = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": "vc",
            "virtual": {"kubeconfig": str(folder / "virtual")},
            "host": {"kubeconfig": str(folder / "host"), "namespace": HOME},
            "networking": {"apiServer": {"host": "10.96.0.1"}},
            "sync": {"toHost": {"configMaps": {"all": True}}},
        }
        self.daemon = Process(config, folder)

    def replace_tokens(self, number: int) -> None:
        """Write another token into both kubeconfigs, and refuse the former one."""
        for server, name in ((self.virtual, "virtual"), (self.host, "host")):
            content = yaml.safe_load((self.folder / name).read_text())
            content["users"][0]["user"]["token"] = f"token-{number}"
            whole = self.folder / f"{name}.new"
            whole.write_text(yaml.safe_dump(content))
            whole.rename(self.folder / name)
            server.call(lambda each: each.replace_token(DAEMON.name, f"token-{number}"))

    def write(self, name: str) -> None:
        self.virtual.put(configmap(name, namespace="shop"))

    def is_copied(self, name: str) -> bool:
        return self.host.get("configmaps", place(name, "vc", HOME)) is not None

    def asked(self, verb: str) -> list[str]:
        """Return the paths that the daemon was told of with a verb on both servers, of objects."""
        return [
            each.path
            for server in (self.virtual, self.host)
            for each in server.call(lambda one: list(one.requests))
            if each.user == DAEMON.name and each.verb == verb and each.resource in ("configmaps", "pods", "namespaces")
        ]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    made.daemon.start()
    try:
        yield made
    finally:
        made.daemon.kill()
        made.virtual.stop()
        made.host.stop()


def test_tokens_rotated_under_load_cost_no_list_no_watch_and_no_event(scene: Scene) -> None:
    scene.write("first")
    eventually(lambda: scene.is_copied("first"), "the daemon works")
    lists, watches = len(scene.asked("list")), len(scene.asked("watch"))
    assert lists
    assert watches
    names: list[str] = []
    for number in range(1, ROTATIONS + 1):
        until = time.monotonic() + EVERY
        while time.monotonic() < until:
            names.append(f"c{len(names)}")
            scene.write(names[-1])
            time.sleep(0.05)
        scene.replace_tokens(number)
    scene.write("last")
    eventually(lambda: scene.is_copied("last"), "the daemon works with the last token")
    eventually(lambda: all(map(scene.is_copied, names)), "every event has led to a copy")
    assert (len(scene.asked("list")), len(scene.asked("watch"))) == (lists, watches)


def test_another_server_and_authority_is_a_new_start(scene: Scene) -> None:
    scene.write("first")
    eventually(lambda: scene.is_copied("first"), "the daemon works")
    former, authority = scene.virtual.url, scene.virtual.certificate
    process = scene.daemon.process
    scene.virtual.move()
    scene.virtual.kubeconfig(scene.folder / "virtual", DAEMON.name)
    assert scene.virtual.url != former
    assert scene.virtual.certificate != authority
    scene.write("second")
    eventually(lambda: scene.is_copied("second"), "the daemon follows")
    scene.daemon.wait_ready()
    assert process is scene.daemon.process
    assert process is not None
    assert process.poll() is None
    assert "a virtual cluster begins anew" in scene.daemon.log.read_text()
