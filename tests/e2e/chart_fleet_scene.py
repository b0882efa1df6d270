"""A release of charts/syncer with `fleet.enabled` on a node, and two virtual clusters whose daemon it is."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from chart_scene import CTR, SLEEP
from node_scene import Node, Reached, until

from hack.chart_build import built
from hack.realnode import builds, outside
from hack.realnode.inside import Failed

#: The release of the fleet, and its namespace.
FLEET = "fleet"
#: How long helm may take, in seconds.
_HELM_SECONDS = 120.0


class Member(Reached):
    """A virtual cluster on a node without a daemon of its own: a release of charts/virtual-cluster."""

    def __init__(self, host: Node, folder: Path, name: str, port: int) -> None:
        """Call it by this name, and reach it at this port of the node."""
        self.host, self.name, self.port = host, name, port
        self._kubeconfig = folder / f"{name}.kubeconfig"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the tenant."""
        return self._kubeconfig

    @property
    def cluster(self) -> str:
        """The name of the virtual cluster, and the beginning of the names of the release's objects."""
        return f"{self.name}-virtual-cluster"

    @property
    def workloads(self) -> str:
        """The host namespace of the copies."""
        return f"{self.cluster}-workloads"

    @property
    def secret(self) -> str:
        """The Secret by which the fleet finds it."""
        return f"{self.cluster}-daemon"

    def values(self) -> Mapping[str, Any]:
        """Return the values: the node has no storage, and the tests no name server."""
        address = self.host.site.addresses[1]
        return {
            "fleet": {"namespace": FLEET},
            "service": {"type": "NodePort", "nodePort": self.port},
            "apiServer": {"names": [address]},
            "kubeconfig": {"server": f"https://{address}:{self.port}"},
            "etcd": {"persistence": {"enabled": False}},
            "dns": {"enabled": False},
        }

    def fetch_kubeconfig(self) -> None:
        """Write the tenant's kubeconfig, and wait until the API server answers.

        Raises:
            Failed: The chart's Job doesn't make it.
        """
        secret = f"secret/{self.cluster}-kubeconfig"
        self.host.kubectl(f"-n={self.name}", "wait", secret, "--for=create", "--timeout=60s")
        path = "-o=go-template={{.data.config | base64decode}}"
        self._kubeconfig.write_text(self.host.kubectl(f"-n={self.name}", "get", secret, path))
        self._kubeconfig.chmod(0o600)
        until(f"{self.name} has its namespaces", self._answers)

    def run_pod(self, name: str) -> None:
        """Run a pod that sleeps, and wait until it runs and its Node's kubelet has an address, as the tenant sees it.

        The daemon gives none before the virtual cluster has signed a certificate for it.

        Raises:
            Failed: The API server refused it, or the pod doesn't run in time.
        """
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": SLEEP}
        self.kubectl("create", "-n=default", "-f", "-", stdin=yaml.safe_dump(pod))
        self.kubectl("wait", "-n=default", f"pod/{name}", "--for=condition=Ready", "--timeout=90s")
        addresses = "-o=jsonpath={.items[*].status.addresses[*].address}"
        until(f"{self.name}'s Nodes have addresses", lambda: bool(self.kubectl("get", "nodes", addresses)))

    def copies(self) -> Mapping[str, str]:
        """Return the uids of the pods on the host that run, by name."""
        pods = json.loads(self.host.kubectl("get", "pods", f"-n={self.workloads}", "-o=json"))["items"]
        running = (pod for pod in pods if pod["status"]["phase"] == "Running")
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in running
            if "deletionTimestamp" not in pod["metadata"]
        }

    def _answers(self) -> bool:
        try:
            return bool(self.kubectl("--request-timeout=5s", "get", "serviceaccount/default", "-n=default"))
        except Failed:
            return False


class Fleet:
    """A release of the chart on a node."""

    def __init__(self, host: Node, folder: Path, members: Sequence[Member]) -> None:
        self.host, self.members, self._folder = host, members, folder

    @contextmanager
    def running(self) -> Iterator[None]:
        """Install it with its virtual clusters; at the end nothing of them is left.

        Raises:
            Failed: It doesn't start.
        """
        try:
            self._remove()  # of a run that was killed, on a node that goes on
            for member in self.members:
                self._install(member.name, built("virtual-cluster"), member.values())
            self._install(FLEET, built("syncer"), self.values())
            for member in self.members:
                member.fetch_kubeconfig()
            self.own("rollout", "status", f"deployment/{FLEET}", "--timeout=90s")
            yield
        finally:
            self._remove()

    def values(self) -> Mapping[str, Any]:
        """Return the values: as fleet.md of the chart says."""
        secrets = [{"namespace": each.name, "hostNamespaces": [each.workloads]} for each in self.members]
        fleet = {"enabled": True, "virtualClusterSecrets": secrets}
        return {"fullnameOverride": FLEET, "fleet": fleet, "config": {"kubelet": {"enabled": True}}}

    def helm(self, *arguments: str) -> str:
        """Run helm on the host; return its output.

        Raises:
            Failed: It failed.
        """
        command = [str(builds.tool("helm")), f"--kubeconfig={self.host.kubeconfig}", *arguments]
        own = {f"HELM_{name}_HOME": str(self._folder / f"helm-{name.lower()}") for name in ("CACHE", "CONFIG", "DATA")}
        environ = {**os.environ, **own, "KUBECACHEDIR": str(self._folder / "kubectl-cache")}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_HELM_SECONDS, check=False)
        if done.returncode:
            raise Failed(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def own(self, *arguments: str) -> str:
        """Run kubectl in the release's namespace on the host; return its output.

        Raises:
            Failed: It failed.
        """
        return self.host.kubectl(f"--namespace={FLEET}", *arguments)

    def replicas(self) -> Mapping[str, Any]:
        """Return the pods of the daemons that are ready, by name."""
        pods = json.loads(self.own("get", "pods", "-l=vsyncer.dev/part=syncer", "-o=json"))["items"]
        return {
            pod["metadata"]["name"]: pod
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            and all(status["ready"] for status in pod["status"].get("containerStatuses", [{"ready": False}]))
        }

    def served(self, replica: str) -> Mapping[str, Any]:
        """Return the report of a replica about its virtual clusters, by name; nothing without an answer."""
        try:
            output = self.own("exec", replica, "--", "syncer", "clusters", "--output=json")
        except Failed:
            return {}
        return {each["cluster"]: each for each in json.loads(output)}

    def leader(self, member: Member) -> str:
        """Return the replica that leads a virtual cluster, once there is one."""
        found: list[str] = []

        def leads() -> bool:
            found[:] = [each for each in self.replicas() if self.served(each).get(member.cluster, {}).get("leads")]
            return len(found) == 1

        until(f"one leads {member.name}", leads)
        return found[0]

    def kill(self, replica: str) -> None:
        """Kill a replica, which hands nothing over, and its pod.

        Raises:
            Failed: It can't be killed.
        """
        [status] = self.replicas()[replica]["status"]["containerStatuses"]
        container = status["containerID"].removeprefix("containerd://")
        outside.inside(self.host.site, [*CTR, "tasks", "kill", "--signal=SIGKILL", container])
        self.own("delete", "pod", replica, "--force", "--grace-period=0")

    def _install(self, release: str, chart: Path, values: Mapping[str, Any]) -> None:
        file = self._folder / f"{release}.yaml"
        file.write_text(yaml.safe_dump(dict(values)))
        self.helm("install", release, str(chart), f"--namespace={release}", "--create-namespace", f"--values={file}")

    def _remove(self) -> None:
        names = [FLEET, *(each.name for each in self.members)]
        for name in names:
            self.helm("uninstall", name, f"--namespace={name}", "--ignore-not-found")
        names += [each.workloads for each in self.members]
        self.host.kubectl("delete", "namespace", *names, "--ignore-not-found", "--timeout=90s")
