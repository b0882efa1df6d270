"""What names many objects that aren't there waits for its turn; what names a few never does."""

from types import SimpleNamespace
from typing import cast

import pytest

from syncer.api import Key, ObjectRef, Side
from syncer.engine.reconcile.plan import Plan
from syncer.engine.reconcile.policies.confirmation_pace import AT_ONCE, FREE, LONGEST, PER_SECOND, ConfirmationPace
from syncer.resources.kinds import PODS


class Scene:
    """Writes at times that a test chooses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pace = ConfirmationPace(lambda: self.now)

    def delay(self, name: str, further: int, *, calls: int = 1, side: Side = Side.HOST) -> float:
        """Return the delay of a write that names so many objects more than are free."""
        write = SimpleNamespace(ref=ObjectRef(side, PODS, Key("vc-ns", name)), calls=[None] * calls)
        plan = cast("Plan", SimpleNamespace(writes=[write], vacant=[None] * (FREE + further)))
        deferred = self.pace.admit(plan, None)
        return deferred.seconds or 0.0 if deferred is not None else 0.0


def test_few_names_are_free_and_so_are_plans_that_write_nothing_to_the_host() -> None:
    scene = Scene()
    for number in range(10 * AT_ONCE):
        assert scene.delay(f"a{number}", 0) == 0
    assert scene.delay("b", 10 * AT_ONCE, calls=0) == 0
    assert scene.delay("b", 10 * AT_ONCE, side=Side.VIRTUAL) == 0
    assert scene.delay("b", AT_ONCE) == 0, "nothing was taken"


@pytest.mark.reason("ConfirmedLater")
def test_each_write_has_its_turn_at_the_rate_of_all() -> None:
    scene = Scene()
    assert scene.delay("a", AT_ONCE) == 0
    assert scene.delay("b", 50) == 50 / PER_SECOND
    assert scene.delay("c", 50) == 100 / PER_SECOND
    scene.now += 50 / PER_SECOND
    assert scene.delay("c", 50) == 50 / PER_SECOND, "its turn stays the same"
    assert scene.delay("b", 50) == 0
    assert scene.delay("b", 50) == 100 / PER_SECOND, "the next write of the same object is one more"
    assert len(scene.pace) == 2


def test_wait_is_a_minute_at_most_and_unused_turns_are_dropped() -> None:
    scene = Scene()
    most = AT_ONCE + int(LONGEST * PER_SECOND)
    assert [scene.delay(f"a{number}", 1) for number in range(most)][-1] == LONGEST
    assert scene.delay("b", 1) == LONGEST
    assert scene.delay("b", 1) == LONGEST
    assert len(scene.pace) == most - AT_ONCE, "it has no turn"
    scene.now += 3 * LONGEST
    for number in range(AT_ONCE + most):
        scene.delay(f"c{number}", 1)
    assert len(scene.pace) < 2 * most - AT_ONCE
