"""The circuit breaker counts deletions, holds too many of them, and lets them go once confirmed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from breaker_scene import Lost

from syncer.api import Key, Obj, Outcome, Refused, Side, SyncRequest
from syncer.engine.reconcile.policies.breaker import LOOK
from syncer.resources.kinds import SECRETS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, host_copy, namespace, secret

# -- the limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["list", "scan"])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("size", "lost", "count", "percent", "stopped"),
    [
        pytest.param(10, 6, 5, 50, True, id="more than both"),
        pytest.param(10, 6, 6, 50, False, id="as many as the count"),
        pytest.param(10, 6, 9, 50, False, id="fewer than the count"),
        pytest.param(10, 6, 5, 60, False, id="as many as the percentage"),
        pytest.param(10, 6, 5, 59.9, True, id="more than a fraction of the percentage"),
        pytest.param(20, 6, 5, 50, False, id="a smaller part than the percentage"),
        pytest.param(10, 10, 5, 100, False, id="all where all may go"),
        pytest.param(10, 1, 0, 0, True, id="a single deletion where none may be made"),
    ],
)
def test_deletions_that_exceed_both_limits_are_stopped(
    by: str, side: Side, size: int, lost: int, count: int, percent: float, stopped: bool
) -> None:
    scene = Lost(size, side=side, count=count, percent=percent)
    scene.lose(lost)
    if by == "list":
        scene.listed()
    else:
        scene.scanned(lost)
    assert [scene.is_deleted(number) for number in range(lost)] == [not stopped] * lost
    assert scene.stopped() == ({side.value: lost} if stopped else {})


@pytest.mark.parametrize("side", Side)
def test_breaker_without_limits_holds_nothing(side: Side) -> None:
    scene = Lost(side=side, count=0, percent=0)
    scene.breaker.limits = None
    scene.lose(10)
    scene.listed()
    assert scene.is_deleted()
    assert scene.stopped() == {}


# -- the numbers ---------------------------------------------------------------------------------------------------


def as_other_kind(copy: Obj) -> Obj:
    return merged(copy, {"metadata": {"annotations": {"vsyncer.dev/virtual-kind": "Other"}}})


NEW = [configmap(f"new{number}") for number in range(30)]


@pytest.mark.parametrize(
    ("virtual", "host", "total"),
    [
        pytest.param([], [], 10, id="the copies of what is there and of what is gone"),
        pytest.param(NEW, [], 10, id="objects without a copy are no copies"),
        pytest.param(
            [], [as_other_kind(host_copy(one)) for one in NEW], 10, id="copies of another kind are not its own"
        ),
        pytest.param([secret("db")], [host_copy(secret("db"))], 10, id="another resource is none of its"),
        pytest.param(NEW[:1], [host_copy(NEW[0])], 11, id="one more pair"),
    ],
)
def test_total_of_the_host_side_is_the_copies_of_the_kind(virtual: list[Obj], host: list[Obj], total: int) -> None:
    scene = Lost()
    scene.world.given(virtual=virtual, host=host)
    scene.lose(6)
    scene.listed()
    with pytest.raises(Refused, match=f"held by the deletion breaker: 6 of {total} maps on the host side"):
        scene.decision()


@pytest.mark.reason("DeletionsHeld")
def test_total_of_the_virtual_side_is_all_objects() -> None:
    scene = Lost(side=Side.VIRTUAL)
    scene.lose(6)
    scene.listed()
    with pytest.raises(Refused, match=r"6 of 10 leaving on the virtual side.*syncer patrol --confirm"):
        scene.decision()


@pytest.mark.reason("DeletionsHeld")
def test_total_of_shown_objects_leaves_out_the_tenants_own() -> None:
    shown = {"secrets": {"enabled": True, "mappings": {"byName": {"infra/*": "shop"}}}}
    limits = {"breaker": {"count": 5, "percent": 50}}
    world = World(config={"sync": {"fromHost": shown}, "patrol": limits})
    listed = [secret(f"s{number}", namespace="infra") for number in range(10)]
    own = [secret(f"own{number}") for number in range(30)]
    world.given(virtual=[namespace("shop"), *own], host=listed)
    for number in range(10):
        world.settle("host-secrets", f"shop/s{number}")
    world.gone(host=listed[:6])
    for store in world.pair.controllers["host-secrets"].hosts:
        world.pair.policies.breaker.listed(store)
    with pytest.raises(Refused, match="6 of 10 host-secrets on the virtual side"):
        world.pair.plan(SyncRequest("vc", "host-secrets", Key("shop", "s0")))


@pytest.mark.parametrize(
    ("happens", "stopped"),
    [
        pytest.param(lambda scene: scene.lose(6), {"host": 6}, id="unreported deletions"),
        pytest.param(lambda scene: scene.lose(6, reported=True), {}, id="reported deletions"),
        pytest.param(lambda scene: scene.replace(6), {"host": 6}, id="unreported replacements"),
        pytest.param(lambda scene: scene.replace(6, reported=True), {}, id="reported replacements"),
        pytest.param(
            lambda scene: (scene.replace(3), scene.lose(3, first=3)), {"host": 6}, id="unreported ones of either sort"
        ),
        pytest.param(
            lambda scene: (scene.lose(5), scene.lose(5, first=5, reported=True)),
            {},
            id="both, few unreported",
        ),
        pytest.param(
            lambda scene: (scene.lose(6), scene.lose(4, first=6, reported=True)),
            {"host": 6},
            id="both, many unreported",
        ),
    ],
)
def test_deletions_that_no_watch_has_reported_are_counted(
    happens: Callable[[Lost], None], stopped: Mapping[str, int]
) -> None:
    scene = Lost()
    happens(scene)
    scene.listed()
    assert scene.is_deleted() is (not stopped)
    assert scene.stopped() == stopped


def test_reported_deletion_is_made_while_unreported_ones_are_stopped() -> None:
    scene = Lost()
    scene.lose(6)
    scene.lose(1, first=6, reported=True)
    scene.listed()
    assert [scene.is_deleted(number) for number in (0, 6)] == [False, True]
    requests = [SyncRequest("vc", scene.name, Key("shop", name)) for name in ("c0", "c5", "c6")]
    assert [scene.breaker.holds(request) for request in requests] == [True, True, False]
    assert scene.breaker.requests(scene.name) == {SyncRequest("vc", scene.name, Key("shop", f"c{n}")) for n in range(6)}


@pytest.mark.parametrize(
    ("counted", "stopped"),
    [
        pytest.param(lambda scene: None, False, id="nothing was listed"),
        pytest.param(lambda scene: scene.listed(), True, id="a list of the other side"),
        pytest.param(lambda scene: scene.breaker.listed(scene.store(Side.HOST)), True, id="a list of the same side"),
        pytest.param(
            lambda scene: scene.breaker.listed(scene.store(Side.VIRTUAL, SECRETS)), False, id="a list of another kind"
        ),
        pytest.param(lambda scene: scene.breaker.recount(), True, id="a pause has ended"),
    ],
)
def test_deletions_are_counted_after_a_list(counted: Callable[[Lost], None], stopped: bool) -> None:
    scene = Lost()
    scene.lose(6)
    counted(scene)
    assert scene.is_deleted() is not stopped


def test_deletions_after_the_count_of_a_list_are_not_counted_until_the_next() -> None:
    scene = Lost()
    scene.lose(5)
    scene.listed()
    assert scene.is_deleted()
    scene.lose(5, first=5)
    assert scene.is_deleted()
    scene.listed()
    assert not scene.is_deleted()


# -- lists that are not complete -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reported", [False, True], ids=["unreported", "reported"])
def test_unreported_deletion_waits_for_the_end_of_a_list(reported: bool) -> None:
    scene = Lost(count=100)
    scene.lose(1, reported=reported)
    with scene.store(Side.HOST).replacing() as page:
        page([], "1000")
        decision = scene.decision()
    assert (decision.deletes, decision.outcome, decision.after) == (
        (True, Outcome.IN_STEP, None) if reported else (False, Outcome.PENDING, LOOK)
    )


@pytest.mark.reason("ListInPart")
def test_deletion_waits_after_a_list_that_was_broken_off() -> None:
    scene = Lost(count=100)
    scene.lose(1)
    with pytest.raises(RuntimeError), scene.store(Side.HOST).replacing():
        raise RuntimeError
    assert scene.decision().outcome is Outcome.PENDING


# -- confirmation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", Side)
def test_confirmation_releases_stopped_deletions(side: Side) -> None:
    scene = Lost(side=side)
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    assert scene.breaker.confirm(lambda syncer: syncer == "notes") == []
    assert not scene.is_deleted()
    [confirmed] = scene.breaker.confirm(lambda syncer: syncer == scene.name)
    names = sorted(request.key.name for request in confirmed.objects.values())
    assert (confirmed.side, names) == (side, [f"c{number}" for number in range(6)])
    assert scene.is_deleted()
    assert scene.stopped() == {}


@pytest.mark.parametrize(
    ("more", "stopped"),
    [
        pytest.param(0, {}, id="the same"),
        pytest.param(5, {}, id="as many as the limits allow"),
        pytest.param(8, {"host": 8}, id="too many others"),
    ],
)
def test_confirmed_deletions_are_not_counted_by_the_next_list(more: int, stopped: Mapping[str, int]) -> None:
    scene = Lost(14, percent=40)
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    scene.confirm()
    scene.lose(more, first=6)
    scene.listed()
    assert scene.is_deleted()
    assert [scene.is_deleted(6 + number) for number in range(more)] == [not stopped] * more
    assert scene.stopped() == stopped


def test_confirmation_counts_once() -> None:
    scene = Lost()
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    scene.confirm()
    scene.bring_back(6)
    assert all(scene.breaker.scanned(scene.world.pair.controllers["maps"], []))
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()


def test_held_deletion_stays_held_when_a_watch_shows_its_cause() -> None:
    scene = Lost()
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    scene.bring_back(1)
    scene.lose(1, reported=True)
    assert not scene.is_deleted()
    scene.confirm()
    assert scene.is_deleted()


# -- release -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("by", "back", "stopped"),
    [
        pytest.param("list", 0, 8, id="list, and none is back"),
        pytest.param("list", 2, 6, id="list, and too few are back"),
        pytest.param("list", 3, 0, id="list, and as many are left as the limits allow"),
        pytest.param("scan", 0, 8, id="scan, and none is back"),
        pytest.param("scan", 2, 6, id="scan, and too few are back"),
        pytest.param("scan", 3, 0, id="scan, and as many are left as the limits allow"),
        pytest.param("scan", 8, 0, id="scan, and all are back"),
    ],
)
def test_stopped_deletions_are_released_when_their_cause_is_gone(side: Side, by: str, back: int, stopped: int) -> None:
    scene = Lost(side=side)
    scene.lose(8)
    scene.listed()
    assert not scene.is_deleted(7)
    scene.bring_back(back)
    if by == "scan":
        assert all(scene.breaker.scanned(scene.world.pair.controllers[scene.name], []))
    else:
        scene.listed()
    assert back == 8 or scene.is_deleted(7) is (not stopped)
    assert scene.stopped() == ({side.value: stopped} if stopped else {})


def test_syncer_that_has_stopped_is_forgotten() -> None:
    scene = Lost()
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    scene.breaker.drop("notes")
    assert (scene.stopped(), len(scene.breaker.requests("maps"))) == ({"host": 6}, 6)
    scene.breaker.drop("maps")
    assert (scene.stopped(), len(scene.breaker.requests("maps"))) == ({}, 0)


# -- drift policies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "happens", "outcome"),
    [
        pytest.param("report", lambda scene: scene.lose(1), Outcome.SKIPPED, id="reported orphan"),
        pytest.param("ignore", lambda scene: scene.lose(1), Outcome.SKIPPED, id="ignored orphan"),
        pytest.param("repair", lambda scene: scene.lose(1), Outcome.IN_STEP, id="repaired orphan"),
        pytest.param(
            "report", lambda scene: scene.lose(1, reported=True), Outcome.IN_STEP, id="deletion that was reported"
        ),
        pytest.param("report", lambda scene: scene.replace(1), Outcome.IN_STEP, id="copy of an earlier object"),
    ],
)
def test_orphan_is_left_alone_if_its_drift_policy_says_so(
    policy: str, happens: Callable[[Lost], Any], outcome: Outcome
) -> None:
    scene = Lost(drift={"orphan": policy})
    happens(scene)
    decision = scene.decision()
    assert (decision.outcome, decision.deletes) == (outcome, outcome is Outcome.IN_STEP)


@pytest.mark.reason("NotRepaired")
def test_orphans_that_are_left_alone_are_not_stopped() -> None:
    scene = Lost(drift={"orphan": "report"})
    scene.lose(6)
    scene.listed()
    assert scene.decision().writes == ()
    assert scene.stopped() == {}
