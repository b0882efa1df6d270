"""Syncers, API servers and a lifecycle between them, in virtual time: how its tests are set up."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from engine_fakes import SETTINGS, WIDGETS, Widgets

from kube_envtest import Rule
from syncer.api import (
    Config,
    Initialize,
    Live,
    Mirror,
    Refers,
    Resource,
    Side,
    Source,
    Syncer,
    SyncerError,
    SyncRequest,
    Watch,
    Watches,
)
from syncer.cache.reflector import Reflector
from syncer.cache.shared import SharedWatches
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Discovery
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport
from syncer.config import config_with
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.lifecycle import LateSyncers, Lifecycle, Roster
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.stores.informers import StoreKey
from syncer.names import SingleNamespace
from syncer.plugins import installed
from syncer.resources.custom.entry import FindServed
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES, SECRETS
from syncer.testing import ApiServer
from syncer.testing.objects import crd, crd_version, namespace
from syncer.workqueue.queue import Queue

NAME = str(WIDGETS)
VIRTUAL, HOST = Side.VIRTUAL, Side.HOST
GADGETS = Resource("example.org/v1", "Gadget", "gadgets")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
#: Seconds in which a reflector has listed, or has found out that it can't.
SOON = 5.0


class Gadgets(Mirror[Config]):
    """Another custom resource."""

    name = "gadgets"
    resource = GADGETS
    down = ("spec",)


class WidgetsWithSecrets(Widgets):
    """Reads Secrets of the tenant."""

    reads = (Source(VIRTUAL, SECRETS),)


class GadgetsWithSecrets(Gadgets):
    """Reads Secrets of the tenant, too."""

    reads = (Source(VIRTUAL, SECRETS),)


class WidgetsWithWidgetSecrets(Widgets):
    """Reads only some Secrets of the tenant."""

    reads = (Source(VIRTUAL, SECRETS, selector="for=widgets"),)


class WidgetsWithGadgets(Widgets):
    """Reads the host's Gadgets."""

    reads = (Source(HOST, GADGETS),)


class WidgetsPerhapsWithGadgets(Widgets):
    """Reads the host's Gadgets if they are there."""

    reads = (Source(HOST, GADGETS, optional_with="gadgets"),)


class WidgetsThatWatchGadgets(Widgets, Watches):
    """Is woken by Gadgets if their syncer is enabled."""

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(VIRTUAL, GADGETS), lambda obj, settings: (), optional_with="gadgets")]


class Claims(Widgets, Refers):
    """Widgets that may refer to Secrets, and own ConfigMaps."""

    refers_to = (SECRETS,)
    owns = (CONFIG_MAPS,)


class UsedSecrets(Mirror[Config]):
    """Secrets, while something refers to them."""

    name = "secrets"
    resource = SECRETS
    down = ("data",)
    when_used = True


class AllConfigMaps(Mirror[Config]):
    """ConfigMaps, whether or not something refers to them."""

    name = "configmaps"
    resource = CONFIG_MAPS
    down = ("data",)


class Prepared(Widgets, Initialize):
    """Widgets that need something before they begin."""

    #: What the next calls of ``init`` raise; then none.
    failures: list[Exception]
    #: The syncers that were initialised, by the names that their clients have.
    calls: list[str]

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.calls = list(failures), []

    async def init(self, live: Live) -> None:
        self.calls.append(live.syncer)
        if self.failures:
            raise self.failures.pop(0)


@dataclass
class Late:
    """An entry that becomes the syncers of a test."""

    made: Sequence[Syncer] | str
    name: str = "late"
    #: The names that it looks for, and what it found last.
    asks: Sequence[tuple[Side, str]] = ()
    found: list[Resource | None] = field(default_factory=list)
    #: The options of all its syncers.
    config: Config = field(default_factory=lambda: Config(concurrency=3))
    #: The syncers as if everything was served.
    presumed: Sequence[Syncer] = ()

    def sections(self) -> Mapping[str, Config]:
        return {} if isinstance(self.made, str) else {syncer.name: self.config for syncer in self.made}

    def syncers(self, find: FindServed) -> Sequence[Syncer] | str:
        self.found = [find(side, name) for side, name in self.asks]
        return self.made

    def assumed(self) -> Sequence[Syncer]:
        return self.presumed


def custom(**options: Any) -> LateSyncers:
    """Return the entry of ``sync.custom`` for widgets."""
    model = config_with(installed().syncers(), translator=SingleNamespace)
    sync = {"custom": {str(WIDGETS): options}}
    [entry] = (
        model.model_validate({"cluster": "vc", "host": {"namespace": "vc-ns"}, "sync": sync}).cluster().custom_entries()
    )
    return entry


class Notes(Queue):
    """A queue that only writes down what it is given."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0.0)
        self.noted: list[SyncRequest] = []

    def add(self, request: SyncRequest, *, after: float = 0.0, low: bool = False) -> None:
        self.noted.append(request)

    def taken(self) -> set[str]:
        """Return the syncers of the new requests."""
        noted, self.noted = self.noted, []
        return {request.syncer for request in noted}


class Incomplete:
    """A transport to a server whose discovery leaves out custom resources while ``hides`` is set,
    and whose streams take some seconds to be closed.
    """

    def __init__(self, server: ApiServer) -> None:
        self._inner: Transport = server.transport()
        self.hides = False
        self.closing_seconds = 0.0

    async def send(self, request: HttpRequest) -> HttpResponse:
        reply = await self._inner.send(request)
        if not (self.hides and request.path.startswith("/apis") and reply.status == 200):
            return reply
        document = json.loads(reply.body)
        if document.get("kind") != "APIGroupDiscoveryList":
            return reply
        document["items"] = [group for group in document["items"] if group["metadata"]["name"] != WIDGETS.group]
        return HttpResponse(200, reply.headers, json.dumps(document).encode())

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            try:
                yield stream
            finally:
                await asyncio.sleep(self.closing_seconds)

    async def close(self) -> None:
        await self._inner.close()


class Bench:
    """A pair between two API servers in memory, and the lifecycle of its syncers."""

    def __init__(self, *syncers: Syncer, entries: Sequence[LateSyncers] = (), enabled: Sequence[str] = ()) -> None:
        self.loop = asyncio.get_running_loop()
        self.servers = {side: ApiServer(seed=side.value) for side in Side}
        self.transports = {side: Incomplete(server) for side, server in self.servers.items()}
        for side, name in ((VIRTUAL, "shop"), (HOST, "vc-ns")):
            self.servers[side].put(namespace(name))
        self.clusters = {side: SideClient(side.value, side, self.transports[side]) for side in Side}
        self.discoveries = {side: Discovery(self.clusters[side]) for side in Side}
        sections = {name: Config() for name in (*enabled, *(syncer.name for syncer in syncers))}
        settings = replace(SETTINGS, sections=sections)
        self.queue = Notes()
        self.pair: ClusterPair = build_pair(
            settings,
            (),
            virtual=self.clusters[VIRTUAL],
            host=self.clusters[HOST],
            queue=self.queue,
            clock=self.loop.time,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: self.discoveries[side].has_status(resource),
        )
        self.roster = Roster(
            settings,
            [(syncer, sections[syncer.name]) for syncer in syncers],
            entries,
            self.discoveries[VIRTUAL],
            self.discoveries[HOST],
        )
        #: The names of the syncers that have left.
        self.gone: list[str] = []
        self.lifecycle = Lifecycle(
            self.pair,
            self.roster,
            self,
            watches=SharedWatches(self.clusters[HOST]),
            live=lambda name: Live(
                "vc", name, self.clusters[VIRTUAL], self.clusters[HOST], settings=self.pair.settings
            ),
            rng=random.Random("lifecycle"),
            left=self.gone.append,
        )

    # -- what reflectors tell --------------------------------------------------------------------------

    def synced(self, reflector: Reflector) -> None:
        self._begin()

    def watching(self, reflector: Reflector) -> None: ...

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        self._begin()

    def went_back(self, reflector: Reflector) -> None: ...

    def working(self, reflector: Reflector) -> None: ...

    def _begin(self) -> None:
        for controller in self.pair.controllers.values():
            if not controller.ready and next(self.pair.lacks(controller), None) is None:
                self.pair.begin(controller)

    # -- what a test does ------------------------------------------------------------------------------

    def define(self, *resources: tuple[Side, Resource]) -> None:
        """Serve custom resources, each in its version alone."""
        for side, resource in resources:
            self.servers[side].put(crd(str(resource), [crd_version(resource.version, storage=True)]))

    def undefine(self, side: Side, resource: Resource = WIDGETS) -> None:
        self.servers[side].delete(CRDS, str(resource))

    async def discover(self) -> None:
        for discovery in self.discoveries.values():
            await discovery.refresh()

    async def look(self) -> bool:
        """Discover both sides, update, and return whether that changed anything."""
        await self.discover()
        changed = await self.lifecycle.update()
        self._begin()
        return changed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look once, and run the reflectors while the block runs."""
        await self.look()
        async with asyncio.TaskGroup() as tasks:
            self.lifecycle.start(tasks)
            try:
                await asyncio.sleep(SOON)
                yield
            finally:
                self.lifecycle.stop()

    def refuse(self, side: Side, status: int, resource: Resource = WIDGETS) -> None:
        """Let all requests about a resource fail, and the running watches end."""
        self.servers[side].faults.add(Rule(resource=resource.plural, status=status))
        self.servers[side].cut_watches()

    # -- what a test sees ------------------------------------------------------------------------------

    def able(self) -> list[str]:
        return sorted(self.roster.able())

    def controllers(self) -> list[str]:
        return sorted(self.pair.controllers)

    def waiting(self) -> Mapping[str, str]:
        return dict(self.roster.waiting)

    def reflected(self) -> set[StoreKey]:
        """Return the stores that have reflectors, without those that pauses are read from."""
        return set(self.pair.reflectors) - {(VIRTUAL, NAMESPACES), (VIRTUAL, CONFIG_MAPS)}

    def asked(self, side: Side, resource: Resource = WIDGETS) -> list[str]:
        """Return the verbs of the requests about a resource since the last :meth:`forget`."""
        return [one.verb for one in self.servers[side].requests if one.resource == resource.plural]

    def forget(self) -> None:
        """Forget the requests of both servers."""
        for server in self.servers.values():
            server.requests.clear()


def not_served(*resources: tuple[Side, Resource]) -> str:
    lacking = "; ".join(f"the {side} cluster does not serve {resource}" for side, resource in resources)
    return f"waits: {lacking}"


VW, HW, VG, HG = (VIRTUAL, WIDGETS), (HOST, WIDGETS), (VIRTUAL, GADGETS), (HOST, GADGETS)
OLD = WIDGETS._replace(api_version="example.org/v1beta1")
