"""The demo's daemon: a process with a configuration file, as a user starts it."""

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from hack.bench import daemon
from hack.webshop import databases
from hack.webshop.clusters import DAEMON, Clusters
from hack.webshop.waiting import Failed, in_thread
from kube_envtest.controlplane.processes import spawn
from syncer.api import Obj, Side
from syncer.config import load
from syncer.plugins import installed
from syncer.rbac import Subject, manifests, needed

HOST_NAMESPACE = "vc-shop"
READY_SECONDS = 60.0


class Daemon(daemon.Daemon):
    """A process that ends with the demo, however that ends."""

    def spawn(self) -> None:
        """Start it without waiting."""
        self.write()
        self.process = spawn([*self.command, "--config", str(self.file)], self.log, self.folder)

    def rights(self) -> Mapping[Side, list[Obj]]:
        """Return the roles that it needs on each side, bound to its user, as printed by `syncer rbac`."""
        cluster = load(str(self.file), installed()).cluster
        return manifests(
            needed(cluster.all_syncers(), settings=cluster.settings()),
            cluster=cluster.name,
            home=cluster.host_namespace,
            host_namespaces=cluster.translator.host_namespaces(),
            subjects=dict.fromkeys(Side, Subject(DAEMON)),
        )

    async def ready(self) -> None:
        """Wait until it is ready.

        Raises:
            Failed: It doesn't become ready.
        """
        deadline = time.monotonic() + READY_SECONDS
        while not await in_thread(self._answers):
            self.check()
            if time.monotonic() > deadline:
                raise Failed(f"the daemon isn't ready after {READY_SECONDS:g} s; its log: {self.log}")
            await asyncio.sleep(0.05)

    def check(self) -> None:
        """Check that it is running.

        Raises:
            Failed: It has ended.
        """
        if self.process is not None and self.process.poll() is not None:
            last = "\n".join(self.log.read_text().splitlines()[-12:])
            raise Failed(f"the daemon has ended with status {self.process.returncode}; its log {self.log} says\n{last}")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False


def make(clusters: Clusters, folder: Path) -> Daemon:
    """Return the daemon between the two clusters, not yet started."""
    config = {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": "shop",
        "virtual": {"kubeconfig": str(clusters.daemon_kubeconfigs[Side.VIRTUAL])},
        "host": {"kubeconfig": str(clusters.daemon_kubeconfigs[Side.HOST]), "namespace": HOST_NAMESPACE},
        "sync": {
            "toHost": {"ingresses": {"enabled": True}},
            "fromHost": {"customResourceDefinitions": {"enabled": True}},
            "custom": {databases.NAME: databases.SYNCED},
        },
    }
    return Daemon(config, folder)
