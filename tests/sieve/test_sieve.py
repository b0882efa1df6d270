"""Sieve's three perturbations, at some points of every kind (hack/sieve takes all), and proof that it sees them.

https://www.usenix.org/conference/osdi22/presentation/sun (Sieve), and for the property, eventually stable
reconciliation, https://www.usenix.org/conference/osdi24/presentation/sun-xudong (Anvil).
"""

from collections.abc import Iterator

import pytest
from harness import built_in
from sieve_main import Violation, counted, numbered, sieve, tried, undisturbed, workloads
from sieve_points import PERTURBATIONS, described
from sieve_run import Point, Restart, Travel
from sieve_wire import Crash, Unseen

from syncer.api.decision import Decision
from syncer.api.objects import Side
from syncer.clusters.client import SideClient
from syncer.engine.reconcile import calls as needed
from syncer.engine.reconcile import pipeline, reconciler
from syncer.engine.reconcile.plan import Observed
from syncer.engine.reconcile.policies import preconditions, staleness
from syncer.resources.pods import lifecycle, policy

#: Each so many-th point is tried here.
SPREAD = 23


def chosen(*kinds: str, every: int = 1) -> list[tuple[str, int, Point]]:
    return list(numbered(kinds or list(workloads())))[::every]


def test_no_disturbance_does_harm_that_lasts() -> None:
    assert sieve(chosen(every=SPREAD), workers=2) == []


@pytest.mark.parametrize("name", list(workloads()))
def test_undisturbed_run_has_no_problems_and_is_repeatable(name: str) -> None:
    run = undisturbed(name)
    assert run.problems == []
    undisturbed.cache_clear()
    again = undisturbed(name)
    assert again.trace == run.trace, "points would have no meaning"
    assert again.end == run.end


def test_every_built_in_syncer_has_a_workload() -> None:
    tried_ones = {
        enabled.syncer.name for workload in workloads().values() for enabled in workload.config.cluster().enabled()
    }
    assert tried_ones >= {syncer.name for syncer in built_in()}


def test_there_are_thousands_of_points_of_each_perturbation() -> None:
    counts = counted(chosen())
    totals = {each: sum(kind.get(each, 0) for kind in counts.values()) for each in PERTURBATIONS.values()}
    assert all(total > 1000 for total in totals.values()), totals
    assert all(set(kind) == set(totals) for kind in counts.values()), "each kind is disturbed in every way"


# -- proof that it sees what it is to see ----------------------------------------------------------


def violations(name: str, perturbation: type[Point], about: str) -> Iterator[Violation]:
    """Yield the violations at the points that have this in their description."""
    trace = undisturbed(name).trace
    for kind, number, point in chosen(name):
        if (
            isinstance(point, perturbation)
            and about in described(point, trace)
            and (found := tried(kind, number, point))
        ):
            yield found


def is_found(problem: str, name: str, perturbation: type[Point], *, about: str = "") -> bool:
    """Return True if a violation contains this text."""
    return any(problem in each for found in violations(name, perturbation, about) for each in found.problems)


def as_decided(_: Observed, decision: Decision) -> Decision:
    """A policy that is switched off."""
    return decision


def test_a_pod_is_deleted_or_started_twice_where_old_lists_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    for guard in ("add_preconditions", "guard_pod_start", "delay_unconfirmed_deletions"):
        monkeypatch.setattr(pipeline, guard, as_decided)
    assert is_found("though the host runs it", "pods", Restart)


def test_a_copy_goes_while_it_is_used_where_old_lists_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staleness, "DOUBT_SECONDS", 0.0)
    assert is_found("was deleted though its original is there", "configmaps", Travel)


def test_a_public_crd_is_taken_away_where_old_lists_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preconditions, "_with_origin", lambda observed, write: write)
    assert is_found("was taken away though the host still shows it", "public-crds", Restart)


def test_a_pod_is_started_twice_if_only_its_status_shows_that_it_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_started(pod: object, **options: object) -> bool:
        status = (isinstance(pod, dict) and pod.get("status")) or {}
        return bool(status.get("startTime"))

    monkeypatch.setattr(lifecycle, "has_started", has_started)
    monkeypatch.setattr(policy, "applied", lambda config, host, required: host)  # it refuses a Pod with a node, too
    assert is_found(
        "is started a second time", "pods", Crash, about="PATCH virtual /api/v1/namespaces/shop/pods/doomed"
    )


def test_the_wrong_object_is_deleted_without_a_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    delete = SideClient.delete

    async def careless(self: SideClient, *given: object, uid: str | None = None, **options: object) -> object:
        return await delete(self, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SideClient, "delete", careless)
    monkeypatch.setattr(pipeline, "add_preconditions", as_decided)
    assert is_found("was deleted though its original is there", "all-configmaps", Restart)


def test_a_write_that_is_never_made_again_is_missing_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A syncer that takes every copy that is there for right is wrong as soon as it misses one change."""
    calls = needed.needed

    def content(write: object, live: object, **options: object) -> object:
        return [] if live is not None else calls(write, live, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(reconciler, "needed", content)
    undisturbed.cache_clear()
    try:
        assert is_found("the end differs", "all-configmaps", Unseen) or is_found(
            "the end differs", "all-configmaps", Crash
        )
    finally:
        undisturbed.cache_clear()


def test_restarts_and_travels_concern_each_side() -> None:
    assert {point.side for _, _, point in chosen("services") if isinstance(point, Restart | Travel)} == set(Side)
