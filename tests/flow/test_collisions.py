"""Two objects that want the same name on the host: the first keeps it, the second waits and is counted."""

import asyncio

import pytest
from harness import HOME, NAMESPACE, Daemon, Two, built_in, until, verbs, writes
from parked_scene import warnings
from small_syncers import Maps

from kube_envtest import Rule
from syncer.api import Key, NameTaken, Settings
from syncer.daemon.pages.control import parked, selection
from syncer.daemon.pages.status import collisions, mappings
from syncer.engine.controllers.wakeups import LOOK_SECONDS
from syncer.testing.objects import configmap, namespace, secret, service

OTHER, ROOT_CA = "storage", "kube-root-ca.crt"


class FlatMaps(Maps):
    """ConfigMaps, of which those called ``x`` meet on the host."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key(HOME, "flat-x") if key.name == "x" else super().host_key(settings, key)


def color(two: Two, name: str = "flat-x") -> str | None:
    copy = two.host.get("configmaps", f"{HOME}/{name}")
    return str(copy["data"]["color"]) if copy else None


def name_collisions(daemon: Daemon) -> dict[str, str]:
    """Return the keys that are parked, each with the class of the error."""
    return {str(request.key): status.error for request, status in daemon.process.statuses.troubles()}


def counts(daemon: Daemon) -> tuple[int, int]:
    return mappings(daemon.process)["vc", "maps"], collisions(daemon.process)["vc", "maps"]


async def test_name_on_the_host_stays_with_the_first_of_two_virtual_objects(two: Two) -> None:
    two.virtual.put(namespace(OTHER))
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon([FlatMaps]) as daemon:
        await daemon.settled()
        copies = [one for one in two.host.objects("configmaps", HOME) if one["metadata"]["name"] != ROOT_CA]
        assert counts(daemon) == (len(copies), 0)
        since = len(two.host.requests)
        two.virtual.put(configmap("x", {"color": "red"}, namespace=OTHER))
        await daemon.settled()
        assert name_collisions(daemon) == {f"{OTHER}/x": NameTaken.__name__}
        assert (color(two), writes(two.host, since)) == ("blue", [])
        assert counts(daemon)[1] == 1
        two.virtual.delete("configmaps", f"{OTHER}/x")
        await daemon.settled()
        assert (color(two), writes(two.host, since)) == ("blue", [])
        two.virtual.put(configmap("x", {"color": "red"}, namespace=OTHER))
        await daemon.settled()
        two.virtual.delete("configmaps", f"{NAMESPACE}/x")
        assert await until(lambda: color(two) == "red") < 5
        await daemon.settled()
        assert (name_collisions(daemon), counts(daemon)[1]) == ({}, 0)


async def test_one_of_two_simultaneous_objects_gets_the_host_name(two: Two) -> None:
    two.virtual.put(namespace(OTHER))
    two.host.faults.add(Rule(verb="create", latency=1))
    for space in (NAMESPACE, OTHER):
        two.virtual.put(configmap("x", {"color": space}, namespace=space))
    async with two.daemon([FlatMaps]) as daemon:
        await daemon.settled()
        [(loser, error)] = name_collisions(daemon).items()
        assert error == NameTaken.__name__
        assert color(two) in {NAMESPACE, OTHER} - {loser.partition("/")[0]}
        two.virtual.delete("configmaps", f"{color(two)}/x")
        assert await until(lambda: color(two) == loser.partition("/")[0]) < 5


async def test_orphan_from_while_nothing_ran_makes_way_for_a_new_copy(two: Two) -> None:
    two.virtual.put(namespace(OTHER))
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon([FlatMaps]) as daemon:
        await daemon.settled()
    two.virtual.delete("configmaps", f"{NAMESPACE}/x")
    two.virtual.put(configmap("x", {"color": "red"}, namespace=OTHER))
    async with two.daemon([FlatMaps]) as daemon:
        await daemon.settled()
        assert (color(two), name_collisions(daemon)) == ("red", {})


async def test_collision_with_a_host_object_that_is_not_ours_is_counted(two: Two) -> None:
    two.host.put(configmap("flat-x", {"color": "theirs"}, namespace=HOME))
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon([FlatMaps]) as daemon:
        await daemon.settled()
        assert name_collisions(daemon) == {f"{NAMESPACE}/x": NameTaken.__name__}
        assert counts(daemon)[1] == 1


async def test_object_is_synced_soon_after_the_one_in_its_way_is_gone(two: Two) -> None:
    two.host.put(configmap("flat-x", {"color": "theirs"}, namespace=HOME))
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon([FlatMaps]) as daemon:
        await daemon.settled()
        [one] = parked(daemon.process, selection(daemon.process))
        assert one["reason"].startswith(f"the host cluster has a ConfigMap {HOME}/flat-x that is not ours")
        assert one["wakes"] == [
            "a change of the object or its copy",
            f"the deletion of the ConfigMap {HOME}/flat-x on the host cluster",
        ]
        [why] = warnings(two)
        assert why == (
            "another ConfigMap on the host has the name that this object's copy would get. "
            "Rename this object, or ask the operator"
        )
        await asyncio.sleep(100)
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert verbs(two.host, since) == {"get": pytest.approx(60 / LOOK_SECONDS, abs=4)}
        two.host.delete("configmaps", f"{HOME}/flat-x")
        assert await until(lambda: color(two) == "blue") < 15
        await daemon.settled()
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert verbs(two.host, since) == {}, "nothing is looked for any more"


async def test_mappings_are_counted_by_syncer_where_two_share_a_host_resource(two: Two) -> None:
    for name in ("a", "b", "c"):
        two.virtual.put(secret(name))
    two.virtual.put(service("s"))
    options = {"secrets": {"all": True}}
    kinds = built_in("secrets", "services", "pods", "pod-tokens", "nodes", "events")
    async with two.daemon(kinds, options=options) as daemon:
        await daemon.settled()
        found = mappings(daemon.process)
        assert {name: found["vc", name] for name in ("secrets", "services", "pods", "pod-tokens", "events")} == {
            "secrets": 3,
            "services": len(two.host.objects("services", HOME)),
            "pods": 0,
            "pod-tokens": 0,
            "events": 0,
        }
        assert ("vc", "nodes") not in found, "what is faked has nothing on the host"
