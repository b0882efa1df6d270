"""Faults of all kinds between real API servers and the real daemon; `hack/chaos --real` plays on with other seeds.

Each fault comes once on each side, the first half of them with one daemon and the second half with two.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from real_chaos.audit import Wrote, without_the_lease
from real_chaos.run import Play, run
from real_chaos.script import Fault, script
from real_chaos.stage import Planes, planes

from syncer.api import Side

SEED, HALF, LONGEST = 1, 10, 5.0


@pytest.fixture(scope="module")
def stricken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planes]:
    """Two planes of this module's own, since other tests must not meet such trouble."""
    with planes(tmp_path_factory.mktemp("chaos")) as made:
        yield made


@pytest.mark.controlplane
@pytest.mark.parametrize("pair", [False, True], ids=["one daemon", "two daemons"])
def test_after_all_faults_both_sides_are_in_step_and_nothing_is_lost(
    stricken: Planes, tmp_path: Path, figure: Callable[[str], None], pair: bool
) -> None:
    play = Play(SEED, HALF, pair, skip=HALF if pair else 0, longest=LONGEST)
    report = run(stricken, tmp_path, play, say=print)
    figure(json.dumps(report.as_json()))
    assert report.violations == []
    assert sum(report.faults.values()) == HALF


def test_the_two_halves_have_each_fault_on_each_side() -> None:
    dealt = {(step.fault, step.side) for step in script(SEED, 2 * HALF, longest=LONGEST)}
    assert dealt == {(fault, side) for fault in Fault for side in ([None] if fault.is_ours else Side)}


def wrote(user: str, resource: str, received: int) -> Wrote:
    times = f"2026-01-01T00:00:{received:02d}.0Z", f"2026-01-01T00:00:{received:02d}.5Z"
    return Wrote(Side.HOST, user, "patch", resource, "vc", "a", *times)


def test_a_write_that_comes_after_another_has_taken_the_lease_is_found() -> None:
    before = [wrote("a", "leases", 1), wrote("a", "secrets", 2), wrote("b", "leases", 3), wrote("b", "secrets", 4)]
    late = wrote("a", "secrets", 5)
    assert without_the_lease([*before, wrote("a", "leases", 6), wrote("a", "secrets", 7)]) == []
    assert without_the_lease([*before, late]) == [f"{late}, when b held the Lease"]
