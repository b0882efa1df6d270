"""Clusters in virtual time: each an API server of its own in this process."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from hack.side_tasks import helped_by
from syncer.api import Obj, Resource
from syncer.clusters.client import Client
from syncer.multicluster import Cluster, ClusterOptions
from syncer.resources.kinds import CONFIG_MAPS, PODS, SECRETS
from syncer.testing.in_process import ApiServer

__all__ = ["CONFIG_MAPS", "PODS", "SECRETS", "Site", "eventually", "leaving_nothing", "running"]

#: Seconds within which what happens by itself must have happened.
PATIENCE = 120.0
#: Turns of the loop in which tasks that were cancelled at the end of a test have ended.
TURNS = 10


class Site:
    """A cluster, and the API server behind it."""

    def __init__(
        self, name: str, *objects: Obj, options: ClusterOptions | None = None, controllers: bool = True
    ) -> None:
        self.server = ApiServer(controllers=controllers)
        for obj in objects:
            self.server.put(obj)
        self.cluster = Cluster(name, self.new_client(name), options=options)

    def new_client(self, name: str = "another") -> Client:
        return Client(name, self.server.transport(), timeout=5.0)

    def requests(self, verb: str, resource: Resource) -> list[str]:
        """Return the paths of requests that the API server has had."""
        return [one.path for one in self.server.requests if one.verb == verb and one.resource == resource.plural]


async def leaving_nothing(test: Coroutine[Any, Any, None]) -> None:
    """Await a test, and assert that it leaves no task and no error that nobody has seen."""
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
    await test
    for _ in range(TURNS):
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks are left: {left}"
    gc.collect(1)
    assert unseen == []


@contextlib.asynccontextmanager
async def running(*work: Any) -> AsyncIterator[None]:
    """Run clusters, controllers or managers while the block runs."""
    async with helped_by(*(each.cluster.run() if isinstance(each, Site) else each.run() for each in work)):
        yield


async def eventually(holds: Callable[[], object], expectation: str = "it holds") -> None:
    """Wait until ``holds`` returns something true."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, f"not {expectation}"
        await asyncio.sleep(0.01)
