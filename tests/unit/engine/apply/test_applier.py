"""Decisions carried out against API servers in memory: the fewest calls, and no forbidden ones."""

from dataclasses import replace

import pytest
from applier_bench import SETTINGS, Bench, copy, ours, play

from kube_envtest import Rule
from syncer.api import (
    AlreadyExists,
    Config,
    Conflict,
    Decision,
    Key,
    Mirror,
    NotConnected,
    Obj,
    ObjectRef,
    Precondition,
    Refused,
    Resource,
    Side,
    Unreachable,
    apply,
    delete,
    set_conditions,
)
from syncer.resources.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICES
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, crd, pod, service


def test_reads_of_a_decision_count_only_while_it_is_the_latest() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(apply(host=copy(color="blue")))
        old = bench.stored(Side.HOST, CONFIG_MAPS, copy())
        await bench.apply(apply(host=copy(color="red")))
        [write] = apply(host=copy(color="blue")).writes
        assert bench.planned(write, host=old).calls, "it is red by now"
        [other] = apply(host=ours(service("x", namespace="vc-ns")), resource=SERVICES).writes
        latest = bench.stored(Side.HOST, CONFIG_MAPS, copy())
        [call] = bench.planned(other, host=latest).calls
        assert call.kind == "create", "another resource is another object"

    play(scenario)


def test_create_is_one_call_and_is_seen_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.apply(apply(host=copy())) == ["create host vc-ns/configmaps"]
        assert bench.stored(Side.HOST, CONFIG_MAPS, copy())
        assert bench.wrotes == [(Side.HOST, "create")]
        assert await bench.apply(apply(host=copy())) == []

    play(scenario)


def test_status_is_written_after_a_create_by_its_own_path() -> None:
    async def scenario(bench: Bench) -> None:
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        wanted = ours(service("web", namespace="vc-ns", spec={"type": "LoadBalancer"}), status=status)
        assert await bench.apply(apply(host=wanted, resource=SERVICES)) == [
            "create host vc-ns/services",
            "patch host vc-ns/services/web/status",
        ]
        assert await bench.apply(apply(host=wanted, resource=SERVICES)) == []

    play(scenario)


def test_writes_are_made_in_order() -> None:
    async def scenario(bench: Bench) -> None:
        decision = apply(host=copy("b")).then(apply(virtual=configmap("v"))).then(apply(host=copy("a")))
        await bench.apply(decision)
        assert bench.wrotes == [(Side.HOST, "create"), (Side.VIRTUAL, "create"), (Side.HOST, "create")]
        assert [bench.host.get("configmaps", f"vc-ns/{name}") is not None for name in "ab"] == [True, True]

    play(scenario)


# -- what must never happen ------------------------------------------------------------------------


def unmarked(obj: Obj) -> Obj:
    return merged(obj, {"metadata": {"labels": None}})


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (apply(host=unmarked(copy())), "without our mark"),
        (delete(host=unmarked(copy()), reason="x"), "without our mark"),
        (set_conditions(host=unmarked(copy())), "without our mark"),
        (
            apply(host=merged(copy(), {"metadata": {"labels": {SETTINGS.marks.cluster: "vc.other"}}})),
            "without our mark",
        ),
        (apply(host=merged(copy(), {"metadata": {"namespace": "elsewhere"}})), "host namespace elsewhere"),
    ],
)
def test_forbidden_write_is_refused_for_any_decision(decision: Decision, why: str) -> None:
    async def scenario(bench: Bench) -> None:
        with pytest.raises(Refused, match=why):
            await bench.apply(decision)
        assert bench.sent == []

    play(scenario)


def test_object_that_is_seen_without_our_mark_is_left_alone() -> None:
    async def scenario(bench: Bench) -> None:
        foreign = bench.see(Side.HOST, PODS, bench.host.put(pod("p", namespace="vc-ns")))
        for decision in (
            apply(host=ours(pod("p", namespace="vc-ns")), resource=PODS),
            delete(host=ours(foreign), resource=PODS, reason="x"),
        ):
            with pytest.raises(Refused, match="left alone") as refused:
                await bench.apply(decision)
            assert refused.value.reason == "NameCollision"
            assert bench.sent == []

    play(scenario)


def test_applier_writes_nothing_without_leadership() -> None:
    async def scenario(bench: Bench) -> None:
        bench.leads = False
        with pytest.raises(NotConnected):
            await bench.apply(apply(host=copy()))
        assert bench.sent == []

    play(scenario)


# -- a store that is behind ------------------------------------------------------------------------


def test_foreign_object_that_stands_in_the_way_is_found_and_not_kept() -> None:
    async def scenario(bench: Bench) -> None:
        bench.host.put(configmap("x", namespace="vc-ns"))
        with pytest.raises(Refused) as refused:
            await bench.apply(apply(host=copy()))
        assert refused.value.reason == "NameCollision"
        assert bench.stored(Side.HOST, CONFIG_MAPS, copy()) is None

    play(scenario)


def test_copy_of_ours_that_was_not_seen_yet_is_looked_at() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.host.put(copy(color="red"))
        with pytest.raises(AlreadyExists):
            await bench.apply(apply(host=copy()))
        stored = bench.stored(Side.HOST, CONFIG_MAPS, there)
        assert stored
        assert stored["data"] == {"color": "red"}
        assert len(await bench.apply(apply(host=copy()))) == 1

    play(scenario)


@pytest.mark.parametrize("by", ["apply", "delete"])
def test_another_object_of_the_name_is_not_taken_for_the_one_that_was_seen(by: str) -> None:
    async def scenario(bench: Bench) -> None:
        first = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.delete("configmaps", "vc-ns/x")
        second = bench.host.put(copy(color="green"))
        with pytest.raises(Conflict):
            await bench.apply(apply(host=copy(color="red")) if by == "apply" else delete(host=first, reason="x"))
        assert bench.host.get("configmaps", "vc-ns/x") == second
        stored = bench.stored(Side.HOST, CONFIG_MAPS, second)
        assert stored
        assert stored["metadata"]["uid"] == second["metadata"]["uid"]

    play(scenario)


def test_object_that_is_gone_already_counts_as_deleted() -> None:
    async def scenario(bench: Bench) -> None:
        first = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.delete("configmaps", "vc-ns/x")
        assert len(await bench.apply(delete(host=first, reason="x"))) == 1
        assert bench.stored(Side.HOST, CONFIG_MAPS, first) is None
        assert await bench.apply(delete(host=first, reason="x")) == []

    play(scenario)


def test_change_over_a_later_version_than_was_seen_is_not_made() -> None:
    async def scenario(bench: Bench) -> None:
        stored = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.put(copy(color="green"))
        version = {"metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}}
        with pytest.raises(Conflict):
            await bench.apply(apply(host=merged(copy(color="red"), version)))
        assert (bench.host.get("configmaps", "vc-ns/x") or {})["data"] == {"color": "green"}

    play(scenario)


# -- deletions that follow from another object -----------------------------------------------------

ORIGINAL = ObjectRef(Side.VIRTUAL, PODS, Key("shop", "p"))


def because(host: Obj, stored: ObjectRef, uid: str = "") -> Decision:
    """Return a deletion that is right only while another object is as it was last seen."""
    decision = delete(host=host, reason="x")
    return replace(
        decision, writes=tuple(replace(write, precondition=Precondition(stored, uid)) for write in decision.writes)
    )


def test_counterpart_of_a_deleted_object_is_deleted() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        assert await bench.apply(because(there, ORIGINAL)) == ["delete host vc-ns/configmaps/x"]
        assert bench.host.get("configmaps", "vc-ns/x") is None

    play(scenario)


def test_counterpart_of_an_object_that_still_exists_is_not_deleted() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        original = bench.virtual.put(pod("p"))
        with pytest.raises(Conflict, match="virtual Pod shop/p"):
            await bench.apply(because(there, ORIGINAL))
        assert bench.sent == []
        stored = bench.stored(Side.VIRTUAL, PODS, original)
        assert stored, "so that the next decision knows of it"
        assert stored["metadata"]["uid"] == original["metadata"]["uid"]

    play(scenario)


def test_counterpart_of_another_uid_is_deleted_only_while_that_is_current() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        first = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("p")))
        bench.virtual.delete("pods", "shop/p")
        second = bench.virtual.put(pod("p"))
        with pytest.raises(Conflict):
            await bench.apply(because(there, ORIGINAL, first["metadata"]["uid"]))
        assert bench.sent == []
        decision = because(there, ORIGINAL, second["metadata"]["uid"])
        assert await bench.apply(decision) == ["delete host vc-ns/configmaps/x"]

    play(scenario)


def test_virtual_object_is_not_deleted_if_its_host_object_changed_owner() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.put(service("p", namespace="vc-ns"))
        with pytest.raises(Refused) as refused:
            await bench.apply(because(there, ObjectRef(Side.HOST, SERVICES, Key("vc-ns", "p"))))
        assert refused.value.reason == "NameCollision"
        assert bench.sent == []
        assert Key("vc-ns", "p") not in bench.pair.informers.store(Side.HOST, SERVICES)

    play(scenario)


def test_final_status_is_not_set_while_the_counterpart_exists() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("p", status={"phase": "Running"})))
        bench.host.put(ours(pod("p", namespace="vc-ns")))
        gone = Precondition(ObjectRef(Side.HOST, PODS, Key("vc-ns", "p")))
        [write] = delete(virtual=there, final_status={"phase": "Failed"}, reason="x", resource=PODS).writes
        with pytest.raises(Conflict, match="host Pod vc-ns/p"):
            await bench.apply(Decision((replace(write, precondition=gone),)))
        assert bench.sent == []

    play(scenario)


def test_final_status_is_set_before_the_deletion() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("p", status={"phase": "Running"})))
        decision = delete(virtual=there, final_status={"phase": "Failed"}, reason="x", resource=PODS)
        assert await bench.apply(decision) == ["patch virtual shop/pods/p/status", "delete virtual shop/pods/p"]

    play(scenario)


def test_fact_behind_a_final_status_and_its_deletion_is_confirmed_once() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("p", status={"phase": "Running"})))
        gone = Precondition(ObjectRef(Side.HOST, PODS, Key("vc-ns", "p")))
        [write] = delete(virtual=there, final_status={"phase": "Failed"}, reason="x", resource=PODS).writes
        await bench.apply(Decision((replace(write, precondition=gone),)))
        assert bench.sent == ["patch virtual shop/pods/p/status", "delete virtual shop/pods/p"]
        assert [request.verb for request in bench.host.requests] == ["get"]

    play(scenario)


def test_final_status_is_not_set_over_a_later_one() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("p", status={"phase": "Running"})))
        bench.virtual.put(merged(there, {"status": {"phase": "Succeeded"}}))
        with pytest.raises(Conflict):
            await bench.apply(delete(virtual=there, final_status={"phase": "Failed"}, reason="x", resource=PODS))
        assert (bench.virtual.get("pods", "shop/p") or {})["status"]["phase"] == "Succeeded"

    play(scenario)


def test_deletion_waits_while_its_precondition_cannot_be_read() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.virtual.faults.add(Rule(verb="get", status=503))
        with pytest.raises(Unreachable):
            await bench.apply(because(there, ORIGINAL))
        assert bench.sent == []

    play(scenario)


@pytest.mark.reason("IdentityLost")
def test_copy_is_deleted_after_a_list_only_if_the_virtual_cluster_has_its_identity() -> None:
    async def scenario(bench: Bench) -> None:
        asked, is_lost, claim = 0, False, bench.pair.applier.claim

        async def check() -> None:
            nonlocal asked
            asked += 1
            if is_lost:
                raise Refused("lost", reason="IdentityLost")

        def there(name: str) -> Obj:
            return bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy(name)))

        claim.check = check
        await bench.apply(delete(host=there("a"), reason="its deletion was seen"))
        assert asked == 0, "no list has come"
        claim.lists += 1
        await bench.apply(delete(host=there("b"), reason="x"))
        await bench.apply(delete(host=there("c"), reason="x"))
        assert asked == 1, "once after each list"
        await bench.apply(because(there("d"), ORIGINAL))
        assert asked == 2, "and whenever its original is missing, as no watch has shown"
        is_lost, kept = True, there("e")
        claim.lists += 1
        for decision in (delete(host=kept, reason="x"), because(kept, ORIGINAL)):
            with pytest.raises(Refused):
                await bench.apply(decision)
        assert bench.host.get("configmaps", "vc-ns/e") is not None
        is_lost = False
        await bench.apply(delete(host=kept, reason="x"))
        assert bench.host.get("configmaps", "vc-ns/e") is None

    play(scenario)


# -- values that the API server rewrites -----------------------------------------------------------


def test_field_that_is_dropped_is_not_sent_again_until_another_is_wanted_or_some_time_has_passed() -> None:
    """A ConfigMap has no such field, so the API server drops it."""

    async def scenario(bench: Bench) -> None:
        bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        wanted = merged(copy(), {"unknown": {"a": 1}})
        patch = ["patch host vc-ns/configmaps/x"]
        assert await bench.apply(apply(host=wanted)) == patch, "this notes which fields we set"
        assert await bench.apply(apply(host=wanted)) == []
        changed = merged(bench.host.get("configmaps", "vc-ns/x") or {}, {"metadata": {"labels": {"seen": "1"}}})
        bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(changed))
        assert await bench.apply(apply(host=wanted)) == [], "the answer holds for later versions, too"
        assert bench.futiles == []
        bench.now = 601
        assert await bench.apply(apply(host=wanted)) == patch
        assert bench.futiles == [(Side.HOST, "patch", ("unknown", "a"))]
        assert await bench.apply(apply(host=wanted)) == []
        assert await bench.apply(apply(host=merged(wanted, {"unknown": {"a": 2}}))) == patch
        assert await bench.apply(apply(host=merged(wanted, {"data": {"n": "2"}}))) == patch, "other fields are sent"

    play(scenario)


def test_field_that_is_dropped_from_a_new_object_is_not_sent_again() -> None:
    async def scenario(bench: Bench) -> None:
        wanted = merged(copy(), {"unknown": {"a": 1}})
        assert await bench.apply(apply(host=wanted)) == ["create host vc-ns/configmaps"]
        assert await bench.apply(apply(host=wanted)) == []
        assert bench.futiles == []

    play(scenario)


WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class Widgets(Mirror[Config]):
    name = "widgets"
    resource = WIDGETS
    down = ("spec",)


def widget(spec: Obj) -> Obj:
    """Return a copy of a custom resource, as a syncer wants it."""
    metadata = {"name": "x", "namespace": "vc-ns"}
    return ours({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata}, spec={}) | {"spec": spec}


def live_widget(bench: Bench) -> Obj:
    found = bench.host.get("widgets.example.org", "vc-ns/x")
    assert found
    return found


def with_widget(bench: Bench, spec: Obj) -> None:
    """Let the host have a copy of a custom resource, which the store has seen."""
    bench.host.put(crd("widgets.example.org"))
    bench.see(Side.HOST, WIDGETS, bench.host.put(widget(spec)))


@pytest.mark.parametrize("spec", [{}, {"a": {"b": 2, "c": 3}}])
def test_null_over_an_old_version_is_a_conflict_and_a_refresh(spec: Obj) -> None:
    """The places that a JSON patch names may be gone there."""

    async def scenario(bench: Bench) -> None:
        with_widget(bench, {"a": {"b": 1}})
        wanted = widget({"a": {"b": None, "d": 1}})
        bench.host.put({**live_widget(bench), "spec": spec})
        with pytest.raises(Conflict, match="has changed in the meantime"):
            await bench.apply(apply(host=wanted))
        assert await bench.apply(apply(host=wanted)) == ["patch host vc-ns/widgets/x"]
        assert live_widget(bench)["spec"] == {"a": {**spec.get("a", {}), "b": None, "d": 1}}

    play(scenario, syncer=Widgets())


def test_null_is_not_written_into_another_object_of_the_name() -> None:
    async def scenario(bench: Bench) -> None:
        with_widget(bench, {"a": 1})
        bench.host.delete("widgets.example.org", "vc-ns/x")
        bench.host.put(widget({"a": 1}))
        with pytest.raises(Conflict):
            await bench.apply(apply(host=widget({"a": None})))
        assert live_widget(bench)["spec"] == {"a": 1}

    play(scenario, syncer=Widgets())


def test_status_that_went_the_wrong_way_in_vain_still_goes_the_right_one() -> None:
    """The way depends on what is served, which may have been seen wrongly while the API server was starting."""

    async def scenario(bench: Bench) -> None:
        there = ours(service("x", namespace="vc-ns"))
        bench.see(Side.HOST, SERVICES, bench.host.put(there))
        wanted = merged(there, {"status": {"conditions": [{"type": "Seen", "status": "True"}]}})
        bench.with_status.clear()
        for _ in range(2):
            await bench.apply(apply(host=wanted, resource=SERVICES))
        assert await bench.apply(apply(host=wanted, resource=SERVICES)) == []
        bench.with_status.add("services")
        assert await bench.apply(apply(host=wanted, resource=SERVICES)) == ["patch host vc-ns/services/x/status"]

    play(scenario)


def test_error_of_the_server_leaves_the_store_unchanged() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.faults.add(Rule(verb="patch", status=500))
        with pytest.raises(Exception, match="500"):
            await bench.apply(apply(host=copy(color="red")))
        stored = bench.stored(Side.HOST, CONFIG_MAPS, there)
        assert stored
        assert stored["data"] == {"color": "blue"}
        assert SECRETS not in [store.resource for store in bench.pair.informers]
        assert Key("vc-ns", "x") in bench.pair.informers.store(Side.HOST, CONFIG_MAPS)

    play(scenario)
