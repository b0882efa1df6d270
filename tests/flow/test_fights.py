"""A manager that reverts every write gets a bounded number of them, and other fields are still synced."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from harness import CLUSTER, HOME, NAMESPACE, Daemon, Two, built_in, crd, host_path, play, until, widget, writes
from sampled import config_model
from shop_scene import edit_by
from small_syncers import Widgets

from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import Obj, Side
from syncer.api.reasons import RequestState
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages import page_handlers
from syncer.daemon.pages.endpoints import measure
from syncer.daemon.pages.history import History
from syncer.daemon.pages.status import degraded
from syncer.engine.reconcile.plan import Frozen
from syncer.observe.control import Control
from syncer.testing.objects import configmap, pod_mounting

MAPS = built_in("configmaps")
COPY = f"/api/v1/namespaces/{HOME}/configmaps/x-x-shop-x-vc"
BLUE = configmap("x", {"color": "blue"})


@contextlib.asynccontextmanager
async def rival(see: Callable[[], bool], back: Callable[[], Any]) -> AsyncIterator[None]:
    """Yield a controller that sets back what it sees, each time, after a moment."""

    async def loop() -> None:
        while True:
            await asyncio.sleep(0.5)
            if see():
                done = back()
                if asyncio.iscoroutine(done):
                    await done

    async with helped_by(loop()):
        yield


def painted(two: Two, patch: Obj | None = None) -> Any:
    """Sets the copy's color back to red."""

    def see() -> bool:
        copy = two.copy("configmaps", "x")
        return copy is not None and (copy.get("data") or {}).get("color") == "blue"

    return rival(see, lambda: edit_by(two.host, COPY, patch or {"data": {"color": "red"}}))


def ours(two: Two, verb: str = "patch") -> int:
    """Return how often the daemon wrote the copy."""
    requests = [one for one in two.host.requests if one.verb == verb and one.resource == "configmaps"]
    return len([one for one in requests if one.user == "admin" and one.status < 300])


def frozen(daemon: Daemon) -> list[Frozen]:
    return daemon.process.pairs[CLUSTER].policies.contention.frozen()


def data(two: Two) -> Any:
    return (two.copy("configmaps", "x") or {}).get("data")


def shows(two: Two, wanted: Obj) -> bool:
    return bool(data(two) == wanted)


async def on_the_page(daemon: Daemon) -> list[dict[str, str]]:
    """Return the frozen fields as the page shows them."""
    control = Control()
    page_handlers.add(control, daemon.process, History(daemon.process.metrics, list))
    _, found = await control.answer("GET", "/page/frozen", {})
    assert not found["next"]
    return list(found["items"])


def frozen_events(two: Two) -> list[str]:
    return [event["message"] for event in two.virtual.objects("events") if event["reason"] == "FieldFrozen"]


def test_field_of_a_stubborn_manager_is_frozen_and_the_rest_synced(
    two: Two, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        two.virtual.put(BLUE)
        async with two.daemon(MAPS) as daemon, painted(two):
            await until(lambda: frozen(daemon))
            assert ours(two) == 5
            two.virtual.put(configmap("x", {"color": "blue", "size": "3"}))
            await until(lambda: data(two) == {"color": "red", "size": "3"})
            await asyncio.sleep(300)
            before = len(writes(two.host))
            await asyncio.sleep(200)
            assert writes(two.host)[before:] == []
            status = daemon.status("x")
            assert status
            assert status.state is RequestState.FROZEN
            assert status.reason.startswith(
                "data.color of the host ConfigMap flips between what vsyncer and kubectl-edit write; frozen until 2"
            )
            assert status.reason.endswith("syncer thaw configmaps shop/x")
            assert frozen_events(two) == [status.reason]
            assert degraded(daemon.process)["vc", "configmaps"].endswith("sets them back each time: 1")
            assert measured(daemon) == {"syncer_fights_total": 1, "syncer_frozen_fields": 1}
            [shown] = await on_the_page(daemon)
            assert (shown["syncer"], shown["key"]) == ("configmaps", f"{NAMESPACE}/x")
            assert (shown["field"], shown["other"]) == ("data.color", "kubectl-edit")
            assert shown["until"] in status.reason

    play(scenario)
    assert capsys.readouterr().err.count("data.color") == 1


def measured(daemon: Daemon) -> dict[str, float]:
    """Return the metrics of contention."""
    given = {"cluster": CLUSTER, "host": {"namespace": HOME}}
    measure(daemon.process, config_model(MAPS).model_validate(given), None)
    samples = [sample for family in daemon.process.metrics.registry.collect() for sample in family.samples]
    wanted = ("syncer_fights_total", "syncer_frozen_fields")
    labels = {"cluster": CLUSTER, "syncer": "configmaps"}
    return {one.name: one.value for one in samples if one.name in wanted and one.labels == labels}


async def test_frozen_field_is_written_again_when_the_time_is_over(two: Two) -> None:
    two.virtual.put(BLUE)
    async with two.daemon(MAPS) as daemon:
        async with painted(two):
            await until(lambda: frozen(daemon))
            await until(lambda: data(two) == {"color": "red"})
        await asyncio.sleep(590)
        assert data(two) == {"color": "red"}
        await until(lambda: data(two) == {"color": "blue"}, within=11)
        await daemon.settled()
        assert daemon.requests("configmaps") == []
        assert degraded(daemon.process) == {}


async def test_thaw_costs_one_write_while_contention_goes_on(two: Two) -> None:
    two.virtual.put(BLUE)
    async with two.daemon(MAPS) as daemon, painted(two):
        await asyncio.sleep(6000)
        assert frozen(daemon)
        assert 5 + 8 <= ours(two) <= 5 + 10
        assert len(frozen_events(two)) >= 8, "each time it is news, as the time when it ends is another one"


@pytest.mark.parametrize(
    ("patch", "who"),
    [
        ({"data": None}, "somebody else"),
        ({"data": {"color": None}}, "somebody else"),
        ({"data": {"color": None}, "metadata": {"labels": {"theirs": "1"}}}, "kubectl-edit"),
    ],
    ids=["all", "one", "one, by who writes something, too"],
)
async def test_field_that_is_removed_each_time_is_frozen(two: Two, patch: Obj, who: str) -> None:
    """A manager that only removes fields owns none, so its name is recorded nowhere."""
    two.virtual.put(BLUE)
    async with two.daemon(MAPS) as daemon, painted(two, patch):
        await asyncio.sleep(500)
        assert ours(two) == 5
        assert [one.field for one in frozen(daemon)] == ["data.color"]
        assert f"between what vsyncer and {who} write" in frozen_events(two)[0]


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"kind": "configmaps", "key": "shop/x"}, True),
        ({"kind": "ConfigMap"}, True),
        ({}, True),
        ({"key": "a/b"}, False),
    ],
    ids=str,
)
async def test_frozen_field_is_written_again_at_once_by_command(two: Two, given: Obj, known: bool) -> None:
    two.virtual.put(BLUE)
    async with two.daemon(MAPS) as daemon:
        control = Control()
        control_api.add(control, daemon.process)
        async with painted(two):
            await until(lambda: frozen(daemon))
            await until(lambda: data(two) == {"color": "red"})
        status, answer = await control.answer("POST", "/thaw", given)
        assert status == 200
        if not known:
            assert answer == []
            assert frozen(daemon)
            return
        thawed = {"cluster": "vc", "syncer": "configmaps", "key": "shop/x", "side": "host", "field": "data.color"}
        assert answer == [thawed]
        await until(lambda: data(two) == {"color": "blue"}, within=1)
        assert (await control.answer("POST", "/thaw", given))[1] == []
        status, answer = await control.answer("POST", "/thaw", {"kind": "confimaps"})
        assert status == 409
        assert "'confimaps'; there are configmaps" in answer["error"]


async def test_deleted_copy_is_not_recreated_for_ever(two: Two) -> None:
    two.virtual.put(BLUE)
    async with (
        two.daemon(MAPS) as daemon,
        rival(lambda: bool(two.copy("configmaps", "x")), lambda: two.host.delete("configmaps", host_path("x"))),
    ):
        await until(lambda: frozen(daemon))
        await asyncio.sleep(100)
        assert ours(two, "create") == 5
        assert "is made by vsyncer and deleted by somebody else each time" in frozen_events(two)[0]
        two.virtual.delete("configmaps", "shop/x")
        two.virtual.put(configmap("x", {"color": "green"}))
        await until(lambda: ours(two, "create") == 6, within=1)


async def test_recreated_copy_is_not_deleted_for_ever(two: Two) -> None:
    """A user of the host makes an object with our marks, as a controller does from a template."""
    two.virtual.put(BLUE)
    async with two.daemon(MAPS) as daemon:
        await until(lambda: two.copy("configmaps", "x"))
        made = two.copy("configmaps", "x")
        assert made
        metadata = {name: made["metadata"][name] for name in ("name", "namespace", "labels", "annotations")}
        two.virtual.delete("configmaps", "shop/x")
        await until(lambda: not two.copy("configmaps", "x"))
        deleted = ours(two, "delete")
        async with rival(lambda: not two.copy("configmaps", "x"), lambda: two.host.put({**made, "metadata": metadata})):
            await until(lambda: frozen(daemon))
            await asyncio.sleep(100)
            assert ours(two, "delete") - deleted <= 5
            [parked] = control_api.parked(daemon.process, control_api.selection(daemon.process))
            assert (parked["class"], parked["key"]) == ("Contended", "shop/x")
            assert "made by somebody else each time" in parked["reason"]
            assert control_api.retry(daemon.process, control_api.selection(daemon.process)) == []


async def test_object_that_a_tenant_deletes_and_recreates_is_served_each_time(two: Two) -> None:
    async with two.daemon(MAPS) as daemon:
        for turn in range(20):
            two.virtual.put(configmap("x", {"turn": str(turn)}))
            await until(functools.partial(shows, two, {"turn": str(turn)}), within=1)
            two.virtual.delete("configmaps", "shop/x")
            await until(lambda: not two.copy("configmaps", "x"), within=1)
        assert frozen(daemon) == []


async def test_status_that_is_set_back_each_time_is_frozen(two: Two) -> None:
    for server in (two.virtual, two.host):
        server.put(crd("widgets"))
    two.virtual.put(widget("x", spec={"a": 1}))
    plural = "widgets.example.org"
    path = f"/apis/example.org/v1/namespaces/{NAMESPACE}/widgets/x/status"
    async with two.daemon([Widgets]) as daemon:
        await until(lambda: two.copy(plural, "x"))
        two.host.put({**(two.copy(plural, "x") or {}), "status": {"ready": True, "phase": "Up"}})

        def shown() -> Obj:
            return (two.original(plural, "x") or {}).get("status") or {}

        def back() -> Any:
            return edit_by(two.virtual, path, {"status": {"ready": False}})

        async with rival(lambda: shown().get("ready") is True, back):
            await until(lambda: frozen(daemon))
            [one] = frozen(daemon)
            assert (one.ref.side, one.field, one.other) == (Side.VIRTUAL, "status.ready", "kubectl-edit")
            two.host.put({**(two.copy(plural, "x") or {}), "status": {"ready": True, "phase": "Down"}})
            await until(lambda: shown() == {"ready": False, "phase": "Down"})


async def test_tenant_who_edits_back_and_forth_is_served_each_time(two: Two) -> None:
    async with two.daemon(MAPS) as daemon:
        for turn in range(60):
            color = {"color": ["blue", "red"][turn % 2]}
            two.virtual.put(configmap("x", color))
            await until(functools.partial(shows, two, color), within=1)
        assert frozen(daemon) == []


async def test_copy_that_comes_and_goes_with_its_users_is_made_each_time(two: Two) -> None:
    two.virtual.put(BLUE)
    async with two.daemon(built_in("configmaps", "pods"), options={}) as daemon:
        for turn in range(20):
            two.virtual.put(pod_mounting(f"job-{turn}", configmap="x"))
            await until(lambda: two.copy("configmaps", "x"), within=5)
            two.virtual.delete("pods", f"shop/job-{turn}")
            await until(lambda: not two.copy("configmaps", "x"), within=100)
        assert frozen(daemon) == []


async def test_contention_has_to_be_found_again_after_a_restart(two: Two) -> None:
    two.virtual.put(BLUE)
    async with painted(two):
        for daemons in (1, 2):
            async with two.daemon(MAPS) as daemon:
                await until(functools.partial(frozen, daemon))
                assert ours(two) == 5 * daemons


@pytest.mark.parametrize("status", [403, 500])
async def test_other_manager_need_not_be_known(two: Two, status: int) -> None:
    two.virtual.put(BLUE)
    two.host.faults.add(Rule(verb="get", resource="configmaps", status=status))
    async with two.daemon(MAPS), painted(two):
        await until(lambda: frozen_events(two))
        assert "what vsyncer and somebody else write" in frozen_events(two)[0]
        assert ours(two) == 5


async def test_frozen_field_is_reported_although_the_rest_cannot_be_written(two: Two) -> None:
    two.virtual.put(BLUE)
    async with two.daemon(MAPS) as daemon, painted(two):
        await until(lambda: ours(two) == 5)
        two.virtual.put(configmap("x", {"color": "blue", "size": "3"}))
        two.host.faults.add(Rule(verb="patch", resource="configmaps", status=500, user="admin", count=1))
        await until(lambda: frozen_events(two))
        await until(lambda: data(two) == {"color": "red", "size": "3"})
        assert len(frozen(daemon)) == 1
