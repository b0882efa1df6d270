"""A daemon's process with a fleet of virtual clusters, whose API servers can be cut off."""

import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any

from harness import admin, built_in, host_path, namespace, utcnow

from hack.side_tasks import helped_by
from syncer.api import Side
from syncer.clusters.client import SideClient
from syncer.clusters.errors import ClusterOrigin
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse, Stream
from syncer.config import VirtualCluster, config_with
from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.pages.status import clusters
from syncer.daemon.process import Process
from syncer.names import SingleNamespace
from syncer.observe.metrics import Metrics
from syncer.testing import ApiServer
from syncer.testing.in_process import MemoryTransport
from syncer.testing.objects import configmap

MODEL = config_with(built_in("configmaps"), translator=SingleNamespace)
HOME = "vcs"


def clusters_named(*names: str, **options: Any) -> tuple[VirtualCluster, ...]:
    """Return virtual clusters that share a host namespace; ``every`` has more options of each."""
    every = {"hostNamespace": HOME, **options.pop("every", {})}
    given = [{"name": name, "kubeconfig": f"{name}.kubeconfig", **every} for name in names]
    sync = {"toHost": {"configMaps": {"all": True}}}
    return MODEL.model_validate({"virtualClusters": given, "sync": sync, **options}).clusters()


class Line(MemoryTransport):
    """The way to a server, which can be cut."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world.servers[name])
        self._world, self._name = world, name

    async def send(self, request: HttpRequest) -> HttpResponse:
        self._must_be_there()
        return await super().send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        self._must_be_there()
        async with super().stream(request) as stream:
            yield stream

    def _must_be_there(self) -> None:
        if self._name in self._world.cut:
            raise ConnectionFailed("refused")


class World:
    """A host, API servers of virtual clusters by name, and a process with a fleet."""

    def __init__(self, *names: str, servers: Mapping[str, ApiServer] = MappingProxyType({})) -> None:
        self.host = ApiServer(seed="host")
        self.host.put(namespace(HOME))
        self.servers = {**{name: ApiServer(seed=name) for name in names}, **servers}
        for server in self.servers.values():
            server.put(namespace("shop"))
            server.put(configmap("x"))
        self.cut: set[str] = set()
        #: What tells that a kubeconfig has come to be of another server, by virtual cluster.
        self.moved: dict[str, Callable[[], None]] = {}

    def connect(self, given: object, side: Side, name: str, *rest: Any) -> SideClient:
        """Stand in for the connection by a kubeconfig."""
        self.moved[name] = rest[-1]
        return SideClient(name, side, Line(self, name), origin=ClusterOrigin(f"https://{name}"))

    @contextlib.asynccontextmanager
    async def served(self, *served: VirtualCluster) -> AsyncIterator[tuple[Process, ServedFleet]]:
        """Serve these while the block runs."""
        process = Process(
            host=admin(self.host, Side.HOST), metrics=Metrics(version="test"), utcnow=utcnow, rng=random.Random("fleet")
        )
        fleet = ServedFleet(process, served)
        async with process.running(), helped_by(fleet.run(), process.work()):
            yield process, fleet

    def has_copy(self, cluster: str, name: str = "x") -> bool:
        """Return True if the copy of an object of the shop is on the host."""
        return self.host.get("configmaps", host_path(name, cluster, HOME)) is not None


def states(process: Process) -> dict[str, str]:
    """Return the state of each virtual cluster, by name."""
    return {each.cluster: each.state.value for each in clusters(process)}
