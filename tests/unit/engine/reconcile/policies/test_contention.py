"""Managers that keep reverting a field are found, changing wishes are not, and it takes little memory."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import Decision, Key, Marks, Obj, ObjectRef, Outcome, Resource, Side, SyncRequest, Verb, Write, apply
from syncer.api.reasons import FIELDS_FROZEN
from syncer.config import config_with
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.patch_paths import FIELDS, UNKNOWN, Path, changes, wanted
from syncer.engine.reconcile.plan import Frozen, PlannedWrite, PostponedFields, ServerAnswer
from syncer.engine.reconcile.policies import contention
from syncer.engine.reconcile.policies.contention import Contention, ContentionRules, contention_rules, waiting
from syncer.names import SingleNamespace

DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments")
KEY = Key("vc-ns", "web-x-shop-x-vc")
REQUEST = SyncRequest("vc", "deployments", Key("shop", "web"))
MARKS = Marks()
START = datetime(2026, 1, 1, tzinfo=UTC)
DELETE = Call(Operation.DELETE, {})
MARKED = {"metadata": {"labels": {MARKS.cluster: "vc"}}}
GUARD = {"uid": "u1", "resourceVersion": "7"}


def ref(key: Key = KEY) -> ObjectRef:
    return ObjectRef(Side.HOST, DEPLOYMENTS, key)


def planned_write(*calls: Call, live: Obj | None = None, key: Key = KEY) -> PlannedWrite:
    there = None if live is None else {"metadata": {}, **live}
    return PlannedWrite(Write(Side.HOST, Verb.APPLY, {}), ref(key), there, calls)


def patch(body: Obj, kind: Operation = Operation.PATCH) -> Call:
    return Call(kind, {**body, "metadata": {**body.get("metadata", {}), **GUARD}})


def create(uid: str = "v1") -> Call:
    return Call(Operation.CREATE, {"metadata": {"name": "web", "annotations": {MARKS.uid: uid}}, "spec": {}})


class Ring:
    """Writes as the applier does, with another writer on the other side."""

    def __init__(self, **rules: Any) -> None:
        self.now = 0.0
        self.contention = Contention(
            ContentionRules(**rules), MARKS, clock=lambda: self.now, utcnow=lambda: START + timedelta(seconds=self.now)
        )

    def write(
        self, call: Call, live: Obj | None, *, changed: bool = True, key: Key = KEY, request: SyncRequest = REQUEST
    ) -> list[Call]:
        """Return the calls that are made."""
        planned = self.contention.drop_contended(planned_write(call, live=live, key=key), request)
        for each in planned.calls:
            self.contention.sent(planned, each, ServerAnswer(each, None, changed))
        self.contention.freeze(planned.frozen)
        return list(planned.calls)

    def scale(self, to: int, *, over: int, changed: bool = True) -> bool:
        """Return True if the number of replicas is written."""
        return bool(self.write(patch({"spec": {"replicas": to}}), {"spec": {"replicas": over}}, changed=changed))

    def round(self, times: int, to: int = 3, over: int = 1) -> int:
        """Return how many of so many changes, each set back at once, are written."""
        return sum(self.scale(to, over=over) for _ in range(times))

    def frozen(self) -> list[Path]:
        return [one.path for one in self.contention.frozen()]


@pytest.fixture
def ring() -> Ring:
    return Ring()


# -- what is a fight -------------------------------------------------------------------------------


def test_field_that_is_always_reverted_is_frozen(ring: Ring) -> None:
    assert ring.round(5) == 5
    assert ring.frozen() == []
    assert ring.round(20) == 0
    assert ring.frozen() == [("spec", "replicas")]
    assert ring.contention.numbers() == {("deployments",): 1}
    assert ring.contention.counted() == {("deployments",): 1}


def test_number_of_times_is_an_option() -> None:
    assert Ring(times=1).round(9) == 1
    assert Ring(times=20).round(50) == 20
    assert Ring(times=0).round(50) == 50


def test_wish_that_changes_each_time_is_no_contention(ring: Ring) -> None:
    for _ in range(50):
        assert ring.scale(3, over=1)
        assert ring.scale(1, over=3)
    assert ring.frozen() == []


@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 6), st.booleans())
def test_field_that_only_we_change_is_never_frozen(wants: list[int], times: int, fails: bool) -> None:
    """The virtual side says now this and now that; a reply may get lost, so that the change is made but not known."""
    ring, live = Ring(times=times), -1
    for number, want in enumerate(wants):
        if want != live:
            assert ring.scale(want, over=live, changed=not (fails and number % 3 == 0))
            live = want
    assert ring.frozen() == []


@given(st.lists(st.sampled_from(["we want 1", "we want 2", "set back"]), max_size=80), st.integers(1, 4))
def test_repeated_writes_over_the_same_value_are_bounded(steps: list[str], times: int) -> None:
    """Between two changes of what we want: once over what we wanted before, and so often over what others set."""
    ring, want, live, written = Ring(times=times), 0, 0, 0
    for step in steps:
        if step == "set back":
            live = 0
        else:
            want, written = (want, written) if want == int(step[-1]) else (int(step[-1]), 0)
        if want != live and ring.scale(want, over=live):
            written, live = written + 1, want
        assert written <= times + 1


def test_call_that_fails_or_changes_nothing_does_not_count(ring: Ring) -> None:
    for _ in range(50):
        assert ring.scale(3, over=1, changed=False)


def test_lost_reply_hides_no_change_of_mind(ring: Ring) -> None:
    """We wrote 1, it was done, and we never heard of it: to write 3 again is no repetition."""
    for _ in range(50):
        assert ring.scale(3, over=1)
        assert ring.scale(1, over=3, changed=False)


def test_rare_reverts_are_no_contention(ring: Ring) -> None:
    for _ in range(50):
        assert ring.scale(3, over=1)
        ring.now += 151


def test_reverts_of_long_ago_do_not_count(ring: Ring) -> None:
    assert ring.round(5) == 5
    ring.now += 601
    assert ring.round(10) == 5


def test_others_may_take_turns_with_several_values(ring: Ring) -> None:
    written = [ring.scale(3, over=1 + turn % 2) for turn in range(50)]
    assert written.count(True) == 10


def test_fields_and_objects_are_counted_separately(ring: Ring) -> None:
    for turn in range(4):
        other = Key("vc-ns", f"other-{turn}")
        assert ring.write(patch({"spec": {"replicas": 3}}), {"spec": {"replicas": 1}}, key=other)
        assert ring.write(patch({"spec": {"paused": True}}), {"spec": {"replicas": 1}})
        assert ring.scale(3, over=1)
    assert ring.frozen() == []


def test_object_that_somebody_deletes_each_time_is_not_made_for_ever(ring: Ring) -> None:
    assert sum(bool(ring.write(create(), None)) for _ in range(20)) == 5
    assert ring.frozen() == [()]
    assert ring.scale(3, over=1), "where it is there after all, its fields are written"


def test_recreated_virtual_object_is_counted_separately(ring: Ring) -> None:
    for turn in range(50):
        assert ring.write(create(f"v{turn}"), None)


def test_deletions_of_our_own_are_no_contention(ring: Ring) -> None:
    """A Secret's copy comes and goes with the Pods that use it."""
    for _ in range(50):
        assert ring.write(create(), None)
        assert ring.write(DELETE, MARKED)


def test_deletion_of_a_recreated_object_is_frozen(ring: Ring) -> None:
    assert sum(bool(ring.write(DELETE, MARKED)) for _ in range(20)) == 5
    assert ring.frozen() == [()]
    [one] = ring.contention.frozen()
    assert "deleted by vsyncer and made by somebody else each time" in ring.contention.report([one]).reason
    ring.now += 601
    assert sum(bool(ring.write(DELETE, MARKED)) for _ in range(20)) == 1, "it goes on"
    ring.now += 601
    assert ring.write(create("v2"), None), "it was wanted in between"
    assert sum(bool(ring.write(DELETE, MARKED)) for _ in range(20)) == 1


def test_deletions_that_fail_are_far_apart_or_are_of_the_tenant_s_own_count_for_nothing(ring: Ring) -> None:
    own: Obj = {"metadata": {"labels": {"app": "web"}}}
    for _ in range(20):
        assert ring.write(DELETE, own), "a Pod of a StatefulSet that ends on the host"
        assert ring.write(DELETE, MARKED, key=Key("vc-ns", "other"), changed=False)
        assert ring.write(DELETE, MARKED, key=Key("vc-ns", "seldom"))
        ring.now += 200
    assert ring.frozen() == []
    assert all(Ring(times=0).write(DELETE, MARKED) for _ in range(20))


# -- what frozen means -----------------------------------------------------------------------------


def test_rest_of_the_object_is_still_written(ring: Ring) -> None:
    ring.round(6)
    live = {"spec": {"replicas": 1, "paused": False}, "metadata": {"labels": {"a": "1"}}}
    both = patch({"spec": {"replicas": 3, "paused": True}, "metadata": {"labels": {"a": "2"}}})
    assert ring.write(both, live) == [patch({"spec": {"paused": True}, "metadata": {"labels": {"a": "2"}}})]
    assert both.body["spec"] == {"replicas": 3, "paused": True}, "what was given is not changed"


def test_frozen_field_is_reported_with_its_manager_and_its_end(ring: Ring) -> None:
    ring.round(6)
    frozen = ring.contention.drop_frozen(planned_write(patch({"spec": {"replicas": 3}})), REQUEST).frozen
    frozen[0].other = "kubectl-edit"
    ring.now = 100
    assert ring.contention.report(frozen) == PostponedFields(
        FIELDS_FROZEN,
        "spec.replicas of the host Deployment flips between what vsyncer and kubectl-edit write; "
        "frozen until 2026-01-01T00:10:00Z; to try again now: syncer thaw deployments shop/web",
        500.0,
        True,
    )
    assert not ring.contention.report(frozen).new, "it is news only once"


def test_fields_with_one_fate_share_a_sentence(ring: Ring) -> None:
    both = patch({"spec": {"replicas": 3}, "metadata": {"labels": {"example.org/team": None}}})
    for _ in range(6):
        ring.write(both, {})
    frozen = ring.contention.drop_frozen(planned_write(both), REQUEST).frozen
    assert ring.contention.report(frozen).reason.startswith(
        'spec.replicas, metadata.labels["example.org/team"] of the host Deployment flip between what vsyncer and '
        "somebody else write; frozen until "
    )


def test_report_about_a_whole_object_names_no_field(ring: Ring) -> None:
    for _ in range(6):
        ring.write(create(), None)
    frozen = ring.contention.drop_frozen(planned_write(create()), REQUEST).frozen
    assert ring.contention.report(frozen).reason.startswith(
        "the host Deployment is made by vsyncer and deleted by somebody else each time; frozen until 2026-01-01T00:10"
    )


@pytest.mark.reason("FieldsFrozen")
def test_decision_with_postponed_fields_waits() -> None:
    decision = apply(host={"metadata": {}}, reason="changed")
    assert waiting(decision, []) is decision
    frozen = [
        PostponedFields(FIELDS_FROZEN, "a flips", 60.0, True),
        PostponedFields(FIELDS_FROZEN, "a flips", 30.0, False),
    ]
    ended = waiting(decision, frozen)
    assert ended == Decision(decision.writes, "a flips", Outcome.PENDING, 30.0)
    assert waiting(decision.look_again(5.0), frozen).after == 5.0


def test_agreement_of_both_holds_nothing(ring: Ring) -> None:
    ring.round(6)
    assert not ring.contention.drop_frozen(planned_write(), REQUEST).frozen


# -- thaw ------------------------------------------------------------------------------------------


def test_frozen_field_thaws_by_itself_and_one_more_revert_freezes_it_again(ring: Ring) -> None:
    ring.round(6)
    ring.now = 599
    assert ring.round(1) == 0
    for _ in range(3):
        ring.now += 600
        assert ring.frozen() == []
        assert ring.round(10) == 1
        assert ring.frozen() == [("spec", "replicas")]


def test_frozen_field_thaws_by_command(ring: Ring) -> None:
    ring.round(6)
    assert ring.contention.thaw(lambda one: one.path == ("other",)) == []
    [one] = ring.contention.thaw(lambda one: one.request == REQUEST)
    assert one.field == "spec.replicas"
    assert ring.frozen() == []
    assert ring.contention.numbers() == {("deployments",): 0}
    assert ring.contention.thaw(lambda one: True) == []
    assert ring.round(10) == 1


def test_contention_is_forgotten_after_a_quiet_time(ring: Ring) -> None:
    ring.round(6)
    ring.now = 600 + 601
    assert ring.round(10) == 5


def test_something_else_is_tried_at_once_and_frozen_sooner(ring: Ring) -> None:
    ring.round(6)
    assert ring.round(10, to=4) == 1
    assert ring.round(10, to=5) == 1


def test_value_that_was_wanted_first_may_be_wanted_again(ring: Ring) -> None:
    """Otherwise the field would stay at an old value, although it isn't fought over any more."""
    ring.round(6)
    assert ring.scale(4, over=1)
    assert ring.scale(3, over=4)
    assert ring.frozen() == []


# -- what a call changes ---------------------------------------------------------------------------


def fields(body: Obj, live: Obj | None = None) -> dict[Path, tuple[int, int]]:
    return {one.path: (one.ours, one.theirs) for one in changes(patch(body), live, MARKS)}


def test_patch_is_taken_apart_down_to_its_fields_and_lists_are_whole() -> None:
    body = {"spec": {"ports": [{"port": 1}], "selector": {"a": "b"}, "x": {}}, "metadata": {"labels": {"l": None}}}
    assert set(fields(body)) == {
        ("spec", "ports"),
        ("spec", "selector", "a"),
        ("spec", "x"),
        ("metadata", "labels", "l"),
    }


def test_identity_in_a_patch_is_no_change() -> None:
    assert changes(patch({}), {}, MARKS) == []
    one, other = (patch({"metadata": {"labels": {"a": "1"}}}).body for _ in "ab")
    other["metadata"]["resourceVersion"] = "8"
    assert changes(Call(Operation.PATCH, one), {}, MARKS) == changes(Call(Operation.PATCH, other), {}, MARKS)


def test_fields_are_grouped_if_there_are_many() -> None:
    many = {f"k{number}": str(number) for number in range(100)}
    assert set(fields({"data": many})) == {("data",)}
    assert set(fields({"metadata": {"labels": many}, "spec": {"a": 1}})) == {("metadata", "labels"), ("spec", "a")}
    one = fields({"data": many}, {"data": {"k1": "x", "others": "1"}})
    assert one == fields({"data": many}, {"data": {"k1": "x", "others": "2"}}), "only what is changed counts"
    assert one != fields({"data": many}, {"data": {"k1": "y"}})


def test_deep_patch_costs_no_deep_recursion() -> None:
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    assert [len(path) for path in fields({"spec": deep})] == [8]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": 1}, {"a": "1"}), ({"a": None}, {"a": ""}), ({"a": {}}, {"a": []}), ({"a": [1, 2]}, {"a": [2, 1]})],
    ids=str,
)
def test_different_values_have_different_hashes(one: Obj, other: Obj) -> None:
    assert [ours for ours, _ in fields(one).values()] != [ours for ours, _ in fields(other).values()]


def test_order_of_names_is_ignored_and_absence_is_a_value() -> None:
    assert fields({"a": [{"x": 1, "y": 2}]}) == fields({"a": [{"y": 2, "x": 1}]})
    assert fields({"a": 1}, None)["a",] == fields({"a": 1}, {})["a",] != fields({"a": 1}, {"a": None})["a",]
    assert fields({"a": {"b": 1}}, {"a": "x"})["a", "b"] == fields({"a": {"b": 1}}, {})["a", "b"]


def test_call_does_not_want_fields_that_it_does_not_set() -> None:
    assert wanted(patch({"spec": {"a": 1}}), ("spec", "b"), MARKS) == UNKNOWN
    assert wanted(patch({"spec": {"a": 1}}), (), MARKS) == UNKNOWN
    assert wanted(create(), ("spec",), MARKS) == UNKNOWN
    assert wanted(DELETE, ("spec",), MARKS) == UNKNOWN
    assert changes(Call(Operation.BIND, {"target": {}}), {}, MARKS) == []


# -- room ------------------------------------------------------------------------------------------


def test_contention_keeps_no_values(ring: Ring) -> None:
    secret = patch({"data": {"password": "c2VjcmV0"}})
    for _ in range(6):
        ring.write(secret, {"data": {"password": "b3RoZXI="}})
    assert ring.frozen() == [("data", "password")]
    kept = repr([*_inside(ring.contention)])
    assert "c2VjcmV0" not in kept
    assert "b3RoZXI=" not in kept


def _inside(value: Any) -> Iterable[Any]:
    for part in vars(value).values():
        yield from part.items() if isinstance(part, dict) else [part]


def test_memory_of_changes_is_bounded(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "REMEMBERED", 10)
    monkeypatch.setattr(contention, "FROZEN", 7)
    for number in range(30):
        for _ in range(6):
            ring.write(patch({"spec": {"replicas": 3}}), {"spec": {"replicas": 1}}, key=Key("vc-ns", str(number)))
    frozen: list[Frozen] = ring.contention.frozen()
    assert [one.ref.key.name for one in frozen] == [str(number) for number in range(23, 30)]
    past = ring.contention._past
    assert [key.name for _, _, key in past] == [str(number) for number in range(20, 30)]
    for number in range(500):
        ring.write(patch({"spec": {"replicas": number}}), {"spec": {"replicas": 1}})
    assert len(past) == 10
    assert len(past[ref()]) <= contention.WIDTH * FIELDS * 6


def test_changes_that_are_too_old_take_no_memory(ring: Ring) -> None:
    for number in range(40):
        ring.now += 100
        assert ring.scale(number, over=number - 1)
    assert len(ring.contention._past[ref()]) == 7 * contention.WIDTH


def test_contention_that_is_over_is_forgotten(ring: Ring) -> None:
    for number in range(5):
        for _ in range(6):
            ring.write(patch({"spec": {"replicas": 3}}), {"spec": {"replicas": 1}}, key=Key("vc-ns", str(number)))
    ring.now = 2000
    ring.round(6)
    assert list(ring.contention._frozen) == [ref()]


def test_rules_come_from_the_configuration() -> None:
    model = config_with([], translator=SingleNamespace)
    given = {"cluster": "vc", "host": {"namespace": "home"}}
    assert contention_rules(model.model_validate(given).cluster()) == ContentionRules()
    options = {"times": 2, "window": "1m", "thaw": "1h"}
    assert contention_rules(model.model_validate({**given, "fights": options}).cluster()) == ContentionRules(
        2, 60, 3600
    )
