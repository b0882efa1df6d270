"""A plan of large objects waits until the queue has room for them; a small one never does."""

import pytest

from syncer.api import Key, Mirror, Resource, SyncRequest
from syncer.api.reasons import TOO_HEAVY
from syncer.engine.reconcile.plan import Deferred
from syncer.engine.reconcile.policies.room import DECODED_OVERHEAD, SMALL, Room
from syncer.testing import World
from syncer.testing.objects import configmap


class Maps(Mirror):
    name = "maps"
    resource = Resource("v1", "ConfigMap", "configmaps")
    down = ("data",)


REQUEST = SyncRequest("vc", "maps", Key("shop", "a"))


class Scene:
    """Room that has a place for nothing, and notes what it was asked."""

    def __init__(self, text: str) -> None:
        self.world = World([Maps]).given(virtual=[configmap("a", {"text": text})])
        self.world.decide(Maps, "shop/a")  # lets the stores hold what the server has
        self.asked: list[tuple[SyncRequest, int]] = []
        self.fits = False
        self.room = Room(self._may_hold)

    def _may_hold(self, request: SyncRequest, size: int) -> bool:
        self.asked.append((request, size))
        return self.fits

    def admit(self) -> Deferred | None:
        return self.room.admit(self.world.pair.plan(REQUEST), None)


def test_small_plan_is_never_weighed() -> None:
    scene = Scene("")
    assert scene.admit() is None
    assert scene.asked == []


@pytest.mark.reason("TooHeavy")
def test_large_plan_waits_for_room_with_the_bytes_of_its_original_and_of_the_copy_that_it_creates() -> None:
    scene = Scene("x" * SMALL)
    assert scene.admit() == Deferred(TOO_HEAVY())
    [(request, size)] = scene.asked
    assert request == REQUEST
    assert 2 * SMALL < size / DECODED_OVERHEAD < 3 * SMALL
    scene.fits = True
    assert scene.admit() is None
