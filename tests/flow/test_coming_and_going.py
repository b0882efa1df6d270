"""Kinds come and go while the daemon runs: their syncers wait, begin, stop, begin again; the others notice nothing."""

import asyncio
from typing import Any, ClassVar

from harness import HOME, NAMESPACE, Two, built_in, crd, host_path, until, verbs, widget, writes
from small_syncers import Maps, Widgets, copies

from kube_envtest import Rule
from syncer.api import Config, Initialize, Key, Live, Mirror, Obj, OwnController, Refers, Resource
from syncer.daemon.pages.status import degraded, waiting
from syncer.resources.kinds import SECRETS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, event, host_copy, secret

PLURAL = "widgets.example.org"


def define(two: Two, *plurals: str) -> None:
    for server in (two.virtual, two.host):
        for plural in plurals:
            server.put(crd(plural))


async def test_syncer_of_a_kind_missing_on_one_side_waits_with_that_reason(two: Two) -> None:
    two.virtual.put(crd("widgets"))
    two.virtual.put(configmap("x"))
    async with two.daemon([Widgets, Maps]) as daemon:
        await until(lambda: "x" in copies(two))
        assert waiting(daemon.process) == {("vc", "widgets"): f"waits: the host cluster does not serve {PLURAL}"}
        two.virtual.put(widget("w", spec={"size": 1}))
        two.host.put(crd("widgets"))
        await until(lambda: copies(two, PLURAL) == {"w"})
        assert waiting(daemon.process) == degraded(daemon.process) == {}


async def test_kind_that_goes_stops_its_syncer_and_comes_back_without_a_restart(two: Two) -> None:
    define(two, "widgets")
    two.virtual.put(widget("w", spec={"size": 1}))
    async with two.daemon([Widgets, Maps]) as daemon:
        await until(lambda: copies(two, PLURAL) == {"w"})
        two.host.delete("customresourcedefinitions.apiextensions.k8s.io", PLURAL)
        await until(lambda: ("vc", "widgets") in waiting(daemon.process), within=90)
        assert list(daemon.process.pairs["vc"].controllers) == ["maps"]
        two.virtual.put(configmap("later"))
        await until(lambda: "later" in copies(two))
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert not [one for one in list(two.host.requests)[since:] if "widgets" in one.path]
        two.host.put(crd("widgets"))
        await until(lambda: copies(two, PLURAL) == {"w"}, within=60)


async def test_search_for_a_kind_that_never_comes_is_no_storm(two: Two) -> None:
    async with two.daemon([Widgets]) as daemon:
        await until(lambda: waiting(daemon.process))
        await asyncio.sleep(60)
        since = len(two.host.requests)
        await asyncio.sleep(600)
        assert verbs(two.host, since)["get"] <= 2 * 600 / 30 + 2


class Gadgets(Mirror[Config]):
    """Another kind that may not be there."""

    name = "gadgets"
    resource = Resource("example.org/v1", "Gadget", "gadgets")
    down = ("spec",)


async def test_kinds_come_one_after_the_other(two: Two) -> None:
    async with two.daemon([Widgets, Gadgets]) as daemon:
        define(two, "widgets")
        two.virtual.put(widget("w", spec={}))
        await until(lambda: copies(two, PLURAL) == {"w"}, within=90)
        assert list(waiting(daemon.process)) == [("vc", "gadgets")]
        define(two, "gadgets")
        two.virtual.put(merged(widget("g", spec={}), {"kind": "Gadget"}))
        await until(lambda: copies(two, "gadgets.example.org") == {"g"}, within=90)


class Fragile(Maps, Initialize):
    """Can't start at first."""

    failures: ClassVar[int] = 0

    async def init(self, live: Live) -> None:
        if type(self).failures > 0:
            type(self).failures -= 1
            raise ConnectionError("not yet")


async def test_syncer_with_a_raising_init_waits_and_the_others_go_on(two: Two) -> None:
    Fragile.failures = 3
    two.virtual.put(configmap("x"))
    two.virtual.put(secret("s"))
    async with two.daemon([Fragile, *built_in("secrets")]) as daemon:
        assert "ConnectionError: not yet" in degraded(daemon.process)["vc", "maps"]
        await until(lambda: copies(two, "secrets") == {"s"})
        await until(lambda: copies(two) >= {"x"}, within=60)
        assert degraded(daemon.process) == {}


class Controlled(Widgets, OwnController):
    """Runs a controller of its own."""

    running: ClassVar[int] = 0

    async def register(self, live: Live) -> None:
        type(self).running += 1
        try:
            await asyncio.Event().wait()
        finally:
            type(self).running -= 1


async def test_own_controller_of_a_kind_that_comes_later_runs_too(two: Two) -> None:
    async with two.daemon([Controlled]):
        await asyncio.sleep(1)
        assert Controlled.running == 0
        define(two, "widgets")
        await until(lambda: Controlled.running == 1, within=60)
    assert Controlled.running == 0


class Claims(Widgets, Refers):
    """Widgets that name a Secret."""

    refers_to = (SECRETS,)
    follows = True

    def refers(self, virtual: Obj) -> Any:
        namespace, name = virtual["metadata"]["namespace"], virtual["spec"].get("secret")
        return [(SECRETS, Key(namespace, name))] if name else []


async def test_objects_that_a_late_kind_refers_to_come_and_go_with_it(two: Two) -> None:
    two.virtual.put(secret("db"))
    two.virtual.put(secret("unused"))
    async with two.daemon([Claims, *built_in("secrets")], options={}) as daemon:
        await daemon.settled()
        assert copies(two, "secrets") == set()
        define(two, "widgets")
        two.virtual.put(widget("w", spec={"secret": "db"}))
        await until(lambda: copies(two, "secrets") == {"db"}, within=60)
        two.virtual.put(widget("w", spec={}))
        await until(lambda: copies(two, "secrets") == set())


async def test_copies_stay_while_it_is_not_known_whether_they_are_used(two: Two) -> None:
    """A daemon that starts again may know the Secrets long before it knows what refers to them."""
    define(two, "widgets")
    two.virtual.put(secret("db"))
    two.virtual.put(widget("w", spec={"secret": "db"}))
    async with two.daemon([Claims, *built_in("secrets")], options={}):
        await until(lambda: copies(two, "secrets") == {"db"})
    since = len(two.host.requests)
    two.virtual.faults.add(Rule(verb="list", resource="widgets", status=503, count=8))
    async with two.daemon([Claims, *built_in("secrets")], options={}):
        two.virtual.put(merged(secret("db"), {"data": {"new": "eA=="}}))
        await until(lambda: (two.copy("secrets", "db") or {}).get("data", {}).get("new"), within=200)
        assert not [line for line in writes(two.host, since) if line.startswith("delete")]


async def test_object_that_came_from_the_host_is_not_copied_there_again(two: Two) -> None:
    define(two, "widgets")
    ours = {"metadata": {"labels": {"vsyncer.dev/cluster": f"vc.{HOME}"}}}
    two.virtual.put(merged(widget("from-host", spec={}), ours))
    two.virtual.put(widget("own", spec={}))
    async with two.daemon([Widgets]) as daemon:
        await daemon.settled()
        assert copies(two, PLURAL) == {"own"}
        two.virtual.put(merged(widget("own", spec={"size": 2}), ours))
        await until(lambda: (two.host.get(PLURAL, host_path("own")) or {})["spec"] == {"size": 2})


async def test_kind_that_discovery_lists_but_answers_404_causes_no_storm(two: Two) -> None:
    """As for a moment after a definition has gone, or where an aggregated API server is half there."""
    define(two, "widgets")
    async with two.daemon([Widgets]) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(resource="widgets", status=404))
        two.host.cut_watches()
        await asyncio.sleep(30)
        since = len(two.host.requests)
        await asyncio.sleep(600)
        assert verbs(two.host, since)["list"] <= 600 / 20
        assert verbs(two.host, since)["get"] <= 600 / 20


async def test_request_that_is_worked_on_when_its_syncer_stops_leaves_nothing_behind(two: Two) -> None:
    define(two, "widgets")
    async with two.daemon([Widgets, Maps]) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="create", resource="widgets", latency=20, count=1))
        two.virtual.put(widget("w", spec={}))
        await asyncio.sleep(1)
        two.host.delete("customresourcedefinitions.apiextensions.k8s.io", PLURAL)
        await until(lambda: ("vc", "widgets") in waiting(daemon.process), within=90)
        await asyncio.sleep(600)
        assert list(daemon.process.statuses.troubles()) == []


async def test_events_about_copies_of_a_later_kind_arrive_with_the_kind(two: Two) -> None:
    known = merged(widget("w", spec={}), {"metadata": {"uid": "u-1"}})
    two.host.put(crd("widgets"))
    copy = two.host.put(host_copy(known, spec={}))
    two.host.put(event(f"{copy['metadata']['name']}.17", about=copy))
    async with two.daemon([Widgets, *built_in("events")]):
        await asyncio.sleep(30)
        assert [one for one in two.virtual.objects("events") if one["reason"] == "BackOff"] == []
        two.virtual.put(crd("widgets"))
        two.virtual.put(known)
        assert await until(lambda: [one for one in two.virtual.objects("events") if one["reason"] == "BackOff"])
        [found] = [one for one in two.virtual.objects("events") if one["reason"] == "BackOff"]
        assert found["involvedObject"]["name"] == "w"
        assert found["metadata"]["namespace"] == NAMESPACE
