"""The simulation of replicas that share many virtual clusters."""

import json

import pytest

from hack.bench.shards import simulate
from kube_envtest import virtual_time

#: The Lease's duration, and the times until it is seen to have ended and is taken.
LONGEST_GAP = 15.0 + 2 * 2.0 + 2.2 * 2.0


def test_no_cluster_has_two_leaders_or_none_for_much_longer_than_a_lease(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert virtual_time.run(simulate(clusters=60, shards=8, replicas=3))
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert found[-1] == {"led_by_two": 0}
    assert all(each["longest_gap_s"] <= LONGEST_GAP for each in found[:-1])
    [killed] = [each for each in found if each.get("event") == "one is killed"]
    assert 0 < killed["moved"] < 60
