"""The owner of an object that waits, is paused, was repaired or has an odd name gets one Event, and no flood."""

import asyncio

import pytest
from harness import HOME, NAMESPACE, Two, until
from patrol_scene import BLUE, PAST, RED, blind, drifted, edit_unseen, in_step, scanned
from rules_scene import edit
from shop_scene import the_original
from small_syncers import Maps

from syncer.api import Context, Decision, Key, Obj, Settings, reasons, uid_of, wait
from syncer.engine.duties.long_waits import LOOK_SECONDS, MOST_AT_ONCE, WAIT_SECONDS
from syncer.engine.patrol.patroller import NOTIFIED
from syncer.testing.merge import merged
from syncer.testing.objects import configmap

#: Seconds after which the owner of an object that waits has been notified.
LATE = WAIT_SECONDS + LOOK_SECONDS + 1


class Waits(Maps):
    """ConfigMaps that wait as their data say; each is decided again every second."""

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        match virtual.get("data", {}):
            case {"namespace": name}:
                return wait(reasons.NO_NAMESPACE(name), after=1.0)
            case {"end": side}:
                return wait(reasons.REMADE(side), after=1.0)
            case {"class": name}:
                why = reasons.CLASS_NOT_LISTED("StorageClass", name)
                return wait(why, after=1.0).warn("ClassNotListed", why)
            case {"text": text}:
                return wait(text, after=1.0)
        return super().sync_down(ctx, virtual)


def events(two: Two, *, about: str = "x") -> list[Obj]:
    """Return the Events about an object of the shop, in order."""
    found = two.virtual.objects("events", NAMESPACE)
    return [each for each in found if each["involvedObject"]["name"] == about]


def shown(two: Two, *, about: str = "x") -> list[tuple[str, str, str]]:
    """Return the reason, type and message of each Event about an object of the shop."""
    return [(each["reason"], each["type"], each["message"]) for each in events(two, about=about)]


def change(two: Two, data: dict[str, str | None]) -> None:
    two.virtual.put(merged(the_original(two, "configmaps", "x"), {"data": data}))


# -- waits -----------------------------------------------------------------------------------------


async def test_object_that_waits_for_long_has_one_event_however_often_it_is_retried(two: Two) -> None:
    two.virtual.put(configmap("x", {"namespace": "cellar"}))
    async with two.daemon([Waits]) as daemon:
        await asyncio.sleep(WAIT_SECONDS - 1)
        assert events(two) == []
        await asyncio.sleep(600)
        status = daemon.status("x", "maps")
        assert status is not None
        assert status.tried > 100
        message = "the virtual cluster has no namespace cellar yet"
        assert shown(two) == [("NoNamespace", "Warning", message)]
        [event] = events(two)
        assert event["count"] == 1
        assert event["involvedObject"]["uid"] == uid_of(the_original(two, "configmaps", "x"))


async def test_object_that_waits_briefly_has_no_event(two: Two) -> None:
    two.virtual.put(configmap("x", {"namespace": "cellar"}))
    async with two.daemon([Waits]):
        await asyncio.sleep(WAIT_SECONDS - 5)
        change(two, {"namespace": None, "color": "blue"})
        await until(lambda: two.copy("configmaps", "x"))
        await asyncio.sleep(LATE)
        assert events(two) == []


async def test_wait_that_ends_by_itself_is_no_warning(two: Two) -> None:
    two.virtual.put(configmap("x", {"end": "host"}))
    async with two.daemon([Waits]):
        await asyncio.sleep(LATE)
        [(reason, level, _)] = shown(two)
        assert (reason, level) == ("Remade", "Normal")


async def test_each_reason_has_an_event_of_its_own_once(two: Two) -> None:
    two.virtual.put(configmap("x", {"namespace": "cellar"}))
    async with two.daemon([Waits]):
        for name in ("attic", "cellar", "attic", "cellar"):
            await asyncio.sleep(LATE)
            change(two, {"namespace": name})
        await asyncio.sleep(LATE)
        assert sorted(message.split()[-2] for _, _, message in shown(two)) == ["attic", "cellar"]
        assert {event["count"] for event in events(two)} == {1}


async def test_daemon_that_starts_again_and_again_repeats_no_event(two: Two) -> None:
    two.virtual.put(configmap("x", {"namespace": "cellar"}))
    for _ in range(3):
        async with two.daemon([Waits]):
            await asyncio.sleep(LATE)
    [event] = events(two)
    assert event["count"] == 1


async def test_later_object_of_the_name_has_an_event_of_its_own(two: Two) -> None:
    two.virtual.put(configmap("x", {"namespace": "cellar"}))
    async with two.daemon([Waits]) as daemon:
        await asyncio.sleep(LATE)
        pair = daemon.process.pairs["vc"]
        before = the_original(two, "configmaps", "x")
        daemon.process.queue.pause("vc")  # the worker sees only the later one
        two.virtual.delete("configmaps", f"{NAMESPACE}/x")
        two.virtual.put(configmap("x", {"namespace": "cellar"}))
        await until(lambda: pair.uid_of(daemon.requests("maps")[0]) not in ("", uid_of(before)))
        daemon.process.queue.resume("vc")
        await asyncio.sleep(LATE)
        uids = {event["involvedObject"]["uid"] for event in events(two)}
        assert uids == {uid_of(before), uid_of(the_original(two, "configmaps", "x"))}


async def test_wait_with_an_event_of_its_own_has_no_second_one(two: Two) -> None:
    two.virtual.put(configmap("x", {"class": "gold"}))
    async with two.daemon([Waits]):
        await asyncio.sleep(4 * LATE)
        [event] = events(two)
        assert (event["reason"], event["count"]) == ("ClassNotListed", 1)


async def test_event_about_a_wait_names_nothing_of_the_host(two: Two) -> None:
    two.virtual.put(configmap("x", {"text": f"{HOME}/db-x-shop-x-vc is not there"}))
    async with two.daemon([Waits]):
        await asyncio.sleep(LATE)
        assert shown(two) == [("AwaitedBySyncer", "Normal", "shop/db is not there")]


async def test_many_that_wait_have_their_events_in_turn_and_leave_room_for_others(two: Two) -> None:
    number = 10 * MOST_AT_ONCE
    for each in range(number):
        two.virtual.put(configmap(f"x{each}", {"namespace": "cellar"}))
    async with two.daemon([Waits]):
        await asyncio.sleep(WAIT_SECONDS)
        written = []
        for _ in range(14):
            await asyncio.sleep(LOOK_SECONDS)
            written.append(len(two.virtual.objects("events", NAMESPACE)))
        steps = [after - before for before, after in zip([0, *written], written, strict=False)]
        assert max(steps) <= MOST_AT_ONCE
        assert written[-1] == number


# -- pauses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "value", "reason", "what"),
    [
        (("configmaps", "shop/x"), "true", "Paused", "the virtual ConfigMap shop/x"),
        (("namespaces", "shop"), "true", "Paused", "the virtual Namespace shop"),
        (("configmaps", "kube-system/vsyncer"), "true", "Paused", "the virtual ConfigMap kube-system/vsyncer"),
        (("configmaps", "kube-system/vsyncer"), "maps", "SyncerPaused", "the virtual ConfigMap kube-system/vsyncer"),
    ],
    ids=["object", "namespace", "cluster", "syncer"],
)
async def test_paused_object_has_an_event_that_names_the_annotation(
    two: Two, on: tuple[str, str], value: str, reason: str, what: str
) -> None:
    two.virtual.put(configmap("x"))
    two.virtual.put(configmap("vsyncer", {"identity": "vc.vc-ns"}, namespace="kube-system"))
    mark = {"metadata": {"annotations": {"vsyncer.dev/paused": value}}}
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        marked = two.virtual.get(*on)
        assert marked
        two.virtual.put(merged(marked, mark))
        await asyncio.sleep(WAIT_SECONDS - 2)
        assert events(two) == []
        await asyncio.sleep(600)
        [(found, level, message)] = shown(two)
        assert (found, level) == (reason, "Normal")
        assert "vsyncer.dev/paused" in message
        assert what in message


# -- drift -----------------------------------------------------------------------------------------


async def test_owner_of_a_repaired_object_learns_which_fields_were_set_right(two: Two) -> None:
    async with drifted(two) as daemon:
        await scanned(daemon)
        await asyncio.sleep(1)
        message = "its copy on the host differed, and has been set right: data.color"
        assert shown(two) == [("DriftRepaired", "Normal", message)]


async def test_drift_that_is_only_reported_is_no_repair(two: Two) -> None:
    two.virtual.put(configmap("x", BLUE))
    async with in_step(two, drift={"field": "report"}) as daemon:
        await edit_unseen(two)
        await scanned(daemon)
        await asyncio.sleep(1)
        assert events(two) == []


async def test_repairs_of_a_scan_have_a_bounded_number_of_events(two: Two) -> None:
    number = NOTIFIED + 10
    for each in range(number):
        two.virtual.put(configmap(f"x{each}", BLUE))
    async with in_step(two) as daemon:
        blind(two)
        for each in range(number):
            edit(two, "host", "configmaps", {"data": RED}, f"x{each}")
        await asyncio.sleep(PAST)
        scan = await scanned(daemon)
        assert len(scan.findings) == number
        await asyncio.sleep(60)
        reasons_of_all = [event["reason"] for event in two.virtual.objects("events", NAMESPACE)]
        assert reasons_of_all.count("DriftRepaired") == NOTIFIED


# -- names -----------------------------------------------------------------------------------------


async def test_copy_with_a_shortened_name_is_announced_once(two: Two) -> None:
    long = "x" * 250
    for name in ("x", long):
        two.virtual.put(configmap(name))
    for _ in range(2):
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            await asyncio.sleep(1)
            [copy] = [each for each in two.host.objects("configmaps", HOME) if "xxx" in each["metadata"]["name"]]
            two.host.delete("configmaps", f"{HOME}/{copy['metadata']['name']}")  # it is created again
            await daemon.settled()
    [(reason, level, message)] = shown(two, about=long)
    assert (reason, level) == ("NameShortened", "Normal")
    assert "a shortened name with a hash" in message
    assert events(two) == []


class Numbered(Maps):
    """ConfigMaps whose copies have names of their own."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key(HOME, f"copy-{len(key.name)}")


async def test_name_of_a_kind_with_names_of_its_own_is_not_announced(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon([Numbered]) as daemon:
        await daemon.settled()
        await asyncio.sleep(1)
        assert two.host.get("configmaps", f"{HOME}/copy-1")
        assert events(two) == []
