"""A registry of clusters in this process, whose controllers reach a management cluster."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fleet_scene import PODS, SECRETS, Site, running

from syncer.api import AlreadyExists, Key, Obj
from syncer.multicluster import Cluster, ClusterRegistry, Controller, Request, Spawned
from syncer.testing.objects import pod, secret

A = Key("shop", "a")


class Pods:
    """A factory whose controllers copy the names of pods to the management cluster."""

    def __init__(self) -> None:
        self.spawned: list[Spawned] = []
        self.requests: list[Request] = []
        self.stubborn = False

    def __call__(self, of: Spawned) -> Controller:
        self.spawned.append(of)

        async def reconcile(request: Request) -> None:
            self.requests.append(request)
            while self.stubborn:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)
            with contextlib.suppress(AlreadyExists):
                await of.manage.create(SECRETS, secret(f"{of.name}-{request.name}", namespace="seen"))

        controller = Controller(reconcile)
        controller.watch_object(of.cluster, PODS)
        return controller


class Scene:
    def __init__(self) -> None:
        self.manage = Site("manage", secret("s", namespace="seen"))
        self.pods = Pods()
        self.registry = ClusterRegistry(self.manage.cluster, factories=[self.pods], start_timeout=20.0)
        self.sites = {name: Site(name, pod("a")) for name in ("eu", "us", "asia")}

    async def spawn(self, name: str) -> None:
        await self.registry.spawn(name, self.sites[name].new_client(name))

    @contextlib.asynccontextmanager
    async def playing(self) -> AsyncIterator[ClusterRegistry]:
        async with running(self.manage), self.registry as registry:
            yield registry


async def pod_a(cluster: Cluster) -> Obj | None:
    return await cluster.get(PODS, A)
