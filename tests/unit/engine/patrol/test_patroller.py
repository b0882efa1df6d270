"""What a scan of the cache looks at, what it finds, what becomes of that, and why it can't be made."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_envtest import virtual_time
from syncer.api import Context, Key, Mirror, Obj, Refused, Request, Side
from syncer.engine.controllers.builder import leave
from syncer.engine.patrol.findings import Outcome, Scan
from syncer.engine.patrol.patroller import GRACE_SECONDS, SLICE, Patroller, Ways
from syncer.engine.reconcile.controller import Controller
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.kinds import CONFIG_MAPS
from syncer.resources.secrets import SecretSyncer
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap


class Maps(Mirror):
    """Copies ConfigMaps, and refuses some."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        if "refused" in virtual["data"]:
            raise Refused("no")
        return super().translate(ctx, virtual)


class Bench:
    """A patroller of ConfigMaps ``a``, ``b``, ``c`` and ``d``, which are in step."""

    def __init__(self, **patrol: Any) -> None:
        self.world = World([Maps], config={"patrol": patrol})
        self.world.given(virtual=[configmap(name) for name in "abcd"])
        for name in "abcd":
            self.world.settle(Maps, f"shop/{name}")
        #: Answers to the patroller: why no scan is possible, and why nothing may be repaired.
        self.trouble: str | None = None
        self.hands_off: str | None = None
        #: Requests that are known trouble, and why they are not in step.
        self.busy: set[Request] = set()
        self.reasons: dict[Request, str] = {}
        #: The names of the requests that were to be repaired, in order.
        self.asked: list[str] = []
        #: How a request is repaired.
        self.repair: Callable[[Request], object] = lambda request: self.mend(request.key.name)
        self.patroller = self.patroller_of(self.world)

    def patroller_of(self, world: World) -> Patroller:
        """Return a patroller of a world that asks this bench."""
        ways = Ways(
            trouble=lambda: self.trouble,
            busy=lambda request: request in self.busy,
            repair=self._repair,
            reason=lambda request: self.reasons.get(request, ""),
            hands_off=lambda: self.hands_off,
        )
        return Patroller(
            world.pair,
            world.settings.patrol,
            ways,
            clock=asyncio.get_running_loop().time,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            rng=random.Random(7),
        )

    async def _repair(self, requests: Sequence[Request]) -> None:
        for request in requests:
            self.asked.append(request.key.name)
            with contextlib.suppress(Refused):
                self.repair(request)

    @property
    def controller(self) -> Controller:
        return self.world.pair.controllers["maps"]

    async def scan(self) -> Scan:
        return await self.patroller.scan(self.controller, fresh=False)

    # -- what happens ------------------------------------------------------------------------------

    def copy(self, name: str) -> Obj:
        found = self.world.host("ConfigMap", place(name))
        assert found
        return found

    def edit(self, name: str = "a", **parts: Any) -> None:
        """Change a copy."""
        self.world.given(host=[merged(self.copy(name), parts or {"data": {"color": "red"}})])

    def remove(self, name: str = "a") -> None:
        """Remove a copy."""
        self.world.gone(host=[self.copy(name)])

    def lose(self, names: str = "a") -> None:
        """Remove originals, without an event."""
        self.world.gone(virtual=[configmap(name) for name in names])

    def replace(self, name: str = "a") -> None:
        """Let an original be another object of the same name."""
        self.world.given(virtual=[configmap(name, metadata={"uid": "new"})])

    def refuse(self, name: str = "a") -> None:
        """Let the syncer refuse an original."""
        self.world.given(virtual=[configmap(name, {"refused": ""})])

    def mend(self, name: str = "a") -> None:
        """Put a copy in step."""
        self.world.settle(Maps, f"shop/{name}")


def place(name: str) -> str:
    return f"vc-ns/{name}-x-shop-x-vc"


def asked(name: str) -> Request:
    return Request("vc", "maps", Key("shop", name))


def unrepaired(request: Request) -> None:
    """Leave a request as it is."""


def counts(scan: Scan) -> tuple[int, int, int]:
    """The numbers of skipped, verified and busy requests."""
    return scan.skipped, scan.verified, scan.busy


def told(scan: Scan) -> list[tuple[str, str, str, str]]:
    """The name, class, outcome and reason of each finding."""
    return [(one.request.key.name, one.drift.kind, one.outcome.value, one.reason) for one in scan.findings]


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]], **patrol: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(100_000):
            await scenario(Bench(**patrol))

    virtual_time.run(main())


# -- what it looks at ----------------------------------------------------------------------------------------------

Happens = Callable[[Bench], object]


@pytest.mark.parametrize(
    ("happens", "found"),
    [
        pytest.param(lambda bench: None, (4, 0, 0), id="nothing"),
        pytest.param(lambda bench: bench.edit("a"), (3, 1, 0), id="a copy has changed"),
        pytest.param(lambda bench: bench.remove("a"), (3, 1, 0), id="a copy is gone"),
        pytest.param(
            lambda bench: bench.world.given(virtual=[configmap("a")]), (3, 1, 0), id="an original has changed"
        ),
        pytest.param(lambda bench: bench.lose("ab"), (2, 2, 0), id="originals are gone"),
        pytest.param(lambda bench: bench.world.given(virtual=[configmap("e")]), (4, 1, 0), id="an object is new"),
        pytest.param(lambda bench: (bench.edit("a"), bench.busy.add(asked("a"))), (3, 0, 1), id="it is known trouble"),
        pytest.param(lambda bench: bench.busy.add(asked("a")), (4, 0, 0), id="it is in work, and has not changed"),
    ],
)
def test_objects_that_have_changed_since_they_were_in_step_are_verified(
    happens: Happens, found: tuple[int, int, int]
) -> None:
    async def scenario(bench: Bench) -> None:
        assert counts(await bench.scan()) == (0, 4, 0)
        happens(bench)
        assert counts(await bench.scan()) == found

    play(scenario)


def test_object_that_is_not_in_step_is_verified_each_time() -> None:
    async def scenario(bench: Bench) -> None:
        bench.repair = unrepaired
        bench.edit("a")
        assert [counts(await bench.scan()) for _ in range(3)] == [(0, 4, 0), (3, 1, 0), (3, 1, 0)]

    play(scenario)


def test_object_that_was_repaired_is_skipped() -> None:
    async def scenario(bench: Bench) -> None:
        bench.edit("a")
        await bench.scan()
        assert counts(await bench.scan()) == (4, 0, 0)

    play(scenario)


def test_scan_lets_others_run() -> None:
    async def scenario(bench: Bench) -> None:
        bench.world.given(virtual=[configmap(f"x{number}") for number in range(SLICE)])
        bench.busy = {asked(f"x{number}") for number in range(SLICE)}
        scanning = asyncio.create_task(bench.scan())
        turns = 0
        while not scanning.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > 10

    play(scenario)


# -- the grace -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meanwhile", "found", "problem"),
    [
        pytest.param(lambda bench: None, [("a", "field", "repaired", "")], "", id="nothing"),
        pytest.param(lambda bench: bench.mend(), [], "", id="it was put in step"),
        pytest.param(lambda bench: bench.busy.add(asked("a")), [], "", id="it is in work"),
        pytest.param(lambda bench: bench.remove(), [("a", "missing", "repaired", "")], "", id="it drifts otherwise"),
        pytest.param(lambda bench: bench.refuse(), [], "", id="it is refused"),
        pytest.param(lambda bench: bench.edit("b"), [("a", "field", "repaired", "")], "", id="another one drifts"),
        pytest.param(lambda bench: setattr(bench, "trouble", "no host"), [], "no host", id="a cluster is silent"),
    ],
)
def test_write_must_still_be_needed_after_the_grace(
    meanwhile: Happens, found: list[tuple[str, str, str, str]], problem: str
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.edit("a")
        scanning = asyncio.create_task(bench.scan())
        await asyncio.sleep(GRACE_SECONDS - 0.1)
        assert (scanning.done(), bench.asked) == (False, [])
        meanwhile(bench)
        scan = await scanning
        assert (told(scan), scan.problem) == (found, problem)
        assert scan.seconds == pytest.approx(GRACE_SECONDS)
        assert bench.asked == [name for name, *_ in found]

    play(scenario)


def test_scan_that_finds_nothing_takes_no_time() -> None:
    async def scenario(bench: Bench) -> None:
        assert (await bench.scan()).seconds == 0
        assert bench.asked == []

    play(scenario)


# -- why not -------------------------------------------------------------------------------------------------------


def unfill(bench: Bench, *sides: Side) -> None:
    for side in sides:
        bench.world.pair.informers.store(side, CONFIG_MAPS).synced = False


@pytest.mark.parametrize(
    ("happens", "problem"),
    [
        pytest.param(lambda bench: setattr(bench, "trouble", "the host is silent"), "the host is silent", id="silent"),
        pytest.param(lambda bench: setattr(bench.controller, "ready", False), "it is not at work", id="not ready"),
        pytest.param(lambda bench: leave(bench.world.pair, "maps"), "it is not at work", id="has stopped"),
        pytest.param(
            lambda bench: unfill(bench, Side.HOST), "not all is known: host configmaps", id="a store is not filled"
        ),
        pytest.param(
            lambda bench: unfill(bench, Side.VIRTUAL),
            "not all is known: virtual configmaps",
            id="the other is not filled",
        ),
    ],
)
def test_kind_that_can_not_be_scanned_says_why(happens: Happens, problem: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.edit("a")
        controller = bench.controller
        happens(bench)
        scan = await bench.patroller.scan(controller, fresh=False)
        assert (scan.problem, counts(scan), scan.findings, bench.asked) == (problem, (0, 0, 0), [], [])
        assert bench.patroller.reports == {"maps": scan}

    play(scenario)


def test_kind_is_scanned_again_when_its_trouble_is_over() -> None:
    async def scenario(bench: Bench) -> None:
        bench.trouble = "the host is silent"
        bench.edit("a")
        await bench.scan()
        bench.trouble = None
        scan = await bench.scan()
        assert (scan.problem, told(scan)) == ("", [("a", "field", "repaired", "")])

    play(scenario)


def test_fresh_scan_needs_a_list() -> None:
    async def scenario(bench: Bench) -> None:
        scan = await bench.patroller.scan(bench.controller, fresh=True)
        assert (scan.fresh, counts(scan)) == (True, (0, 0, 0))
        assert scan.problem in {f"{side} configmaps is being listed" for side in Side}

    play(scenario)


@pytest.mark.parametrize(
    ("age", "fresh"),
    [
        pytest.param(0, False, id="at the start"),
        pytest.param(890, False, id="before its time"),
        pytest.param(900, True, id="about its time"),
        pytest.param(2000, True, id="late"),
    ],
)
def test_fresh_list_is_due_after_its_time(age: float, fresh: bool) -> None:
    async def scenario(bench: Bench) -> None:
        await asyncio.sleep(age)
        assert (await bench.patroller.scan(bench.controller)).fresh is fresh

    play(scenario, interval="100s", fresh="1000s")


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
def test_policy_of_a_class_decides_what_becomes_of_drift(
    kind: str, happens: Happens, policy: str | None, outcome: str
) -> None:
    async def scenario(bench: Bench) -> None:
        happens(bench)
        scan = await bench.scan()
        assert told(scan) == [("a", kind, outcome, "")]
        assert bench.asked == (["a"] if outcome == "repaired" else [])
        assert len(scan.left) == (1 if outcome == "reported" else 0)

    play(scenario, drift={kind: policy} if policy else {})


def test_policy_of_another_class_changes_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        bench.remove("a")
        bench.edit("b")
        bench.lose("c")
        assert sorted(told(await bench.scan())) == [
            ("a", "missing", "reported", ""),
            ("b", "field", "repaired", ""),
            ("c", "orphan", "ignored", ""),
        ]
        assert bench.asked == ["b"]

    play(scenario, drift={"missing": "report", "orphan": "ignore"})


# -- the breaker ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "policy", "outcome"),
    [
        pytest.param("abc", "repair", "held", id="too many"),
        pytest.param("ab", "repair", "repaired", id="as many as the limits allow"),
        pytest.param("abc", "report", "reported", id="too many, which are not repaired"),
    ],
)
def test_orphans_that_are_too_many_are_held(lost: str, policy: str, outcome: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.lose(lost)
        scan = await bench.scan()
        assert [one[:3] for one in sorted(told(scan))] == [(name, "orphan", outcome) for name in lost]
        reasons = {one.reason for one in scan.findings}
        held = bench.world.pair.policies.breaker.held
        assert reasons == ({str(held["maps", Side.HOST])} if outcome == "held" else {""})
        assert [bench.world.host("ConfigMap", place(name)) is None for name in lost] == [
            outcome == "repaired" for _ in lost
        ]

    play(scenario, breaker={"count": 2, "percent": 50}, drift={"orphan": policy})


def test_held_orphan_is_verified_although_its_request_is_parked_and_is_repaired_once_confirmed() -> None:
    async def scenario(bench: Bench) -> None:
        bench.lose("abc")
        await bench.scan()
        bench.busy = {asked(name) for name in "abc"}
        assert {one.outcome for one in (await bench.scan()).findings} == {Outcome.HELD}
        bench.world.pair.policies.breaker.confirm(lambda syncer: True)
        bench.busy = set()
        assert {one.outcome for one in (await bench.scan()).findings} == {Outcome.REPAIRED}

    play(scenario, breaker={"count": 2, "percent": 50})


def test_other_drift_is_repaired_while_orphans_are_held() -> None:
    async def scenario(bench: Bench) -> None:
        bench.lose("abc")
        bench.edit("d")
        assert {one[:3] for one in told(await bench.scan())} == {
            *((name, "orphan", "held") for name in "abc"),
            ("d", "field", "repaired"),
        }

    play(scenario, breaker={"count": 2, "percent": 50})


# -- repairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("the host says no", "the host says no", id="known"),
        pytest.param("", "it needs a write still", id="not known"),
    ],
)
def test_failed_repair_has_its_reason(reason: str, shown: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.repair = unrepaired
        bench.reasons[asked("a")] = reason
        bench.edit("a")
        scan = await bench.scan()
        assert told(scan) == [("a", "field", "failed", shown)]
        assert scan.left == scan.findings

    play(scenario)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("it is parked", "it is parked", id="known"),
        pytest.param("", "Refused: no", id="not known"),
    ],
)
def test_repair_that_ends_in_a_refusal_has_failed(reason: str, shown: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.reasons[asked("a")] = reason
        bench.repair = lambda request: bench.refuse()
        bench.edit("a")
        assert told(await bench.scan()) == [("a", "field", "failed", shown)]

    play(scenario)


@pytest.mark.parametrize("mended", [True, False])
def test_failed_repair_is_tried_again(mended: bool) -> None:
    async def scenario(bench: Bench) -> None:
        bench.repair = unrepaired
        bench.edit("a")
        scan = await bench.scan()
        if mended:
            bench.repair = lambda request: bench.mend()
        await bench.patroller.try_again(scan)
        assert bench.asked == ["a", "a"]
        assert told(scan) == [("a", "field", *(("repaired", "") if mended else ("failed", "it needs a write still")))]

    play(scenario)


@pytest.mark.parametrize("happens", [lambda bench: bench.edit(), lambda bench: None], ids=["repaired", "in step"])
def test_scan_without_failures_is_not_tried_again(happens: Happens) -> None:
    async def scenario(bench: Bench) -> None:
        happens(bench)
        scan = await bench.scan()
        before = list(bench.asked)
        await bench.patroller.try_again(scan)
        assert bench.asked == before

    play(scenario)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("it is parked", "it is parked", id="known"),
        pytest.param("", "Refused: no", id="not known"),
    ],
)
def test_request_that_is_refused_is_trouble_and_no_drift(reason: str, shown: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.reasons[asked("a")] = reason
        bench.refuse("a")
        scan = await bench.scan()
        assert (scan.findings, scan.troubles, counts(scan)) == ([], {asked("a"): shown}, (0, 4, 0))
        assert bench.asked == ["a"], "whoever works on it says so"

    play(scenario)


@pytest.mark.parametrize(("kind", "happens"), CLASSES)
@pytest.mark.parametrize(
    ("policy", "outcome", "reason"),
    [("repair", "reported", "it is a dry run"), ("report", "reported", ""), ("ignore", "ignored", "")],
)
def test_drift_is_only_reported_while_hands_are_off(
    kind: str, happens: Happens, policy: str, outcome: str, reason: str
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.hands_off = "it is a dry run"
        happens(bench)
        before = bench.world.objects(Side.HOST)
        assert told(await bench.scan()) == [("a", kind, outcome, reason)]
        assert (bench.asked, bench.world.objects(Side.HOST)) == ([], before)

    play(scenario, drift={kind: policy})


@pytest.mark.parametrize(
    ("manager", "shown"),
    [("kubectl-edit", "kubectl-edit"), ("vsyncer", None)],
    ids=["another manager", "our own"],
)
def test_finding_names_who_changed_the_field(manager: str, shown: str | None) -> None:
    async def scenario(bench: Bench) -> None:
        fields: Obj = {"f:data": {"f:color": {}}}
        entry = {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
        bench.edit("a", data={"color": "red"}, metadata={"managedFields": [{**entry, "time": "2026-01-01T00:00:00Z"}]})
        [finding] = (await bench.scan()).findings
        found = {path: by.name for path, by in finding.by.items()}
        assert found == ({("data", "color"): shown} if shown else {})

    play(scenario)


# -- rounds --------------------------------------------------------------------------------------------------------


async def patrolled(patroller: Patroller, seconds: float) -> list[tuple[float, str]]:
    """Let a patroller run for some seconds, and return when it scanned which kind."""
    loop = asyncio.get_running_loop()
    scans: list[tuple[float, str]] = []
    scan = patroller.scan

    async def noted(controller: Controller, **options: Any) -> Scan:
        scans.append((loop.time(), controller.name))
        if len(scans) == 1:
            raise ValueError("a bug")
        return await scan(controller, **options)

    patroller.scan = noted  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await patroller.run()
    return scans


def test_rounds_come_at_intervals_although_a_scan_fails() -> None:
    async def scenario(bench: Bench) -> None:
        times = [0.0, *(time for time, _ in await patrolled(bench.patroller, 1000))]
        pauses = [after - before for before, after in itertools.pairwise(times)]
        assert len(pauses) in (9, 10, 11)
        assert all(90 <= pause <= 110 for pause in pauses)
        assert len(set(pauses)) > 1, "they vary, so that not all clusters are patrolled at a time"

    play(scenario, interval="100s")


def test_kind_with_an_interval_of_its_own_has_its_own_rounds() -> None:
    async def scenario(bench: Bench) -> None:
        sections = {"configMaps": {"all": True, "patrolInterval": "300s"}, "secrets": {"all": True}}
        world = World(
            [ConfigMapSyncer, SecretSyncer], config={"sync": {"toHost": sections}, "patrol": {"interval": "100s"}}
        )
        patroller = bench.patroller_of(world)
        names = [name for _, name in await patrolled(patroller, 3000)]
        assert 9 <= names.count("configmaps") <= 11
        assert 27 <= names.count("secrets") <= 33

    play(scenario)
