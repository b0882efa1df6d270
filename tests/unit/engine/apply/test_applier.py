"""Decisions carried out against API servers in memory: the fewest calls, and no forbidden ones."""

import base64
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_envtest import Rule, virtual_time
from syncer.api import (
    Config,
    Conflict,
    Decision,
    Exists,
    Key,
    Mirror,
    NotConnected,
    Obj,
    ObjectRef,
    Precondition,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    Token,
    Unreachable,
    Write,
    annotations_of,
    apply,
    bind,
    delete,
    key_of,
    set_conditions,
)
from syncer.clusters.client import Cluster
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.plan import Observed, PlannedWrite
from syncer.engine.reconcile.policies.contention import HeldFields
from syncer.engine.workqueue.queue import Queue
from syncer.names import SingleNamespace
from syncer.resources.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICES
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace, pod, service

WRITES = {"create", "update", "patch", "delete"}
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
OURS = {"labels": {SETTINGS.marks.cluster: SETTINGS.identity}}


class Maps(Mirror[Config]):
    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)
    reads = (Source(Side.VIRTUAL, PODS), Source(Side.HOST, PODS), Source(Side.HOST, SERVICES, marked=True))


class Bench:
    """Two API servers, a link between them, and what was written."""

    def __init__(self) -> None:
        self.host, self.virtual = ApiServer(seed="host"), ApiServer(seed="virtual")
        for server, name in ((self.host, "vc-ns"), (self.host, "elsewhere"), (self.virtual, "shop")):
            server.put(namespace(name))
        self.leads = True
        self.with_status = {"pods", "services"}
        self.wrotes: list[tuple[Side, str]] = []
        self.futiles: list[Side] = []
        self.helds: list[HeldFields] = []
        self.syncer = Maps()
        self.pair: ClusterPair = build_pair(
            SETTINGS,
            [(self.syncer, Config())],
            virtual=Cluster("vc", Side.VIRTUAL, self.virtual.transport()),
            host=Cluster("host", Side.HOST, self.host.transport()),
            queue=Queue(clock=lambda: 0.0),
            clock=lambda: 0.0,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: resource.plural in self.with_status,
            may_write=lambda: self.leads,
        )

    def wrote(self, side: Side, verb: str) -> None:
        self.wrotes.append((side, str(verb)))

    def futile(self, side: Side) -> None:
        self.futiles.append(side)

    def held(self, held: HeldFields) -> None:
        self.helds.append(held)

    def see(self, side: Side, resource: Resource, obj: Obj) -> Obj:
        """Let a store have seen an object."""
        self.pair.informers.store(side, resource).seen_live(merged(obj, {}))
        return obj

    def seen(self, side: Side, resource: Resource, obj: Obj) -> Obj | None:
        return self.pair.informers.get(side, resource, key_of(obj))

    def planned(self, write: Write, *, host: Obj | None) -> PlannedWrite:
        """Return a write as it is planned where this host object was observed."""
        controller = self.pair.controllers[self.syncer.name]
        seen = Observed(
            controller, controller.request(Key("shop", "x")), controller.context(), None, host, key_of(write.obj)
        )
        return self.pair.reconciler.planned(seen, write, controller.pipeline)

    async def apply(self, decision: Decision) -> list[str]:
        """Return the writes that the servers got."""
        before = len(self.host.requests), len(self.virtual.requests)
        try:
            plan = self.pair.reconciler.plan(self.pair.controllers[self.syncer.name], decision)
            await self.pair.applier.apply(plan, self)
        finally:
            self.sent = [
                f"{one.verb} {side} {one.path.partition('/namespaces/')[2]}"
                for side, server, start in (("host", self.host, before[0]), ("virtual", self.virtual, before[1]))
                for one in list(server.requests)[start:]
                if one.verb in WRITES
            ]
        return self.sent


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await scenario(Bench())

    virtual_time.run(main())


def ours(obj: Obj, **parts: Any) -> Obj:
    return merged(obj, {"metadata": OURS, **parts})


def copy(name: str = "x", **data: str) -> Obj:
    return ours(configmap(name, data or {"color": "blue"}, namespace="vc-ns"))


def test_reads_of_a_decision_count_only_while_it_is_the_latest() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.apply(apply(host=copy(color="blue")))
        old = bench.seen(Side.HOST, CONFIG_MAPS, copy())
        await bench.apply(apply(host=copy(color="red")))
        [write] = apply(host=copy(color="blue")).writes
        assert bench.planned(write, host=old).calls, "it is red by now"
        [other] = apply(host=ours(service("x", namespace="vc-ns")), resource=SERVICES).writes
        latest = bench.seen(Side.HOST, CONFIG_MAPS, copy())
        [call] = bench.planned(other, host=latest).calls
        assert call.kind == "create", "another resource is another object"

    play(scenario)


def test_create_is_one_call_and_is_seen_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.apply(apply(host=copy())) == ["create host vc-ns/configmaps"]
        assert bench.seen(Side.HOST, CONFIG_MAPS, copy())
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
def test_forbidden_write_is_refused_whatever_a_syncer_decides(decision: Decision, why: str) -> None:
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
        assert bench.seen(Side.HOST, CONFIG_MAPS, copy()) is None

    play(scenario)


def test_copy_of_ours_that_was_not_seen_yet_is_looked_at() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.host.put(copy(color="red"))
        with pytest.raises(Exists):
            await bench.apply(apply(host=copy()))
        seen = bench.seen(Side.HOST, CONFIG_MAPS, there)
        assert seen
        assert seen["data"] == {"color": "red"}
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
        seen = bench.seen(Side.HOST, CONFIG_MAPS, second)
        assert seen
        assert seen["metadata"]["uid"] == second["metadata"]["uid"]

    play(scenario)


def test_object_that_is_gone_already_counts_as_deleted() -> None:
    async def scenario(bench: Bench) -> None:
        first = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.delete("configmaps", "vc-ns/x")
        assert len(await bench.apply(delete(host=first, reason="x"))) == 1
        assert bench.seen(Side.HOST, CONFIG_MAPS, first) is None
        assert await bench.apply(delete(host=first, reason="x")) == []

    play(scenario)


def test_change_over_a_later_version_than_was_seen_is_not_made() -> None:
    async def scenario(bench: Bench) -> None:
        seen = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.put(copy(color="green"))
        version = {"metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]}}
        with pytest.raises(Conflict):
            await bench.apply(apply(host=merged(copy(color="red"), version)))
        assert (bench.host.get("configmaps", "vc-ns/x") or {})["data"] == {"color": "green"}

    play(scenario)


# -- deletions that follow from another object -----------------------------------------------------

ORIGINAL = ObjectRef(Side.VIRTUAL, PODS, Key("shop", "p"))


def because(host: Obj, seen: ObjectRef, uid: str = "") -> Decision:
    """Return a deletion that is right only while another object is as it was last seen."""
    decision = delete(host=host, reason="x")
    return replace(
        decision, writes=tuple(replace(write, precondition=Precondition(seen, uid)) for write in decision.writes)
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
        seen = bench.seen(Side.VIRTUAL, PODS, original)
        assert seen, "so that the next decision knows of it"
        assert seen["metadata"]["uid"] == original["metadata"]["uid"]

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


def test_deletion_waits_while_its_precondition_cannot_be_read() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.virtual.faults.add(Rule(verb="get", status=503))
        with pytest.raises(Unreachable):
            await bench.apply(because(there, ORIGINAL))
        assert bench.sent == []

    play(scenario)


# -- patches that change nothing -------------------------------------------------------------------


def test_patch_that_changed_nothing_is_not_sent_again_until_the_object_changes() -> None:
    """A ConfigMap has no such field, so the API server drops it."""

    async def scenario(bench: Bench) -> None:
        bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        wanted = merged(copy(), {"unknown": {"a": 1}})
        patch = ["patch host vc-ns/configmaps/x"]
        assert await bench.apply(apply(host=wanted)) == patch, "this notes which fields we set"
        assert bench.futiles == []
        assert await bench.apply(apply(host=wanted)) == patch
        assert bench.futiles == [Side.HOST]
        for _ in range(3):
            assert await bench.apply(apply(host=wanted)) == []
        changed = merged(bench.host.get("configmaps", "vc-ns/x") or {}, {"data": {"n": "1"}})
        bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(changed))
        assert await bench.apply(apply(host=wanted)) == patch

    play(scenario)


def test_status_that_went_the_wrong_way_in_vain_still_goes_the_right_one() -> None:
    """The way depends on what is served, which may have been seen wrongly while the API server was starting."""

    async def scenario(bench: Bench) -> None:
        there = ours(service("x", namespace="vc-ns"))
        bench.see(Side.HOST, SERVICES, bench.host.put(there))
        wanted = merged(there, {"status": {"conditions": [{"type": "Seen", "status": "True"}]}})
        bench.with_status.clear()
        for _ in range(2):
            await bench.apply(apply(host=wanted, resource=SERVICES))
        assert bench.futiles == [Side.HOST]
        assert await bench.apply(apply(host=wanted, resource=SERVICES)) == []
        bench.with_status.add("services")
        assert await bench.apply(apply(host=wanted, resource=SERVICES)) == ["patch host vc-ns/services/x/status"]

    play(scenario)


# -- the other verbs -------------------------------------------------------------------------------


def test_pod_is_bound_through_its_subresource() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("web")))
        decision = bind(virtual=there, node="n1")
        [write] = decision.writes
        bound = Decision((type(write)(write.side, write.verb, write.obj, resource=PODS, node=write.node),))
        assert await bench.apply(bound) == ["create virtual shop/pods/web/binding"]
        assert (bench.virtual.get("pods", "shop/web") or {})["spec"]["nodeName"] == "n1"
        assert await bench.apply(bound) == [], "it is bound, though the watch doesn't show it yet"

    play(scenario)


def test_conditions_leave_those_of_others_alone_even_if_they_are_newer_than_what_was_seen() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, PODS, bench.host.put(ours(pod("web", namespace="vc-ns"))))
        ready = {"type": "Ready", "status": "True"}
        bench.host.put(merged(there, {"status": {"conditions": [ready]}}))
        gate = {"type": "example.org/gate", "status": "True"}
        [write] = set_conditions(host={**there, "status": {"conditions": [gate]}}).writes
        decision = Decision((type(write)(write.side, write.verb, write.obj, resource=PODS),))
        assert await bench.apply(decision) == ["patch host vc-ns/pods/web/status"]
        conditions = (bench.host.get("pods", "vc-ns/web") or {})["status"]["conditions"]
        assert {(one["type"], one["status"]) for one in conditions} == {("Ready", "True"), ("example.org/gate", "True")}

    play(scenario)


def test_tokens_are_asked_for_and_put_into_the_object() -> None:
    async def scenario(bench: Bench) -> None:
        tokens = (Token("a", "default", "shop", 600, ("x",)), Token("b", "default", "shop", 3600))
        wanted = ours({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "namespace": "vc-ns"}})
        assert await bench.apply(apply(host=wanted, tokens=tokens)) == [
            "create host vc-ns/configmaps",
            *["create virtual shop/serviceaccounts/default/token"] * 2,
        ]
        made = bench.host.get("configmaps", "vc-ns/t")
        assert made
        assert set(made["data"]) == {"a", "b"}
        assert all(base64.b64decode(value).count(b".") == 2 for value in made["data"].values())
        assert annotations_of(made)[SETTINGS.marks.token_expires] == "2026-01-01T00:10:00Z"

        bench.host.requests.clear()
        await bench.apply(apply(host=wanted, tokens=tokens))
        renewed = bench.host.get("configmaps", "vc-ns/t")
        assert renewed
        assert renewed["data"].keys() == made["data"].keys()

    play(scenario)


def test_error_of_the_server_leaves_what_was_seen_as_it_was() -> None:
    async def scenario(bench: Bench) -> None:
        there = bench.see(Side.HOST, CONFIG_MAPS, bench.host.put(copy()))
        bench.host.faults.add(Rule(verb="patch", status=500))
        with pytest.raises(Exception, match="500"):
            await bench.apply(apply(host=copy(color="red")))
        seen = bench.seen(Side.HOST, CONFIG_MAPS, there)
        assert seen
        assert seen["data"] == {"color": "blue"}
        assert SECRETS not in [store.resource for store in bench.pair.informers]
        assert Key("vc-ns", "x") in bench.pair.informers.store(Side.HOST, CONFIG_MAPS)

    play(scenario)
