"""Workers on a queue between two API servers in memory, with a syncer that does as a test says."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kube_envtest import virtual_time
from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Mirror,
    Obj,
    ObjectRef,
    Pair,
    Settings,
    Side,
    Source,
    SyncerError,
    SyncRequest,
)
from syncer.api.reasons import RequestState
from syncer.clusters.client import SideClient
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.controllers.worker import Workers
from syncer.names import SingleNamespace
from syncer.observe.events import EventType
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace
from syncer.workqueue.queue import Queue

SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
A = SyncRequest("vc", "maps", Key("shop", "a"))
COPY = "vc-ns/a-x-shop-x-vc"
DB = ObjectRef(Side.VIRTUAL, SECRETS, Key("shop", "db"))
#: Seconds of the clock at which each test begins, so that a delay is seen as a time after it.
NOW = 100.0

PARKED = RequestState.PARKED
#: Seconds until the slow timer takes up a parked request.
SLOWLY = 300.0

#: An attempt of the syncer under test, given the original and its copy.
Act = Callable[[Obj, Obj | None], Decision]


class Maps(Mirror[Config]):
    """Does as the test says; else copies ConfigMaps."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)
    reads = (Source(Side.VIRTUAL, SECRETS),)
    #: How the next attempts end, the last for good; none: as a mirror.
    acts: list[Act]
    #: The names that were decided, in order.
    decided: list[str]

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        return self._decide(virtual, None) or super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        return self._decide(pair.virtual, pair.host) or super().sync(ctx, pair)

    def _decide(self, virtual: Obj, host: Obj | None) -> Decision | None:
        self.decided.append(virtual["metadata"]["name"])
        if not self.acts:
            return None
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        return act(virtual, host)


class Statuses(Maps):
    """The same, with a part of the copy that flows back."""

    up = ("status",)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event for a tenant."""

    reason: str
    message: str
    about: Obj | None


class Bench:
    """Workers on a queue, between two API servers in memory."""

    def __init__(self, syncer: type[Maps] = Maps, **options: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.virtual, self.host = ApiServer(seed="virtual"), ApiServer(seed="host")
        for server, name in ((self.virtual, "shop"), (self.host, "vc-ns")):
            server.put(namespace(name))
        self.queue = Queue(clock=self.loop.time, spread=lambda: 0.5)  # a delay is exactly as long as it is meant
        self.maps = syncer()
        self.maps.acts, self.maps.decided = [], []
        self.pair: ClusterPair = build_pair(
            SETTINGS,
            [(self.maps, Config(**options))],
            virtual=SideClient("vc", Side.VIRTUAL, self.virtual.transport()),
            host=SideClient("host", Side.HOST, self.host.transport()),
            queue=self.queue,
            clock=self.loop.time,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: False,
        )
        self.controller = self.pair.controllers["maps"]
        self.statuses, self.metrics = RequestStatuses(), Metrics(version="test")
        self.events: list[RecordedEvent] = []
        self.losses: list[tuple[Side, SyncerError]] = []
        self.workers = Workers(self.queue, {"vc": self.pair}, self.statuses, self, self.metrics, clock=self.loop.time)
        for name in "ab":
            self.see(configmap(name))
        self.controller.ready = True  # from now on, changes are queued

    # -- what workers tell -----------------------------------------------------------------------------

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        self.losses.append((side, error))

    def notify(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None = None,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        self.events.append(RecordedEvent(reason, message, about))

    # -- what a test does ------------------------------------------------------------------------------

    def see(self, obj: Obj) -> Obj:
        """Put an object into the virtual cluster, and let the store have seen it."""
        obj = self.virtual.put(obj)
        resource = SECRETS if obj["kind"] == "Secret" else CONFIG_MAPS
        self.pair.informers.store(Side.VIRTUAL, resource).seen_live(merged(obj, {}))
        return obj

    def unsee(self, name: str) -> None:
        """Let the store have seen that a virtual ConfigMap is gone."""
        self.pair.informers.store(Side.VIRTUAL, CONFIG_MAPS).gone_live(Key("shop", name))

    def does(self, *acts: Act | Decision | Exception) -> None:
        """Let the syncer return these or raise them, one an attempt, the last for good."""
        self.maps.acts = [act_of(each) for each in acts]

    async def work(self, request: SyncRequest = A) -> int:
        """Let a worker handle a request once, and return the number of its writes."""
        self.queue.add(request)
        taken, changed = await self.queue.get()
        assert taken == request
        writes, _ = await self.workers.handle(request, changed)
        self.queue.done(request)
        return writes

    def comes_back(self, request: SyncRequest = A) -> float | None:
        """After how many seconds a request is handed out again; None if never."""
        if self.queue.holds(request):
            return 0.0
        due = self.queue.delayed().get(request)
        return None if due is None else round(due - self.loop.time(), 3)

    def status(self, request: SyncRequest = A) -> tuple[RequestState, str] | None:
        """Return the status of a request; None if it is in step."""
        status = self.statuses.of(request)
        return (status.state, status.reason) if status else None

    def wrote(self) -> list[str]:
        """The writes that the host was asked for."""
        verbs = {"create", "patch", "update", "delete"}
        return [one.verb for one in self.host.requests if one.verb in verbs]


def act_of(given: Act | Decision | Exception) -> Act:
    """Return what does, returns or raises this."""

    def act(virtual: Obj, host: Obj | None) -> Decision:
        if isinstance(given, Exception):
            raise given
        assert isinstance(given, Decision)
        return given

    return given if callable(given) else act


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]], syncer: type[Maps] = Maps, **options: Any) -> None:
    """Let a scenario happen in virtual time."""

    async def main() -> None:
        await asyncio.sleep(NOW)
        bench = Bench(syncer, **options)
        try:
            await scenario(bench)
        finally:
            bench.queue.close()

    virtual_time.run(main())
