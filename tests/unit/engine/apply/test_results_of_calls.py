"""Policies learn from each call and its answer, and from a write that was made whole; each in order."""

from dataclasses import replace

import pytest
from applier_bench import Bench, copy, ours

from syncer.api import Decision, Refused, apply, delete
from syncer.engine.reconcile.calls import Call
from syncer.engine.reconcile.plan import PlannedWrite, Results, ServerAnswer
from syncer.resources.kinds import SERVICES
from syncer.testing.objects import configmap, service

#: A call, and whether its answer has an object and changed something; None if it failed.
Learned = tuple[str, tuple[bool, bool] | None]


class Learning:
    """Policies that note what they learn."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sent: list[Learned] = []
        self.order: list[str] = []

    def _learn(self, planned: PlannedWrite, call: Call, answer: ServerAnswer | None) -> None:
        learned = (answer.obj is not None, answer.changed) if answer is not None else None
        self.sent.append((str(call.kind), learned))
        self.order.append("first")

    async def apply(self, decision: Decision) -> None:
        pair = self.bench.pair
        results = Results(
            sent=(self._learn, lambda planned, call, answer: self.order.append("second")),
            settled=(lambda planned: self.order.append("settled"),),
        )
        plan = pair.reconciler.plan_decision(pair.controllers[self.bench.syncer.name], decision)
        await pair.applier.apply(replace(plan, results=results), self.bench)


async def test_each_call_is_learned_from_and_the_write_once() -> None:
    bench = Bench()
    learning = Learning(bench)
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    wanted = ours(service("web", namespace="vc-ns", spec={"type": "LoadBalancer"}), status=status)
    await learning.apply(apply(host=wanted, resource=SERVICES))
    assert learning.sent == [("create", (True, True)), ("patch_status", (True, True))]
    assert learning.order == ["first", "second", "first", "second", "settled"]


async def test_deletion_is_learned_from_without_an_object() -> None:
    bench = Bench()
    learning = Learning(bench)
    await learning.apply(apply(host=copy()))
    await learning.apply(delete(host=bench.host.get("configmaps", "vc-ns/x") or {}, reason="x"))
    assert learning.sent == [("create", (True, True)), ("delete", (False, True))]


async def test_call_that_failed_is_learned_from_and_its_write_is_not() -> None:
    bench = Bench()
    learning = Learning(bench)
    bench.host.put(configmap("x", namespace="vc-ns"))
    with pytest.raises(Refused):
        await learning.apply(apply(host=copy()))
    assert learning.sent == [("create", None)]
    assert learning.order == ["first", "second"]


async def test_write_without_calls_is_settled() -> None:
    bench = Bench()
    learning = Learning(bench)
    await learning.apply(apply(host=copy()))
    learning.order.clear()
    await learning.apply(apply(host=copy()))
    assert learning.order == ["settled"]
