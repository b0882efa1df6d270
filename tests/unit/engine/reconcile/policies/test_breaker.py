"""The circuit breaker counts deletions, holds too many of them, and lets them go once confirmed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from syncer.api import (
    Context,
    Decision,
    Key,
    Mirror,
    Obj,
    Outcome,
    Refused,
    Request,
    Resource,
    Side,
    Verb,
    delete,
    key_of,
    uid_of,
)
from syncer.clusters import codec
from syncer.engine.informers import SideInformer
from syncer.engine.reconcile.controller import Controller
from syncer.engine.reconcile.policies.breaker import (
    DECIDED,
    LOOK,
    LOOKED_AT,
    NEXT,
    REASON,
    STEP,
    CircuitBreaker,
    PlannedDeletion,
)
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, host_copy, secret


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

    def lose(self, number: int, *, first: int = 0, seen: bool = False) -> None:
        """Remove so many counterparts, without an event or with one."""
        for one in self.originals[first : first + number]:
            lost = one if self.side is Side.HOST else host_copy(one)
            if seen:
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

    def replace(self, number: int, *, seen: bool = False) -> None:
        """Let the first originals be other objects of the same names."""
        for one in self.originals[:number]:
            name = one["metadata"]["name"]
            if not seen:
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
            request = Request("vc", self.name, key_of(one))
            [write] = self.world.pair.reconciler.scan(controller, request).decision.writes
            planned.append(PlannedDeletion(write.side, key_of(write.obj), uid_of(write.obj), request))
        assert all(self.breaker.scanned(controller, planned))

    # -- what follows ------------------------------------------------------------------------------

    def decision(self, number: int = 0) -> Decision:
        return self.world.pair.plan(Request("vc", self.name, Key("shop", f"c{number}"))).decision

    def is_deleted(self, number: int = 0) -> bool:
        """Return True if a plan deletes this object, False if its deletion is held."""
        try:
            decision = self.decision(number)
        except Refused as refused:
            if refused.reason != REASON:
                raise
            return False
        assert [(write.verb, write.side) for write in decision.writes] == [(Verb.DELETE, self.side)]
        return True

    def held(self) -> dict[str, int]:
        """The number of held deletions by side."""
        return {side.value: len(one.objects) for (_, side), one in self.breaker.held.items()}

    def confirm(self) -> None:
        assert self.breaker.confirm(lambda syncer: syncer == self.name)


# -- the limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["list", "scan"])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("size", "lost", "count", "percent", "held"),
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
def test_deletions_that_exceed_both_limits_are_held(
    by: str, side: Side, size: int, lost: int, count: int, percent: float, held: bool
) -> None:
    scene = Lost(size, side=side, count=count, percent=percent)
    scene.lose(lost)
    if by == "list":
        scene.listed()
    else:
        scene.scanned(lost)
    assert [scene.is_deleted(number) for number in range(lost)] == [not held] * lost
    assert scene.held() == ({side.value: lost} if held else {})


@pytest.mark.parametrize("side", Side)
def test_breaker_without_limits_holds_nothing(side: Side) -> None:
    scene = Lost(side=side, count=0, percent=0)
    scene.breaker.limits = None
    scene.lose(10)
    scene.listed()
    assert scene.is_deleted()
    assert scene.held() == {}


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


def test_total_of_the_virtual_side_is_all_objects() -> None:
    scene = Lost(side=Side.VIRTUAL)
    scene.lose(6)
    scene.listed()
    with pytest.raises(Refused, match=r"6 of 10 leaving on the virtual side.*syncer patrol --confirm"):
        scene.decision()


@pytest.mark.parametrize(
    ("happens", "held"),
    [
        pytest.param(lambda scene: scene.lose(6), {"host": 6}, id="unseen deletions"),
        pytest.param(lambda scene: scene.lose(6, seen=True), {}, id="seen deletions"),
        pytest.param(lambda scene: scene.replace(6), {"host": 6}, id="unseen replacements"),
        pytest.param(lambda scene: scene.replace(6, seen=True), {}, id="seen replacements"),
        pytest.param(
            lambda scene: (scene.replace(3), scene.lose(3, first=3)), {"host": 6}, id="unseen ones of either sort"
        ),
        pytest.param(
            lambda scene: (scene.lose(5), scene.lose(5, first=5, seen=True)), {}, id="seen ones beside unseen ones"
        ),
        pytest.param(
            lambda scene: (scene.lose(6), scene.lose(4, first=6, seen=True)),
            {"host": 6},
            id="unseen ones beside seen ones",
        ),
    ],
)
def test_deletions_that_no_watch_has_reported_are_counted(
    happens: Callable[[Lost], None], held: Mapping[str, int]
) -> None:
    scene = Lost()
    happens(scene)
    scene.listed()
    assert scene.is_deleted() is (not held)
    assert scene.held() == held


def test_seen_deletion_is_made_while_unseen_ones_are_held() -> None:
    scene = Lost()
    scene.lose(6)
    scene.lose(1, first=6, seen=True)
    scene.listed()
    assert [scene.is_deleted(number) for number in (0, 6)] == [False, True]


@pytest.mark.parametrize(
    ("counted", "held"),
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
def test_deletions_are_counted_after_a_list(counted: Callable[[Lost], None], held: bool) -> None:
    scene = Lost()
    scene.lose(6)
    counted(scene)
    assert scene.is_deleted() is not held


def test_deletions_after_the_count_of_a_list_are_not_counted_until_the_next() -> None:
    scene = Lost()
    scene.lose(5)
    scene.listed()
    assert scene.is_deleted()
    scene.lose(5, first=5)
    assert scene.is_deleted()
    scene.listed()
    assert not scene.is_deleted()


# -- many objects --------------------------------------------------------------------------------------------------


def asked_while(scene: Lost, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of decisions which the breaker asks for in each of those about ``c0``,
    until these no longer wait.
    """
    asked, steps = [0], []
    decide = scene.breaker._decide

    def counted(controller: Controller, request: Request) -> Decision:
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
    assert scene.held() == ({} if lost == 500 else {side.value: lost})


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


def test_list_during_a_count_begins_it_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(1000)
    scene.lose(400)
    scene.listed()
    assert scene.decision().outcome is Outcome.PENDING
    scene.lose(200, first=400)
    scene.listed()
    asked_while(scene, monkeypatch)
    assert scene.held() == {"host": 600}


def test_count_that_fails_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost()
    scene.lose(6)
    scene.listed()
    with monkeypatch.context() as broken:
        broken.setattr(scene.breaker, "_weight", lambda *_: 1 // 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                scene.decision()
    assert not scene.is_deleted()


def test_deletions_are_held_while_they_are_counted_anew() -> None:
    scene = Lost(1000)
    scene.lose(600)
    scene.scanned(600)
    assert scene.held() == {"host": 600}
    scan = scene.breaker.scanned(scene.world.pair.controllers[scene.name], [])
    next(scan)
    assert scene.held() == {"host": 600}
    with pytest.raises(Refused):
        scene.decision()
    assert all(scan)
    assert scene.held() == {"host": 600}


def test_count_of_a_syncer_that_has_stopped_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Lost(1000)
    scene.lose(600)
    scene.listed()
    assert scene.decision().outcome is Outcome.PENDING
    scene.breaker.drop(scene.name)
    assert asked_while(scene, monkeypatch) == [0]
    assert scene.held() == {}


# -- lists that are not complete -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [False, True], ids=["unseen", "seen"])
def test_unseen_deletion_waits_for_the_end_of_a_list(seen: bool) -> None:
    scene = Lost(count=100)
    scene.lose(1, seen=seen)
    with scene.store(Side.HOST).replacing() as page:
        page([], "1000")
        decision = scene.decision()
    assert (decision.deletes, decision.outcome, decision.after) == (
        (True, Outcome.IN_STEP, None) if seen else (False, Outcome.PENDING, LOOK)
    )


def test_deletion_waits_after_a_list_that_was_broken_off() -> None:
    scene = Lost(count=100)
    scene.lose(1)
    with pytest.raises(RuntimeError), scene.store(Side.HOST).replacing():
        raise RuntimeError
    assert scene.decision().outcome is Outcome.PENDING


# -- confirmation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", Side)
def test_confirmation_releases_held_deletions(side: Side) -> None:
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
    assert scene.held() == {}


@pytest.mark.parametrize(
    ("more", "held"),
    [
        pytest.param(0, {}, id="the same"),
        pytest.param(5, {}, id="as many as the limits allow"),
        pytest.param(8, {"host": 8}, id="too many others"),
    ],
)
def test_confirmed_deletions_are_not_counted_by_the_next_list(more: int, held: Mapping[str, int]) -> None:
    scene = Lost(14, percent=40)
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    scene.confirm()
    scene.lose(more, first=6)
    scene.listed()
    assert scene.is_deleted()
    assert [scene.is_deleted(6 + number) for number in range(more)] == [not held] * more
    assert scene.held() == held


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


# -- release -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("by", "back", "held"),
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
def test_held_deletions_are_released_when_their_cause_is_gone(side: Side, by: str, back: int, held: int) -> None:
    scene = Lost(side=side)
    scene.lose(8)
    scene.listed()
    assert not scene.is_deleted(7)
    scene.bring_back(back)
    if by == "scan":
        assert all(scene.breaker.scanned(scene.world.pair.controllers[scene.name], []))
    else:
        scene.listed()
    assert back == 8 or scene.is_deleted(7) is (not held)
    assert scene.held() == ({side.value: held} if held else {})


def test_syncer_that_has_stopped_is_forgotten() -> None:
    scene = Lost()
    scene.lose(6)
    scene.listed()
    assert not scene.is_deleted()
    scene.breaker.drop("notes")
    assert (scene.held(), len(scene.breaker.requests("maps"))) == ({"host": 6}, 6)
    scene.breaker.drop("maps")
    assert (scene.held(), len(scene.breaker.requests("maps"))) == ({}, 0)


# -- drift policies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "happens", "outcome"),
    [
        pytest.param("report", lambda scene: scene.lose(1), Outcome.SKIPPED, id="reported orphan"),
        pytest.param("ignore", lambda scene: scene.lose(1), Outcome.SKIPPED, id="ignored orphan"),
        pytest.param("repair", lambda scene: scene.lose(1), Outcome.IN_STEP, id="repaired orphan"),
        pytest.param("report", lambda scene: scene.lose(1, seen=True), Outcome.IN_STEP, id="deletion that was seen"),
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


def test_orphans_that_are_left_alone_are_not_held() -> None:
    scene = Lost(drift={"orphan": "report"})
    scene.lose(6)
    scene.listed()
    assert scene.decision().writes == ()
    assert scene.held() == {}
