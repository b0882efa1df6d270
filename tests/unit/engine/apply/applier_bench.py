"""A pair between two API servers in memory, to carry decisions out."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from math import inf
from typing import Any

from kube_envtest import virtual_time
from syncer.api import (
    Config,
    Decision,
    Key,
    Mirror,
    Obj,
    Resource,
    Settings,
    Side,
    Source,
    Syncer,
    SyncerError,
    Warned,
    Write,
    key_of,
)
from syncer.clusters.client import SideClient
from syncer.clusters.fenced import Fenced
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.patch_paths import changes
from syncer.engine.reconcile.plan import Observed, PlannedWrite, PostponedFields, ServerAnswer
from syncer.names import SingleNamespace
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES, PODS, SERVICES
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace
from syncer.workqueue.queue import Queue

WRITES = {"create", "update", "patch", "delete"}
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
OURS = {"labels": {SETTINGS.marks.cluster: SETTINGS.identity}}


class Maps(Mirror[Config]):
    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)
    reads = (
        Source(Side.VIRTUAL, PODS),
        Source(Side.HOST, PODS),
        Source(Side.HOST, SERVICES, marked=True),
        Source(Side.HOST, NAMESPACES, marked=True),
    )


class Bench:
    """Two API servers, a link between them, and what was written."""

    def __init__(self, settings: Settings = SETTINGS, syncer: Syncer | None = None) -> None:
        self.host, self.virtual = ApiServer(seed="host"), ApiServer(seed="virtual")
        for server, name in ((self.host, "vc-ns"), (self.host, "elsewhere"), (self.virtual, "shop")):
            server.put(namespace(name))
        self.leads = True
        self.now = 0.0
        self.with_status = {"pods", "services"}
        self.wrotes: list[tuple[Side, str]] = []
        self.futiles: list[tuple[Any, ...]] = []
        self.postponements: list[PostponedFields] = []
        self.refusals: list[SyncerError] = []
        self.warnings: list[Warned] = []
        self.syncer = syncer or Maps()
        self.pair: ClusterPair = build_pair(
            settings,
            [(self.syncer, Config())],
            virtual=SideClient("vc", Side.VIRTUAL, self._fenced(self.virtual)),
            host=SideClient("host", Side.HOST, self._fenced(self.host)),
            queue=Queue(clock=lambda: 0.0),
            clock=lambda: self.now,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: resource.plural in self.with_status,
        )

    def _fenced(self, server: ApiServer) -> Fenced:
        return Fenced(server.transport(), lambda: inf if self.leads else -inf, lambda: self.now)

    def answered(self, planned: PlannedWrite, answer: ServerAnswer) -> None:
        side = planned.write.side
        verb = answer.call.kind
        if answer.changed:
            self.wrotes.append((side, str(verb)))
        else:
            fields = changes(answer.call, planned.live, SETTINGS.marks)
            self.futiles.append((side, verb, *[each.path for each in fields]))

    def replaced(self) -> None:
        """Ignore it: the worker decides again."""

    def postponed(self, postponed: PostponedFields) -> None:
        self.postponements.append(postponed)

    def warned(self, warning: Warned) -> None:
        self.warnings.append(warning)

    def refused(self, postponed: PostponedFields, error: SyncerError) -> None:
        self.postponements.append(postponed)
        self.refusals.append(error)

    def see(self, side: Side, resource: Resource, obj: Obj) -> Obj:
        """Let a store have seen an object."""
        self.pair.informers.store(side, resource).seen_live(merged(obj, {}))
        return obj

    def stored(self, side: Side, resource: Resource, obj: Obj) -> Obj | None:
        return self.pair.informers.get(side, resource, key_of(obj))

    def planned(self, write: Write, *, host: Obj | None) -> PlannedWrite:
        """Return a write as it is planned where this host object was observed."""
        controller = self.pair.controllers[self.syncer.name]
        stored = Observed(
            controller, controller.request(Key("shop", "x")), controller.context(), None, host, key_of(write.obj)
        )
        reconciler = self.pair.reconciler
        return reconciler.planned(stored, write, reconciler.pipelines[controller.name].requests)

    async def apply(self, decision: Decision) -> list[str]:
        """Return the writes that the servers got."""
        before = len(self.host.requests), len(self.virtual.requests)
        try:
            plan = self.pair.reconciler.plan_decision(self.pair.controllers[self.syncer.name], decision)
            await self.pair.applier.apply(plan, self)
        finally:
            self.sent = [
                f"{one.verb} {side} {one.path.partition('/namespaces/')[2]}"
                for side, server, start in (("host", self.host, before[0]), ("virtual", self.virtual, before[1]))
                for one in list(server.requests)[start:]
                if one.verb in WRITES
            ]
        return self.sent


def play(
    scenario: Callable[[Bench], Coroutine[Any, Any, None]], settings: Settings = SETTINGS, syncer: Syncer | None = None
) -> None:
    """Let a scenario happen in virtual time."""

    async def main() -> None:
        await scenario(Bench(settings, syncer))

    virtual_time.run(main())


def ours(obj: Obj, **parts: Any) -> Obj:
    return merged(obj, {"metadata": OURS, **parts})


def copy(name: str = "x", **data: str) -> Obj:
    return ours(configmap(name, data or {"color": "blue"}, namespace="vc-ns"))
