"""The sieve with three virtual clusters that two replicas share: at some writes of every kind, one of them is lost.

`hack/sieve --clusters 3 --replicas 2` takes all writes.
"""

import math

import pytest
import sieve_fleet
from sieve_main import numbered, sieve, tried, undisturbed, workloads
from sieve_run import Lost

from syncer.daemon.fleet.shared_fleet import SharedFleet
from syncer.leaderelection.shards import Shards

CAST = sieve_fleet.cast(clusters=3, replicas=2)
#: Each so many-th point is tried here.
SPREAD = 401


def test_no_loss_of_a_replica_does_harm_that_lasts() -> None:
    assert sieve(list(numbered(list(workloads()), cast=CAST))[::SPREAD], workers=2, cast=CAST) == []


def test_run_without_a_loss_has_no_problems_and_is_repeatable() -> None:
    run, again = (sieve_fleet.run(workloads()["pods"], CAST) for _ in range(2))
    assert run.problems == []
    assert (again.trace, again.end) == (run.trace, run.end)


def test_replica_that_goes_on_after_its_lease_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go_on(shared: SharedFleet, shard: int) -> None:
        """End nothing."""

    name, point = "all-configmaps", Lost(3, "frozen", after=False)
    undisturbed(name, CAST)
    assert tried(name, 0, point, CAST) is None
    monkeypatch.setattr(SharedFleet, "end", go_on)
    monkeypatch.setattr(Shards, "until", lambda shards, cluster: math.inf)
    found = tried(name, 0, point, CAST)
    assert found is not None
    assert any("led" in problem for problem in found.problems)
