"""Kubeconfigs that change under a running daemon: a process of its own between two API servers, over TLS."""

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from harness import host_path

from hack.bench.daemon import SYNCER, Process
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


def eventually(holds: Callable[[], object], expectation: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {expectation}"
        time.sleep(0.05)


def _is_up_of(side: str, line: str) -> bool:
    return line.startswith("syncer_cluster_up{") and f'side="{side}"' in line


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
        for name, server in self.servers.items():
            self.write_token(name, f"token-{number}")
            server.call(lambda each: each.replace_token(DAEMON.name, f"token-{number}"))

    @property
    def servers(self) -> Mapping[str, BackgroundApiServer]:
        """The API servers by side."""
        return {"virtual": self.virtual, "host": self.host}

    def write_token(self, side: str, token: str) -> None:
        """Write another token into a kubeconfig."""
        content = yaml.safe_load((self.folder / side).read_text())
        content["users"][0]["user"]["token"] = token
        whole = self.folder / f"{side}.new"
        whole.write_text(yaml.safe_dump(content))
        whole.rename(self.folder / side)

    def typed(self, *command: str) -> tuple[int, str]:
        """Return the exit status and the output of a command."""
        arguments = [SYNCER, *command, "--config", str(self.daemon.file)]
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def readyz(self) -> str:
        """Return the page about readiness, whatever its status is."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.daemon.health}/readyz?verbose", timeout=PATIENCE
            ) as page:
                return str(page.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def is_up(self, side: str) -> bool:
        """Return the value of the metric."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.daemon.port}/metrics", timeout=PATIENCE) as page:
            [line] = [one for one in page.read().decode().splitlines() if _is_up_of(side, one)]
        return bool(line.endswith(" 1.0"))

    def write(self, name: str) -> None:
        self.virtual.put(configmap(name, namespace="shop"))

    def is_copied(self, name: str) -> bool:
        return self.host.get("configmaps", host_path(name, "vc", HOME)) is not None

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
    assert "kubeconfig now leads to another server" in scene.daemon.log.read_text()


@pytest.mark.parametrize(("side", "row"), [("host", "host"), ("virtual", "virtual/vc")])
def test_rejected_credentials_show_everywhere_even_without_writes(scene: Scene, side: str, row: str) -> None:
    scene.write("first")
    eventually(lambda: scene.is_copied("first"), "the daemon works")
    assert f"[+]{row} ok" in scene.readyz()
    assert scene.is_up(side)
    assert scene.typed("config", "validate")[0] == 0
    scene.servers[side].call(lambda each: each.replace_token(DAEMON.name, "new"))
    eventually(lambda: f"[-]{row} failed: Unauthorized" in scene.readyz(), "readiness falls")
    assert not scene.is_up(side)
    table = scene.typed("clusters", "--no-headers")[1].split(maxsplit=2)
    assert table[:2] == ["vc", "silent"]
    assert f"the {side} cluster does not accept the daemon's credentials" in table[2]
    for shown in (table[2], scene.typed("status")[1]):
        assert f"answers 401: the credentials from {scene.folder / side}" in shown
    assert scene.typed("config", "validate")[0] == 1
    scene.write("second")
    scene.write_token(side, "new")
    eventually(lambda: scene.is_copied("second"), "the daemon works with the new token")
    assert f"[+]{row} ok" in scene.readyz()
    assert scene.is_up(side)
    assert scene.typed("config", "validate")[0] == 0
