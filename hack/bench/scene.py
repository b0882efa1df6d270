"""A daemon between two real API servers, and the connections of the load."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.bench.daemon import Daemon, two_planes
from hack.bench.phases import HOST_NAMESPACE, NAMESPACE, Bench, Load
from kube_envtest import ControlPlane
from syncer.api import Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect


@dataclass(frozen=True, slots=True)
class Planes:
    """A virtual and a host control plane, and a folder for the daemon."""

    virtual: ControlPlane
    host: ControlPlane
    folder: Path

    def config(self) -> dict[str, Any]:
        """Return the daemon's configuration, which every version since 0.1.0 understands."""
        host = {"kubeconfig": str(self.host.kubeconfig()), "namespace": HOST_NAMESPACE}
        return {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": "shop",
            "virtual": {"kubeconfig": str(self.virtual.kubeconfig())},
            "host": host,
            "networking": {"apiServer": {"host": "10.96.0.1"}, "dns": {"service": ""}},
            "sync": {"toHost": {"configMaps": {"all": True}, "secrets": {"all": True}}},
            "log": {"level": "warning"},
        }


@contextmanager
def fresh_planes() -> Iterator[Planes]:
    """Start control planes with the namespaces of the load."""
    with two_planes() as (virtual, host, folder):
        virtual.kubectl("create", "namespace", NAMESPACE)
        host.kubectl("create", "namespace", HOST_NAMESPACE)
        virtual.kubectl("create", "serviceaccount", "default", "--namespace", NAMESPACE)
        yield Planes(virtual, host, folder)


@dataclass(frozen=True, slots=True)
class Scene:
    """A running daemon, and the connections of the load."""

    daemon: Daemon
    virtual: SideClient
    host: SideClient

    def bench(self, load: Load) -> Bench:
        """Return the phases for a load."""
        return Bench(load, self.virtual, self.host, self.daemon)


@asynccontextmanager
async def scene(planes: Planes, command: Sequence[str]) -> AsyncIterator[Scene]:
    """Connect the load, and run the daemon with this command."""
    virtual, host = (
        connect(ConnectionSettings(str(plane.kubeconfig())), side=side, environ={})
        for plane, side in ((planes.virtual, Side.VIRTUAL), (planes.host, Side.HOST))
    )
    daemon = Daemon(planes.config(), planes.folder, command=command)
    daemon.start()
    try:
        yield Scene(daemon, virtual, host)
    finally:
        daemon.stop()
        for cluster in (virtual, host):
            await cluster.close()
