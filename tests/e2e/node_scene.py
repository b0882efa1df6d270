"""A cluster whose pods run on a real node, as the tests use it: the node's own, or a tenant's."""

import re
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.commands import line_of
from hack.realnode import outside
from hack.realnode.node_site import NodeSite
from hack.realnode.virtual import kubectl, kubectl_command

#: The seconds that a pod may take to run and answer; a busy machine takes some of them.
PATIENCE = 90.0

#: Two pods of a web server that greets with its name, and their Service. Probes leave no line in its log.
WEB = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: vsyncer.dev/web:local
        imagePullPolicy: Never
        env: [{name: GREETING, value: good morning}]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
"""


class Reached(ABC):
    """A cluster that kubectl reaches as its administrator."""

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; return its output.

        Raises:
            Failed: It failed.
        """
        return kubectl(self.kubeconfig, *arguments, stdin=stdin)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of kubectl."""
        return kubectl_command(self.kubeconfig, *arguments)

    def exec(self, namespace: str, pod: str, *command: str) -> str:
        """Run a command in the first container of a pod; return its output.

        Raises:
            Failed: It failed.
        """
        return self.kubectl("exec", "-n", namespace, pod, "--", *command)

    @contextmanager
    def namespace(self, name: str, *manifests: str) -> Iterator[None]:
        """Make a namespace with objects in it, and delete it at the end."""
        self.kubectl("create", "namespace", name)
        try:
            for manifest in manifests:
                self.kubectl("apply", "-n", name, "-f", "-", stdin=manifest)
            yield
        finally:
            self.kubectl("delete", "namespace", name)

    @contextmanager
    def forwarded(self, namespace: str, pod: str, port: int = 8080) -> Iterator[str]:
        """Yield a URL that kubectl forwards to a port of a pod meanwhile."""
        command = self.command("port-forward", "-n", namespace, pod, f":{port}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                address = re.search(r"127\.0\.0\.1:\d+", line_of(process, process.stdout))
                assert address
                yield f"http://{address[0]}/"
            finally:
                process.kill()


@dataclass(frozen=True)
class Node(Reached):
    """A running node with its own cluster, the host."""

    site: NodeSite

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator."""
        return self.site.folder / "admin.kubeconfig"

    def kill(self, program: str) -> None:
        """Kill a program, such as ``kubelet``; the node starts it again.

        Raises:
            Failed: It can't be killed.
        """
        pid = self.site.pid_file(program).read_text()
        outside.inside(self.site, ["sh", "-c", f"kill -KILL {pid}"])


def until(expectation: str, is_so: Callable[[], bool]) -> None:
    """Wait until it is so; fail if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {expectation}"
        time.sleep(0.2)


def running(cluster: Reached, namespace: str, selector: str, count: int = 1) -> list[str]:
    """Wait until pods are ready; return their names.

    Raises:
        AssertionError: They aren't in time.
    """
    template = '{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}{"\\n"}{end}'

    def ready() -> list[str]:
        return cluster.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", f"jsonpath={template}").split()

    until(f"{count} pods {selector} are ready", lambda: len(ready()) >= count)
    return ready()
