"""The guide of charts/syncer, command by command, on a real host. No kubelet runs there; a thread does its work."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from api import PATIENCE, Api, eventually
from installed import CHART, ELECTION, RELEASE, USER, Release, Replica
from scene import API_SERVER, Scene

from hack.bench.daemon import SYNCER
from hack.realnode import builds
from syncer.api import Key, Obj
from syncer.testing.objects import service

pytestmark = pytest.mark.controlplane

GUIDE = (CHART / "README.md").read_text().partition("## Install\n")[2].partition("## Values\n")[0]
COMMANDS = re.findall(r"^\$ (.*?)(?: +#.*)?$", GUIDE, re.MULTILINE)
VALUES = re.findall(r"```yaml\n# values.yaml\n(.*?)```", GUIDE, re.DOTALL)
#: They ask a registry, or a kubelet for a connection.
_NOT_HERE = ("docker pull", "curl ", "kubectl -n vc-shop-plane port-forward")
_PLANE = "vc-shop-plane"
_DAEMONS = "vsyncer.dev/part=syncer"


class Kubelet(threading.Thread):
    """Runs the containers of a release's pods and says so in their status, as a kubelet does."""

    def __init__(self, release: Release) -> None:
        super().__init__(daemon=True)
        self._release = release
        self._end = threading.Event()
        self._daemons: dict[str, Replica] = {}
        self._ready: set[str] = set()
        self._ran: set[str] = set()
        self.problems: list[str] = []

    def daemon_of_a_pod(self) -> Replica:
        """Return one that runs."""
        return next(iter(self._daemons.values()))

    def stop(self) -> None:
        """End the thread and what it has started."""
        self._end.set()
        self.join(PATIENCE)
        for daemon in self._daemons.values():
            daemon.stop()

    def run(self) -> None:
        """Do what there is to do, until the end."""
        while not self._end.wait(0.1):
            try:
                self._look()
            except Exception as error:
                self.problems.append(repr(error))
                return

    def _look(self) -> None:
        pods = {str(each["metadata"]["uid"]): each for each in self._release.objects("pods")}
        for uid in self._daemons.keys() - pods.keys():
            self._daemons.pop(uid).stop()
        for uid, pod in pods.items():
            if pod["metadata"]["labels"]["vsyncer.dev/part"] == "syncer":
                self._keep(uid, pod)
            elif uid not in self._ran:
                self._ran.add(uid)
                self._run(pod)

    def _keep(self, uid: str, pod: Obj) -> None:
        name = pod["metadata"]["name"]
        if uid not in self._daemons:
            self._daemons[uid] = self._release.replica(pod)
            self._daemons[uid].spawn()
            self._report(name)
        elif uid not in self._ready and self._daemons[uid].readyz()[0] == 200:
            self._ready.add(uid)
            self._report(name, ready=True)

    def _report(self, name: str, *, ready: bool = False) -> None:
        with suppress(AssertionError):  # a pod may have gone meanwhile
            self._release.report(name, "Running", ready=ready)

    def _run(self, pod: Obj) -> None:
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            if "kubectl" in container["image"]:
                self._release.run_kubectl(pod, container)
            else:
                done = self._release.replica(pod, container).once()
                assert done.returncode == 0, (container["name"], done.stdout, done.stderr)
        self._release.report(pod["metadata"]["name"], "Succeeded")


class Reader:
    """Somebody who types the commands of the guide, in a checkout with the files that it names."""

    def __init__(self, release: Release, kubelet: Kubelet, folder: Path) -> None:
        self._release, self._kubelet, self._folder = release, kubelet, folder
        scene = release.scene
        (folder / "charts").symlink_to(CHART.parent)
        (folder / "shop.kubeconfig").write_text(scene.virtual.plane.kubeconfig(USER).read_text())
        (folder / "admin.kubeconfig").write_text(scene.virtual.plane.kubeconfig().read_text())
        programs = folder / "bin"
        programs.mkdir()
        for name, command in (("helm", (str(builds.tool("helm")),)), ("kubectl", scene.host.plane.kubectl_command)):
            (programs / name).write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
            (programs / name).chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KUBECONFIG": str(scene.host.plane.kubeconfig()),
        }

    def type(self, command: str) -> str:
        """Run a command of the guide; return what it says."""
        before, inside, rest = command.partition(" exec deployment/syncer-shop -- ")
        if not inside:
            return self._shell(command)
        assert before == f"kubectl -n {_PLANE}"
        there, _, then = rest.partition(" | ")
        program, *arguments = there.split()
        assert program == "syncer"
        environment = self._kubelet.daemon_of_a_pod().environment()
        done = subprocess.run(
            [SYNCER, *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        said = self._shell(then, done.stdout)
        self._release.scene.give(self._release.scene.virtual, done.stdout)  # until the end of the scene
        return said

    def _shell(self, command: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr, self._kubelet.problems)
        return done.stdout


@pytest.fixture
def release(apis: tuple[Api, Api], chart_host: Api, tmp_path: Path) -> Iterator[Release]:
    """The release of the guide, of which nothing is there yet."""
    scene = Scene(apis[0], chart_host, tmp_path)
    yield Release(scene, tmp_path, namespace=_PLANE)
    scene.close()


@pytest.fixture
def kubelet(release: Release) -> Iterator[Kubelet]:
    """The pods of the release run."""
    made = Kubelet(release)
    made.start()
    yield made
    made.stop()


def test_each_command_of_the_guide_works_as_it_is_typed(release: Release, kubelet: Kubelet, tmp_path: Path) -> None:
    reader, virtual, host = Reader(release, kubelet, tmp_path), release.scene.virtual, release.scene.host
    [values] = map(yaml.safe_load, VALUES)
    # The server of the kubeconfig is on this machine's loopback here; the rest is for the test's sake.
    config = {"networking": {"apiServer": {"host": API_SERVER}}, "leaderElection": ELECTION, "control": {"socket": "0"}}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({**values, "config": config}))
    typed = [each for each in COMMANDS if not each.startswith(_NOT_HERE)]
    again = [next(each for each in typed if part in each) for part in ("helm install", "rollout status")]
    place = release.scene.namespace("guide")
    uninstalled = 0

    def copy(name: str) -> Obj | None:
        return host.get("Service", Key("vc-shop", f"{name}-x-{place}-x-shop"))

    for command in typed:
        if uninstalled and command.startswith("helm upgrade"):
            assert copy("before") is not None, "the copies stay for a daemon that comes later"
            for each in again:
                reader.type(each)
        if " wait pod " in command:
            eventually(lambda: release.objects("pods", _DAEMONS), "there are pods, as nobody types so fast")
        said = reader.type(command)
        if command.startswith("kubectl -n vc-shop get lease"):
            assert f" {_PLANE}/{RELEASE}-" in said, "the holder bears the name of the release"
            virtual.create(service("before", namespace=place))
            eventually(lambda: copy("before"), "the guide's daemon copies")
        uninstalled += command.startswith("helm uninstall")
    assert uninstalled == 2
    assert copy("before") is None, "the hook has removed the copies"
    assert not kubelet.problems
