"""A virtual cluster on a node, with the daemon of this checkout between it and the host."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.bench.daemon import SYNCER, Process
from hack.planes import BINARY
from hack.realnode import outside
from hack.realnode.inside import Failed
from hack.realnode.node_site import NodeSite
from hack.realnode.tenant import (
    HOST_NAMESPACE,
    SCHEDULED,
    SECTIONS,
    control_plane,
    front,
    name_server,
)
from kube_envtest import ControlPlane
from syncer.api import Side
from syncer.testing.merge import merged

#: The daemon's user on both sides, with the rights of `syncer rbac` and no others.
USER = "daemon"
#: The seconds that kubectl may take.
KUBECTL_SECONDS = 150.0


@dataclass
class VirtualCluster:
    """A virtual cluster whose pods run on a node."""

    site: NodeSite
    #: The folder of the daemon's files.
    folder: Path
    #: Sections that are merged over the daemon's configuration.
    sections: Mapping[str, Any] = field(default_factory=dict)
    #: True for a scheduler of its own.
    scheduler: bool = False
    #: The host namespace of the copies.
    host_namespace: str = field(init=False, default=HOST_NAMESPACE)
    plane: ControlPlane = field(init=False)
    daemon: Process = field(init=False)

    def __post_init__(self) -> None:
        self.plane = control_plane(self.site, scheduler=self.scheduler)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator."""
        return self.plane.folder / "admin.kubeconfig"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it with the daemon and its name server; at the end no copy is left.

        Raises:
            Failed: It doesn't start.
        """
        self._remove_copies()  # of a run that was killed, on a node that goes on
        kubectl(self._host, "create", "namespace", self.host_namespace)
        try:
            with self.plane:
                self.plane.kubeconfig(USER)
                kubectl(self._host, "apply", "-f", "-", stdin=front(self.site, self.plane.url))
                self.daemon = Process(
                    self._config(),
                    self.folder,
                    command=(*outside.enter_network(self.site), SYNCER),
                    address=self.site.addresses[1],
                )
                try:
                    self._start()
                    self._wait_for_names_and_logs()
                    yield
                finally:
                    self.daemon.stop()
        finally:
            self._remove_copies()

    def _config(self) -> dict[str, Any]:
        """Return the daemon's configuration."""
        base = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": "shop",
            "virtual": {"kubeconfig": str(self.plane.folder / f"{USER}.kubeconfig")},
            "host": {
                "kubeconfig": str(self.site.folder / f"{USER}.kubeconfig"),
                "namespace": self.host_namespace,
            },
        }
        found = merged(merged(base, SECTIONS), self.sections)
        if self.scheduler:
            found = merged(found, SCHEDULED)
        return found

    def _start(self) -> None:
        """Give the daemon the rights that its configuration needs, and start it."""
        self.daemon.write()
        for side, objects in self.daemon.rights(USER).items():
            kubeconfig = self.kubeconfig if side is Side.VIRTUAL else self._host
            kubectl(kubeconfig, "apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        self.daemon.start()

    @property
    def _host(self) -> Path:
        return self.site.folder / "admin.kubeconfig"

    def _wait_for_names_and_logs(self) -> None:
        kubectl(self.kubeconfig, "apply", "-f", "-", stdin=name_server())
        kubectl(
            self.kubeconfig,
            "rollout",
            "status",
            "-n=kube-system",
            "deployment/coredns",
            "--timeout=120s",
        )
        port = "--for=jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}"
        kubectl(self.kubeconfig, "wait", "node", "--all", port, "--timeout=60s")

    def _remove_copies(self) -> None:
        kubectl(
            self._host,
            "delete",
            "namespace",
            self.host_namespace,
            "--ignore-not-found",
            "--timeout=120s",
        )


def kubectl(kubeconfig: Path, *arguments: str, stdin: str | None = None) -> str:
    """Run kubectl; return its output.

    Raises:
        Failed: It failed, or took too long.
    """
    command = kubectl_command(kubeconfig, *arguments)
    shown = f"kubectl {' '.join(arguments)}"
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=KUBECTL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{shown}: not done after {late.timeout:g} s") from late
    if done.returncode:
        raise Failed(f"{shown}: {done.stderr.strip()}")
    return done.stdout


def kubectl_command(kubeconfig: Path, *arguments: str) -> list[str]:
    """Return the command line of kubectl. What it remembers of the cluster is beside the
    kubeconfig, as another cluster may come to have the same address.
    """
    cache = kubeconfig.with_name("kubectl-cache")
    return [
        str(BINARY),
        "kubectl",
        f"--kubeconfig={kubeconfig}",
        f"--cache-dir={cache}",
        *arguments,
    ]
