"""A plan is a value: the decision, its calls and the objects that were read; making it changes nothing."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from syncer.api import (
    Context,
    Decision,
    Key,
    Mirror,
    Obj,
    Pair,
    Refused,
    Resource,
    Side,
    Source,
    SyncRequest,
    TooLarge,
    apply,
    skip,
)
from syncer.cache.parts import MOST_KEYS, MOST_PARTS
from syncer.clusters import codec
from syncer.engine.reconcile.controller import MOST_READS
from syncer.engine.reconcile.pipeline import AdmissionGate
from syncer.engine.reconcile.plan import Deferred, Observed, Plan, Reconciled
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret

SECRETS = Resource("v1", "Secret", "secrets")


class Maps(Mirror):
    """Copies ConfigMaps, and reads the Secret of the same name."""

    name = "maps"
    resource = Resource("v1", "ConfigMap", "configmaps")
    down = ("data",)
    reads = (Source(Side.VIRTUAL, SECRETS),)

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        name = virtual["metadata"]["name"]
        for number in range(int(virtual["data"].get("reads", "1"))):
            ctx.virtual(SECRETS, Key("shop", name if number == 0 else f"{name}-{number}"))
        if "refused" in virtual["data"]:
            raise Refused("no")
        return super().translate(ctx, virtual)


def request(name: str) -> SyncRequest:
    return SyncRequest("vc", "maps", Key("shop", name))


def plan(world: World, name: str) -> Plan:
    return world.pair.plan(request(name))


def reconciled(world: World, name: str) -> Reconciled:
    return world.pair.reconciler.reconcile(world.pair.controllers["maps"], request(name))


def shown(*objects: Obj) -> World:
    world = World([Maps]).given(virtual=list(objects))
    world.decide(Maps, "shop/x")  # lets the stores hold what the servers have
    return world


def test_plan_has_the_calls_of_its_decision() -> None:
    made = plan(shown(configmap("a")), "a")
    assert [call.kind for call in made.calls] == ["create"]
    assert made.calls[0].body["metadata"]["name"] == "a-x-shop-x-vc"
    assert made.frozen == []


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (
            configmap("a", {f"k{number}": "" for number in range(MOST_PARTS)}),
            f"fields, items and brackets, and {MOST_PARTS} are",
        ),
        (
            configmap("a", {}, metadata={"labels": {f"k{number}": "" for number in range(MOST_KEYS + 1)}}),
            f"metadata.labels: it has {MOST_KEYS + 1} of them",
        ),
        ({**configmap("a"), "data": [[]] * (MOST_PARTS // 2)}, "fields, items and brackets"),
    ],
    ids=["fields", "labels", "brackets"],
)
def test_object_with_too_many_parts_is_refused(obj: Obj, why: str) -> None:
    with pytest.raises(TooLarge, match=why):
        plan(shown(obj), "a")


def test_object_with_too_many_parts_is_refused_before_any_other_policy_answers() -> None:
    world = shown(configmap("a", {f"k{number}": "" for number in range(MOST_PARTS)}), configmap("b"))
    reconciler, asked = world.pair.reconciler, list[Key]()

    def answer(observed: Observed) -> Decision | None:
        asked.append(observed.request.key)
        return skip("it is paused")

    own = reconciler.pipelines["maps"]
    first, *_ = own.requests.answers
    reconciler.pipelines["maps"] = replace(own, requests=replace(own.requests, answers=(first, answer)))
    with pytest.raises(TooLarge):
        plan(world, "a")
    assert plan(world, "b").decision.reason == "it is paused"
    assert asked == [Key("shop", "b")]


@pytest.mark.parametrize("has_substitute", [True, False])
def test_decision_instead_of_the_syncer_passes_the_policies_for_decisions(has_substitute: bool) -> None:
    world = shown(configmap("a", {"refused": ""}))
    reconciler = world.pair.reconciler

    def marked(observed: Observed, decision: Decision) -> Decision:
        return replace(decision, reason=f"{decision.reason}, and so on")

    own = reconciler.pipelines["maps"]
    substitutes = (lambda observed: None, (lambda observed: skip("the host makes it") if has_substitute else None))
    requests = replace(own.requests, substitutes=substitutes, decisions=(marked,))
    reconciler.pipelines["maps"] = replace(own, requests=requests)
    if has_substitute:
        assert plan(world, "a").decision == skip("the host makes it, and so on")
    else:
        with pytest.raises(Refused, match="no"):
            plan(world, "a")


@pytest.mark.parametrize(
    "obj",
    [
        configmap("a", {f"k{number}": "" for number in range(MOST_PARTS - 100)}),
        configmap("a", {"csv": '1,2,3,"4",\n\\' * (MOST_PARTS // 3)}),
        configmap("a", {}, metadata={"labels": {f"k{number}": "" for number in range(MOST_KEYS)}}),
    ],
    ids=["fields", "a text", "labels"],
)
def test_object_with_many_parts_is_synced(obj: Obj) -> None:
    assert plan(shown(obj), "a").calls


def test_plan_of_an_object_in_step_has_no_calls() -> None:
    world = shown(configmap("a"))
    world.settle(Maps, "shop/a")
    made = plan(world, "a")
    assert (made.calls, len(made.decision.writes)) == ([], 1)


def test_plan_made_twice_is_the_same_and_writes_nothing() -> None:
    world = shown(configmap("a"))
    first, second = plan(world, "a"), plan(world, "a")
    assert (first.decision, first.calls) == (second.decision, second.calls)
    assert world.sent == []


def test_reconciled_request_has_only_its_own_reads() -> None:
    world = shown(configmap("a"), configmap("b"), secret("a"))
    one = reconciled(world, "a")
    reconciled(world, "b")
    assert [(str(read.key), read.state is not None) for read in one.reads] == [("shop/a", True)]


def test_reads_exclude_those_of_requests_in_a_policy() -> None:
    """The circuit breaker asks about other requests while it looks at this one."""
    world = shown(configmap("a"), configmap("b"))
    controller, reconciler = world.pair.controllers["maps"], world.pair.reconciler

    def counting(observed: Any, decision: Decision) -> Decision:
        reconciler.scan(controller, request("b"))
        return decision

    own = reconciler.pipelines["maps"]
    reconciler.pipelines["maps"] = replace(own, requests=replace(own.requests, decisions=(counting,)))
    assert [str(read.key) for read in reconciled(world, "a").reads] == ["shop/a"]


def test_first_gate_that_defers_decides_about_a_plan_with_calls() -> None:
    world = shown(configmap("a"))
    reconciler, asked = world.pair.reconciler, list[str]()

    def gate(name: str, deferred: Deferred | None) -> AdmissionGate:
        def admit(plan: Plan, written_from: str | None) -> Deferred | None:
            asked.append(f"{name} {written_from}")
            return deferred

        return admit

    gates = (gate("first", None), gate("second", Deferred("no", 1.0)), gate("third", None))
    own = reconciler.pipelines["maps"]
    reconciler.pipelines["maps"] = replace(own, requests=replace(own.requests, gates=gates))
    assert reconciler.admit(plan(world, "a"), "7") == Deferred("no", 1.0)
    assert asked == ["first 7", "second 7"]
    world.settle(Maps, "shop/a")
    assert reconciler.admit(plan(world, "a")) is None
    assert len(asked) == 2


def test_error_comes_with_the_reads_before_it_and_without_a_plan() -> None:
    found = reconciled(shown(configmap("a", {"refused": ""})), "a")
    assert isinstance(found.error, Refused)
    assert found.plan is None
    assert [str(read.key) for read in found.reads] == ["shop/a"]


def test_reconciled_request_has_its_plan_and_no_error() -> None:
    world = shown(configmap("a"))
    found = reconciled(world, "a")
    assert found.plan is not None
    assert found.error is None
    assert found.plan.calls == plan(world, "a").calls


@pytest.mark.parametrize(
    ("later", "is_current"),
    [
        pytest.param({}, True, id="listed again"),
        pytest.param({"metadata": {"resourceVersion": "8"}}, False, id="changed"),
        pytest.param({"metadata": {"uid": "another"}}, False, id="replaced"),
        pytest.param({codec.UNREADABLE: "no room"}, False, id="quarantined"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_noted_read_keeps_no_object_and_notices_changes(later: Obj | None, is_current: bool) -> None:
    world, key = shown(), Key("shop", "a")
    store = world.pair.informers.store(Side.VIRTUAL, SECRETS)
    obj = secret("a", metadata={"resourceVersion": "7", "uid": "one"})
    reads = world.pair.reconciler.view.reads()
    reads.note(store, key)
    store.keep(key, merged(obj, {}))
    entry = store.entry(key)
    kept = sys.getrefcount(entry)
    reads.note(store, key)
    assert sys.getrefcount(entry) == kept
    if later is None:
        store.drop(key)
    else:
        store.keep(key, merged(obj, later))
    absent, present = reads.noted
    assert (absent.is_current(), present.is_current()) == (later is None, is_current)


def test_reads_are_bounded() -> None:
    assert len(reconciled(shown(configmap("a", {"reads": "1000"})), "a").reads) == MOST_READS


def test_write_is_planned_again_over_the_latest_object() -> None:
    world = shown(configmap("a"))
    made = plan(world, "a")
    world.apply(made.decision, by=Maps)
    assert not made.again(made.decision.writes[0]).calls


class Twice(Mirror):
    """Writes one virtual object two times in one decision."""

    name = "twice"
    resource = Resource("v1", "Pod", "pods")
    down = ("spec",)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        own = {key: pair.virtual[key] for key in ("apiVersion", "kind")}
        name = {key: pair.virtual["metadata"][key] for key in ("name", "namespace", "uid")}
        labelled = {**own, "metadata": {**name, "labels": {"a": "1"}}}
        return apply(virtual=labelled).then(apply(virtual=labelled))


def test_second_write_of_an_object_has_only_further_changes() -> None:
    world = World([Twice]).given(virtual=[pod("web")])
    calls = [sent for sent in world.settle(Twice, "shop/web") if sent.side is Side.VIRTUAL]
    assert len(calls) == 1, "a second patch would change nothing"


def test_host_write_of_a_syncer_whose_kind_is_watched_in_parts_alone_is_judged_by_its_part() -> None:
    mappings = {"byName": {"infra/settings": "shop/config"}}
    from_host = {"configMaps": {"enabled": True, "mappings": mappings}}
    world = World(config={"sync": {"fromHost": from_host, "toHost": {"configMaps": {"enabled": False}}}})
    controller = world.pair.controllers["host-configmaps"]
    theirs = configmap("settings", namespace="infra")
    world.given(host=[theirs])
    world.decide(controller.name, "shop/config")
    assert not world.pair.informers.has(Side.HOST, controller.syncer.host_resource)
    labels = {"vsyncer.dev/cluster": world.settings.identity}
    ours = merged(theirs, {"metadata": {"labels": labels}})
    with pytest.raises(Refused, match="infra/settings"):
        world.pair.reconciler.plan_decision(controller, apply(host=ours))
