"""The state of each syncer in ``syncer status``."""

from typing import Any

import pytest
from harness import CLUSTER, NAMESPACE, Daemon, Two, built_in
from small_syncers import Maps, Widgets

from kube_envtest import Rule
from syncer.api import Index, Indexes, Obj, Side, Source, Watch, Watches, labels_of
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages.status import degraded
from syncer.observe.control import Control
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, service

NOTE = "kube-system/vsyncer"


async def status(daemon: Daemon) -> dict[str, dict[str, Any]]:
    """Return the rows by syncer."""
    control = Control()
    control_api.add(control, daemon.process)
    code, rows = await control.answer("GET", "/status", {})
    assert code == 200
    assert {row.pop("cluster") for row in rows} == {CLUSTER}
    return {row.pop("syncer"): row for row in rows}


def pause(two: Two, value: str) -> None:
    note = two.virtual.get("configmaps", NOTE) or configmap("vsyncer", namespace="kube-system")
    two.virtual.put(merged(note, {"metadata": {"annotations": {"vsyncer.dev/paused": value}}}))


async def test_status_has_the_state_of_each_syncer_and_counts_its_objects(two: Two) -> None:
    two.virtual.put(service("s"))
    two.virtual.put(configmap("x"))
    two.host.put(configmap(f"x-x-{NAMESPACE}-x-vc", namespace="vc-ns"))
    async with two.daemon([Maps, Widgets, *built_in("services", "nodes")]) as daemon:
        await daemon.settled()
        found = await status(daemon)
        assert {name: row["state"] for name, row in found.items()} == {
            "maps": "ready",
            "nodes": "ready",
            "services": "ready",
            "widgets": "waiting",
        }
        assert "widgets.example.org" in found["widgets"]["reason"]
        maps = found["maps"]
        assert (maps["parked"], maps["collisions"]) == (1, 1)
        assert maps["mapped"] == maps["inStep"] > 1
        assert (found["nodes"]["mapped"], found["widgets"]["mapped"]) == (None, None)


async def test_status_lists_paused_syncers_and_unknown_names_in_a_pause(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps, *built_in("services")]) as daemon:
        await daemon.settled()
        pause(two, "maps,map")
        await daemon.settled()
        found = await status(daemon)
        assert {name: row["state"] for name, row in found.items()} == {
            "map": "unknown",
            "maps": "paused",
            "services": "ready",
        }
        assert found["maps"]["paused"] == found["maps"]["mapped"] + 1, "the note came while it was paused"
        assert found["maps"]["reason"].startswith("paused: take maps out of the annotation vsyncer.dev/paused of ")
        pause(two, "true")
        await daemon.settled()
        assert {row["state"] for row in (await status(daemon)).values()} == {"paused"}


async def test_status_has_the_reason_of_a_degraded_syncer(two: Two) -> None:
    two.host.faults.add(Rule(verb="list", resource="services", status=403))
    async with two.daemon([Maps, *built_in("services")]) as daemon:
        await daemon.settled()
        found = await status(daemon)
        assert found["services"]["state"] == "degraded"
        assert "services" in found["services"]["reason"]
        assert found["maps"]["state"] == "ready"


def fails(obj: Obj, settings: object = None) -> list[Any]:
    """Index an object, or name other keys; raises for some."""
    if "bad" in labels_of(obj):
        raise ValueError("a bug of the syncer, or an odd object")
    return []


class IndexedMaps(Maps, Indexes):
    """Indexes the ConfigMaps."""

    def indexes(self) -> list[Index]:
        return [Index(Source(Side.VIRTUAL, CONFIG_MAPS), "uses", fails)]


class WatchingMaps(Maps, Watches):
    """Watches the ConfigMaps."""

    def watches(self) -> list[Watch]:
        return [Watch(Source(Side.VIRTUAL, CONFIG_MAPS), fails)]


async def test_objects_nested_too_deep_for_their_names_are_counted(two: Two) -> None:
    deep = b'{"metadata":' + b'{"a":' * 9000 + b"1" + b"}" * 9000 + b"}"
    listed = b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[' + deep + b"]}"
    two.virtual.faults.add(Rule(verb="list", resource="configmaps", rewrite=lambda body: listed))
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        [why] = degraded(daemon.process).values()
        assert why.endswith(
            "that can't be read: 1 whose names can't be found, as they are malformed or nested too deep"
        )


@pytest.mark.parametrize("syncer", [IndexedMaps, WatchingMaps])
async def test_object_with_a_failing_index_or_watch_is_reported_until_it_changes(two: Two, syncer: type[Maps]) -> None:
    for name in ("x", "y", "z"):
        two.virtual.put(configmap(name, metadata={"labels": {} if name == "z" else {"bad": "1"}}))
    async with two.daemon([syncer]) as daemon:
        await daemon.settled()
        [why] = degraded(daemon.process).values()
        assert why.endswith("that can't be read: 2 by an index or a watch of a syncer")
        rows = control_api.parked(daemon.process, control_api.selection(daemon.process))
        assert [(row["key"], row["class"], row["syncer"]) for row in rows] == [
            (f"{NAMESPACE}/{name}", "Unreadable", "maps") for name in ("x", "y")
        ]
        assert "raised, as the log says" in rows[0]["reason"]
        assert control_api.retry(daemon.process, control_api.selection(daemon.process)) == []
        two.virtual.put(configmap("x"))
        two.virtual.delete("configmaps", f"{NAMESPACE}/y")
        await daemon.settled()
        assert degraded(daemon.process) == {}
        assert control_api.parked(daemon.process, control_api.selection(daemon.process)) == []
