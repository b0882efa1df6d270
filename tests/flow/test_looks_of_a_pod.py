"""A Pod is decided about once for each fact in its life, and our own writes lead to no decision."""

from typing import Any

import pytest
from harness import HOME, NAMESPACE, Two, admin, built_in, play, until

from hack.kubelet import Kubelet, is_ready
from hack.side_tasks import helped_by
from syncer.api import Key, Side, SyncRequest
from syncer.engine.reconcile.plan import Reconciled
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.resources.kinds import PODS
from syncer.testing.objects import pod

SYNCERS = built_in("pods", "nodes")
#: Seconds of virtual time between the steps of the kubelet.
PAUSE = 0.5


def test_pod_is_decided_about_once_for_each_fact(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[str] = []
    reconcile = Reconciler.reconcile

    def noted(reconciler: Reconciler, controller: Any, request: SyncRequest, *rest: Any) -> Reconciled:
        if request.syncer == "pods":
            decided.append(request.key.name)
        return reconcile(reconciler, controller, request, *rest)

    async def scenario() -> None:
        tenant = admin(two.virtual, Side.VIRTUAL)
        kubelet = Kubelet(admin(two.host, Side.HOST), HOME, pause=PAUSE)
        async with two.daemon(SYNCERS) as daemon, helped_by(kubelet.run()):
            await daemon.settled()
            await tenant.create(PODS, pod("first"))  # its node appears with it
            await until(lambda: is_ready(two.original("pods", "first") or {}))
            await daemon.settled()

            decided.clear()
            await tenant.create(PODS, pod("web"))
            await until(lambda: is_ready(two.original("pods", "web") or {}))
            await daemon.settled()
            # It is created, bound, started and ready.
            assert decided == ["web"] * 4

            decided.clear()
            await tenant.delete(PODS, Key(NAMESPACE, "web"), grace=30)
            await until(lambda: not two.original("pods", "web"))
            await daemon.settled()
            # It is to end, and has ended.
            assert decided == ["web"] * 2

    monkeypatch.setattr(Reconciler, "reconcile", noted)
    play(scenario)
