"""Reflectors of several virtual clusters on one host, in virtual time: with a shared watch, or each with its own."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

from informer_scene import MAPS
from reflector_scene import Even, Heard

from syncer.api import Key, Obj, Side
from syncer.cache.informer import Informer
from syncer.cache.reflector import Reflector
from syncer.cache.shared import IsWanted, SharedWatches
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse, Stream, Transport
from syncer.resources.kinds import EVENTS
from syncer.testing import ApiServer

#: The namespace that all share, and the label on an object that names its cluster.
HOME, MARK = "home", "vsyncer.dev/cluster"
#: Seconds after which everything has come that was on its way.
SOON = 60.0


def marked(name: str, cluster: str | None, **data: str) -> Obj:
    """Return a ConfigMap with the mark of a cluster, or none."""
    labels = {"of": "test"} | ({} if cluster is None else {MARK: cluster})
    metadata = {"name": name, "namespace": HOME, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Counted:
    """The way to a server, on which the open watches are counted; lists come when ``gate`` is open."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        #: The paths of the watches that are open, and the number of those that ever were.
        self.open: list[str] = []
        self.opened = self.most = self.lists = 0
        #: True if the end of a watch is an error of its connection.
        self.breaks = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.lists += "limit=500" in request.path
        await self.gate.wait()
        return await self._transport.send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        async with self._transport.stream(request) as stream:
            self.open.append(request.path)
            self.opened, self.most = self.opened + 1, max(self.most, len(self.open))
            try:
                yield stream
            finally:
                self.open.remove(request.path)
                if self.breaks:
                    raise ConnectionFailed("cut")

    async def close(self) -> None:
        await self._transport.close()


class Member:
    """The reflector of a cluster, with what its informer's handlers and its listener hear."""

    def __init__(self, reflector: Reflector, informer: Informer, heard: Heard) -> None:
        self.reflector, self.informer, self.heard = reflector, informer, heard
        self.notified: list[tuple[str, str]] = []
        informer.add_handler(lambda key, last: self.notified.append((key.name, last["metadata"]["resourceVersion"])))
        self.task = asyncio.create_task(reflector.run())

    def objects(self) -> dict[Key, Obj | None]:
        """Return what is stored."""
        return {key: self.informer.get(key) for key in list(self.informer.keys())}

    def names(self) -> set[str]:
        return {key.name for key in list(self.informer.keys())}

    async def leave(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


class Host:
    """A host API server, and the reflectors of its clusters."""

    def __init__(self, *, ordered: bool = True, server: ApiServer | None = None) -> None:
        self.server = server or ApiServer(seed="host")
        self.ordered = ordered
        self.way = Counted(self.server.transport())
        self.client = SideClient("host", Side.HOST, self.way)
        self.watches = SharedWatches(self.client)
        self.members: list[Member] = []

    def join(self, cluster: str | None, *, rng: random.Random | None = None, shared: bool = True) -> Member:
        """Run a reflector of a cluster's objects (None: of all objects)."""
        loop, heard = asyncio.get_running_loop(), Heard()
        informer = Informer(MAPS, trusted=True, clock=loop.time, ordered=lambda: self.ordered)
        chance, selector = rng or Even(), "" if cluster is None else f"{MARK}={cluster}"
        if shared:
            mark = (MARK, cluster or "none")
            reflector: Reflector = self.watches.reflector(
                informer, heard, mark=mark, namespace=HOME, selector=selector, rng=chance
            )
        else:
            reflector = Reflector(self.client, informer, heard, namespace=HOME, selector=selector, rng=chance)
        member = Member(reflector, informer, heard)
        self.members.append(member)
        return member

    def join_events(self, is_wanted: IsWanted) -> Member:
        """Run a reflector of the Events that are about certain objects."""
        loop, heard = asyncio.get_running_loop(), Heard()
        informer = Informer(EVENTS, trusted=True, clock=loop.time, ordered=lambda: self.ordered)
        reflector = self.watches.reflector(
            informer, heard, mark=(MARK, "any"), namespace=HOME, selector="", rng=Even(), is_wanted=is_wanted
        )
        member = Member(reflector, informer, heard)
        self.members.append(member)
        return member

    def put_event(self, name: str, about: str, **fields: Any) -> None:
        involved = {"apiVersion": "v1", "kind": "Pod", "namespace": HOME, "name": about, "uid": about}
        metadata = {"name": name, "namespace": HOME}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved, **fields}
        self.server.put(event)

    def put(self, name: str, cluster: str | None, **data: str) -> Obj:
        return self.server.put(marked(name, cluster, **data))

    def delete(self, name: str) -> None:
        self.server.delete("configmaps", f"{HOME}/{name}")

    async def close(self) -> None:
        for member in self.members:
            await member.leave()


@contextlib.asynccontextmanager
async def host(**options: Any) -> AsyncIterator[Host]:
    """Yield a host whose reflectors end with the block."""
    scene = Host(**options)
    scene.server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    try:
        yield scene
    finally:
        await scene.close()
        assert scene.way.open == [], "no watch outlives its reflectors"


async def soon() -> None:
    await asyncio.sleep(SOON)


def raw(value: Obj) -> codec.Raw:
    return codec.Raw(codec.encode(value))
