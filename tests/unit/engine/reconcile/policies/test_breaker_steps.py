"""Deletions among many objects, or of large ones, are counted in steps, and none is made before all are counted."""

import pytest
from breaker_scene import Lost

from syncer.api import Decision, Outcome, Refused, Side, SyncRequest
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.policies.breaker import DECIDED, LOOK, LOOKED_AT, NEXT, STEP
from syncer.testing.objects import host_copy


def asked_while(scene: Lost, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of decisions which the breaker asks for in each of those about ``c0``,
    until these no longer wait.
    """
    asked, steps = [0], []
    decide = scene.breaker._decide

    def counted(controller: BoundSyncer, request: SyncRequest) -> Decision:
        asked[0] += 1
        return decide(controller, request)

    monkeypatch.setattr(scene.breaker, "_decide", counted)
    while True:
        asked[0] = 0
        try:
            decision = scene.decision()
        except Refused:
            break
        finally:
            steps.append(asked[0])
        if decision.outcome is not Outcome.PENDING:
            break
        assert (decision.writes, decision.after) == ((), NEXT)
        assert decision.reason.endswith("how many more would be deleted is being counted")
    return steps


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("lost", [500, 900])
@pytest.mark.reason("DeletionsCounted")
def test_many_deletions_are_counted_in_steps_and_none_is_made_before(
    side: Side, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Lost(1000, side=side, percent=60)
    scene.lose(lost)
    scene.listed()
    steps = asked_while(scene, monkeypatch)
    assert sum(steps) == lost
    assert max(steps) <= STEP // DECIDED
    assert len(steps) > lost * DECIDED // STEP
    assert scene.is_deleted() is (lost == 500)
    assert scene.stopped() == ({} if lost == 500 else {side.value: lost})


def test_fewer_deletions_of_large_objects_are_counted_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(100, percent=60)
    scene.world.given(host=[host_copy(one, data={"text": "x" * (STEP // 4)}) for one in scene.originals[:50]])
    scene.lose(50)
    scene.listed()
    steps = asked_while(scene, monkeypatch)
    assert sum(steps) == 50
    assert max(steps) <= 4


def test_objects_in_step_are_looked_at_in_steps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(STEP // LOOKED_AT)
    scene.lose(1)
    scene.listed()
    steps = asked_while(scene, monkeypatch)
    assert (set(steps), len(steps) >= 3) == ({0}, True)
    assert scene.is_deleted()


def test_single_deletion_among_many_objects_in_step_waits_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(5000)
    scene.lose(1)
    scene.listed()
    assert len(asked_while(scene, monkeypatch)) * NEXT <= LOOK / 10
    assert scene.is_deleted()


def test_list_during_a_count_restarts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(1000)
    scene.lose(400)
    scene.listed()
    assert scene.decision().outcome is Outcome.PENDING
    scene.lose(200, first=400)
    scene.listed()
    asked_while(scene, monkeypatch)
    assert scene.stopped() == {"host": 600}


def test_failed_count_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost()
    scene.lose(6)
    scene.listed()
    with monkeypatch.context() as broken:
        broken.setattr(scene.breaker, "_weight", lambda *_: 1 // 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                scene.decision()
    assert not scene.is_deleted()


def test_deletions_are_stopped_during_a_recount() -> None:
    scene = Lost(1000)
    scene.lose(600)
    scene.scanned(600)
    assert scene.stopped() == {"host": 600}
    scan = scene.breaker.scanned(scene.world.pair.controllers[scene.name], [])
    next(scan)
    assert scene.stopped() == {"host": 600}
    with pytest.raises(Refused):
        scene.decision()
    assert all(scan)
    assert scene.stopped() == {"host": 600}


def test_count_of_a_syncer_that_has_stopped_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(1000)
    scene.lose(600)
    scene.listed()
    assert scene.decision().outcome is Outcome.PENDING
    scene.breaker.drop(scene.name)
    assert asked_while(scene, monkeypatch) == [0]
    assert scene.stopped() == {}
