"""The guide of charts/syncer, command by command, on a real host. No kubelet runs there; a thread does its work."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import yaml
from api import PATIENCE, Api, eventually
from installed import CHART, ELECTION, RELEASE, USER, Release, Replica
from scene import API_SERVER, Scene

from hack.bench.daemon import SYNCER
from hack.realnode import builds
from syncer.api import Key, NotFound, Obj
from syncer.engine.stores import identity as claim
from syncer.testing.objects import configmap, service

pytestmark = pytest.mark.controlplane

GUIDE = (CHART / "README.md").read_text().partition("## Install\n")[2].partition("## Values\n")[0]
COMMANDS = re.findall(r"^\$ (.*?)(?: +#.*)?$", GUIDE, re.MULTILINE)
VALUES = {
    file: yaml.safe_load(text) for file, text in re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", GUIDE, re.DOTALL)
}
#: They ask a registry, or a kubelet for a connection.
_NOT_HERE = ("docker pull", "curl ", "kubectl -n vc-shop-plane port-forward")
_PLANE = "vc-shop-plane"
#: What is copied of a Service and a ConfigMap that nothing uses.
_COPIED = {"shop": ["Service"], "bank": ["ConfigMap", "Service"]}
#: What the guide has in the container of a daemon, such as that for `shop`.
_INSIDE = re.compile(rf"kubectl -n {_PLANE} exec deployment/{RELEASE}-(\w+) -- syncer (.*?) \| (.*)")


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

    def daemon_for(self, cluster: str) -> Replica:
        """Return one that runs."""
        return next(each for each in self._daemons.values() if each.name.startswith(f"{RELEASE}-{cluster}-"))

    def stop(self) -> None:
        """End the thread and its processes."""
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
        pods = {str(each["metadata"]["uid"]): each for each in self._release.objects("Pod")}
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
        with suppress(NotFound):  # a pod may have gone meanwhile
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

    def __init__(self, scenes: Mapping[str, Scene], kubelet: Kubelet, folder: Path) -> None:
        self._scenes, self._kubelet, self._folder = scenes, kubelet, folder
        self._namespaces: dict[str, str] = {}
        shutil.copytree(CHART.parent, folder / "charts")
        for name, scene in scenes.items():
            admin = "admin" if name == "shop" else f"{name}-admin"
            (folder / f"{name}.kubeconfig").write_text(scene.virtual.plane.kubeconfig(USER).read_text())
            (folder / f"{admin}.kubeconfig").write_text(scene.virtual.plane.kubeconfig().read_text())
        programs, host = folder / "bin", scenes["shop"].host
        programs.mkdir()
        for name, command in (
            ("helm", (str(builds.tool("helm")),)),
            ("kubectl", host.plane.kubectl_command),
            ("syncer", (SYNCER,)),
        ):
            (programs / name).write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
            (programs / name).chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KUBECONFIG": str(host.plane.kubeconfig()),
        }

    def make(self, cluster: str) -> None:
        """Make a Service and a ConfigMap in a virtual cluster."""
        namespace = self._namespaces[cluster] = self._scenes[cluster].namespace("guide")
        for obj in (service("before", namespace=namespace), configmap("before", namespace=namespace)):
            self._scenes[cluster].virtual.create(obj)

    def copied(self, cluster: str) -> list[str]:
        """Return which of them have copies."""
        key = Key(f"vc-{cluster}", f"before-x-{self._namespaces[cluster]}-x-{cluster}")
        return [kind for kind in ("ConfigMap", "Service") if self._scenes[cluster].host.get(kind, key) is not None]

    def sees_copies(self, cluster: str) -> bool:
        """Return True if those have copies that the values are for."""
        return self.copied(cluster) == _COPIED[cluster]

    def type(self, command: str) -> str:
        """Run a command of the guide; return its output."""
        inside = _INSIDE.fullmatch(command)
        if not inside:
            return self._shell(command)
        cluster, arguments, then = inside.groups()
        environment, scene = self._kubelet.daemon_for(cluster).environment(), self._scenes[cluster]
        done = subprocess.run(
            [SYNCER, *arguments.split()], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        text = self._shell(then, done.stdout)
        scene.give(scene.virtual, done.stdout)  # until the end of the scene
        return text

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
def bank(apis: tuple[Api, Api], chart_host: Api, tmp_path: Path) -> Iterator[Scene]:
    """The second virtual cluster of the guide."""
    folder = tmp_path / "bank"
    folder.mkdir()
    scene = Scene(apis[1], chart_host, folder)
    yield scene
    scene.close()


@pytest.fixture
def kubelet(release: Release) -> Iterator[Kubelet]:
    """The pods of the release run."""
    made = Kubelet(release)
    made.start()
    yield made
    made.stop()


def test_each_command_of_the_guide_works_as_it_is_typed(
    release: Release, bank: Scene, kubelet: Kubelet, tmp_path: Path
) -> None:
    reader = Reader({"shop": release.scene, "bank": bank}, kubelet, tmp_path)
    # The server of the kubeconfig is on this machine's loopback here; the rest is for the test's sake.
    config = {"networking": {"apiServer": {"host": API_SERVER}}, "leaderElection": ELECTION, "control": {"socket": "0"}}
    for file, values in VALUES.items():
        (tmp_path / file).write_text(yaml.safe_dump({**values, "config": config}))
    typed = [each for each in COMMANDS if not each.startswith(_NOT_HERE)]
    again = [next(each for each in typed if part in each) for part in ("helm install", "rollout status")]
    uninstalled, served = 0, list[str]()

    for command in typed:
        if uninstalled and command.startswith("helm upgrade"):
            assert reader.sees_copies("shop"), "the copies stay for a daemon that comes later"
            for each in again:
                reader.type(each)
        if found := re.search(r" wait pod --selector (\S+) .*Running", command):
            selected = partial(release.objects, "Pod", found[1])
            eventually(selected, "there are pods, as nobody types so fast")
        if command.startswith("syncer uninstall"):
            assert reader.sees_copies("bank"), "the copies stay without the daemon"
        text = reader.type(command)
        if found := re.search(r" --values (\S+)", command):
            served = sorted(each["name"] for each in VALUES[found[1]]["virtualClusters"])
        elif command.startswith("helm test"):
            assert re.findall(r"TEST SUITE: +(\S+)", text) == [f"{RELEASE}-{each}-test" for each in served]
        elif " get deployment " in command:
            ready = re.findall(r"^(\S+) +(\d/\d) ", text, re.MULTILINE)
            assert ready == [(f"{RELEASE}-{each}", "2/2") for each in served]
        elif found := re.search(r" get lease vsyncer-(\w+)", command):
            assert f" {_PLANE}/{RELEASE}-{found[1]}-" in text, "the holder bears the names of the release and the entry"
            reader.make(found[1])
            eventually(partial(reader.sees_copies, found[1]), "the guide's daemon copies")
        elif command.startswith("syncer uninstall"):
            assert "not finished" not in text
            assert reader.copied("bank") == []
            assert reader.sees_copies("shop"), "the copies of the other one stay"
            assert bank.virtual.get("ConfigMap", claim.NOTE_KEY) is None
            assert bank.host.get("Lease", Key("vc-bank", "vsyncer-bank")) is None
        uninstalled += command.startswith("helm uninstall")
    assert uninstalled == 2
    assert reader.copied("shop") == [], "the hook has removed the copies"
    assert not kubelet.problems
