"""Nothing that the daemon drops is in a reference cycle: its garbage collections are rare, so it would stay for long,
and large objects with it.
"""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from harness import Daemon, Tenant, Two, built_in, play, serving

from kube_envtest import Rule
from syncer.engine.reconcile.plan import Plan, Reconciled
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.testing.objects import configmap, pod, service

MANY = 10


@contextmanager
def garbage() -> Iterator[list[str]]:
    """Yield a list that has, afterwards, what of the daemon only a garbage collection frees."""
    found: list[str] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        for each in gc.garbage:
            module = getattr(each, "__module__", None) or type(each).__module__
            if isinstance(module, str) and module.startswith("syncer."):
                found.append(getattr(each, "__qualname__", None) or type(each).__qualname__)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(
    "faults",
    [
        (),
        (Rule(verb="create", status=409, count=MANY),),
        (Rule(verb="create", status=500, count=MANY),),
        (Rule(verb="create", status=429, retry_after=1, count=MANY),),
        (Rule(verb="create", reset="before", count=MANY),),
        (Rule(verb="create", reset="after", count=MANY),),
        (Rule(verb="create", latency=40, count=MANY),),
        (Rule(verb="watch", cut=True, count=2),),
        (
            Rule(verb="watch", cut=True, count=2),
            Rule(verb="watch", status=410, count=1),
            Rule(verb="list", status=410, count=1),
        ),
    ],
    ids=["none", "409", "500", "429", "before", "after", "slow", "cut", "expired"],
)
def test_objects_leave_no_cycle_when_they_are_written_or_cannot_be(two: Two, faults: tuple[Rule, ...]) -> None:
    async def lives(daemon: Daemon) -> None:
        for fault in faults:
            two.host.faults.add(fault)
        for number in range(MANY):
            two.virtual.put(configmap(f"m{number}", {"a": "b"}))
            two.virtual.put(service(f"s{number}"))
            two.virtual.put(pod(f"p{number}"))
        await asyncio.sleep(100)
        for number in range(MANY):
            two.virtual.put(configmap(f"m{number}", {"a": "c"}))
        await daemon.settled(patience=30)
        assert all(fault.hits for fault in faults)

    async def scenario() -> None:
        async with serving(two.host, [Tenant(two.virtual)], built_in("configmaps", "pods", "services")) as daemon:
            await daemon.settled()
            with garbage() as found:
                await lives(daemon)
            assert not found

    play(scenario)


def test_plan_is_freed_before_the_next_one_of_its_request(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds both objects, and what is written."""
    reconcile, plans_alive = Reconciler.reconcile, list[int]()

    def reconciling(self: Reconciler, *given: Any) -> Reconciled:
        plans_alive.append(sum(isinstance(each, Plan) for each in gc.get_objects()))
        return reconcile(self, *given)

    async def scenario() -> None:
        async with serving(two.host, [Tenant(two.virtual)], built_in("services"), workers=1) as daemon:
            await daemon.settled()
            two.virtual.put(service("web"))
            monkeypatch.setattr(Reconciler, "reconcile", reconciling)
            await daemon.settled()
            assert len(plans_alive) > 1
            assert not any(plans_alive)

    play(scenario)
