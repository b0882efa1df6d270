"""A patroller of ConfigMaps that are in step, whose neighbours answer as a test says."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from syncer.api import Context, Key, Mirror, Obj, Refused, SyncRequest
from syncer.engine.patrol.findings import Scan
from syncer.engine.patrol.patroller import PatrolHooks, Patroller
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap


class Maps(Mirror):
    """Copies ConfigMaps, and refuses some."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        if "refused" in virtual["data"]:
            raise Refused("no")
        return super().translate(ctx, virtual)


class Bench:
    """A patroller of ConfigMaps ``a``, ``b``, ``c`` and ``d``, which are in step."""

    def __init__(self, **patrol: Any) -> None:
        self.world = World([Maps], config={"patrol": patrol})
        self.world.given(virtual=[configmap(name) for name in "abcd"])
        for name in "abcd":
            self.world.settle(Maps, f"shop/{name}")
        #: Answers to the patroller: why no scan is possible, and why nothing may be repaired.
        self.trouble: str | None = None
        self.hands_off: str | None = None
        #: Requests that are known trouble, and why they are not in step.
        self.busy: set[SyncRequest] = set()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.reasons: dict[SyncRequest, str] = {}
        #: The names of the requests that were to be repaired, in order.
        self.asked: list[str] = []
        #: How a request is repaired.
        self.repair: Callable[[SyncRequest], object] = lambda request: self.mend(request.key.name)
        self.patroller = self.patroller_of(self.world)

    def patroller_of(self, world: World) -> Patroller:
        """Return a patroller of a world that asks this bench."""
        hooks = PatrolHooks(
            trouble=lambda: self.trouble,
            busy=lambda request: request in self.busy,
            repair=self._repair,
            reason=lambda request: self.reasons.get(request, ""),
            hands_off=lambda: self.hands_off,
        )
        return Patroller(
            world.pair,
            world.settings.patrol,
            hooks,
            clock=asyncio.get_running_loop().time,
            utcnow=lambda: self.now,
            rng=random.Random(7),
        )

    async def _repair(self, requests: Sequence[SyncRequest]) -> None:
        for request in requests:
            self.asked.append(request.key.name)
            with contextlib.suppress(Refused):
                self.repair(request)

    @property
    def controller(self) -> BoundSyncer:
        return self.world.pair.controllers["maps"]

    async def scan(self) -> Scan:
        return await self.patroller.scan(self.controller, fresh=False)

    # -- what happens ------------------------------------------------------------------------------

    def copy(self, name: str) -> Obj:
        found = self.world.host("ConfigMap", copy_name(name))
        assert found
        return found

    def edit(self, name: str = "a", **parts: Any) -> None:
        """Change a copy."""
        self.world.given(host=[merged(self.copy(name), parts or {"data": {"color": "red"}})])

    def remove(self, name: str = "a") -> None:
        """Remove a copy."""
        self.world.gone(host=[self.copy(name)])

    def lose(self, names: str = "a") -> None:
        """Remove originals, without an event."""
        self.world.gone(virtual=[configmap(name) for name in names])

    def replace(self, name: str = "a") -> None:
        """Let an original be another object of the same name."""
        self.world.given(virtual=[configmap(name, metadata={"uid": "new"})])

    def refuse(self, name: str = "a") -> None:
        """Let the syncer refuse an original."""
        self.world.given(virtual=[configmap(name, {"refused": ""})])

    def mend(self, name: str = "a") -> None:
        """Put a copy in step."""
        self.world.settle(Maps, f"shop/{name}")


def copy_name(name: str) -> str:
    return f"vc-ns/{name}-x-shop-x-vc"


def asked(name: str) -> SyncRequest:
    return SyncRequest("vc", "maps", Key("shop", name))


def unrepaired(request: SyncRequest) -> None:
    """Leave a request as it is."""


def counts(scan: Scan) -> tuple[int, int, int]:
    """The numbers of skipped, verified and busy requests."""
    return scan.skipped, scan.verified, scan.busy


def reported(scan: Scan) -> list[tuple[str, str, str, str]]:
    """The name, class, outcome and reason of each finding."""
    return [(one.request.key.name, one.drift.kind, one.outcome.value, one.reason) for one in scan.findings]


Happens = Callable[[Bench], object]
