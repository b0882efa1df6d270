"""Owners of fields, the stored base, and the meaning of a deleted copy: each step in a process of its own."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncer.api import Decision, Obj, Outcome, Refused, Side, Verb, Write, annotations_of, uid_of
from syncer.engine.reconcile.merge_base import Base, read, written
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.secrets import SecretSyncer
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace, secret

KEY, HOST_KEY = "shop/web", "vc-ns/web-x-shop-x-vc"
NAMES = st.sampled_from(["a", "b.c"])
VALUES = st.sampled_from([None, "0", "1", "1.0"])
EDITS = st.tuples(st.sampled_from(["virtual", "host"]), NAMES, VALUES)
STEPS = st.lists(st.one_of(EDITS, st.tuples(st.just("look"), st.integers(0, 2))), max_size=14)


def world_of(maps: Mapping[str, Any], *, before: World | None = None) -> World:
    """Return a world in which ConfigMaps have these options; with the objects of an earlier one, as
    after a restart.
    """
    made = World([ConfigMapSyncer], config={"sync": {"toHost": {"configMaps": {"all": True, **maps}}}})
    if before is None:
        return made.given(host=[namespace("vc-ns")])
    objects = {side.value: [obj for _, obj in before.objects(side)] for side in Side}
    return made.given(**objects)


def virtual(world: World) -> Obj:
    found = world.virtual("ConfigMap", KEY)
    assert found is not None
    return found


def host(world: World) -> Obj:
    found = world.host("ConfigMap", HOST_KEY)
    assert found is not None
    return found


def data(obj: Obj) -> dict[str, str]:
    return obj.get("data") or {}


def edit(world: World, side: str, patch: Mapping[str, Any]) -> None:
    found = virtual(world) if side == "virtual" else host(world)
    world.given(**{side: [merged(found, patch)]})


def looked(world: World) -> int:
    """One look, carried out; gives the number of requests."""
    return len(world.apply(world.decide(ConfigMapSyncer, KEY)))


def started(options: Mapping[str, Any], **contents: str) -> World:
    """Return an object and its copy in step."""
    world = world_of(options).given(virtual=[configmap("web", data=contents)])
    world.settle(ConfigMapSyncer, KEY)
    return world


# -- fields that both sides own --------------------------------------------------------------------

BOTH = {"authority": {"data": "both"}}


class Model:
    """Two mappings and what both last agreed on, each entry for itself."""

    def __init__(self) -> None:
        self.virtual: dict[str, str] = {"a": "0"}
        self.host, self.agreed = dict(self.virtual), dict(self.virtual)

    def edit(self, side: str, name: str, value: str | None) -> None:
        mine = self.virtual if side == "virtual" else self.host
        mine.pop(name, None)
        if value is not None:
            mine[name] = value

    def look(self, writes: int) -> None:
        """Return the decision: the first write goes down, the second up."""
        v, h, a = dict(self.virtual), dict(self.host), dict(self.agreed)
        for name in {*v, *h}:
            rises = v.get(name) == a.get(name)
            if v.get(name) != h.get(name) and writes > rises:
                self.edit("virtual" if rises else "host", name, (h if rises else v).get(name))
                self._agree(name, (h if rises else v).get(name))
        for name in {*v, *h, *a} if writes else ():
            if v.get(name) == h.get(name):
                self._agree(name, v.get(name))

    def _agree(self, name: str, value: str | None) -> None:
        self.agreed.pop(name, None)
        if value is not None:
            self.agreed[name] = value


#: A name comes up, is taken away again beside another that comes up, and is set again.
AGAIN = [
    *(("host", "b.c", "1"), ("look", 2), ("virtual", "b.c", None), ("host", "a", None), ("look", 2)),
    *(("virtual", "b.c", "1"), ("look", 1)),
]


@settings(max_examples=150)
@given(STEPS)
@example(AGAIN)
def test_crash_between_two_writes_does_not_change_who_wins(steps: list[Any]) -> None:
    world, model = started(BOTH, a="0"), Model()
    for step in steps:
        world = world_of(BOTH, before=world)
        if step[0] == "look":
            for write in world.decide(ConfigMapSyncer, KEY).writes[: step[1]]:
                world.apply(Decision((write,)), by=ConfigMapSyncer)
            model.look(step[1])
        else:
            side, name, value = step
            edit(world, side, {"data": {name: value}})
            model.edit(side, name, value)
        assert (data(virtual(world)), data(host(world))) == (model.virtual, model.host)
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world))
    assert looked(world_of(BOTH, before=world)) == 0, "in step, and a new process writes again"


def test_fields_that_went_down_beside_those_that_came_up_can_be_removed() -> None:
    """The host takes away all that it has while the virtual side adds something, and takes that away later."""
    world = started(BOTH, a="0")
    edit(world, "virtual", {"data": {"b": "0"}})
    edit(world, "host", {"data": {"a": None}})
    assert looked(world_of(BOTH, before=world)) == 2
    world = world_of(BOTH, before=world)
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world)) == {"b": "0"}
    edit(world, "virtual", {"data": {"b": None}})
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world)) == {}


@pytest.mark.parametrize("side", ["virtual", "host"])
def test_change_on_one_side_reaches_the_other(side: str) -> None:
    world = started(BOTH, a="0", b="0")
    edit(world, side, {"data": {"a": "1", "b": None, "c": "2"}})
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world)) == {"a": "1", "c": "2"}


def test_virtual_side_wins_where_both_have_changed() -> None:
    world = started(BOTH, a="0", b="0")
    edit(world, "virtual", {"data": {"a": "ours"}})
    edit(world, "host", {"data": {"a": "theirs", "b": "theirs"}})
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world)) == {"a": "ours", "b": "theirs"}


def test_contents_may_all_be_removed() -> None:
    world = started(BOTH, a="0")
    edit(world, "host", {"data": None})
    world.settle(ConfigMapSyncer, KEY)
    assert "data" not in virtual(world)


def test_copy_without_a_base_follows_the_virtual_side() -> None:
    world = started({}, a="0")
    assert "vsyncer.dev/base" not in annotations_of(host(world)), "nobody needs one"
    edit(world, "host", {"data": {"a": "1", "b": "1"}})
    world = world_of(BOTH, before=world)
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world)) == {"a": "0"}


def test_write_that_goes_up_changes_no_later_version() -> None:
    world = started(BOTH, a="0")
    edit(world, "host", {"data": {"a": "1"}})
    [_, write] = world.decide(ConfigMapSyncer, KEY).writes
    own = virtual(world)["metadata"]
    assert (write.side, write.obj["metadata"]["uid"]) == (Side.VIRTUAL, own["uid"])
    assert write.obj["metadata"]["resourceVersion"] == own["resourceVersion"]
    edit(world, "virtual", {"data": {"a": "2"}})
    [write] = world.decide(ConfigMapSyncer, KEY).writes[:1]
    assert write.side is Side.HOST
    assert write.obj["metadata"]["resourceVersion"] == host(world)["metadata"]["resourceVersion"]


def test_base_has_no_values_and_is_stable() -> None:
    world = started({**BOTH, "drift": {"field": "report"}}, password="correct-horse")
    before = read(host(world), world.settings.marks)
    assert before is not None
    assert before.want
    assert "correct-horse" not in annotations_of(host(world))["vsyncer.dev/base"]
    edit(world, "virtual", {"metadata": {"labels": {"app": "web"}}})
    world.settle(ConfigMapSyncer, KEY)
    after = read(host(world), world.settings.marks)
    assert after is not None
    assert after.want != before.want
    assert after.both == before.both


def test_lenient_policy_alone_makes_a_base() -> None:
    world = started({"drift": {"field": "report"}}, a="0")
    output = read(host(world), world.settings.marks)
    assert output is not None
    [wanted] = [write.obj for write in world.decide(ConfigMapSyncer, KEY).writes if write.side is Side.HOST]
    assert read(wanted, world.settings.marks) == output, "nothing else is wanted, so both must say so"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"both":{"data":1}}', '{"ups":"x"}', '{"want":1}'])
def test_base_that_cannot_be_read_is_none(text: str) -> None:
    world = started(BOTH, a="0")
    marks = world.settings.marks
    edit(world, "host", {"metadata": {"annotations": {marks.base: text}}})
    assert read(host(world), marks) is None
    edit(world, "virtual", {"metadata": {"annotations": {marks.base: text}}})
    world.settle(ConfigMapSyncer, KEY)
    assert data(host(world)) == {"a": "0"}


def test_base_is_read_as_it_was_written() -> None:
    world = World([ConfigMapSyncer])
    base = Base("w", {"data": {"a": "h", "b": "h i"}, "spec.x": ""}, 3)
    assert read(written(configmap("web"), base, world.settings.marks), world.settings.marks) == base


@pytest.mark.reason("TooManyFields")
def test_shared_fields_beyond_the_limit_are_refused() -> None:
    world = world_of(BOTH).given(virtual=[configmap("web", data={f"name-{number:05}": "" for number in range(5000)})])
    with pytest.raises(Refused, match="too many to be remembered"):
        world.decide(ConfigMapSyncer, KEY)


# -- fields that the host owns ---------------------------------------------------------------------

HOST = {"authority": {"data": "host"}}


def test_host_owns_a_field_after_the_copy_is_made() -> None:
    world = started(HOST, a="0")
    assert data(host(world)) == {"a": "0"}
    edit(world, "virtual", {"data": {"a": "ours", "b": "ours"}, "metadata": {"labels": {"app": "web"}}})
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == data(host(world)) == {"a": "0"}
    assert host(world)["metadata"]["labels"]["app"] == "web", "the rest is the virtual side's"
    edit(world, "host", {"data": {"a": "1", "c": "1"}})
    world.settle(ConfigMapSyncer, KEY)
    assert data(virtual(world)) == {"a": "1", "c": "1"}
    for obj in (virtual(world), host(world)):
        assert "vsyncer.dev/base" not in annotations_of(obj), "the host's word needs no memory"


# -- what can't go up ------------------------------------------------------------------------------


class Undeclared(SecretSyncer):
    """Translates a field without a declaration: otherwise no configuration could give it another owner."""

    translates = ()  # type: ignore[assignment]


@pytest.mark.parametrize("owner", ["host", "both"])
def test_translated_field_cannot_go_up(owner: str) -> None:
    options = {"sync": {"toHost": {"secrets": {"all": True, "authority": {"type": owner}}}}}
    token = secret(
        "web", type="bootstrap.kubernetes.io/token", metadata={"annotations": {"vsyncer.dev/force-sync": "true"}}
    )
    world = World([Undeclared], config=options).given(virtual=[token])
    with pytest.raises(Refused, match=r"type: its owner can't be"):
        world.decide(Undeclared, KEY)


# -- what a deleted copy means ---------------------------------------------------------------------


def mark(world: World) -> str:
    return annotations_of(virtual(world)).get(world.settings.marks.copied, "")


@pytest.fixture(params=[False, True], ids=["running", "restarted"])
def again(request: pytest.FixtureRequest) -> Any:
    """Return the world of the next process."""
    return lambda world, options: world_of(options, before=world) if request.param else world


PROPAGATE, REPORT = {"onHostDeletion": "propagate"}, {"onHostDeletion": "report"}


@pytest.mark.parametrize("options", [PROPAGATE, REPORT])
def test_copy_is_recorded_on_the_virtual_object(options: Mapping[str, Any]) -> None:
    world = started(options, a="0")
    assert mark(world).split()[0] == uid_of(host(world))
    assert world.settings.marks.copied not in annotations_of(host(world))


def test_copy_is_made_again_as_is_usual(again: Any) -> None:
    world = started({}, a="0")
    assert mark(world) == ""
    world.gone(host=[host(world)])
    world = again(world, {})
    world.settle(ConfigMapSyncer, KEY)
    assert data(host(world)) == {"a": "0"}


def test_deletion_on_the_host_is_propagated(again: Any) -> None:
    world = started(PROPAGATE, a="0")
    world.gone(host=[host(world)])
    world = again(world, PROPAGATE)
    decision = world.decide(ConfigMapSyncer, KEY)
    [write] = decision.writes
    assert (write.side, write.verb) == (Side.VIRTUAL, Verb.DELETE)
    assert write.precondition is not None
    world.apply(decision)
    assert world.virtual("ConfigMap", KEY) is None
    assert world.host("ConfigMap", HOST_KEY) is None


def test_deletion_on_the_host_is_reported(again: Any) -> None:
    world = started(REPORT, a="0")
    world.gone(host=[host(world)])
    world = again(world, REPORT)
    with pytest.raises(Refused, match=r"take the annotation vsyncer\.dev/copied off") as raised:
        world.decide(ConfigMapSyncer, KEY)
    assert raised.value.reason == "HostCopyDeleted"
    edit(world, "virtual", {"metadata": {"annotations": {world.settings.marks.copied: None}}})
    world.settle(ConfigMapSyncer, KEY)
    assert mark(world).split()[0] == uid_of(host(world))


HAS_FINALIZER = {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/hold"]}}


def test_copy_that_is_lost_while_its_original_is_being_deleted_follows_the_policy_too() -> None:
    for policy in (PROPAGATE, REPORT):
        world = started(policy, a="0")
        world.gone(host=[host(world)])
        edit(world, "virtual", HAS_FINALIZER)
        if policy is REPORT:
            with pytest.raises(Refused, match=r"take the annotation vsyncer\.dev/copied off"):
                world.decide(ConfigMapSyncer, KEY)
        else:
            decision = world.decide(ConfigMapSyncer, KEY)
            assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())
    world = started({}, a="0")
    world.gone(host=[host(world)])
    edit(world, "virtual", HAS_FINALIZER)
    world.settle(ConfigMapSyncer, KEY)
    assert data(host(world)) == {"a": "0"}


def test_copy_that_is_there_after_all_keeps_its_original() -> None:
    world = started(PROPAGATE, a="0")
    there = host(world)
    world.gone(host=[there])
    decision = world.decide(ConfigMapSyncer, KEY)
    world.given(host=[there])
    with pytest.raises(Exception, match="not as it was last seen"):
        world.apply(decision)
    assert world.virtual("ConfigMap", KEY) is not None


@pytest.mark.parametrize(
    ("home", "state"),
    [
        (None, "is gone"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}, "is being deleted"),
        ({"metadata": {"creationTimestamp": "2026-01-01T12:00:01Z"}}, "was replaced"),
    ],
)
@pytest.mark.reason("HostNamespaceGone")
def test_virtual_object_is_not_deleted_with_a_host_namespace(home: Obj | None, state: str) -> None:
    world = started(PROPAGATE, a="0")
    world.gone(host=[host(world)])
    if home is None:
        world.gone(host=[namespace("vc-ns")])
    else:
        world.given(host=[merged(namespace("vc-ns"), home)])
    with pytest.raises(Refused, match=state):
        world.apply(world.decide(ConfigMapSyncer, KEY))
    assert world.virtual("ConfigMap", KEY) is not None


def test_mark_that_came_with_a_backup_means_nothing() -> None:
    world = started(PROPAGATE, a="0")
    restored = merged(virtual(world), {"metadata": {"uid": "another"}})
    world.gone(virtual=[restored], host=[host(world)]).given(virtual=[restored])
    world.settle(ConfigMapSyncer, KEY)
    assert data(host(world)) == {"a": "0"}
    assert mark(world).split()[::2][:2] == [uid_of(host(world)), "another"]


def own_deletions() -> list[Any]:
    """Ways to let us delete a copy ourselves, and what brings it back."""
    return [
        pytest.param({"all": False}, lambda world: None, _force, id="unused"),
        pytest.param({}, _make_immutable, lambda world: None, id="replaced"),
    ]


def _force(world: World) -> None:
    edit(world, "virtual", {"metadata": {"annotations": {"vsyncer.dev/force-sync": "true"}}})


def _make_immutable(world: World) -> None:
    edit(world, "host", {"immutable": True})
    edit(world, "virtual", {"data": {"a": "1"}})


@pytest.mark.parametrize("policy", [PROPAGATE, REPORT])
@pytest.mark.parametrize(("options", "cause", "back"), own_deletions())
@pytest.mark.parametrize("stop", range(4))
def test_mark_is_removed_before_we_delete_the_copy(
    policy: Mapping[str, Any], options: Mapping[str, Any], cause: Any, back: Any, stop: int
) -> None:
    """Stopped after any request, the tenant's object is never taken for one whose copy another user has deleted."""
    world = world_of({**policy, "all": True, **options}, before=started(policy, a="0"))
    cause(world)
    decision = world.decide(ConfigMapSyncer, KEY)
    assert [(write.side, write.verb) for write in decision.writes] == [
        (Side.VIRTUAL, Verb.NOTE),
        (Side.HOST, Verb.DELETE),
    ]
    for write in decision.writes[:stop]:
        world.apply(Decision((write,)), by=ConfigMapSyncer)
    world = world_of({**policy, "all": True, **options}, before=world)
    back(world)
    world.settle(ConfigMapSyncer, KEY)
    assert mark(world).split()[0] == uid_of(host(world))


def test_mark_goes_with_the_wish_for_a_copy() -> None:
    """The copy is gone, and not wanted any more: if it is wanted one day, that is no deletion by a user."""
    world = started(PROPAGATE, a="0")
    world.gone(host=[host(world)])
    world = world_of({**PROPAGATE, "all": False}, before=world)
    decision = world.decide(ConfigMapSyncer, KEY)
    assert decision.outcome is Outcome.SKIPPED
    world.apply(decision)
    assert mark(world) == ""
    assert looked(world) == 0


def test_object_that_is_being_deleted_is_left_alone() -> None:
    world = started(PROPAGATE, a="0")
    world.gone(host=[host(world)])
    edit(world, "virtual", {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["x/y"]}})
    assert world.decide(ConfigMapSyncer, KEY).writes == ()


def test_write_about_an_object_that_is_gone_makes_none() -> None:
    """A write with a mark, or one that goes up, is about an existing object and must never create another."""
    world = started(PROPAGATE, a="0")
    obj = merged(virtual(world), {"metadata": {"uid": "earlier"}})
    write = Write(Side.VIRTUAL, Verb.APPLY, obj, ())
    assert world.apply(Decision((write,)), by=ConfigMapSyncer) == []
    world.gone(virtual=[obj])
    assert world.apply(Decision((write,)), by=ConfigMapSyncer) == []
