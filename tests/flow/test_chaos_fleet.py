"""Chaos between replicas that share three virtual clusters by shards: see test_chaos.py.

Replicas are killed, frozen past their Leases, cut off from the host or from their Leases, stopped and started.
`hack/chaos --clusters 3 --replicas 2` does the same for as long as one likes.
"""

import math

import pytest
from chaos.daemons import Cast
from chaos.machine import explore
from chaos.steps import Depose, Put, Wait, written, wrong_in

from syncer.daemon.fleet.shared_fleet import SharedFleet
from syncer.leaderelection.shards import Shards

REPLICAS = Cast.of(clusters=3, replicas=2)
#: Plays; some 15 s of CPU together.
PLAYS = 5
#: The same plays in each run; hack/chaos and hack/explore play others.
SEED = 20_261_124


def test_replicas_and_clusters_end_in_step_whatever_happens() -> None:
    report = explore(SEED, plays=PLAYS, length=50, cast=REPLICAS)
    again = f"hack/chaos --clusters 3 --replicas 2 --seed {SEED} --print"
    assert not report.wrong, "\n".join([again, *report.wrong, written(report.script, REPLICAS)])
    assert report.plays >= PLAYS


@pytest.mark.parametrize("name", REPLICAS.daemons)
def test_replica_that_goes_on_after_its_lease_is_reported(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    puts = [Put(tenant, "pods", "blog", "a", look=0) for tenant in REPLICAS.tenants]
    script = (Wait(8.0), Depose(name), Wait(24.0), *puts, Wait(8.0))
    assert wrong_in(script, REPLICAS) == []

    async def go_on(shared: SharedFleet, shard: int) -> None:
        """End nothing."""

    monkeypatch.setattr(SharedFleet, "end", go_on)
    monkeypatch.setattr(Shards, "until", lambda shards, cluster: math.inf)
    assert any("led" in fault for fault in wrong_in(script, REPLICAS))
