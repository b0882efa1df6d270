"""The mutation matrix: every unseen change of either side is reported and repaired by a single scan."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from harness import ALL, CLUSTER, HOME, Daemon, Two, between, built_in, writes
from mutations import KINDS, MUTATIONS, Operation, in_step
from sampled import config_model

from kube_envtest import Rule
from syncer.engine.patrol.findings import Scan
from syncer.testing.merge import merged

SIDES = ("host", "virtual")
#: Seconds after which a bookmark has told every watch that it is past all that was dropped.
PAST = 70.0
ROWS = [pytest.param(kind, side, id=f"{kind.title or kind.syncer}-{side}") for kind in KINDS for side in SIDES]


@contextlib.asynccontextmanager
async def patrolled(two: Two, kind: Operation, policy: str) -> AsyncIterator[Daemon]:
    """A daemon with this drift policy, which patrols only when asked to."""
    drift = dict.fromkeys(("missing", "orphan", "wrongOwner", "field", "metadata", "status"), policy)
    given = {
        "cluster": CLUSTER,
        "host": {"namespace": HOME},
        "sync": merged({"toHost": ALL}, dict(kind.sync)),
        "patrol": {"enabled": False, "drift": drift},
    }
    config = config_model(built_in(), kind.translator).model_validate(given)
    async with between(two.host, [(config, two.virtual)]) as daemon:
        yield daemon


async def scanned(daemon: Daemon, kind: Operation) -> Scan:
    [pair], [patroller] = daemon.process.pairs.values(), daemon.process.patrollers()
    return await patroller.scan(pair.controllers[kind.syncer], fresh=True)


def findings_of(kind: Operation, scan: Scan, side: str) -> dict[str, set[tuple[str, str, str]]]:
    """Return the findings of a scan, by the name of the object."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    for one in scan.findings:
        names = [name for name in (*MUTATIONS, "ghost") if str(one.request.key) == kind.virtual_key(name)]
        name = names[0] if names else str(one.request.key)
        found.setdefault("orphan" if name == "ghost" else name, set()).add(
            (one.drift.kind, str(one.drift.side), one.outcome.value)
        )
    return found


def expected(kind: Operation, side: str, outcome: str = "") -> dict[str, set[tuple[str, str, str]]]:
    cells = {name: kind.cells[side, name] for name in MUTATIONS}
    return {
        name: {(drift, where, outcome or then) for drift, where, then in cell}
        for name, cell in cells.items()
        if not isinstance(cell, str)
    }


async def mutated(two: Two, kind: Operation, side: str, daemon: Daemon) -> None:
    """Do all that makes sense to the objects of a kind, unseen."""
    for server in (two.virtual, two.host):
        server.faults.add(Rule(verb="watch", drop=True))
    for name in expected(kind, side):
        kind.mutate(two, side, name)
    await asyncio.sleep(PAST)


@pytest.mark.parametrize(("kind", "side"), ROWS)
async def test_mutation_is_repaired_by_one_scan_and_the_next_finds_nothing(
    two: Two, kind: Operation, side: str
) -> None:
    kind.before(two)
    async with patrolled(two, kind, "repair") as daemon:
        await in_step(two, kind, daemon)
        await mutated(two, kind, side, daemon)
        first = await scanned(daemon, kind)
        assert first.problem == ""
        assert findings_of(kind, first, side) == expected(kind, side)
        second = await scanned(daemon, kind)
        assert findings_of(kind, second, side) == {}
        assert second.corrected == []


@pytest.mark.parametrize(("kind", "side"), ROWS)
async def test_drift_is_only_reported_by_policy_at_each_scan(two: Two, kind: Operation, side: str) -> None:
    kind.before(two)
    async with patrolled(two, kind, "report") as daemon:
        await in_step(two, kind, daemon)
        await mutated(two, kind, side, daemon)
        since = len(two.host.requests), len(two.virtual.requests)
        for _ in range(2):
            scan = await scanned(daemon, kind)
            assert scan.problem == ""
            assert findings_of(kind, scan, side) == expected(kind, side, "reported")
        assert writes(two.host, since[0]) == []
        assert writes(two.virtual, since[1]) == []


def test_matrix_has_every_kind_with_every_mutation_on_both_sides() -> None:
    assert {kind.syncer for kind in KINDS} >= {syncer.name for syncer in built_in()}
    for kind in KINDS:
        assert kind.cells.keys() == {(side, mutation) for side in SIDES for mutation in MUTATIONS}, kind.syncer
        for cell in kind.cells.values():
            assert cell, "a cell that makes no sense says why"
    sensible = [cell for kind in KINDS for cell in kind.cells.values() if not isinstance(cell, str)]
    assert len(sensible) > 100
