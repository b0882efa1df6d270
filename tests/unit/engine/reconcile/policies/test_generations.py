"""The generations in a status that comes up are those of the virtual object."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from engine_fakes import HOST_KEY, KEY, WIDGETS, Widgets, copy_of, observed, virtual

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Mirror,
    NotYet,
    Obj,
    ObjectRef,
    Outcome,
    Pair,
    Resource,
    Side,
    Sync,
    SyncDown,
    Syncer,
    SyncRequest,
    Write,
    apply,
    delete,
    wait,
)
from syncer.api.reasons import MERGE_REFUSED
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.plan import Frozen, Observed, PlannedWrite, PostponedFields
from syncer.engine.reconcile.policies.generations import Generations
from syncer.resources.kinds import SECRETS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build

REQUEST = SyncRequest("vc", "widgets", KEY)
COPY = ObjectRef(Side.HOST, WIDGETS, HOST_KEY)
DEPTH = 20_000


def in_step(syncer: type[Syncer[Any]] = Widgets, **options: Any) -> World:
    """Return a world with a Widget and its copy."""
    config = {"sync": {"toHost": {"widgets": options}}} if options else {}
    world = World([syncer], config=config).given(virtual=[build(WIDGETS, "web", spec={"size": 1})])
    world.settle(syncer, "shop/web")
    return world


def change(world: World, *, virtual: Obj | None = None, host: Obj | None = None) -> None:
    """Change the Widget, its copy, or both."""
    original = world.virtual("Widget", "shop/web")
    copy = world.host("Widget", str(HOST_KEY))
    assert original
    assert copy
    world.given(virtual=[merged(original, virtual or {})], host=[merged(copy, host or {})])


def report(world: World, status: Obj, *, generation: Any = 3, latest: Any = 7, there: Obj | None = None) -> None:
    """Let the host report a status, and both objects have these generations."""
    own = {"metadata": {"generation": generation}, "status": there}
    change(world, virtual=own, host={"metadata": {"generation": latest}, "status": status})


def shown(world: World, syncer: type[Syncer[Any]] = Widgets) -> Any:
    """Return the status that is decided for the virtual object."""
    writes = world.decide(syncer, "shop/web").writes
    [write] = [each for each in writes if each.side is Side.VIRTUAL]
    return write.obj.get("status")


# -- which generation ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "reported", "there", "wanted"),
    [
        pytest.param({}, 7, None, 3, id="the latest"),
        pytest.param({}, 7, 1, 3, id="the latest, where an earlier one is"),
        pytest.param({}, 8, None, 3, id="a later one than the cache has"),
        pytest.param({}, 6, None, 2, id="an earlier one"),
        pytest.param({}, 6, 3, 2, id="an earlier one, where the present one is"),
        pytest.param({}, 6, 1, 1, id="an earlier one, where one before that is"),
        pytest.param({}, 6, -1, 2, id="an earlier one, where none can be"),
        pytest.param({}, 6, True, 2, id="an earlier one, where something else is"),
        pytest.param({}, "7", None, "3", id="the latest, as text"),
        pytest.param({}, "6", "1", "1", id="an earlier one as text, where one before that is"),
        pytest.param({}, "6", 1, "1", id="an earlier one as text, where one before that is a number"),
        pytest.param({"metadata": {"labels": {"team": "a"}}}, 7, None, 3, id="the copy lacks a label"),
        pytest.param({"metadata": {"annotations": {"example.org/a": "b"}}}, 7, None, 3, id="the copy lacks a note"),
    ],
)
def test_status_is_about_a_generation_of_the_virtual_object(
    changed: Obj, reported: Any, there: Any, wanted: Any
) -> None:
    world = in_step()
    report(world, {"observedGeneration": reported}, there={"observedGeneration": there})
    change(world, virtual=changed)
    assert shown(world) == {"observedGeneration": wanted}


@pytest.mark.parametrize("there", [None, {"phase": "Down", "observedGeneration": 3}], ids=["none", "the present one"])
def test_status_waits_for_the_look_that_follows_a_change_of_the_copy(there: Obj | None) -> None:
    """What is reported about a copy that isn't the tenant's spec is never shown as about the present one."""
    world = in_step()
    report(world, {"phase": "Up", "observedGeneration": 7}, there=there)
    change(world, host={"spec": {"size": 9}})
    decision = world.decide(Widgets, "shop/web")
    [now] = [each.obj.get("status") for each in decision.writes if each.side is Side.VIRTUAL]
    assert now == there
    assert decision.is_step
    sent = world.settle(Widgets, "shop/web")
    assert [(each.side, each.subresource) for each in sent] == [(Side.HOST, ""), (Side.VIRTUAL, "status")]
    assert (world.virtual("Widget", "shop/web") or {})["status"] == {"phase": "Up", "observedGeneration": 2}


def test_first_generation_has_none_before_it_but_zero() -> None:
    world = in_step()
    report(world, {"observedGeneration": 6}, generation=1)
    assert shown(world) == {"observedGeneration": 0}


def test_status_and_its_conditions_and_those_of_its_parts_have_a_generation_each() -> None:
    def status(top: int, ready: int, part: int, item: int) -> Obj:
        return {
            "observedGeneration": top,
            "conditions": [{"type": "Ready", "observedGeneration": ready}, {"type": "Other"}, "text"],
            "v1beta2": {"conditions": [{"observedGeneration": part}]},
            "parents": [{"name": "a"}, {"conditions": [{"observedGeneration": item}]}, []],
        }

    world = in_step()
    report(world, status(7, 6, 7, 7), there={"conditions": [{"observedGeneration": 1}]})
    assert shown(world) == status(3, 1, 3, 3)


@pytest.mark.parametrize(
    "status",
    [
        {"manifest": {"status": {"observedGeneration": 7, "conditions": [{"observedGeneration": 7}]}}},
        {"work": [{"status": {"observedGeneration": 7, "conditions": [{"observedGeneration": 7}]}}]},
        {"children": [{"name": "a", "observedGeneration": 7}]},
        {"conditions": [{"observedState": {"observedGeneration": 7}}]},
    ],
    ids=["a whole object", "statuses of objects", "items that have one", "something in a condition"],
)
def test_generations_of_other_objects_stay(status: Obj) -> None:
    world = in_step()
    report(world, status)
    assert shown(world) == status
    report(world, {**status, "observedGeneration": 7})
    assert shown(world) == {**status, "observedGeneration": 3}


@pytest.mark.parametrize(
    "value", ["7b", "-7", "", "\u0667", "7" * 20, -7, 7.0, True, None, {"observedGeneration": 7}, [7]], ids=ascii
)
def test_what_is_no_number_of_a_generation_stays(value: Any) -> None:
    world = in_step()
    status = {"observedGeneration": value, "size": 7}
    change(world, virtual={"metadata": {"generation": 3}}, host={"metadata": {"generation": 7}})
    copy = world.host("Widget", str(HOST_KEY))
    assert copy
    world.given(host=[{**copy, "status": status}])
    assert shown(world) == status


@pytest.mark.parametrize(("generation", "latest"), [(None, 7), (3, None), (True, 7), (3, "7"), (None, None)], ids=str)
def test_status_stays_where_an_api_server_counts_no_changes(generation: Any, latest: Any) -> None:
    world = in_step()
    report(world, {"observedGeneration": 7}, generation=generation, latest=latest)
    assert shown(world) == {"observedGeneration": 7}


# -- which kinds -----------------------------------------------------------------------------------


class Own(Widgets):
    """Returns generations of the virtual object itself."""

    name = "own"
    own_generations = True


class Part(Widgets):
    """Brings up a part of the status."""

    name = "part"
    up = ("status.conditions",)


class NoStatus(Mirror[Config]):
    """Brings up no status."""

    name = "nostatus"
    resource = WIDGETS
    down = ("spec.size",)
    up = ("spec.color", "/metadata/annotations/example.org~1status")


@pytest.mark.parametrize(
    ("syncer", "has_any"), [(Widgets, True), (Part, True), (Own, False), (NoStatus, False)], ids=lambda each: str(each)
)
def test_only_kinds_whose_status_comes_up_as_it_is_have_the_policy(syncer: type[Syncer[Any]], has_any: bool) -> None:
    pipelines = World([syncer]).pair.reconciler.pipelines[syncer.name]
    for pipeline in (pipelines.requests, pipelines.scan):
        assert (pipeline.generations is not None) is has_any


def test_built_in_kinds_without_a_status_from_the_host_pay_nothing() -> None:
    options = ("podDisruptionBudgets", "networkPolicies", "ingresses")
    config = {"sync": {"toHost": {name: {"enabled": True} for name in options}}}
    world = World(config=config)
    pipelines = world.pair.reconciler.pipelines
    with_policy = {name for name, each in pipelines.items() if each.requests.generations is not None}
    assert {"services", "persistentvolumeclaims", "ingresses"} <= with_policy
    assert with_policy.isdisjoint({"configmaps", "secrets", "pods", "poddisruptionbudgets", "networkpolicies"})
    from_host = {name for name in pipelines if not world.pair.controllers[name].direction.goes_down}
    assert from_host
    assert with_policy.isdisjoint(from_host)


def test_part_of_a_status_is_translated_and_generations_of_the_syncers_own_are_not() -> None:
    world = in_step(Part)
    report(world, {"conditions": [{"observedGeneration": 7}], "observedGeneration": 7})
    assert shown(world, Part) == {"conditions": [{"observedGeneration": 3}]}
    world = in_step(Own)
    report(world, {"observedGeneration": 7})
    assert shown(world, Own) == {"observedGeneration": 7}


class Reporter(Syncer[Config], SyncDown, Sync):
    """Writes to the copy only what it lacks, and waits while it must."""

    name = "reporter"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        return apply(host={**ctx.host_copy(virtual), "spec": virtual["spec"]})

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        metadata = {name: pair.virtual["metadata"][name] for name in ("name", "namespace", "uid")}
        decision = apply(virtual={**pair.virtual, "metadata": metadata, "status": pair.host.get("status") or {}})
        if pair.virtual["spec"].get("waits"):
            return decision.then(wait("not now"))
        return decision


@pytest.mark.parametrize(("waits", "wanted"), [(False, 3), (True, 2)], ids=["content", "waiting"])
def test_copy_that_is_not_written_is_in_step_unless_the_decision_waits(waits: bool, wanted: int) -> None:
    world = in_step(Reporter)
    report(world, {"observedGeneration": 7})
    change(world, virtual={"spec": {"waits": waits}})
    assert shown(world, Reporter) == {"observedGeneration": wanted}


class Needy(Widgets):
    """Its copies need something that isn't there yet."""

    name = "needy"

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        if virtual["spec"].get("needs"):
            raise NotYet("it isn't there yet", on=ObjectRef(Side.HOST, WIDGETS, Key("vc-ns", "other")))
        return super().translate(ctx, virtual)


def test_copy_that_can_not_be_made_of_the_present_object_yet_is_behind() -> None:
    world = in_step(Needy)
    report(world, {"observedGeneration": 7})
    change(world, virtual={"spec": {"needs": "other"}})
    assert shown(world, Needy) == {"observedGeneration": 2}
    change(world, virtual={"spec": {"needs": None}})
    assert shown(world, Needy) == {"observedGeneration": 3}


# -- options of a kind -----------------------------------------------------------------------------


def test_patches_of_the_configuration_are_a_part_of_what_the_copy_must_have() -> None:
    world = in_step()
    report(world, {"observedGeneration": 7})
    patch = {"op": "add", "path": "/spec/color", "value": "red"}
    world.configure({"sync": {"toHost": {"widgets": {"patches": {"down": [patch]}}}}})
    assert shown(world) is None, "the copy is changed first"
    change(world, host={"spec": {"color": "red"}})
    assert shown(world) == {"observedGeneration": 3}


def test_generation_that_a_patch_sets_is_one_of_the_copy_too() -> None:
    world = in_step()
    report(world, {"phase": "Ready"})
    patch = {"op": "add", "path": "/status/observedGeneration", "value": 6}
    world.configure({"sync": {"toHost": {"widgets": {"patches": {"up": [patch]}}}}})
    assert shown(world) == {"phase": "Ready", "observedGeneration": 2}


def test_drift_that_a_policy_allows_keeps_the_copy_behind() -> None:
    world = in_step(drift={"field": "report"})
    report(world, {"observedGeneration": 7})
    assert shown(world) == {"observedGeneration": 3}
    change(world, host={"spec": {"size": 9}})
    decision = world.decide(Widgets, "shop/web")
    assert [each.obj["status"] for each in decision.writes if each.side is Side.VIRTUAL] == [{"observedGeneration": 2}]
    assert not decision.is_step, "nothing is sent that could change a generation"


def test_drift_of_labels_that_a_policy_allows_does_not() -> None:
    world = in_step(drift={"metadata": "report", "field": "report"})
    change(world, virtual={"metadata": {"labels": {"team": "a"}}})
    world.settle(Widgets, "shop/web")
    report(world, {"observedGeneration": 7})
    change(world, host={"metadata": {"labels": {"team": "b"}}})
    assert shown(world) == {"observedGeneration": 3}


# -- policies for calls, and status subresources ---------------------------------------------------


def scene(host: Obj, **there: Any) -> tuple[Observed, Decision]:
    """Return a request, and a decision that writes both objects."""
    original = virtual(metadata={"generation": 3}, **there)
    copy = {**copy_of(original, metadata={"generation": 7}), "status": host}
    decision = apply(host=copy_of(original), virtual={**virtual(), "status": host})
    return observed(REQUEST, virtual=original, host=copy), decision


def planned(write: Write, *calls: Call, **parts: Any) -> PlannedWrite:
    return PlannedWrite(write, COPY, None, calls, **parts)


def frozen(*path: str) -> Frozen:
    return Frozen(COPY, path, REQUEST, 0, 100.0, "2026-01-01T00:00:00Z")


def policy(has_status: Callable[[Side, Resource], bool] = lambda side, resource: True) -> Generations:
    return Generations(Widgets(), has_status)


GUARD = {"metadata": {"uid": "h1"}}
REFUSED = PostponedFields(MERGE_REFUSED, "no", 1.0, new=False)


@pytest.mark.parametrize(
    ("calls", "parts", "wanted"),
    [
        ((), {}, 3),
        ((Call(Operation.PATCH, GUARD),), {}, 3),
        ((Call(Operation.PATCH_STATUS, {**GUARD, "status": {}}),), {}, 3),
        ((Call(Operation.CONDITIONS, {**GUARD, "status": {}}),), {}, 3),
        ((), {"frozen": [frozen("spec", "size")]}, 2),
        ((), {"frozen": [frozen()]}, 2),
        ((), {"frozen": [frozen("metadata", "labels", "team")]}, 3),
        ((), {"refused": REFUSED}, 2),
        ((), {"tolerates": True}, 2),
    ],
)
def test_copy_is_in_step_if_nothing_of_its_contents_is_held_back(
    calls: tuple[Call, ...], parts: Mapping[str, Any], wanted: int
) -> None:
    request, decision = scene({"observedGeneration": 7})
    on_host = planned(decision.writes[0], *calls, **parts)
    found = policy().translate(request, decision, [on_host])
    assert found.writes[1].obj["status"] == {"observedGeneration": wanted}
    assert found.writes[0] is decision.writes[0]


SPEC = {**GUARD, "spec": {}}


@pytest.mark.parametrize("call", [Call(Operation.PATCH, SPEC), Call(Operation.MERGE, SPEC)], ids=["patch", "merge"])
def test_status_is_left_as_it_is_while_contents_of_the_copy_are_sent(call: Call) -> None:
    request, decision = scene({"observedGeneration": 7})
    on_host = [planned(decision.writes[0], call)]
    found = policy().translate(request, decision, on_host)
    assert "status" not in found.writes[1].obj
    assert policy().followed(request, found, on_host).is_step


def test_status_of_a_copy_that_is_deleted_comes_up_with_the_deletion() -> None:
    request, decision = scene({"observedGeneration": 7})
    assert request.host
    decision = decision.then(delete(host=request.host, reason="it is replaced"))
    on_host = [planned(decision.writes[0]), planned(decision.writes[2], Call(Operation.DELETE, GUARD))]
    found = policy().translate(request, decision, on_host)
    assert found.writes[1].obj["status"] == {"observedGeneration": 2}
    assert policy().followed(request, found, on_host) is found


def test_write_to_another_object_of_the_host_says_nothing_about_the_copy() -> None:
    request, decision = scene({"observedGeneration": 7})
    spec = Call(Operation.PATCH, {**GUARD, "spec": {}})
    other = apply(host={**copy_of(virtual("other")), "spec": {}}).writes[0]
    of_another_kind = apply(host=decision.writes[0].obj, resource=SECRETS).writes[0]
    on_host = [planned(other, spec), planned(of_another_kind, spec), planned(decision.writes[0])]
    found = policy().translate(request, decision, on_host)
    assert found.writes[1].obj["status"] == {"observedGeneration": 3}
    assert policy().followed(request, found, on_host) is found


@pytest.mark.parametrize("missing", [*Side, None])
def test_status_without_a_subresource_on_either_side_stays(missing: Side | None) -> None:
    def has_status(side: Side, resource: Resource) -> bool:
        assert resource == WIDGETS
        return side is not missing

    request, decision = scene({"observedGeneration": 7})
    assert policy(has_status).concern(request, decision) is (missing is None)


@pytest.mark.parametrize(
    ("changed", "is_step"),
    [({"spec": {"size": 2}}, True), ({"metadata": {"labels": {"team": "a"}}}, False), ({}, False)],
    ids=["spec", "labels", "nothing"],
)
def test_change_that_an_api_server_may_not_count_is_followed_by_another_look(changed: Obj, is_step: bool) -> None:
    world = in_step()
    report(world, {"observedGeneration": 7})
    change(world, virtual=changed)
    assert world.decide(Widgets, "shop/web").is_step is is_step


class Chosen(Mirror[Config]):
    """The host chooses a part of the spec."""

    name = "chosen"
    resource = WIDGETS
    down = ("spec.size",)
    up = ("spec.node", "status")


def test_status_follows_a_generation_that_the_same_write_raises() -> None:
    world = in_step(Chosen)
    report(world, {"observedGeneration": 7})
    change(world, host={"spec": {"node": "n1"}})
    decision = world.decide(Chosen, "shop/web")
    assert decision.is_step
    world.settle(Chosen, "shop/web")
    found = world.virtual("Widget", "shop/web")
    assert found
    assert found["spec"]["node"] == "n1"
    assert found["metadata"]["generation"] == found["status"]["observedGeneration"] == 4


def test_world_counts_changes_and_comes_to_rest() -> None:
    world = in_step()
    report(world, {"observedGeneration": 7})
    change(world, virtual={"metadata": {"generation": 4, "labels": {"team": "a"}}, "spec": {"size": 2}})
    world.settle(Widgets, "shop/web")
    copy = world.host("Widget", str(HOST_KEY))
    assert copy
    assert copy["metadata"]["generation"] == 8
    assert (world.virtual("Widget", "shop/web") or {})["status"] == {"observedGeneration": 3}
    change(world, host={"status": {"observedGeneration": 8}})
    [sent] = world.settle(Widgets, "shop/web")
    assert (sent.side, sent.subresource, sent.body["status"]) == (Side.VIRTUAL, "status", {"observedGeneration": 4})
    copy = world.host("Widget", str(HOST_KEY))
    assert copy
    assert copy["metadata"]["generation"] == 8


# -- hostile statuses ------------------------------------------------------------------------------


def deep() -> Obj:
    status: Obj = {"observedGeneration": 7}
    for level in range(DEPTH):
        status = {"conditions": [status]} if level % 2 else {"a": [status]}
    return status


def test_status_may_be_of_any_depth() -> None:
    status = {**deep(), "observedGeneration": 7}
    request, decision = scene(status)
    assert policy().concern(request, decision)
    found = policy().translate(request, decision, [planned(decision.writes[0])])
    assert found.writes[1].obj["status"]["observedGeneration"] == 3
    assert status["observedGeneration"] == 7
    assert not policy().concern(*scene(deep()))


def test_thousand_conditions_are_translated_once_each() -> None:
    conditions = [{"type": f"c{number}", "observedGeneration": 6 + number % 2} for number in range(1000)]
    request, decision = scene({"conditions": conditions})
    found = policy().translate(request, decision, [planned(decision.writes[0])])
    now = found.writes[1].obj["status"]["conditions"]
    assert [each["observedGeneration"] for each in now] == [2, 3] * 500
    assert [each["observedGeneration"] for each in conditions] == [6, 7] * 500


@pytest.mark.parametrize("there", ["text", [], {"conditions": {"0": {"observedGeneration": 1}}}, {"conditions": []}])
def test_virtual_status_may_be_of_any_shape(there: Any) -> None:
    original = {**virtual(metadata={"generation": 3}), "status": there}
    request, decision = scene({"conditions": [{"observedGeneration": 6}]})
    request.virtual = original
    found = policy().translate(request, decision, [planned(decision.writes[0])])
    assert found.writes[1].obj["status"] == {"conditions": [{"observedGeneration": 2}]}
    assert found.outcome is Outcome.IN_STEP
