"""Fields that the host or both sides own, with no more rights than are generated, and killed at any write."""

import asyncio
from typing import Any

import pytest
from harness import Two, play, until, widget, writes
from rules_scene import WIDGETS, Guarded, configured, edit, events, running

from syncer.flow.queueing.ledger import State
from syncer.testing.apiserver import Rule
from syncer.testing.apiserver.faults import AFTER, BEFORE
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, service

MAPS = {"toHost": {"configMaps": {"all": True, "authority": {"data": "both"}}}}
SCALED = {"custom": {WIDGETS: {"authority": {"spec.replicas": "host", "spec.options": "both"}}}}
BASE = "vsyncer.dev/base"


def values(two: Two, plural: str = "configmaps", part: str = "data") -> tuple[Any, Any]:
    """What both sides have."""
    original, copy = two.original(plural, "x"), two.copy(plural, "x")
    return (original or {}).get(part), (copy or {}).get(part)


def are(two: Two, value: Any, plural: str = "configmaps", part: str = "data") -> bool:
    return values(two, plural, part) == (value, value)


@pytest.mark.parametrize("stopped", [False, True], ids=["seen", "unseen"])
@pytest.mark.parametrize(
    ("ours", "theirs", "end"),
    [
        ({"a": "ours"}, {}, {"a": "ours", "b": "0"}),
        ({}, {"a": "theirs", "c": "theirs"}, {"a": "theirs", "b": "0", "c": "theirs"}),
        ({}, {"b": None}, {"a": "0"}),
        ({"b": None}, {}, {"a": "0"}),
        ({"a": "ours", "c": "ours"}, {"a": "theirs", "b": "theirs"}, {"a": "ours", "b": "theirs", "c": "ours"}),
    ],
)
def test_what_one_side_changes_the_other_follows(ours: Any, theirs: Any, end: Any, stopped: bool) -> None:
    async def scenario() -> None:
        two, config = Guarded(), configured(MAPS, "configmaps")
        two.virtual.put(configmap("x", {"a": "0", "b": "0"}))

        def change() -> None:
            edit(two, "virtual", "configmaps", {"data": ours})
            edit(two, "host", "configmaps", {"data": theirs})

        async with running(two, config) as daemon:
            await until(lambda: are(two, {"a": "0", "b": "0"}))
            await daemon.settled()
            if not stopped:
                change()
                await until(lambda: are(two, end))
        if stopped:
            change()
        async with running(two, config) as daemon:
            await until(lambda: are(two, end))
            await daemon.settled()
            seen = len(two.virtual.requests), len(two.host.requests)
            await asyncio.sleep(100)
            assert writes(two.virtual, seen[0]) + writes(two.host, seen[1]) == []

    play(scenario)


def test_the_host_scales_what_the_tenant_has_made() -> None:
    async def scenario() -> None:
        two, config = Guarded(), configured(SCALED, "configmaps")
        two.virtual.put(widget("x", spec={"replicas": 1, "image": "a", "options": {"depth": 1}}))
        async with running(two, config) as daemon:
            await until(lambda: two.copy(WIDGETS, "x"))
            edit(two, "host", WIDGETS, {"spec": {"replicas": 5, "options": {"speed": 2}}})
            end = {"replicas": 5, "image": "a", "options": {"depth": 1, "speed": 2}}
            await until(lambda: are(two, end, WIDGETS, "spec"))
            edit(two, "virtual", WIDGETS, {"spec": {"replicas": 2, "image": "b"}})
            await until(lambda: are(two, {**end, "image": "b"}, WIDGETS, "spec"))
            edit(two, "host", WIDGETS, {"spec": {"image": "wrong", "replicas": None, "options": None}})
            await until(lambda: are(two, {"image": "b"}, WIDGETS, "spec"))
            await daemon.settled()
            assert daemon.requests(WIDGETS) == []

    play(scenario)


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("side", ["virtual", "host"])
@pytest.mark.parametrize("then", ["", "virtual", "host", "back"])
def test_killed_at_any_write_no_change_is_lost(when: str, side: str, then: str) -> None:
    """The host changes a field, and we are killed at a write of what follows; then one side changes it again."""

    async def scenario() -> None:
        two, config = Guarded(), configured(MAPS, "configmaps")
        two.virtual.put(configmap("x", {"a": "0"}))
        async with running(two, config) as daemon:
            await until(lambda: are(two, {"a": "0"}))
            await daemon.settled()
            edit(two, "host", "configmaps", {"data": {"a": "1"}})
            server = two.virtual if side == "virtual" else two.host
            rule = server.faults.add(Rule(verb="patch", resource="configmaps", reset=when))
            await until(lambda: rule.hits)
            await daemon.kill()
        server.faults.clear()
        came = (two.original("configmaps", "x") or {}).get("data") == {"a": "1"}
        end = "1"
        if then in ("virtual", "host"):
            edit(two, then, "configmaps", {"data": {"a": "2"}})
            end = "2"
        elif then == "back" and came:
            edit(two, "virtual", "configmaps", {"data": {"a": "0"}})
            end = "0"
        async with running(two, config) as daemon:
            await until(lambda: are(two, {"a": end}))
            await daemon.settled()

    play(scenario)


def test_what_the_tenant_changes_meanwhile_is_not_written_over() -> None:
    """What goes up was decided from an object that the tenant changes while the request is under way."""

    async def scenario() -> None:
        two, config = Guarded(), configured(MAPS, "configmaps")
        two.virtual.put(configmap("x", {"a": "0"}))
        async with running(two, config) as daemon:
            await until(lambda: are(two, {"a": "0"}))
            await daemon.settled()
            rule = two.virtual.faults.add(Rule(verb="patch", resource="configmaps", latency=1, count=1))
            edit(two, "host", "configmaps", {"data": {"a": "theirs"}})
            await until(lambda: rule.hits)
            edit(two, "virtual", "configmaps", {"data": {"a": "ours"}})
            await until(lambda: are(two, {"a": "ours"}))
            await asyncio.sleep(10)
            assert are(two, {"a": "ours"})

    play(scenario)


def test_what_is_translated_is_refused_and_told() -> None:
    async def scenario() -> None:
        two = Guarded()
        two.virtual.put(service("x", spec={"type": "NodePort"}))
        config = configured({"toHost": {"services": {"authority": {"spec.ports": "both"}}}}, "services")
        async with running(two, config) as daemon:
            await until(lambda: events(two, "SyncRefused"))
            standing = daemon.standing("x", "services")
            assert standing
            assert standing.state is State.PARKED
            assert "spec.ports: its owner can't be both" in standing.reason

    play(scenario)


def test_a_base_comes_and_goes_with_the_need_for_one() -> None:
    async def scenario() -> None:
        two = Guarded()
        two.virtual.put(configmap("x", {"a": "0"}))
        plain = configured({"toHost": {"configMaps": {"all": True}}}, "configmaps")
        for config, kept in ((plain, False), (configured(MAPS, "configmaps"), True)):
            async with running(two, config) as daemon:
                await until(lambda: two.copy("configmaps", "x"))
                await daemon.settled()
                copy = two.copy("configmaps", "x")
                assert copy
                assert (BASE in copy["metadata"]["annotations"]) is kept

    play(scenario)


def test_a_base_that_somebody_takes_away_lets_the_virtual_side_win() -> None:
    async def scenario() -> None:
        two, config = Guarded(), configured(MAPS, "configmaps")
        two.virtual.put(configmap("x", {"a": "0"}))
        async with running(two, config) as daemon:
            await until(lambda: are(two, {"a": "0"}))
            await daemon.settled()
        copy = two.copy("configmaps", "x")
        assert copy
        two.host.put(merged(copy, {"metadata": {"annotations": {BASE: None}}, "data": {"a": "theirs"}}))
        async with running(two, config):
            await until(lambda: are(two, {"a": "0"}))

    play(scenario)


def test_a_fight_over_a_shared_field_ends_with_each_side_as_it_is() -> None:
    """Both insist. Once it is frozen neither side's value crosses, and the rest of the object still does."""

    async def insist(two: Two, side: str, value: str) -> None:
        while True:
            obj = two.original("configmaps", "x") if side == "virtual" else two.copy("configmaps", "x")
            if obj and obj["data"]["a"] != value:
                edit(two, side, "configmaps", {"data": {"a": value}})
            await asyncio.sleep(1)

    async def scenario() -> None:
        two, config = Guarded(), configured(MAPS, "configmaps")
        two.virtual.put(configmap("x", {"a": "0"}))
        async with running(two, config) as daemon, asyncio.TaskGroup() as tasks:
            await until(lambda: are(two, {"a": "0"}))
            await daemon.settled()
            insisting = [tasks.create_task(insist(two, *each)) for each in (("virtual", "ours"), ("host", "theirs"))]
            await until(lambda: events(two, "FieldFrozen"), within=500)
            for one in insisting:
                one.cancel()
            ours, theirs = {"a": "ours"}, {"a": "theirs"}
            await until(lambda: values(two) == (ours, theirs))
            seen = len(two.virtual.requests), len(two.host.requests)
            await asyncio.sleep(60)
            assert writes(two.virtual, seen[0]) + writes(two.host, seen[1]) == []
            assert values(two) == (ours, theirs)
            edit(two, "virtual", "configmaps", {"data": {"b": "new"}})
            await until(lambda: values(two) == ({**ours, "b": "new"}, {**theirs, "b": "new"}))
            await asyncio.sleep(60)
            assert values(two) == ({**ours, "b": "new"}, {**theirs, "b": "new"})
        async with running(two, config):  # it knows of no fight, and the virtual side has changed the field, too
            await until(lambda: are(two, {**ours, "b": "new"}))

    play(scenario)


def test_while_a_field_is_fought_over_the_others_are_remembered_as_ever() -> None:
    """What the tenant adds and takes away again meanwhile does not come back from the host."""

    async def scenario() -> None:
        two = Guarded()
        config = configured({"toHost": {"configMaps": {"all": True, "authority": {"data": "both"}}}}, "configmaps")
        two.virtual.put(configmap("x", {"a": "0"}))

        def data(side: str) -> dict[str, str]:
            found = two.original("configmaps", "x") if side == "virtual" else two.copy("configmaps", "x")
            assert found
            return dict(found["data"])

        async with running(two, config) as daemon:
            await until(lambda: two.copy("configmaps", "x"))
            for _ in range(12):
                for side in ("host", "virtual"):
                    edit(two, side, "configmaps", {"data": {"a": side}})
                    await asyncio.sleep(3)
            assert daemon.engine.links["vc"].carrier.fights.frozen()
            edit(two, "virtual", "configmaps", {"data": {"b": "1"}})
            await until(lambda: data("host").get("b") == "1")
            await asyncio.sleep(5)
            edit(two, "virtual", "configmaps", {"data": {"b": None}})
            await until(lambda: "b" not in data("host"))
            await asyncio.sleep(5)
            assert "b" not in data("virtual")
            assert data("host") == {"a": "host"}, "it is frozen still"
            await asyncio.sleep(1500)
            assert data("host") == data("virtual") == {"a": "virtual"}

    play(scenario)
