"""The demo's daemon: a process with a configuration file, as a user starts it."""

import asyncio
import time
import urllib.error
import urllib.request
from pathlib import Path

from hack.bench import daemon
from hack.realnode import outside
from hack.realnode.tenant import HOST_NAMESPACE, SECTIONS
from hack.webshop import databases
from hack.webshop.clusters import Clusters
from hack.webshop.waiting import Failed, in_thread
from syncer.api import Side
from syncer.testing.merge import merged

#: Nothing runs in the pods of a simulation, so nothing dials this address.
NETWORKING = {"networking": {"apiServer": {"host": "10.96.0.1"}}}


class Daemon(daemon.Process):
    """The daemon's process; errors repeat its log if it ends or doesn't get ready."""

    async def ready(self, seconds: float) -> None:
        """Wait until it is ready.

        Raises:
            Failed: It doesn't become ready within the seconds.
        """
        deadline = time.monotonic() + seconds
        while not await in_thread(self._answers):
            self.check()
            if time.monotonic() > deadline:
                raise Failed(
                    f"the daemon isn't ready after {seconds:g} s; {self._last_log_lines()}"
                )
            await asyncio.sleep(0.05)

    def check(self) -> None:
        """Check that it is running.

        Raises:
            Failed: It has ended.
        """
        if self.process is not None and self.process.poll() is not None:
            status = self.process.returncode
            raise Failed(f"the daemon has ended with status {status}; {self._last_log_lines()}")

    def _last_log_lines(self) -> str:
        last = "\n".join(self.log.read_text().splitlines()[-12:])
        return f"its log {self.log} says\n{last}"

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}:{self.health}/readyz", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False


def make(clusters: Clusters, folder: Path) -> Daemon:
    """Return the daemon between the two clusters, not yet started."""
    base = {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": "shop",
        "virtual": {"kubeconfig": str(clusters.daemon_kubeconfigs[Side.VIRTUAL])},
        "host": {
            "kubeconfig": str(clusters.daemon_kubeconfigs[Side.HOST]),
            "namespace": HOST_NAMESPACE,
        },
        "sync": {
            "toHost": {"ingresses": {"enabled": True}},
            "fromHost": {"customResourceDefinitions": {"enabled": True}},
            "custom": {databases.NAME: databases.SYNCED},
        },
    }
    if clusters.node is None:
        return Daemon({**base, **NETWORKING}, folder)
    command = (*outside.enter_network(clusters.node), daemon.SYNCER)
    return Daemon(
        merged(base, SECTIONS), folder, command=command, address=clusters.node.addresses[1]
    )
