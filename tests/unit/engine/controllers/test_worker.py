"""A worker notes the outcome of a request, says when it comes back and by which changes, and ends cleanly."""

import asyncio
from typing import Any

import pytest
from worker_bench import (
    COPY,
    DB,
    PARKED,
    SETTINGS,
    SLOWLY,
    A,
    Act,
    Bench,
    Maps,
    RecordedEvent,
    Statuses,
    act_of,
    play,
)

from kube_envtest import Rule
from syncer.api import (
    AroundReconcile,
    Context,
    Decision,
    Key,
    Obj,
    Refused,
    Right,
    Settings,
    Side,
    SyncRequest,
    TooLarge,
    apply,
    delete,
    merge,
    skip,
    wait,
)
from syncer.api.reasons import PACED, REMADE, RequestState
from syncer.engine.controllers.builder import leave
from syncer.engine.controllers.worker import BREATH, DRAIN_SECONDS, ROUNDS
from syncer.engine.reconcile.plan import Reconciled
from syncer.engine.reconcile.policies.write_pace import WritePace
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret
from syncer.translate.messages import LONGEST_LABEL_QUOTE


class Merging(Maps):
    """The same, with the right to change a subresource of the copy."""

    rights = (Right(Side.HOST, CONFIG_MAPS, ("patch",), "resize"),)


class Unplaced(Maps):
    """The same, but no name has a place on the host."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        raise Refused("no room for the suffix")


# -- what wakes it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "woken"),
    [
        pytest.param(Refused("no"), True, id="parked"),
        pytest.param(wait("not yet", on=(DB,)), True, id="waits"),
        pytest.param(TooLarge("no"), False, id="too large"),
        pytest.param(ValueError("no"), False, id="fails"),
        pytest.param(skip("enough"), False, id="skipped"),
    ],
)
def test_change_of_a_read_object_wakes_a_waiting_request(act: Decision | Exception, woken: bool) -> None:
    async def scenario(bench: Bench) -> None:
        def read(ctx: Context, virtual: Obj) -> Decision:
            ctx.virtual(SECRETS, DB.key)
            return act_of(act)(virtual, None)

        bench.maps.sync_down = read  # type: ignore[method-assign]
        await bench.work()
        before = bench.queue.depth()
        bench.see(secret("db"))
        assert (before, bench.queue.depth()) == (0, 1 if woken else 0)

    play(scenario)


def test_object_that_is_too_large_is_decided_again_when_it_changes_itself() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(TooLarge("no"), skip("enough"))
        await bench.work()
        assert (bench.status(), bench.comes_back()) == ((RequestState.PARKED, "no"), None)
        bench.see(configmap("a", data={"less": ""}))
        assert bench.comes_back() == 0.0

    play(scenario)


def test_object_without_a_host_name_is_forgotten_once_gone() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        assert (bench.status(), bench.comes_back()) == ((RequestState.PARKED, "no room for the suffix"), SLOWLY)
        bench.unsee("a")
        assert bench.comes_back() == 0.0
        await bench.work()
        assert (bench.status(), bench.comes_back()) == (None, None)
        assert (bench.workers.wakeups._waiting, bench.queue.failures(A)) == ({}, 0)

    play(scenario, Unplaced)


def test_warning_of_a_decision_is_sent_after_its_writes() -> None:
    async def scenario(bench: Bench) -> None:
        sync_down, sync = bench.maps.sync_down, bench.maps.sync
        bench.maps.sync_down = lambda ctx, virtual: sync_down(ctx, virtual).warn("Odd", "half")  # type: ignore
        bench.maps.sync = lambda ctx, pair: sync(ctx, pair).warn("Odd", "half")  # type: ignore
        await bench.work()
        await bench.work()
        [event] = bench.events  # as the second decision writes nothing
        assert (event.reason, event.message) == ("Odd", "half")

    play(scenario)


def test_warning_is_about_the_object_also_when_the_decision_has_deleted_it() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        original = bench.virtual.get("configmaps", "shop/a")
        assert original is not None
        bench.does(delete(virtual=original, reason="x").warn("Odd", "it goes"))
        await bench.work()
        [event] = bench.events
        assert event.about is not None
        assert event.about["metadata"]["uid"] == original["metadata"]["uid"]

    play(scenario)


@pytest.mark.reason("MergeRefused", "SyncFailed")
def test_refused_merge_warns_once_and_retries_in_five_minutes() -> None:
    """Nothing else of the object is held up: it is pending, not parked."""

    async def scenario(bench: Bench) -> None:
        await bench.work()
        copy = bench.host.get("configmaps", COPY)
        assert copy is not None
        bench.does(merge(host={"metadata": copy["metadata"], "data": {"size": "2"}}, subresource="resize"))
        await bench.work()
        assert bench.wrote() == ["create", "patch"]
        state, why = bench.status() or (None, "")
        assert state is RequestState.PENDING
        assert "configmaps/resize is refused: the host doesn't serve configmaps/resize" in why
        assert [event.reason for event in bench.events] == ["SyncFailed"]
        for _ in range(3):
            await asyncio.sleep(10)
            await bench.work()
        assert (bench.wrote(), bench.comes_back()) == (["create", "patch"], SLOWLY - 30)
        assert [state for state, _ in [bench.status() or (None, "")]] == [RequestState.PENDING]
        assert len(bench.events) == 1
        await asyncio.sleep(SLOWLY)
        await bench.work()
        assert bench.wrote() == ["create", "patch", "patch"]

    play(scenario, Merging)


def test_left_out_fields_are_reported_once_and_when_they_change() -> None:
    async def scenario(bench: Bench) -> None:
        many = {f"eks.amazonaws.com/{number:02}": "x" for number in range(12)}
        long = "iam.gke.io/" + "x" * 100
        for annotations in (
            {"a": "1"},
            {"eks.amazonaws.com/00": "x"},
            {"eks.amazonaws.com/00": "y"},
            many,
            {long: "x"},
        ):
            bench.see(configmap("a", metadata={"annotations": annotations}))
            await bench.work()
        output = "not copied to the host, whose policy or version keeps it out: "
        first = ", ".join(f"metadata.annotations[{key}]" for key in list(many)[:10])
        assert bench.events == [
            RecordedEvent("NotCopied", f"{output}metadata.annotations[eks.amazonaws.com/00]", None),
            RecordedEvent("NotCopied", f"{output}{first} and 2 more", None),
            RecordedEvent("NotCopied", output + f"metadata.annotations[{long}"[:LONGEST_LABEL_QUOTE] + "…", None),
        ]

    play(scenario)


# -- decisions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "status", "back"),
    [
        pytest.param(Decision(), None, None, id="in step"),
        pytest.param(Decision().look_again(9), None, 9.0, id="in step for a while"),
        pytest.param(
            skip("enough"),
            (RequestState.SKIPPED, "enough"),
            None,
            id="skipped",
            marks=pytest.mark.reason("SkippedBySyncer"),
        ),
        pytest.param(
            wait("not yet"),
            (RequestState.PENDING, "not yet"),
            None,
            id="waits",
            marks=pytest.mark.reason("AwaitedBySyncer"),
        ),
        pytest.param(wait("not yet", after=5), (RequestState.PENDING, "not yet"), 5.0, id="waits some seconds"),
    ],
)
def test_decision_decides_state_and_delay(
    decision: Decision, status: tuple[RequestState, str] | None, back: float | None
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(ValueError("no"), decision)
        await bench.work()
        assert await bench.work() == 0
        assert (bench.status(), bench.comes_back()) == (status, back)
        assert bench.queue.failures(A) == 0, "the next failure is a first one"

    play(scenario)


def test_request_without_objects_is_in_step() -> None:
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
    host_key, marks = SETTINGS.names.to_host(CONFIG_MAPS, key), SETTINGS.marks
    metadata = {
        "name": host_key.name,
        "namespace": host_key.namespace,
        "labels": marks.labels(SETTINGS.identity, key),
        "annotations": marks.annotations(CONFIG_MAPS, virtual, host_key),
    }
    return apply(host={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"number": str(number)}})


@pytest.mark.parametrize(
    ("syncer", "acts", "wrote", "back"),
    [
        pytest.param(Maps, [], ["create"], None, id="mirror"),
        pytest.param(Maps, [counting], ["create"], None, id="nothing flows back, so it is decided once"),
        pytest.param(Statuses, [], ["create"], None, id="flows back, and is in step then"),
        pytest.param(
            Statuses,
            [counting],
            ["create"] + ["patch"] * (ROUNDS - 1),
            0.05,
            id="flows back for ever",
            marks=pytest.mark.reason("NotSettled"),
        ),
    ],
)
def test_own_writes_are_decided_again_at_once_some_rounds_at_most(
    syncer: type[Maps], acts: list[Act], wrote: list[str], back: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WritePace, "admit", lambda pace, plan, written_from: None)

    async def scenario(bench: Bench) -> None:
        bench.does(*acts)
        assert await bench.work() == len(wrote)
        assert (bench.wrote(), bench.comes_back()) == (wrote, back)
        assert bench.statuses.done["vc", "maps", "host", "create"] == 1

    play(scenario, syncer)


PATCHES = {"down": [{"op": "add", "path": "/data/x", "value": "1"}]}


class Settled(Statuses):
    """The same, and nothing else of the copy matters to the virtual object."""

    looks_back = False


@pytest.mark.parametrize(
    ("syncer", "options", "decisions"),
    [
        pytest.param(Maps, {}, 1, id="nothing flows back"),
        pytest.param(Statuses, {}, 2, id="something else may flow back, too"),
        pytest.param(Settled, {}, 1, id="what flows back is as before"),
        pytest.param(Settled, {"patches": PATCHES}, 2, id="a patch may read the copy"),
    ],
)
def test_change_of_a_copy_is_decided_again_if_anything_may_follow(
    syncer: type[Maps], options: Any, decisions: int
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        bench.see(configmap("a", data={"k": "other"}))
        bench.maps.decided.clear()
        await bench.work()
        assert bench.wrote() == ["create", "patch"]
        assert len(bench.maps.decided) == decisions

    play(scenario, syncer, **options)


def test_copy_is_decided_again_if_the_answer_brings_something_up() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        bench.see(configmap("a", data={"k": "other"}))
        bench.maps.decided.clear()
        patch = bench.pair.host.patch

        async def with_status(*arguments: Any, **options: Any) -> Obj:
            return {**await patch(*arguments, **options), "status": {"ready": True}}

        bench.pair.applier.host.patch = with_status  # type: ignore[method-assign]
        await bench.work()
        assert bench.wrote() == ["create", "patch"]
        assert len(bench.maps.decided) == 2

    play(scenario, Settled)


@pytest.mark.parametrize(
    ("syncer", "answered", "decisions"),
    [
        pytest.param(Settled, {}, 1, id="it is stored as it was sent"),
        pytest.param(Settled, {"metadata": {"labels": {"added": "1"}}}, 1, id="with a label more"),
        pytest.param(Settled, {"status": {"ready": True}}, 2, id="something comes up"),
        pytest.param(Settled, {"data": {"number": "9"}}, 2, id="admission has changed a value"),
        pytest.param(Settled, {"data": None}, 2, id="admission has dropped a field"),
        pytest.param(Statuses, {}, 2, id="its syncer looks back"),
    ],
)
def test_new_copy_is_decided_again_if_the_answer_shows_anything_new(
    syncer: type[Maps], answered: Obj, decisions: int
) -> None:
    async def scenario(bench: Bench) -> None:
        create = bench.pair.host.create

        async def changed(*arguments: Any, **options: Any) -> Obj:
            return merged(await create(*arguments, **options), answered)

        bench.pair.applier.host.create = changed  # type: ignore[method-assign]
        bench.does(copied_once)
        await bench.work()
        assert bench.wrote() == ["create"]
        assert len(bench.maps.decided) == decisions

    play(scenario, syncer)


def copied_once(virtual: Obj, host: Obj | None) -> Decision:
    """Create the copy, and be content with what became of it."""
    return skip("it is there") if host else counting(virtual, None)


def test_writes_beyond_two_a_second_wait_with_the_reason() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(counting)
        assert await bench.work() == 2
        assert (bench.wrote(), bench.comes_back()) == (["create", "patch"], 1.0)
        status = bench.statuses.of(SyncRequest("vc", "maps", Key("shop", "a")))
        assert status
        assert (status.state, status.reason) == (RequestState.PENDING, PACED())

    play(scenario, Statuses)


def test_deleted_copy_is_made_again_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        await asyncio.sleep(1)

        def replaced(virtual: Obj, host: Obj | None) -> Decision:
            assert host
            bench.maps.acts = []
            return delete(host=host, reason="it can't be changed")

        bench.does(replaced)
        assert await bench.work() == 2
        assert bench.wrote() == ["create", "delete", "create"]

    play(scenario)


class Hooked(AroundReconcile, Maps):
    """The same, with hooks around each decision."""

    def reconcile_start(self, ctx: Context, key: Key) -> str | None:
        return None

    def reconcile_end(self, ctx: Context, key: Key, error: Exception | None) -> None:
        return None


@pytest.mark.parametrize(
    ("syncer", "decisions"),
    [
        pytest.param(Maps, 1, id="a deletion that leaves nothing"),
        pytest.param(Hooked, 2, id="hooks see that nothing is left"),
    ],
)
def test_deletion_of_the_last_object_is_decided_once(
    syncer: type[Maps], decisions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = 0
    reconcile = Reconciler.reconcile

    def counted(reconciler: Reconciler, *arguments: Any) -> Reconciled:
        nonlocal decided
        decided += 1
        return reconcile(reconciler, *arguments)

    async def scenario(bench: Bench) -> None:
        nonlocal decided
        await bench.work()
        bench.virtual.delete("configmaps", A.key)
        bench.unsee("a")
        decided = 0
        await bench.work()
        assert (bench.wrote(), decided) == (["create", "delete"], decisions)
        assert (bench.status(), bench.comes_back()) == (None, None)

    monkeypatch.setattr(Reconciler, "reconcile", counted)
    play(scenario, syncer)


def test_object_that_is_made_again_during_the_deletion_of_its_copy_is_copied() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        await asyncio.sleep(1)
        bench.virtual.delete("configmaps", A.key)
        bench.unsee("a")
        bench.host.faults.add(Rule(verb="delete", latency=1.0))
        working = asyncio.create_task(bench.work())
        await asyncio.sleep(0.5)
        bench.see(configmap("a"))
        assert await working == 2
        assert bench.wrote() == ["create", "delete", "create"]
        await bench.work()
        assert (bench.status(), bench.comes_back()) == (None, None)

    play(scenario)


@pytest.mark.parametrize(
    ("finalizers", "meanwhile", "decisions", "status"),
    [
        pytest.param(["x.y/keep"], "it ends", 1, (RequestState.PENDING, "it ends"), id="is marked"),
        pytest.param(["x.y/keep"], "", 1, (RequestState.PENDING, REMADE("host copy")), id="is looked at again"),
        pytest.param([], "it ends", 2, (RequestState.SKIPPED, "seen"), id="is gone at once"),
    ],
)
def test_request_waits_for_the_end_of_what_it_has_deleted(
    finalizers: list[str], meanwhile: str, decisions: int, status: tuple[RequestState, str]
) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        await asyncio.sleep(1)
        copy = bench.host.get("configmaps", COPY)
        assert copy is not None
        bench.host.put(merged(copy, {"metadata": {"finalizers": finalizers}}))
        store = bench.pair.informers.store(Side.HOST, CONFIG_MAPS)
        store.seen_live(merged(bench.host.get("configmaps", COPY) or {}, {}))

        def end(virtual: Obj, host: Obj | None) -> Decision:
            assert host
            return delete(host=host, reason="x", meanwhile=meanwhile)

        bench.maps.decided.clear()
        bench.does(end, skip("seen"))
        await bench.work()
        assert bench.wrote() == ["create", "delete"]
        assert (len(bench.maps.decided), bench.status()) == (decisions, status)

    play(scenario, Settled)


def test_copy_that_waits_for_a_finalizer_is_decided_again() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.work()
        copy = bench.host.get("configmaps", COPY)
        assert copy is not None
        bench.host.put({**copy, "metadata": {**copy["metadata"], "finalizers": ["example.org/keep"]}})
        store = bench.pair.informers.store(Side.HOST, CONFIG_MAPS)
        store.seen_live(merged(bench.host.get("configmaps", COPY) or {}, {}))
        bench.virtual.delete("configmaps", A.key)
        bench.unsee("a")
        await bench.work()
        await bench.work()
        assert bench.status() == (RequestState.SKIPPED, "the host copy is being deleted")

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
def test_request_of_a_syncer_that_leaves_keeps_no_state(fault: dict[str, Any]) -> None:
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


def test_handled_request_returns_the_time_of_its_write() -> None:
    async def scenario(bench: Bench) -> None:
        bench.host.faults.add(Rule(verb="create", latency=2.0))
        begun = bench.loop.time()
        bench.queue.add(A)
        assert await bench.workers.handle(*await bench.queue.get()) == (1, begun + 2.0)
        bench.queue.done(A)
        bench.queue.add(A)
        assert await bench.workers.handle(*await bench.queue.get()) == (0, 0.0)

    play(scenario)


def test_worker_lets_others_run_after_some_requests_that_wrote_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Decision())
        requests = [SyncRequest("vc", "maps", Key("shop", f"x{number}")) for number in range(4 * BREATH)]
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
        bench.queue.add(SyncRequest("vc", "maps", Key("shop", "b")))  # comes too late
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
