"""A tenant on a real node, as the tests use it: the virtual cluster of a release of the chart."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from chart_scene import NAME, RELEASE, SYNCER, WORKLOADS, Chart
from node_scene import until

from hack.chart_build import built
from hack.realnode.inside import Failed
from syncer.api import Marks

MARKS = Marks()


class Credentials(NamedTuple):
    """Files of a kubeconfig: the CA of its server, the certificate and the key of its user."""

    ca: Path
    certificate: Path
    key: Path


class Tenant(Chart):
    """A release of the chart on a node, whose daemon a test gives another configuration."""

    @property
    def host_namespace(self) -> str:
        """The host namespace of the copies."""
        return WORKLOADS

    @property
    def api_address(self) -> str:
        """The address at which the tenant's pods reach their API server."""
        return self.own("get", "service", NAME, "-o=jsonpath={.spec.clusterIP}")

    @property
    def kubelet_address(self) -> str:
        """The address of the virtual Nodes, which is that of the daemon."""
        path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}'
        return self.kubectl("get", "nodes", f"-o=jsonpath={path}")

    def copies(self, namespace: str, *kinds: str) -> Sequence[str]:
        """Return the copies of objects of a virtual namespace, such as ``pod/web-x-shop-x-shop``, of
        these kinds.
        """
        return self.host.kubectl(
            "get", ",".join(kinds), "-n", self.host_namespace, "-l", f"{MARKS.namespace_label}={namespace}", "-o=name"
        ).split()

    @contextmanager
    def configured(self, **sections: Any) -> Iterator[None]:
        """Run the daemon with sections merged over its configuration, and as before at the end."""
        file = self.folder / "changed.yaml"
        file.write_text(yaml.safe_dump({"syncer": {"config": sections}}))
        self.helm("upgrade", RELEASE, str(built("virtual-cluster")), "--reset-then-reuse-values", f"--values={file}")
        try:
            self.wait_for_the_daemon()
            yield
        finally:
            self.helm("rollback", RELEASE)
            self.wait_for_the_daemon()

    def restart(self) -> None:
        """Replace the daemon's pod by another one."""
        self.own("rollout", "restart", SYNCER)
        self.wait_for_the_daemon()

    def wait_for_the_daemon(self) -> None:
        """Wait until the daemon of the release works in place of the one before, also as the kubelet."""
        self.own("rollout", "status", SYNCER, "--timeout=90s")
        until("a single daemon has the lease", lambda: [self._holder()] == self.daemons())
        address = self.own("get", "pod", self._holder(), "-o=jsonpath={.status.podIP}")
        until("the virtual Nodes have its address", lambda: self.kubelet_address == address)
        until("it answers as the kubelet", self.runs_commands)

    def runs_commands(self) -> bool:
        """Return True if the daemon passes a command to a pod, for which it needs a certificate first."""
        try:
            return self.exec("shop", "deployment/web", "hostname").startswith("web-")
        except Failed:
            return False

    def daemons(self) -> list[str]:
        """Return the names of the daemon's pods, without those that end."""
        pods = json.loads(self.own("get", "pods", "-l=vsyncer.dev/part=syncer", "-o=json"))["items"]
        return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def _holder(self) -> str:
        """Return the pod of the working daemon."""
        identity = self.own("get", "lease", f"vsyncer-{NAME}", "-o=jsonpath={.spec.holderIdentity}")
        return identity.partition("_")[0].rpartition("/")[2]


def credentials(kubeconfig: Path, folder: Path) -> Credentials:
    """Write the certificates of a kubeconfig into files of a folder."""
    found = yaml.safe_load(kubeconfig.read_text())
    user, cluster = found["users"][0]["user"], found["clusters"][0]["cluster"]
    texts = cluster["certificate-authority-data"], user["client-certificate-data"], user["client-key-data"]
    files = Credentials(*(folder / name for name in ("ca.crt", "user.crt", "user.key")))
    folder.mkdir(exist_ok=True)
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(base64.b64decode(text))
    return files
