"""What a worker makes of a request: which outcome it notes, when it comes back, who hears of it, and how it ends."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_envtest import Rule, virtual_time
from syncer.api import (
    Config,
    Conflict,
    Context,
    Decision,
    Denied,
    Exists,
    Expired,
    Forbidden,
    Invalid,
    Key,
    Mirror,
    Missing,
    MissingRight,
    NotConnected,
    Obj,
    ObjectRef,
    Pair,
    QuotaExceeded,
    Refused,
    Request,
    Settings,
    Side,
    Source,
    SyncerError,
    TooMany,
    Unauthorized,
    Unreachable,
    apply,
    delete,
    skip,
    wait,
)
from syncer.clusters.client import Cluster
from syncer.engine.controllers.builder import build_pair, leave
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses, State
from syncer.engine.controllers.worker import BREATH, DRAIN_SECONDS, ROUNDS, Workers
from syncer.engine.workqueue.queue import Queue
from syncer.names import SingleNamespace
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace, secret

SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
A = Request("vc", "maps", Key("shop", "a"))
COPY = "vc-ns/a-x-shop-x-vc"
DB = ObjectRef(Side.VIRTUAL, SECRETS, Key("shop", "db"))
#: Seconds of the clock at which each test begins, so that a delay is seen as a time after it.
NOW = 100.0

#: What the syncer of a test does with the original and its copy.
Act = Callable[[Obj, Obj | None], Decision]


class Maps(Mirror[Config]):
    """Does as the test says; else copies ConfigMaps."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)
    reads = (Source(Side.VIRTUAL, SECRETS),)
    #: How the next attempts end, the last for good; none: as a mirror.
    acts: list[Act]
    #: The names that were decided, in order.
    decided: list[str]

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        return self._decide(virtual, None) or super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        return self._decide(pair.virtual, pair.host) or super().sync(ctx, pair)

    def _decide(self, virtual: Obj, host: Obj | None) -> Decision | None:
        self.decided.append(virtual["metadata"]["name"])
        if not self.acts:
            return None
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        return act(virtual, host)


class Statuses(Maps):
    """The same, with a part of the copy that flows back."""

    up = ("status",)


@dataclass(frozen=True, slots=True)
class Told:
    """An event for a tenant."""

    reason: str
    message: str
    about: Obj | None


class Bench:
    """Workers on a queue, between two API servers in memory."""

    def __init__(self, syncer: type[Maps] = Maps, **options: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.virtual, self.host = ApiServer(seed="virtual"), ApiServer(seed="host")
        for server, name in ((self.virtual, "shop"), (self.host, "vc-ns")):
            server.put(namespace(name))
        self.queue = Queue(clock=self.loop.time, spread=lambda: 0.5)  # a delay is exactly as long as it is meant
        self.maps = syncer()
        self.maps.acts, self.maps.decided = [], []
        self.pair: ClusterPair = build_pair(
            SETTINGS,
            [(self.maps, Config(**options))],
            virtual=Cluster("vc", Side.VIRTUAL, self.virtual.transport()),
            host=Cluster("host", Side.HOST, self.host.transport()),
            queue=self.queue,
            clock=self.loop.time,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: False,
            may_write=lambda: True,
        )
        self.controller = self.pair.controllers["maps"]
        self.statuses, self.metrics = RequestStatuses(), Metrics(version="test")
        self.events: list[Told] = []
        self.losses: list[tuple[Side, SyncerError]] = []
        self.workers = Workers(self.queue, {"vc": self.pair}, self.statuses, self, self.metrics, clock=self.loop.time)
        for name in "ab":
            self.see(configmap(name))
        self.controller.ready = True  # from now on, changes are queued

    # -- what workers tell -----------------------------------------------------------------------------

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        self.losses.append((side, error))

    def warn(self, pair: ClusterPair, request: Request, reason: str, message: str, *, about: Obj | None) -> None:
        self.events.append(Told(reason, message, about))

    # -- what a test does ------------------------------------------------------------------------------

    def see(self, obj: Obj) -> Obj:
        """Put an object into the virtual cluster, and let the store have seen it."""
        obj = self.virtual.put(obj)
        resource = SECRETS if obj["kind"] == "Secret" else CONFIG_MAPS
        self.pair.informers.store(Side.VIRTUAL, resource).seen_live(merged(obj, {}))
        return obj

    def unsee(self, name: str) -> None:
        """Let the store have seen that a virtual ConfigMap is gone."""
        self.pair.informers.store(Side.VIRTUAL, CONFIG_MAPS).gone_live(Key("shop", name))

    def does(self, *acts: Act | Decision | Exception) -> None:
        """Let the syncer return these or raise them, one an attempt, the last for good."""
        self.maps.acts = [_act(each) for each in acts]

    async def work(self, request: Request = A) -> int:
        """Let a worker handle a request once, and return the number of its writes."""
        self.queue.add(request)
        taken, changed = await self.queue.get()
        assert taken == request
        writes = await self.workers.handle(request, changed)
        self.queue.done(request)
        return writes

    def comes_back(self, request: Request = A) -> float | None:
        """After how many seconds a request is handed out again; None if never."""
        if self.queue.holds(request):
            return 0.0
        due = self.queue.delayed().get(request)
        return None if due is None else round(due - self.loop.time(), 3)

    def status(self, request: Request = A) -> tuple[State, str] | None:
        """How a request stands; None if it is in step."""
        status = self.statuses.of(request)
        return (status.state, status.reason) if status else None

    def wrote(self) -> list[str]:
        """The writes that the host was asked for."""
        verbs = {"create", "patch", "update", "delete"}
        return [one.verb for one in self.host.requests if one.verb in verbs]


def _act(given: Act | Decision | Exception) -> Act:
    def act(virtual: Obj, host: Obj | None) -> Decision:
        if isinstance(given, Exception):
            raise given
        assert isinstance(given, Decision)
        return given

    return given if callable(given) else act


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]], syncer: type[Maps] = Maps, **options: Any) -> None:
    async def main() -> None:
        await asyncio.sleep(NOW)
        bench = Bench(syncer, **options)
        try:
            await scenario(bench)
        finally:
            bench.queue.close()

    virtual_time.run(main())


# -- errors --------------------------------------------------------------------------------------------------------

RIGHT = MissingRight("create", "", "configmaps", "vc-ns")
HERE: Any = {"side": Side.HOST, "key": Key("vc-ns", "x")}
PARKED, FAILING = State.PARKED, State.FAILING
SLOWLY = 300.0


@pytest.mark.parametrize(
    ("error", "failures", "state", "back", "event", "lost"),
    [
        # what will not pass by itself waits for a change, or for the slow timer
        pytest.param(Refused("no"), 0, PARKED, SLOWLY, "SyncRefused", False, id="refused"),
        pytest.param(Refused("no", reason="Odd"), 0, PARKED, SLOWLY, "Odd", False, id="refused with a reason"),
        pytest.param(Refused("no"), 9, PARKED, SLOWLY, "SyncRefused", False, id="refused after failures"),
        pytest.param(QuotaExceeded("no", **HERE), 0, PARKED, SLOWLY, "QuotaExceeded", False, id="quota exceeded"),
        pytest.param(Invalid("no", **HERE), 0, PARKED, SLOWLY, "SyncFailed", False, id="invalid"),
        pytest.param(Denied("no", **HERE), 0, PARKED, SLOWLY, "SyncFailed", False, id="denied"),
        pytest.param(Forbidden("no", right=RIGHT, **HERE), 0, PARKED, SLOWLY, "SyncFailed", False, id="forbidden"),
        pytest.param(RecursionError(), 0, PARKED, SLOWLY, "Unreadable", False, id="too deep"),
        # a stale cache: at once, but only the first time
        pytest.param(Conflict("no", **HERE), 0, FAILING, 0.0, "", False, id="conflict"),
        pytest.param(Exists("no", **HERE), 0, FAILING, 0.0, "", False, id="exists"),
        pytest.param(Missing("no", **HERE), 0, FAILING, 0.0, "", False, id="missing"),
        pytest.param(Conflict("no", **HERE), 1, FAILING, 0.1, "", False, id="conflict again"),
        # a server that says when
        pytest.param(TooMany("no", retry_after=7, **HERE), 0, FAILING, 7.0, "", False, id="too many"),
        pytest.param(TooMany("no", retry_after=7, **HERE), 20, FAILING, 48.0, "", False, id="too many, as ever"),
        pytest.param(Unauthorized("no", **HERE), 0, FAILING, 30.0, "SyncFailed", False, id="unauthorized"),
        # no answer: the connection is probed
        pytest.param(NotConnected("no", **HERE), 0, FAILING, 0.05, "", True, id="not connected"),
        pytest.param(NotConnected("no"), 0, FAILING, 0.05, "", False, id="not connected, nobody knows where"),
        pytest.param(Unreachable("no", status=0, **HERE), 0, FAILING, 0.05, "", True, id="no answer"),
        pytest.param(Unreachable("no", status=503, **HERE), 0, FAILING, 0.05, "", False, id="an answer that is 503"),
        # all else: later and later, and the tenant hears of it when it goes on for long
        pytest.param(Expired("no", **HERE), 0, FAILING, 0.05, "", False, id="expired"),
        pytest.param(ValueError("no"), 0, FAILING, 0.05, "", False, id="bug"),
        pytest.param(ValueError("no"), 3, FAILING, 0.4, "", False, id="bug, the fourth time"),
        pytest.param(ValueError("no"), 5, FAILING, 1.6, "SyncFailed", False, id="bug, the sixth time"),
        pytest.param(ValueError("no"), 6, FAILING, 3.2, "", False, id="bug, the seventh time"),
        pytest.param(ValueError("no"), 30, FAILING, 48.0, "", False, id="bug, for ever"),
    ],
)
def test_error_decides_state_delay_event_and_probe(
    error: Exception, failures: int, state: State, back: float, event: str, lost: bool
) -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(failures):
            bench.queue.retry(A)
        bench.does(error)
        assert await bench.work() == 0
        status = bench.statuses.of(A)
        assert status
        assert (status.state, bench.comes_back()) == (state, back)
        assert [told.reason for told in bench.events] == ([event] if event else [])
        assert bench.losses == ([(Side.HOST, error)] if lost else [])

    play(scenario)


def test_error_of_the_api_server_is_judged_as_one_of_the_syncer() -> None:
    async def scenario(bench: Bench) -> None:
        bench.host.faults.add(Rule(verb="create", status=429, retry_after=9))
        await bench.work()
        status = bench.statuses.of(A)
        assert status
        assert (status.state, status.error, bench.comes_back()) == (FAILING, "TooMany", 9.0)

    play(scenario)


@pytest.mark.parametrize(
    ("longest", "back"), [pytest.param("60s", 48.0, id="default"), pytest.param("2s", 1.6, id="shorter")]
)
def test_max_retry_delay_bounds_the_delay(longest: str, back: float) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(ValueError("no"))
        for _ in range(20):
            await bench.work()
        assert bench.comes_back() == back

    play(scenario, max_retry_delay=longest)


@pytest.mark.parametrize(
    ("errors", "events"),
    [
        pytest.param(["no", "no", "no"], ["no"], id="the same"),
        pytest.param(["no", "nor this", "no"], ["no", "nor this", "no"], id="others"),
    ],
)
def test_refusal_is_told_once_while_it_is_no_news(errors: list[str], events: list[str]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(*map(Refused, errors))
        for _ in errors:
            await bench.work()
        assert [told.message for told in bench.events] == events

    play(scenario)


def test_event_is_about_the_object_that_the_refusal_names() -> None:
    async def scenario(bench: Bench) -> None:
        other = configmap("other")
        bench.does(Refused("no", about=other))
        await bench.work()
        assert bench.events == [Told("SyncRefused", "no", other)]

    play(scenario)


def test_event_names_no_right_and_no_address_of_the_host() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Forbidden("grant configmaps to 10.1.2.3", verb="create", resource=CONFIG_MAPS, **HERE))
        await bench.work()
        [told] = bench.events
        assert "10.1.2.3" not in told.message
        assert bench.status() == (PARKED, "grant configmaps to 10.1.2.3"), "the operator reads all of it"

    play(scenario)


def test_traceback_is_logged_once_for_each_bug(capsys: pytest.CaptureFixture[str]) -> None:
    def one(virtual: Obj, host: Obj | None) -> Decision:
        raise ValueError("one bug")

    def two(virtual: Obj, host: Obj | None) -> Decision:
        raise ValueError("another bug")

    async def scenario(bench: Bench) -> None:
        said = []
        for name, act in (("a", one), ("b", one), ("a", two), ("b", two)):
            bench.does(act)
            await bench.work(Request("vc", "maps", Key("shop", name)))
            lines = capsys.readouterr().err
            said.append((lines.count("a syncer raised"), lines.count("Traceback")))
        assert said == [(1, 1), (1, 0), (1, 1), (1, 0)]

    play(scenario)


def test_traceback_is_for_bugs_and_not_for_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Refused("no"), Unreachable("no", status=500))
        await bench.work()
        await bench.work()
        lines = capsys.readouterr().err
        assert ("parked" in lines, "failed, will try again" in lines, "Traceback" in lines) == (True, True, False)

    play(scenario)


def test_failure_that_can_not_be_told_is_queued_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(bench: Bench) -> None:
        def deaf(*about: Any, **more: Any) -> bool:
            raise RuntimeError("no memory")

        monkeypatch.setattr(bench.statuses, "note", deaf)
        bench.does(ValueError("no"))
        await bench.work()
        assert bench.comes_back() == 0.05

    play(scenario)


# -- what wakes it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "woken"),
    [
        pytest.param(Refused("no"), True, id="parked"),
        pytest.param(wait("not yet", on=(DB,)), True, id="waits"),
        pytest.param(ValueError("no"), False, id="fails"),
        pytest.param(skip("enough"), False, id="skipped"),
    ],
)
def test_change_of_what_was_read_wakes_a_request_that_waits(act: Decision | Exception, woken: bool) -> None:
    async def scenario(bench: Bench) -> None:
        def read(ctx: Context, virtual: Obj) -> Decision:
            ctx.virtual(SECRETS, DB.key)
            return _act(act)(virtual, None)

        bench.maps.sync_down = read  # type: ignore[method-assign]
        await bench.work()
        before = bench.queue.depth()
        bench.see(secret("db"))
        assert (before, bench.queue.depth()) == (0, 1 if woken else 0)

    play(scenario)


# -- decisions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "status", "back"),
    [
        pytest.param(Decision(), None, None, id="in step"),
        pytest.param(Decision().look_again(9), None, 9.0, id="in step for a while"),
        pytest.param(skip("enough"), (State.SKIPPED, "enough"), None, id="skipped"),
        pytest.param(wait("not yet"), (State.PENDING, "not yet"), None, id="waits"),
        pytest.param(wait("not yet", after=5), (State.PENDING, "not yet"), 5.0, id="waits some seconds"),
    ],
)
def test_decision_decides_state_and_delay(
    decision: Decision, status: tuple[State, str] | None, back: float | None
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(ValueError("no"), decision)
        await bench.work()
        assert await bench.work() == 0
        assert (bench.status(), bench.comes_back()) == (status, back)
        assert bench.queue.failures(A) == 0, "the next failure is a first one"

    play(scenario)


def test_request_whose_objects_are_gone_is_in_step() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Refused("no"))
        await bench.work()
        bench.unsee("a")
        await bench.work()
        assert bench.status() is None

    play(scenario)


# -- own writes ----------------------------------------------------------------------------------------------------


def counting(virtual: Obj, host: Obj | None) -> Decision:
    """Want another number in the copy each time."""
    number = int(host["data"]["number"]) + 1 if host else 0
    key = Key("shop", virtual["metadata"]["name"])
    place, marks = SETTINGS.names.to_host(CONFIG_MAPS, key), SETTINGS.marks
    metadata = {
        "name": place.name,
        "namespace": place.namespace,
        "labels": marks.labels(SETTINGS.identity, key),
        "annotations": marks.annotations(CONFIG_MAPS, virtual, place),
    }
    return apply(host={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"number": str(number)}})


@pytest.mark.parametrize(
    ("syncer", "acts", "wrote", "back"),
    [
        pytest.param(Maps, [], ["create"], None, id="mirror"),
        pytest.param(Maps, [counting], ["create"], None, id="nothing flows back, so it is decided once"),
        pytest.param(Statuses, [], ["create"], None, id="flows back, and is in step then"),
        pytest.param(Statuses, [counting], ["create"] + ["patch"] * (ROUNDS - 1), 0.05, id="flows back for ever"),
    ],
)
def test_own_writes_are_decided_again_at_once_some_rounds_at_most(
    syncer: type[Maps], acts: list[Act], wrote: list[str], back: float | None
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(*acts)
        assert await bench.work() == len(wrote)
        assert (bench.wrote(), bench.comes_back()) == (wrote, back)
        assert bench.statuses.done["vc", "maps", "host", "create"] == 1

    play(scenario, syncer)


def test_deleted_copy_is_made_again_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()

        def replaced(virtual: Obj, host: Obj | None) -> Decision:
            assert host
            bench.maps.acts = []
            return delete(host=host, reason="it can't be changed")

        bench.does(replaced)
        assert await bench.work() == 2
        assert bench.wrote() == ["create", "delete", "create"]

    play(scenario)


def test_writes_before_a_failure_are_counted() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(counting, Refused("no"))
        assert await bench.work() == 1
        assert bench.status() == (PARKED, "no")

    play(scenario, Statuses)


# -- syncers that leave --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", ["not ready", "gone"])
def test_request_of_a_syncer_that_is_not_at_work_is_dropped(away: str) -> None:
    async def scenario(bench: Bench) -> None:
        if away == "gone":
            leave(bench.pair, "maps")
        bench.controller.ready = False
        assert await bench.work() == 0
        assert (bench.maps.decided, bench.status(), bench.comes_back()) == ([], None, None)

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({}, id="and is carried out"),
        pytest.param({"status": 500}, id="and fails"),
    ],
)
def test_request_whose_syncer_leaves_meanwhile_leaves_nothing_behind(fault: dict[str, Any]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.host.faults.add(Rule(verb="create", latency=2.0))
        bench.host.faults.add(Rule(verb="create", **fault))
        bench.does(lambda virtual, host: counting(virtual, host).look_again(5))
        work = asyncio.create_task(bench.work())
        await asyncio.sleep(1)
        assert bench.queue.running()
        leave(bench.pair, "maps")
        bench.workers.drop("vc", "maps")
        await work
        assert (bench.status(), bench.comes_back(), bench.events) == (None, None, [])

    play(scenario)


# -- many requests -------------------------------------------------------------------------------------------------


def test_worker_lets_others_run_after_some_requests_that_wrote_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Decision())
        requests = [Request("vc", "maps", Key("shop", f"x{number}")) for number in range(4 * BREATH)]
        for request in requests:
            bench.see(configmap(request.key.name))
            bench.queue.add(request)

        async def others() -> None:
            for _ in range(50):
                bench.maps.decided.append("-")
                await asyncio.sleep(0)

        running = asyncio.create_task(bench.workers.run(1))
        await others()
        running.cancel()
        rows = [row for row in "".join("." if each != "-" else "-" for each in bench.maps.decided).split("-") if row]
        assert rows == ["." * BREATH] * 4

    play(scenario)


@pytest.mark.parametrize(
    ("latency", "ended", "made", "left"),
    [
        pytest.param(2.0, 1.0, True, False, id="ends in time"),
        pytest.param(60.0, DRAIN_SECONDS, False, True, id="takes too long"),
    ],
)
def test_request_in_work_is_finished_when_workers_are_cancelled(
    latency: float, ended: float, made: bool, left: bool
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.host.faults.add(Rule(verb="create", latency=latency))
        running = asyncio.create_task(bench.workers.run(3))
        await asyncio.sleep(0)
        bench.queue.add(A)
        await asyncio.sleep(1)
        begun = bench.loop.time()
        running.cancel()
        await asyncio.sleep(0)
        bench.queue.add(Request("vc", "maps", Key("shop", "b")))  # comes too late
        with pytest.raises(asyncio.CancelledError):
            await running
        assert bench.loop.time() - begun == pytest.approx(ended)
        assert (bench.host.get("configmaps", COPY) is not None) is made
        assert bench.maps.decided == ["a"]
        assert bench.queue.holds(A) is left
        assert not bench.queue.running()

    play(scenario)


def test_workers_end_with_their_queue() -> None:
    async def scenario(bench: Bench) -> None:
        running = asyncio.create_task(bench.workers.run(3))
        bench.queue.add(A)
        await asyncio.sleep(1)
        bench.queue.close()
        await running
        assert bench.host.get("configmaps", COPY)

    play(scenario)


def test_syncer_that_has_stopped_is_forgotten_everywhere() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Refused("no"))
        await bench.work()
        bench.workers.drop("vc", "other")
        assert (bench.status(), bench.comes_back()) == ((PARKED, "no"), SLOWLY)
        bench.workers.drop("vc", "maps")
        assert (bench.status(), bench.comes_back(), bench.workers.wakeups.reasons(A)) == (None, None, [])

    play(scenario)
