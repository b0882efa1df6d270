"""The generations in a status are those of the tenant's object, however often either side's object changes."""

import asyncio

import pytest
from harness import CLUSTER, Two, crd, host_path, until, widget, writes
from shop_scene import edit_by
from small_syncers import Widgets

from hack.side_tasks import helped_by
from kube_envtest.apiserver.changes import Change
from syncer.api import Obj
from syncer.engine.reconcile.policies.futile import AGAIN_SECONDS
from syncer.testing.merge import merged

PLURAL = "widgets.example.org"


def define(two: Two, *, virtual: Obj | None = None, host: Obj | None = None) -> None:
    """Let both sides serve Widgets, with these parts of their version."""
    for server, parts in ((two.virtual, virtual), (two.host, host)):
        definition = crd("widgets")
        [version] = definition["spec"]["versions"]
        server.put(merged(definition, {"spec": {"versions": [merged(version, parts or {})]}}))


def copy_of(two: Two) -> Obj:
    copy = two.copy(PLURAL, "x")
    assert copy
    return copy


def original(two: Two) -> Obj:
    found = two.original(PLURAL, "x")
    assert found
    return found


def edit(two: Two, parts: Obj) -> None:
    """Change the tenant's object."""
    two.virtual.put(merged(original(two), parts))


def edit_copy(two: Two, parts: Obj) -> None:
    """Change the copy as somebody on the host does."""
    two.host.put(merged(copy_of(two), parts))


def observe(two: Two) -> None:
    """Report about the copy as it is, as a controller of the host does: with the same words each time."""
    copy = copy_of(two)
    generation = copy["metadata"]["generation"]
    ready = {"type": "Ready", "status": "True", "observedGeneration": generation}
    two.host.put({**copy, "status": {"observedGeneration": generation, "phase": "Up", "conditions": [ready]}})


def about(two: Two) -> list[int | None]:
    """Return the generation of the tenant's object, and those that its status and its condition are about."""
    obj = original(two)
    status = obj.get("status") or {}
    conditions = status.get("conditions") or [{}]
    return [
        obj["metadata"]["generation"],
        status.get("observedGeneration"),
        conditions[0].get("observedGeneration"),
    ]


async def observed(two: Two) -> None:
    """Make a Widget that is copied and observed."""
    two.virtual.put(widget("x", spec={"size": 1}))
    await until(lambda: two.copy(PLURAL, "x"))
    observe(two)
    await until(lambda: about(two) == [1, 1, 1])


async def test_two_edits_that_reach_the_host_as_one_are_observed_as_the_latest(two: Two) -> None:
    define(two)
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        await daemon.settled()
    for size in (2, 3):
        edit(two, {"spec": {"size": size}})
    async with two.daemon([Widgets]) as daemon:
        await until(lambda: copy_of(two)["spec"] == {"size": 3})
        await daemon.settled()
        assert copy_of(two)["metadata"]["generation"] == 2
        assert about(two) == [3, 1, 1], "what it is about is over, however long ago"
        observe(two)
        await until(lambda: about(two) == [3, 3, 3])
        await daemon.settled()


async def test_edit_is_a_write_of_each_side(two: Two) -> None:
    define(two)
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        await daemon.settled()
        since = [len(server.requests) for server in (two.host, two.virtual)]
        edit(two, {"spec": {"size": 2}})
        await daemon.settled()
        assert about(two) == [2, 1, 1]
        observe(two)
        await daemon.settled()
        assert about(two) == [2, 2, 2]
        found = [writes(server, start) for server, start in zip((two.host, two.virtual), since, strict=True)]
        assert [len(each) for each in found] == [1, 1], found
        await asyncio.sleep(600)
        assert [writes(server, start) for server, start in zip((two.host, two.virtual), since, strict=True)] == found


async def test_changes_of_the_host_make_an_earlier_report_no_present_one(two: Two) -> None:
    define(two)
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        for node in ("n1", "n2"):
            edit_copy(two, {"spec": {"node": node}})
        await until(lambda: about(two) == [1, 0, 0])
        edit(two, {"spec": {"size": 2}})
        await until(lambda: copy_of(two)["spec"] == {"size": 2, "node": "n2"})
        await daemon.settled()
        assert copy_of(two)["metadata"]["generation"] == 4
        assert about(two) == [2, 0, 0]
        observe(two)
        await until(lambda: about(two) == [2, 2, 2])


async def test_labels_are_no_change_of_what_was_observed(two: Two) -> None:
    define(two)
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        await daemon.settled()
        since = len(two.virtual.requests)
        edit(two, {"metadata": {"labels": {"team": "a"}}})
        await until(lambda: copy_of(two)["metadata"]["labels"].get("team") == "a")
        await daemon.settled()
        assert about(two) == [1, 1, 1]
        assert writes(two.virtual, since) == []


async def test_field_that_the_host_drops_holds_up_no_report(two: Two) -> None:
    """Nothing but the answer to the write shows that the host will never observe more."""
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-preserve-unknown-fields": None}
    define(two, host={"schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}})
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        edit(two, {"spec": {"color": "red"}})
        await until(lambda: about(two) == [2, 2, 2])
        await daemon.settled()
        assert copy_of(two)["spec"] == {"size": 1}
        assert copy_of(two)["metadata"]["generation"] == 1
        await asyncio.sleep(AGAIN_SECONDS + 1)
        since = [len(server.requests) for server in (two.host, two.virtual)]
        edit_copy(two, {"status": {"phase": "Down"}})
        await until(lambda: original(two)["status"]["phase"] == "Down")
        await daemon.settled()
        assert about(two) == [2, 2, 2]
        assert len(writes(two.host, since[0])) == 1, "the field is sent once more"
        assert len(writes(two.virtual, since[1])) == 1, "which is nothing to report"


@pytest.mark.parametrize("side", ["virtual", "host"])
async def test_status_without_a_subresource_is_copied_as_it_is_and_comes_to_rest(two: Two, side: str) -> None:
    """Each write of such a status raises the generation: it could follow itself for ever."""
    without: dict[str, Obj] = {side: {"subresources": None}}
    define(two, virtual=without.get("virtual"), host=without.get("host"))
    async with two.daemon([Widgets]) as daemon:
        two.virtual.put(widget("x", spec={"size": 1}))
        await until(lambda: two.copy(PLURAL, "x"))
        observe(two)
        await until(lambda: original(two).get("status"))
        await daemon.settled()
        since = len(two.virtual.requests)
        await asyncio.sleep(600)
        assert writes(two.virtual, since) == []
        assert original(two)["status"] == copy_of(two)["status"]
        edit(two, {"spec": {"size": 2}})
        await until(lambda: copy_of(two)["spec"] == {"size": 2})
        await daemon.settled()
        assert original(two)["status"] == copy_of(two)["status"]


class Sized(Widgets):
    """Only the size crosses."""

    down = ("spec.size",)


async def test_change_that_does_not_cross_needs_no_report(two: Two) -> None:
    define(two)
    async with two.daemon([Sized]) as daemon:
        await observed(two)
        edit(two, {"spec": {"note": "for the tenant alone"}})
        await until(lambda: about(two) == [2, 2, 2])
        await daemon.settled()
        assert copy_of(two)["metadata"]["generation"] == 1


async def test_repair_of_the_copy_is_observed_too(two: Two) -> None:
    define(two)
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        edit_copy(two, {"spec": {"size": 9}})
        await until(lambda: copy_of(two)["spec"] == {"size": 1})
        await daemon.settled()
        assert about(two) == [1, 0, 0]
        observe(two)
        await until(lambda: about(two) == [1, 1, 1])


async def test_report_about_drift_is_never_shown_as_about_the_present_spec(two: Two) -> None:
    """Those who wait see each version of the object: one that is wrong for a moment is enough."""
    define(two)
    phases: list[Obj] = []

    def note(change: Change) -> None:
        if change.resource == PLURAL and change.after and change.after.get("status"):
            phases.append(change.after["status"])

    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        two.virtual.follow(note)
        edit_copy(two, {"spec": {"size": 9}, "status": {"observedGeneration": 2, "phase": "Tall"}})
        await until(lambda: copy_of(two)["spec"] == {"size": 1})
        await daemon.settled()
        assert [(each["phase"], each["observedGeneration"]) for each in phases] == [("Tall", 0)]
        observe(two)
        await until(lambda: about(two) == [1, 1, 1])


async def test_generation_that_is_text_is_translated_too(two: Two) -> None:
    """Argo CD takes a later one than that of the object for no generation, and then waits for nothing."""
    define(two)
    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        edit_copy(two, {"spec": {"node": "n1"}, "status": {"observedGeneration": "2"}})
        await until(lambda: about(two) == [1, "1", 0])
        await daemon.settled()


async def test_frozen_field_keeps_the_report_an_earlier_one(two: Two) -> None:
    define(two)
    path = f"/apis/example.org/v1/namespaces/{host_path('x').replace('/', '/widgets/')}"

    async def paint() -> None:
        """Set the size back each time, and report about that."""
        while True:
            await asyncio.sleep(0.5)
            if copy_of(two)["spec"] == {"size": 2}:
                await edit_by(two.host, path, {"spec": {"size": 1}})
                observe(two)

    async with two.daemon([Widgets]) as daemon:
        await observed(two)
        contention = daemon.process.pairs[CLUSTER].policies.contention
        async with helped_by(paint()):
            edit(two, {"spec": {"size": 2}})
            await until(contention.frozen)
            await asyncio.sleep(60)
            copy = copy_of(two)
            assert copy["status"]["observedGeneration"] == copy["metadata"]["generation"]
            assert about(two) == [2, 1, 1]
        await until(lambda: copy_of(two)["spec"] == {"size": 2}, within=1000)
        observe(two)
        await until(lambda: about(two) == [2, 2, 2])


async def test_change_that_goes_up_is_followed_by_the_report_about_it(two: Two) -> None:
    define(two)
    options = {"widgets": {"authority": {"spec": "both"}}}
    async with two.daemon([Widgets], options=options) as daemon:
        await observed(two)
        edit_copy(two, {"spec": {"size": 5}})
        observe(two)
        await until(lambda: original(two)["spec"] == {"size": 5})
        await until(lambda: about(two) == [2, 2, 2])
        await daemon.settled()
        since = len(two.virtual.requests)
        await asyncio.sleep(600)
        assert writes(two.virtual, since) == []
