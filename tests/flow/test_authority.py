"""Fields that the host or both sides own, with only the generated rights, and a kill at every write."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from harness import Daemon, Two, until, widget, writes
from rules_scene import WIDGETS, Guarded, configured, edit, events, on, running
from shop_scene import status, the_copy

from kube_envtest import Rule
from kube_envtest.apiserver.faults import AFTER, BEFORE
from syncer.api import annotations_of
from syncer.api.reasons import RequestState
from syncer.testing.objects import configmap, service

MAPS = {"toHost": {"configMaps": {"all": True, "authority": {"data": "both"}}}}
SCALED = {"custom": {WIDGETS: {"authority": {"spec.replicas": "host", "spec.options": "both"}}}}
BASE, TEAM = "vsyncer.dev/base", "example.org/team"
#: The data of a ConfigMap at the beginning.
START = {"a": "0"}


def values(two: Two, plural: str = "configmaps", part: str = "data") -> tuple[Any, Any]:
    """Return the values of both sides."""
    original, copy = two.original(plural, "x"), two.copy(plural, "x")
    return (original or {}).get(part), (copy or {}).get(part)


def are(two: Two, value: Any, plural: str = "configmaps", part: str = "data") -> bool:
    return values(two, plural, part) == (value, value)


def with_map(data: Mapping[str, str] = START) -> Guarded:
    """Both clusters, and a ConfigMap in the shop."""
    two = Guarded()
    two.virtual.put(configmap("x", data))
    return two


@contextlib.asynccontextmanager
async def sharing(two: Guarded, data: Mapping[str, str]) -> AsyncIterator[Daemon]:
    """Yield a daemon under which both sides own the data of ConfigMaps, once they are this on both."""
    async with running(two, configured(MAPS, "configmaps")) as daemon:
        await until(lambda: are(two, data))
        await daemon.settled()
        yield daemon


async def nothing_is_written(two: Two, seconds: float) -> None:
    """Neither side is asked for a change meanwhile."""
    since = len(two.virtual.requests), len(two.host.requests)
    await asyncio.sleep(seconds)
    assert writes(two.virtual, since[0]) + writes(two.host, since[1]) == []


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
async def test_change_on_one_side_reaches_the_other(ours: Any, theirs: Any, end: Any, stopped: bool) -> None:
    start = {"a": "0", "b": "0"}
    two = with_map(start)

    def change() -> None:
        edit(two, "virtual", "configmaps", {"data": ours})
        edit(two, "host", "configmaps", {"data": theirs})

    async with sharing(two, start):
        if not stopped:
            change()
            await until(lambda: are(two, end))
    if stopped:
        change()
    async with sharing(two, end):
        await nothing_is_written(two, 100)


async def test_host_scales_an_object_of_the_tenant() -> None:
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


def notes(two: Two) -> tuple[Any, Any]:
    """Return the shared annotation of both sides."""
    found = two.original("configmaps", "x"), two.copy("configmaps", "x")
    first, second = (annotations_of(one).get(TEAM) if one else None for one in found)
    return first, second


async def test_annotation_is_shared_by_its_key() -> None:
    owned = {"/metadata/annotations/example.org~1team": "both"}
    sync = {"toHost": {"configMaps": {"all": True, "authority": owned}}}
    two, config = with_map(), configured(sync, "configmaps")
    edit(two, "virtual", "configmaps", {"metadata": {"annotations": {TEAM: "blue", "other": "1"}}})
    async with running(two, config) as daemon:
        await until(lambda: notes(two) == ("blue", "blue"))
        await daemon.settled()
        edit(two, "host", "configmaps", {"metadata": {"annotations": {TEAM: "red", "other": "2"}}})
        await until(lambda: notes(two) == ("red", "red"))
        await daemon.settled()
        assert annotations_of(the_copy(two, "configmaps", "x"))["other"] == "1"
    edit(two, "host", "configmaps", {"metadata": {"annotations": {TEAM: None}}})
    async with running(two, config) as daemon:
        await until(lambda: notes(two) == (None, None))
        edit(two, "virtual", "configmaps", {"metadata": {"annotations": {TEAM: "green"}}})
        await until(lambda: notes(two) == ("green", "green"))
        await daemon.settled()
        await nothing_is_written(two, 60)


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("side", ["virtual", "host"])
@pytest.mark.parametrize("then", ["", "virtual", "host", "back"])
async def test_killed_at_any_write_no_change_is_lost(when: str, side: str, then: str) -> None:
    """The host changes a field, and we are killed at a write of what follows; then one side changes it again."""
    two = with_map()
    async with sharing(two, START) as daemon:
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
    async with sharing(two, {"a": end}):
        """No change is lost."""


async def test_change_by_the_tenant_meanwhile_is_not_overwritten() -> None:
    """The decision to go up is older than a change that the tenant makes while the request is under way."""
    two = with_map()
    async with sharing(two, START):
        rule = two.virtual.faults.add(Rule(verb="patch", resource="configmaps", latency=1, count=1))
        edit(two, "host", "configmaps", {"data": {"a": "theirs"}})
        await until(lambda: rule.hits)
        edit(two, "virtual", "configmaps", {"data": {"a": "ours"}})
        await until(lambda: are(two, {"a": "ours"}))
        await asyncio.sleep(10)
        assert are(two, {"a": "ours"})


async def test_translated_field_is_refused_with_an_event() -> None:
    two = Guarded()
    two.virtual.put(service("x", spec={"externalIPs": ["192.0.2.1"]}))
    config = configured({"toHost": {"services": {"authority": {"spec.externalIPs": "both"}}}}, "services")
    async with running(two, config) as daemon:
        await until(lambda: events(two, "SyncRefused"))
        stands = status(daemon, "x", "services")
        assert stands.state is RequestState.PARKED
        assert "spec.externalIPs: its owner can't be both" in stands.reason


async def test_base_comes_and_goes_with_the_need_for_one() -> None:
    two = with_map()
    plain = configured({"toHost": {"configMaps": {"all": True}}}, "configmaps")
    for config, kept in ((plain, False), (configured(MAPS, "configmaps"), True)):
        async with running(two, config) as daemon:
            await until(lambda: two.copy("configmaps", "x"))
            await daemon.settled()
            assert (BASE in the_copy(two, "configmaps", "x")["metadata"]["annotations"]) is kept


async def test_virtual_side_wins_after_the_base_was_removed() -> None:
    two = with_map()
    async with sharing(two, START):
        """Until it has stored the base."""
    edit(two, "host", "configmaps", {"metadata": {"annotations": {BASE: None}}, "data": {"a": "theirs"}})
    async with sharing(two, START):
        """The virtual side's on both."""


async def test_fight_over_a_shared_field_ends_with_each_side_as_it_is() -> None:
    """Both insist. Once it is frozen neither side's value crosses, and the rest of the object still does."""

    async def insist(two: Two, side: str, value: str) -> None:
        while True:
            if on(two, side, "configmaps")["data"]["a"] != value:
                edit(two, side, "configmaps", {"data": {"a": value}})
            await asyncio.sleep(1)

    two = with_map()
    async with sharing(two, START), asyncio.TaskGroup() as tasks:
        insisting = [tasks.create_task(insist(two, *each)) for each in (("virtual", "ours"), ("host", "theirs"))]
        await until(lambda: events(two, "FieldFrozen"), within=500)
        for one in insisting:
            one.cancel()
        ours, theirs = {"a": "ours"}, {"a": "theirs"}
        await until(lambda: values(two) == (ours, theirs))
        await nothing_is_written(two, 60)
        assert values(two) == (ours, theirs)
        edit(two, "virtual", "configmaps", {"data": {"b": "new"}})
        await until(lambda: values(two) == ({**ours, "b": "new"}, {**theirs, "b": "new"}))
        await asyncio.sleep(60)
        assert values(two) == ({**ours, "b": "new"}, {**theirs, "b": "new"})
    async with sharing(two, {**ours, "b": "new"}):
        """It knows of no fight, and the virtual side has changed the field, too."""


async def test_fields_beside_a_contended_one_are_remembered_as_usual() -> None:
    """A field that the tenant adds and removes meanwhile does not come back from the host."""
    two = with_map()

    def data(side: str) -> dict[str, str]:
        return dict(on(two, side, "configmaps")["data"])

    async with sharing(two, START) as daemon:
        for _ in range(12):
            for side in ("host", "virtual"):
                edit(two, side, "configmaps", {"data": {"a": side}})
                await asyncio.sleep(3)
        assert daemon.process.pairs["vc"].policies.contention.frozen()
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
