"""Replicas that share a fleet of virtual clusters in one process. Each can be killed, frozen, or cut off from the host.

Each write that a server accepts is compared with the Lease at that moment: only its holder may write.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

from clusters_scene import HOME, World
from harness import utcnow

from syncer.api import Key, Side
from syncer.clusters.client import SideClient
from syncer.clusters.errors import ClusterOrigin
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse, Stream
from syncer.config import VirtualCluster
from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.fleet.shared_fleet import SharedFleet
from syncer.daemon.process import Process
from syncer.leaderelection.rendezvous import shard_of
from syncer.leaderelection.shards import Shards, lease_name
from syncer.observe.metrics import Metrics
from syncer.testing import ApiServer
from syncer.testing.in_process import MemoryTransport

SHARDS, FLEET = 8, Key(HOME, "fleet")


class Wire(MemoryTransport):
    """The way of a replica to a server."""

    def __init__(self, replica: "Replica", server: ApiServer, cluster: str) -> None:
        super().__init__(server, replica.name)
        self._replica, self._cluster = replica, cluster

    async def send(self, request: HttpRequest) -> HttpResponse:
        await self._replica.pass_through(host=not self._cluster)
        response = await super().send(request)
        if request.method != "GET" and response.status < 300 and "/leases" not in request.path:
            self._replica.wrote(self._cluster, request)
        return response

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        await self._replica.pass_through(host=not self._cluster)
        async with super().stream(request) as stream:
            yield stream


class Replica:
    """A daemon's process, fleet and shards."""

    def __init__(self, replicas: "Replicas", name: str) -> None:
        self.replicas, self.name = replicas, name
        self.is_dead = self.is_cut = False
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.metrics = Metrics(version="test")
        replicas.by_metrics[id(self.metrics)] = self
        host = SideClient("host", Side.HOST, Wire(self, replicas.world.host, ""))
        identity = f"{name}_{name}"
        self.shards = Shards(
            host, fleet=FLEET, number=SHARDS, identity=identity, random=random.Random(name).random, utcnow=utcnow
        )
        self.process = Process(
            host=host,
            metrics=self.metrics,
            leads=self.shards.leads,
            until=self.shards.until,
            utcnow=utcnow,
            rng=random.Random(name),
        )
        self.fleet = ServedFleet(self.process, replicas.clusters)
        self.shared = SharedFleet(self.process, self.fleet, self.shards)
        self._task = asyncio.create_task(self._run())
        self._sharing: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        async with self.process.running(), asyncio.TaskGroup() as tasks:
            tasks.create_task(self.fleet.run())
            tasks.create_task(self.process.work())
            self._sharing = tasks.create_task(self.shared.run())

    async def pass_through(self, *, host: bool) -> None:
        """Wait while the replica is frozen; fail if it is dead or cut off."""
        await self.is_open.wait()
        if self.is_dead or (host and self.is_cut):
            raise ConnectionFailed("refused")

    def wrote(self, cluster: str, request: HttpRequest) -> None:
        """Note an accepted write; one of another than the holder of the Lease is wrong."""
        meant = [cluster] if cluster else [each.name for each in self.replicas.clusters if _is_of(each.name, request)]
        for each in meant:
            holder = self.replicas.holder(each)
            if holder != self.name and "/vsyncer" not in request.path and "kube-system" not in request.path:
                self.replicas.wrong.append(f"{self.name} wrote {request.method} {request.path}; {holder or 'nobody'}")

    async def leave(self) -> None:
        """End as after SIGTERM."""
        assert self._sharing is not None
        self._sharing.cancel()
        await asyncio.wait({self._sharing})
        if not self._sharing.cancelled():
            self._sharing.result()
        await self.kill()

    async def kill(self) -> None:
        """End as after SIGKILL."""
        self.is_dead = True
        self.is_open.set()
        self._task.cancel()
        await asyncio.wait({self._task})
        self.replicas.live.pop(self.name, None)


def _is_of(cluster: str, request: HttpRequest) -> bool:
    return f"-x-shop-x-{cluster}" in request.path + (request.body or b"").decode()


class Replicas:
    """A world that replicas share, by name."""

    def __init__(self, world: World, *clusters: VirtualCluster) -> None:
        self.world, self.clusters = world, clusters
        self.live: dict[str, Replica] = {}
        self.by_metrics: dict[int, Replica] = {}
        self.wrong: list[str] = []

    def connect(self, given: object, side: Side, name: str, *rest: Any) -> SideClient:
        """Stand in for the connection by a kubeconfig."""
        replica = self.by_metrics[id(rest[1])]
        return SideClient(
            name, side, Wire(replica, self.world.servers[name], name), origin=ClusterOrigin(f"https://{name}")
        )

    def join(self, name: str) -> Replica:
        """Start a replica."""
        self.live[name] = Replica(self, name)
        return self.live[name]

    def holder(self, cluster: str) -> str:
        """Return the holder of the Lease of a virtual cluster; "" without one."""
        lease_path = f"{HOME}/{lease_name(FLEET.name, shard_of(cluster, SHARDS))}"
        lease = self.world.host.get("leases.coordination.k8s.io", lease_path)
        return str(lease["spec"].get("holderIdentity") or "").partition("_")[0] if lease else ""

    def leaders(self, cluster: str) -> list[str]:
        """Return the replicas that lead a virtual cluster by their own account."""
        return [name for name, each in self.live.items() if each.shards.leads(cluster) and not each.is_dead]

    def is_led(self) -> bool:
        """Return True if each virtual cluster has a leader that serves it."""
        return all(self._is_led(each.name) for each in self.clusters)

    def _is_led(self, cluster: str) -> bool:
        leaders = self.leaders(cluster)
        return len(leaders) == 1 and cluster in self.live[leaders[0]].process.pairs

    def owner(self, cluster: str) -> Replica:
        """Return the replica that leads a virtual cluster."""
        [name] = self.leaders(cluster)
        return self.live[name]

    async def end(self) -> None:
        """Kill all replicas."""
        for each in list(self.live.values()):
            await each.kill()
