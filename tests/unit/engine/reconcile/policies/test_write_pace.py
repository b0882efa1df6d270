"""A host object is written twice a second at most, and a quiet one at once."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Key, ObjectRef, Side
from syncer.api.reasons import PACED
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.plan import Deferred, Plan, PlannedWrite
from syncer.engine.reconcile.policies.write_pace import MOST, WINDOW, WritePace
from syncer.resources.kinds import CONFIG_MAPS

A, B = Key("vc-ns", "a"), Key("vc-ns", "b")


class Scene:
    """Writes at times that a test chooses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pace = WritePace(lambda: self.now)

    def plan(self, *keys: Key, calls: int = 1, side: Side = Side.HOST) -> Plan:
        writes = [SimpleNamespace(ref=ObjectRef(side, CONFIG_MAPS, key), calls=[None] * calls) for key in keys]
        return cast("Plan", SimpleNamespace(writes=writes, original="1"))

    def delay(self, plan: Plan) -> float:
        """Return the seconds for which a plan is deferred."""
        deferred = self.pace.admit(plan, None)
        return deferred.seconds or 0.0 if deferred is not None else 0.0

    def write(self, *keys: Key, times: int = 1) -> None:
        for key in keys * times:
            self.call(key, Side.HOST)

    def call(self, key: Key, side: Side) -> None:
        """Make a call that is not answered."""
        planned = SimpleNamespace(ref=ObjectRef(side, CONFIG_MAPS, key))
        self.pace.sent(cast("PlannedWrite", planned), Call(Operation.CREATE, {}), None)


@pytest.mark.reason("Paced")
def test_quiet_object_is_never_delayed_nor_is_its_second_write() -> None:
    scene = Scene()
    assert scene.delay(scene.plan(A)) == 0
    scene.write(A)
    assert scene.delay(scene.plan(A)) <= 0
    scene.now += 0.25
    scene.write(A)
    assert scene.delay(scene.plan(A)) == 0.75
    assert scene.delay(scene.plan(B)) == 0
    scene.now += 0.75
    assert scene.delay(scene.plan(A)) <= 0
    scene.now += WINDOW
    assert scene.delay(scene.plan(A, calls=5)) <= 0


def test_plan_waits_for_the_latest_of_its_objects_and_for_all_of_its_calls() -> None:
    scene = Scene()
    scene.write(A, times=2)
    scene.now += 0.25
    scene.write(B, times=2)
    assert scene.delay(scene.plan(A, B)) == 1.0
    scene.now += 0.875
    assert scene.delay(scene.plan(A, B)) == 0.125
    scene.write(A)
    assert scene.delay(scene.plan(A, calls=2)) == 1.0, "two calls, and one was made just now"


def test_plan_that_writes_nothing_to_the_host_is_never_delayed() -> None:
    scene = Scene()
    scene.write(A, times=2)
    assert scene.delay(scene.plan(A, calls=0)) == 0
    assert scene.delay(scene.plan(A, side=Side.VIRTUAL)) == 0


def test_request_that_has_just_written_from_the_same_original_backs_off() -> None:
    scene = Scene()
    scene.write(A, times=2)
    plan = scene.plan(A)
    assert scene.pace.admit(plan, plan.original) == Deferred(PACED(), 1.0, backs_off=True)
    for written_from in (None, "0"):
        assert scene.pace.admit(plan, written_from) == Deferred(PACED(), 1.0)


def test_calls_to_the_virtual_side_are_not_counted() -> None:
    scene = Scene()
    for _ in range(2 * MOST):
        scene.call(A, Side.VIRTUAL)
    assert scene.pace.admit(scene.plan(A, side=Side.VIRTUAL), None) is None
    assert len(scene.pace) == 0


def test_tables_have_room_only_for_the_last_two_seconds() -> None:
    scene = Scene()
    for number in range(5000):
        scene.write(Key("vc-ns", str(number)))
        scene.now += 0.01
    assert len(scene.pace) <= 202


@given(st.lists(st.sampled_from([0.0, 0.125, 0.5, 0.625, 1.0]), max_size=60))
def test_object_that_changes_at_any_pace_is_written_twice_a_second(pauses: Sequence[float]) -> None:
    scene, written = Scene(), list[float]()
    due: Any = None
    for pause in pauses:
        scene.now += pause
        if due is not None and scene.now < due:
            continue
        delay = scene.delay(scene.plan(A))
        due = scene.now + delay if delay > 0 else None
        if due is None:
            scene.write(A)
            written.append(scene.now)
    for time in written:
        assert sum(time <= other < time + WINDOW for other in written) <= MOST
