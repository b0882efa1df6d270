"""Drift that a scan finds is repaired, reported, ignored or held, and a failed repair is tried again."""

import asyncio

import pytest
from patroller_bench import Bench, Happens, asked, copy_name, counts, reported, unrepaired

from syncer.api import Obj, Side, SyncRequest
from syncer.engine.patrol.findings import FindingOutcome
from syncer.engine.patrol.patroller import LOOK_WEIGHT, SLICE
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.plan import Plan
from syncer.engine.reconcile.policies.breaker import DECIDED, STEP
from syncer.testing.objects import configmap, host_copy

# -- policies ------------------------------------------------------------------------------------------------------

CLASSES = [
    pytest.param("missing", lambda bench: bench.remove(), id="missing"),
    pytest.param("orphan", lambda bench: bench.lose(), id="orphan"),
    pytest.param("wrongOwner", lambda bench: bench.replace(), id="wrong owner"),
    pytest.param("field", lambda bench: bench.edit(), id="field"),
    pytest.param(
        "metadata", lambda bench: bench.edit(metadata={"annotations": {"vsyncer.dev/virtual-name": "x"}}), id="metadata"
    ),
]


@pytest.mark.parametrize(("kind", "happens"), CLASSES)
@pytest.mark.parametrize(
    ("policy", "outcome"), [("repair", "repaired"), ("report", "reported"), ("ignore", "ignored"), (None, "repaired")]
)
async def test_policy_of_a_class_decides_about_its_drift(
    kind: str, happens: Happens, policy: str | None, outcome: str
) -> None:
    bench = Bench(drift={kind: policy} if policy else {})
    happens(bench)
    scan = await bench.scan()
    assert reported(scan) == [("a", kind, outcome, "")]
    assert bench.asked == (["a"] if outcome == "repaired" else [])
    assert len(scan.left) == (1 if outcome == "reported" else 0)


async def test_policy_of_another_class_changes_nothing() -> None:
    bench = Bench(drift={"missing": "report", "orphan": "ignore"})
    bench.remove("a")
    bench.edit("b")
    bench.lose("c")
    assert sorted(reported(await bench.scan())) == [
        ("a", "missing", "reported", ""),
        ("b", "field", "repaired", ""),
        ("c", "orphan", "ignored", ""),
    ]
    assert bench.asked == ["b"]


# -- the breaker ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "policy", "outcome"),
    [
        pytest.param("abc", "repair", "held", id="too many"),
        pytest.param("ab", "repair", "repaired", id="as many as the limits allow"),
        pytest.param("abc", "report", "reported", id="too many, which are not repaired"),
    ],
)
async def test_too_many_orphans_are_stopped(lost: str, policy: str, outcome: str) -> None:
    bench = Bench(breaker={"count": 2, "percent": 50}, drift={"orphan": policy})
    bench.lose(lost)
    scan = await bench.scan()
    assert [one[:3] for one in sorted(reported(scan))] == [(name, "orphan", outcome) for name in lost]
    reasons = {one.reason for one in scan.findings}
    stopped = bench.world.pair.policies.breaker.stopped
    assert reasons == ({str(stopped["maps", Side.HOST])} if outcome == "held" else {""})
    assert [bench.world.host("ConfigMap", copy_name(name)) is None for name in lost] == [
        outcome == "repaired" for _ in lost
    ]


async def test_stopped_orphan_of_a_parked_request_is_verified_and_repaired_once_confirmed() -> None:
    bench = Bench(breaker={"count": 2, "percent": 50})
    bench.lose("abc")
    await bench.scan()
    bench.busy = {asked(name) for name in "abc"}
    assert {one.outcome for one in (await bench.scan()).findings} == {FindingOutcome.HELD}
    bench.world.pair.policies.breaker.confirm(lambda syncer: True)
    bench.busy = set()
    assert {one.outcome for one in (await bench.scan()).findings} == {FindingOutcome.REPAIRED}


async def test_many_orphans_are_found_and_stopped_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(breaker={"count": 2, "percent": 50})
    lost = [configmap(f"x{number}") for number in range(300)]
    bench.world.given(host=[host_copy(one) for one in lost])
    scan, sleep, made = bench.world.pair.reconciler.scan, asyncio.sleep, [0]

    def counted(_: object, controller: BoundSyncer, request: SyncRequest) -> Plan:
        made[-1] += 1
        return scan(controller, request)

    async def slept(seconds: float) -> None:
        made.append(0)
        await sleep(seconds)

    monkeypatch.setattr(type(bench.world.pair.reconciler), "scan", counted)
    monkeypatch.setattr(asyncio, "sleep", slept)
    assert [one.outcome for one in (await bench.scan()).findings] == [FindingOutcome.HELD] * 300
    assert max(made) == SLICE // LOOK_WEIGHT
    await bench.scan()
    assert SLICE // LOOK_WEIGHT < max(made) < STEP // DECIDED, "those that are held are decided about again"


async def test_other_drift_is_repaired_while_orphans_are_stopped() -> None:
    bench = Bench(breaker={"count": 2, "percent": 50})
    bench.lose("abc")
    bench.edit("d")
    assert {one[:3] for one in reported(await bench.scan())} == {
        *((name, "orphan", "held") for name in "abc"),
        ("d", "field", "repaired"),
    }


# -- repairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("the host says no", "the host says no", id="known"),
        pytest.param("", "a write is still needed", id="not known"),
    ],
)
async def test_failed_repair_has_its_reason(reason: str, shown: str) -> None:
    bench = Bench()
    bench.repair = unrepaired
    bench.reasons[asked("a")] = reason
    bench.edit("a")
    scan = await bench.scan()
    assert reported(scan) == [("a", "field", "failed", shown)]
    assert scan.left == scan.findings


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("it is parked", "it is parked", id="known"),
        pytest.param("", "Refused: no", id="not known"),
    ],
)
async def test_repair_that_ends_in_a_refusal_has_failed(reason: str, shown: str) -> None:
    bench = Bench()
    bench.reasons[asked("a")] = reason
    bench.repair = lambda request: bench.refuse()
    bench.edit("a")
    assert reported(await bench.scan()) == [("a", "field", "failed", shown)]


@pytest.mark.parametrize("mended", [True, False])
async def test_failed_repair_is_tried_again(mended: bool) -> None:
    bench = Bench()
    bench.repair = unrepaired
    bench.edit("a")
    scan = await bench.scan()
    if mended:
        bench.repair = lambda request: bench.mend()
    await bench.patroller.try_again(scan)
    assert bench.asked == ["a", "a"]
    assert reported(scan) == [("a", "field", *(("repaired", "") if mended else ("failed", "a write is still needed")))]


@pytest.mark.parametrize("happens", [lambda bench: bench.edit(), lambda bench: None], ids=["repaired", "in step"])
async def test_scan_without_failures_is_not_tried_again(happens: Happens) -> None:
    bench = Bench()
    happens(bench)
    scan = await bench.scan()
    before = list(bench.asked)
    await bench.patroller.try_again(scan)
    assert bench.asked == before


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("it is parked", "it is parked", id="known"),
        pytest.param("", "Refused: no", id="not known"),
    ],
)
async def test_request_that_is_refused_is_trouble_and_no_drift(reason: str, shown: str) -> None:
    bench = Bench()
    bench.reasons[asked("a")] = reason
    bench.refuse("a")
    scan = await bench.scan()
    assert (scan.findings, scan.troubles, counts(scan)) == ([], {asked("a"): shown}, (0, 4, 0))
    assert bench.asked == ["a"], "whoever works on it says so"


@pytest.mark.parametrize(("kind", "happens"), CLASSES)
@pytest.mark.parametrize(
    ("policy", "outcome", "reason"),
    [("repair", "reported", "it is a dry run"), ("report", "reported", ""), ("ignore", "ignored", "")],
)
async def test_drift_is_only_reported_while_hands_are_off(
    kind: str, happens: Happens, policy: str, outcome: str, reason: str
) -> None:
    bench = Bench(drift={kind: policy})
    bench.hands_off = "it is a dry run"
    happens(bench)
    before = bench.world.objects(Side.HOST)
    assert reported(await bench.scan()) == [("a", kind, outcome, reason)]
    assert (bench.asked, bench.world.objects(Side.HOST)) == ([], before)


@pytest.mark.parametrize(
    ("manager", "shown"),
    [("kubectl-edit", "kubectl-edit"), ("vsyncer", None)],
    ids=["another manager", "our own"],
)
async def test_finding_names_who_changed_the_field(manager: str, shown: str | None) -> None:
    bench = Bench()
    fields: Obj = {"f:data": {"f:color": {}}}
    entry = {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
    bench.edit("a", data={"color": "red"}, metadata={"managedFields": [{**entry, "time": "2026-01-01T00:00:00Z"}]})
    [finding] = (await bench.scan()).findings
    found = {path: by.name for path, by in finding.by.items()}
    assert found == ({("data", "color"): shown} if shown else {})
