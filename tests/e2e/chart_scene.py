"""A release of the chart on a node, as the tests of its outages use it: etcd's data and its backups are on volumes."""

import asyncio
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml
from node_scene import WEB, Node, Reached, running, until

from hack.chart_build import built
from hack.container.build import TAG
from hack.planes import BINARY
from hack.realnode import builds, charts, outside
from hack.realnode.inside import Failed
from hack.realnode.settings import NODE
from hack.webshop import chart as demo

RELEASE, NAMESPACE, NAME = demo.RELEASE, demo.NAMESPACE, demo.NAME
POD = f"{NAME}-control-plane-0"
WORKLOADS = f"{NAME}-workloads"
PLANE, SYNCER = f"statefulset/{NAME}-control-plane", f"deployment/{NAME}-syncer"
#: How many pods the tenant may have at once.
PODS = 10
#: Another tag of the daemon's image, for upgrades.
NEW_TAG = "upgraded"
#: The claims of etcd and of the backups.
CLAIMS = {"etcd": f"data-{POD}", "backup": f"{NAME}-backup"}
#: The spec of a pod that does nothing, and ends at once.
SLEEP: Mapping[str, Any] = {
    "terminationGracePeriodSeconds": 0,
    "containers": [{"name": "sleep", "image": "vsyncer.dev/busybox:local", "args": ["-c", "sleep 3600"]}],
}
#: How long helm may take, in seconds. It waits for nothing but the Jobs of an uninstall.
_HELM_SECONDS, _UNINSTALL_SECONDS = 60.0, 150.0
_STATUSES = ("initContainerStatuses", "containerStatuses")
#: How containerd's own client is called on the node.
CTR = ("ctr", "--address=/run/containerd/containerd.sock", "--namespace=k8s.io")


class Run(NamedTuple):
    """A pod on the host as it runs: another of its kind, or a container that was started again, differs."""

    uid: str
    containers: tuple[str, ...]
    restarts: int


class Chart(Reached):
    """A release of the chart on a node, whose tenant runs two pods of a web server."""

    def __init__(self, host: Node, folder: Path) -> None:
        self.host, self.folder = host, folder
        self._release = _Release(host.site, folder, (str(BINARY), "kubectl"), builds.tool("helm"))

    @property
    def kubeconfig(self) -> Path:
        """The tenant's kubeconfig."""
        return self._release.kubeconfig

    @contextmanager
    def running(self) -> Iterator[None]:
        """Install it, with the tenant's pods; at the end nothing of it is left.

        Raises:
            Failed: It doesn't start.
        """
        try:
            self._remove()  # of a run that was killed, on a node that goes on
            self.host.kubectl("apply", "-f", "-", stdin=self._make_volumes())
            asyncio.run(self._release.install())
            self.kubectl("delete", "pod", "first", "-n=default", "--now")
            with self.namespace("shop", WEB):
                running(self, "shop", "app=web", 2)
                yield
        finally:
            self._remove()

    def helm(self, *arguments: str, seconds: float = _HELM_SECONDS) -> str:
        """Run helm in the release's namespace; return its output.

        Raises:
            Failed: It failed.
            TimeoutError: It takes too long.
        """
        command = (*arguments, f"--namespace={NAMESPACE}")
        return asyncio.run(asyncio.wait_for(self._release.run_helm(*command), seconds))

    def upgrade(self, *settings: str) -> None:
        """Upgrade the release with changed values, as the chart's README says."""
        chart = str(built("virtual-cluster"))
        self.helm("upgrade", RELEASE, chart, "--reset-then-reuse-values", f"--set={','.join(settings)}")

    def own(self, *arguments: str) -> str:
        """Run kubectl in the release's namespace on the host; return its output.

        Raises:
            Failed: It failed.
        """
        return self.host.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def syncer(self, *arguments: str) -> str:
        """Run a command of the daemon's image beside the daemon; return its output, whether it finds fault or not."""
        command = self.host.command(f"--namespace={NAMESPACE}", "exec", SYNCER, "--", "syncer", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    def wait_until_ready(self) -> None:
        """Wait until the control plane and the daemon are what the release says, and ready."""
        for workload in (PLANE, SYNCER):
            self.own("rollout", "status", workload, "--timeout=90s")
        until("the virtual API server answers", self.answers)
        until("the virtual Nodes have the daemon's address", self._nodes_are_served)

    def runs(self) -> Mapping[str, Run]:
        """Return the tenant's pods on the host that run, by name."""
        return {
            pod["metadata"]["name"]: Run(
                pod["metadata"]["uid"],
                tuple(status["containerID"] for status in pod["status"]["containerStatuses"]),
                sum(status["restartCount"] for status in pod["status"]["containerStatuses"]),
            )
            for pod in self._pods()
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def run_pod(self, namespace: str, name: str, labels: Mapping[str, str] | None = None) -> str:
        """Run a pod that sleeps in the virtual cluster; return the name of its copy.

        Raises:
            Failed: The API server refused it, or didn't answer.
        """
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": SLEEP}
        self.kubectl("create", f"-n={namespace}", "--request-timeout=5s", "-f", "-", stdin=yaml.safe_dump(pod))
        return self.copy(namespace, name)

    def copy(self, namespace: str, name: str) -> str:
        """Return the name of a copy on the host."""
        return f"{name}-x-{namespace}-x-{NAME}"

    def kill(self, container: str) -> None:
        """Kill a container of the control plane or of the daemon, and wait until the kubelet has started it again.

        It may end by itself in the moment before, as etcd does without its files; it is started again all the same.
        """
        found = self._container(container)
        name = found["containerID"].removeprefix("containerd://")
        with suppress(Failed):
            outside.inside(self.host.site, [*CTR, "tasks", "kill", "--signal=SIGKILL", name])
        until(f"{container} runs again", lambda: self._container(container)["restartCount"] > found["restartCount"])

    def answers(self) -> bool:
        try:
            return self.kubectl("--request-timeout=5s", "get", "--raw=/readyz") == "ok"
        except Failed:
            return False

    def _nodes_are_served(self) -> bool:
        """Return True if a single daemon runs, and requests to the virtual Nodes' kubelets reach it: the daemon before
        it may have left its address there.
        """
        daemons = json.loads(self.own("get", "pods", "-l=vsyncer.dev/part=syncer", "-o=json"))["items"]
        nodes = json.loads(self.kubectl("get", "nodes", "-o=json"))["items"]
        addresses = {each["address"] for node in nodes for each in node["status"].get("addresses", ())}
        return len(daemons) == 1 and addresses <= {daemons[0]["status"].get("podIP")}

    def _container(self, name: str) -> Any:
        """Return the status of a container, which may be a native sidecar."""
        statuses = (pod["status"] for pod in json.loads(self.own("get", "pods", "-o=json"))["items"])
        found = (each for one in statuses for kind in _STATUSES for each in one.get(kind, ()))
        return next(each for each in found if each["name"] == name)

    @property
    def etcd(self) -> Path:
        """The folder of etcd's volume."""
        return self._volumes / "etcd"

    def _pods(self) -> list[Any]:
        items: list[Any] = json.loads(self.host.kubectl("get", "pods", "-n", WORKLOADS, "-o=json"))["items"]
        return items

    @property
    def _volumes(self) -> Path:
        return self.host.site.folder / "volumes"

    def _make_volumes(self) -> str:
        """Make the folders of both volumes; return their manifests."""
        found = []
        for name, claim in CLAIMS.items():
            (self._volumes / name).mkdir(parents=True)
            at_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": claim},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "capacity": {"storage": "5Gi"},
                        "claimRef": {"namespace": NAMESPACE, "name": claim},
                        "local": {"path": str(self._volumes / name)},
                        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [at_node]}]}},
                    },
                }
            )
        return yaml.safe_dump_all(found)

    def _remove(self) -> None:
        self.helm("uninstall", RELEASE, "--ignore-not-found", "--wait", seconds=_UNINSTALL_SECONDS)
        self.host.kubectl("delete", "namespace", NAMESPACE, WORKLOADS, "--ignore-not-found", "--timeout=60s")
        self.host.kubectl("delete", "persistentvolume", *CLAIMS.values(), "--ignore-not-found", "--timeout=30s")
        shutil.rmtree(self._volumes, ignore_errors=True)


def load_images(host: Node, folder: Path) -> None:
    """Load the images of the charts onto a node: those of the control plane, and the daemon's of this checkout.

    Raises:
        Failed: One can't be built.
    """
    archive = folder / "images.tar"
    charts.write_images(archive)
    outside.load(host.site, [archive, demo.daemon_image()])
    archive.unlink()
    other = f"{TAG.rpartition(':')[0]}:{NEW_TAG}"
    outside.inside(host.site, [*CTR, "images", "tag", "--force", TAG, other])


class _Release(demo.Release):
    """The demo's release on volumes, without what only the demo has, and with a quota that a test can fill."""

    def values(self) -> dict[str, object]:
        return {
            **super().values(),
            "etcd": {"persistence": {"enabled": True}},
            "workloads": {"resourceQuota": {"hard": {"pods": str(PODS)}}},
            "syncer": {"podDisruptionBudget": {"enabled": True}},
        }


class Load:
    """A tenant who makes ConfigMaps all the time while the block runs, and some pods, in the namespace ``load``."""

    #: A pod comes with each of so many ConfigMaps; at most so many pods; the pause between two requests in seconds.
    EVERY, PODS, PAUSE = 12, 4, 0.4

    def __init__(self, chart: Chart) -> None:
        self._chart, self._end = chart, threading.Event()
        self._thread = threading.Thread(target=self._make)
        #: The names of what the API server said that it has made.
        self.configmaps: list[str] = []
        self.pods: list[str] = []
        #: How often it refused, or didn't answer.
        self.refused = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=60)

    def _make(self) -> None:
        number = 0
        while not self._end.wait(self.PAUSE):
            name = f"load-{number}"
            try:
                self._chart.kubectl("-n=load", "--request-timeout=5s", "create", "configmap", name)
                self.configmaps.append(name)
                if number % self.EVERY == 0 and len(self.pods) < self.PODS:
                    self._chart.run_pod("load", name)
                    self.pods.append(name)
            except Failed:
                self.refused += 1
            number += 1
