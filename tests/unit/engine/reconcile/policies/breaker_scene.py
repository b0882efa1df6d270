"""Virtual and host objects of which some go missing, for the circuit breaker."""

from collections.abc import Mapping

from syncer.api import (
    Context,
    Decision,
    Key,
    Mirror,
    Obj,
    Refused,
    Resource,
    Side,
    SyncRequest,
    Verb,
    delete,
    key_of,
    uid_of,
)
from syncer.api.reasons import DELETIONS_HELD
from syncer.clusters import codec
from syncer.engine.reconcile.policies.breaker import (
    CircuitBreaker,
    PlannedDeletion,
)
from syncer.engine.stores.informers import SideInformer
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, host_copy


class Maps(Mirror):
    """Copies ConfigMaps."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)


class Leaving(Maps):
    """Deletes a ConfigMap whose copy is gone."""

    name = "leaving"

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        return delete(virtual=virtual, reason="the copy is gone")


class Notes(Mirror):
    """Copies Secrets."""

    name = "notes"
    resource = SECRETS
    down = ("data",)


class Lost:
    """A world of ConfigMaps ``c0``, ``c1``, … with their copies, of which some go missing.

    Deletions are on ``side``, as their counterparts go missing on the other.
    """

    def __init__(
        self,
        size: int = 10,
        *,
        side: Side = Side.HOST,
        count: int = 5,
        percent: float = 50,
        drift: Mapping[str, str] | None = None,
    ) -> None:
        syncer = Maps if side is Side.HOST else Leaving
        self.side, self.name = side, syncer.name
        limits = {"count": count, "percent": percent}
        self.world = World([syncer, Notes], config={"patrol": {"breaker": limits, "drift": drift or {}}})
        self.originals = [configmap(f"c{number}") for number in range(size)]
        self.world.given(virtual=self.originals, host=[host_copy(one) for one in self.originals])

    @property
    def breaker(self) -> CircuitBreaker:
        return self.world.pair.policies.breaker

    def store(self, side: Side, resource: Resource = CONFIG_MAPS) -> SideInformer:
        return self.world.pair.informers.store(side, resource)

    # -- what happens ------------------------------------------------------------------------------

    def lose(self, number: int, *, first: int = 0, reported: bool = False) -> None:
        """Remove so many counterparts, without an event or with one."""
        for one in self.originals[first : first + number]:
            lost = one if self.side is Side.HOST else host_copy(one)
            if reported:
                there = self.world.virtual if self.side is Side.HOST else self.world.host
                last = there("ConfigMap", key_of(lost))
                assert last
                self.watch(self.side.other, "DELETED", last)
            self.world.gone(**{self.side.other.value: [lost]})

    def bring_back(self, number: int) -> None:
        """Put the first counterparts back as they were."""
        back = self.originals[:number]
        if self.side is Side.HOST:
            self.world.given(virtual=back)
        else:
            self.world.given(host=[host_copy(one) for one in back])

    def replace(self, number: int, *, reported: bool = False) -> None:
        """Let the first originals be other objects of the same names."""
        for one in self.originals[:number]:
            name = one["metadata"]["name"]
            if not reported:
                self.world.given(virtual=[merged(one, {"metadata": {"uid": f"new-{name}"}})])
                continue
            before = self.world.virtual("ConfigMap", Key("shop", name))
            assert before
            after = merged(before, {"metadata": {"uid": f"new-{name}", "resourceVersion": "1000"}})
            self.watch(Side.VIRTUAL, "DELETED", before)
            self.watch(Side.VIRTUAL, "ADDED", after)

    def watch(self, side: Side, kind: str, obj: Obj) -> None:
        """Let the watch of a side show an event."""
        self.store(side).event(kind, codec.Raw(codec.encode(obj)))

    def listed(self) -> None:
        """Tell the breaker of a list of the side where objects went missing."""
        self.breaker.listed(self.store(self.side.other))

    def scanned(self, number: int) -> None:
        """Tell the breaker of a scan that would delete the first objects."""
        controller = self.world.pair.controllers[self.name]
        planned = []
        for one in self.originals[:number]:
            request = SyncRequest("vc", self.name, key_of(one))
            [write] = self.world.pair.reconciler.scan(controller, request).decision.writes
            planned.append(PlannedDeletion(write.side, key_of(write.obj), uid_of(write.obj), request))
        assert all(self.breaker.scanned(controller, planned))

    # -- what follows ------------------------------------------------------------------------------

    def decision(self, number: int = 0) -> Decision:
        return self.world.pair.plan(SyncRequest("vc", self.name, Key("shop", f"c{number}"))).decision

    def is_deleted(self, number: int = 0) -> bool:
        """Return True if a plan deletes this object, False if its deletion is held."""
        try:
            decision = self.decision(number)
        except Refused as refused:
            if refused.reason != DELETIONS_HELD.name:
                raise
            return False
        assert [(write.verb, write.side) for write in decision.writes] == [(Verb.DELETE, self.side)]
        return True

    def stopped(self) -> dict[str, int]:
        """The number of held deletions by side."""
        return {side.value: len(one.objects) for (_, side), one in self.breaker.stopped.items()}

    def confirm(self) -> None:
        assert self.breaker.confirm(lambda syncer: syncer == self.name)
