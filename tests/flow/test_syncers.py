"""Syncers of the tests' own: a fault of one affects no other, and it is woken when what it waits
for comes.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from harness import HOME, NAMESPACE, Two, built_in, host_path, until, verbs, writes
from small_syncers import Imports, Maps, copies

from kube_envtest import Rule
from syncer.api import (
    Config,
    Context,
    Decision,
    Initialize,
    Key,
    Live,
    Obj,
    ObjectRef,
    OwnController,
    Pair,
    Refused,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    Watch,
    Watches,
    apply,
    key_of,
    retry,
    wait,
)
from syncer.api.reasons import RequestState
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret, service

# -- bugs and refusals -----------------------------------------------------------------------------


class Raises(Maps):
    """Has a bug that one object brings out."""

    broken: ClassVar[bool] = True

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        if virtual["metadata"]["name"] == "bad" and self.broken:
            raise ZeroDivisionError("a bug")
        return super().sync_down(ctx, virtual)


async def test_syncer_that_raises_stops_neither_the_others_nor_its_own_other_objects(two: Two) -> None:
    for name in ("a", "bad", "z"):
        two.virtual.put(configmap(name))
    two.virtual.put(secret("s"))
    async with two.daemon([Raises, *built_in("secrets")]) as daemon:
        await daemon.settled()
        assert copies(two) >= {"a", "z"}
        assert copies(two, "secrets") == {"s"}
        status = daemon.status("bad", "maps")
        assert status
        assert (status.state, status.error) == (RequestState.PARKED, "ZeroDivisionError")
        Raises.broken = False
        assert await until(lambda: "bad" in copies(two), within=90)
        Raises.broken = True


class RaisesEverywhere(Maps, Watches):
    """Raises also where it only names keys."""

    name = "everywhere"

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(Side.VIRTUAL, SECRETS), self.named)]

    def named(self, obj: Obj, settings: Any) -> list[Key]:
        raise KeyError("a bug")

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        raise AssertionError("a bug")


async def test_watch_function_that_raises_does_not_stop_the_watch(two: Two) -> None:
    async with two.daemon([RaisesEverywhere, *built_in("secrets")]) as daemon:
        two.virtual.put(configmap("x"))
        two.virtual.put(secret("s"))
        await daemon.settled()
        assert copies(two, "secrets") == {"s"}
        assert not daemon.working.done()


class Refuses(Maps):
    """Refuses ConfigMaps with the color black."""

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        if virtual["data"].get("color") == "black":
            raise Refused(f"{ctx.host_key(key_of(virtual)).name} would be black", path="data.color")
        return super().sync_down(ctx, virtual)


async def test_refusal_is_reported_in_virtual_names_and_retried_after_a_change(two: Two) -> None:
    async with two.daemon([Refuses]) as daemon:
        original = two.virtual.put(configmap("x", {"color": "black"}))
        await daemon.settled()
        status = daemon.status("x", "maps")
        assert status
        assert status.state is RequestState.PARKED
        [found] = two.virtual.objects("events", NAMESPACE)
        assert (found["reason"], found["message"], found["type"]) == (
            "SyncRefused",
            "data.color: x would be black",
            "Warning",
        )
        two.virtual.put(merged(original, {"data": {"color": "blue"}}))
        await daemon.settled()
        assert "x" in copies(two)
        assert daemon.status("x", "maps") is None


# -- what stands in the way ------------------------------------------------------------------------


async def test_foreign_object_with_the_name_of_a_copy_is_left_alone(two: Two) -> None:
    foreign = configmap(host_path("x").partition("/")[2], {"theirs": "1"}, namespace=HOME)
    stored = two.host.put(foreign)
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        status = daemon.status("x", "maps")
        assert status
        assert status.state is RequestState.PARKED
        assert two.copy("configmaps", "x") == stored
        [found] = two.virtual.objects("events", NAMESPACE)
        assert (found["reason"], found["involvedObject"]["name"]) == ("NameCollision", "x")

        two.virtual.delete("configmaps", f"{NAMESPACE}/x")
        await daemon.settled()
        assert two.copy("configmaps", "x") == stored, "not ours, so not ours to delete"
        assert daemon.status("x", "maps") is None

        two.virtual.put(configmap("x"))
        await daemon.settled()
        two.host.delete("configmaps", host_path("x"))
        assert await until(lambda: two.copy("configmaps", "x"), within=400) > 1
        assert daemon.status("x", "maps") is None


async def test_copy_that_has_lost_its_mark_is_not_ours_any_more(two: Two) -> None:
    original = two.virtual.put(configmap("x"))
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        copy = two.copy("configmaps", "x")
        assert copy
        lost = two.host.put(merged(copy, {"metadata": {"labels": {"vsyncer.dev/cluster": None}}}))
        await daemon.settled()
        two.virtual.put(merged(original, {"data": {"color": "red"}}))
        await daemon.settled()
        assert two.copy("configmaps", "x") == lost
        status = daemon.status("x", "maps")
        assert status
        assert status.error == "NameTaken"


async def test_host_objects_that_are_not_ours_are_never_written(two: Two) -> None:
    """Some look much like ours: another cluster's, and copies that a host controller made of ours."""
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps, *built_in("secrets", "services")]) as daemon:
        await daemon.settled()
        copy = two.copy("configmaps", "x")
        assert copy
        bare = {"uid": None, "resourceVersion": None}
        others = [
            merged(copy, {"metadata": {**bare, "name": "copy-of-copy"}}),
            merged(copy, {"metadata": {**bare, "name": "other", "labels": {"vsyncer.dev/cluster": "other.vc-ns"}}}),
            configmap("plain", namespace=HOME),
            secret("plain", namespace=HOME),
            service("plain", namespace=HOME),
        ]
        stored = [two.host.put(other) for other in others]
        await daemon.settled()
        two.virtual.delete("configmaps", f"{NAMESPACE}/x")
        await daemon.settled()
        assert two.copy("configmaps", "x") is None
        for other in stored:
            plural = {"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services"}[other["kind"]]
            assert two.host.get(plural, key_of(other)) == other


class Careless(Syncer[Config], SyncDown, Sync):
    """Wants to write where it must not."""

    name = "careless"
    resource = CONFIG_MAPS

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        host = ctx.host_copy(virtual)
        match virtual["metadata"]["name"]:
            case "elsewhere":
                host["metadata"]["namespace"] = "kube-system"
            case "unmarked":
                del host["metadata"]["labels"]["vsyncer.dev/cluster"]
        return apply(host=host)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        return self.sync_down(ctx, pair.virtual)


@pytest.mark.parametrize("name", ["elsewhere", "unmarked"])
async def test_syncers_cannot_write_where_they_must_not(two: Two, name: str) -> None:
    two.host.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}})
    two.virtual.put(configmap(name))
    async with two.daemon([Careless]) as daemon:
        await daemon.settled()
        status = daemon.status(name, "careless")
        assert status
        assert status.error == "Refused"
        made = {copy["metadata"]["name"] for copy in two.host.objects("configmaps")}
        assert not [one for one in made if one.startswith(name)]
        assert two.copy("configmaps", "kube-root-ca.crt"), "what it does right is done"


# -- waiting ---------------------------------------------------------------------------------------


class WaitsForSecret(Maps):
    """Copies a ConfigMap when the Secret of its name is there."""

    reads = (Source(Side.VIRTUAL, SECRETS),)
    asked: ClassVar[list[str]] = []

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        key = key_of(virtual)
        self.asked.append(key.name)
        if ctx.virtual(SECRETS, key) is None:
            since = ObjectRef(Side.VIRTUAL, SECRETS, key)
            return wait(f"waits for {since}", on=(since,))
        return super().sync_down(ctx, virtual)


async def test_request_that_waits_for_an_object_is_woken_when_it_appears(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon([WaitsForSecret]) as daemon:
        await daemon.settled()
        status = daemon.status("x", "maps")
        assert status
        assert status.reason == "waits for the virtual Secret shop/x"
        asked = len(WaitsForSecret.asked)
        two.virtual.put(secret("other"))
        await asyncio.sleep(600)
        assert len(WaitsForSecret.asked) == asked
        two.virtual.put(secret("x"))
        assert await until(lambda: "x" in copies(two)) < 0.5
        assert daemon.status("x", "maps") is None


class LooksAgain(Maps):
    """Copies a ConfigMap when it is 90 seconds old."""

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        if ctx.now.minute == 0 or ctx.now.second < 30:
            return retry(45, "too young")
        return super().sync_down(ctx, virtual)


async def test_timer_lets_a_request_be_decided_again(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon([LooksAgain]) as daemon:
        assert await until(lambda: "x" in copies(two), within=200) == pytest.approx(90, abs=0.5)
        await daemon.settled()


class NeverContent(Maps):
    """Wants something else each time it is asked."""

    up = ("data",)
    count: ClassVar[int] = 0

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        type(self).count += 1
        return merged(super().translate(ctx, virtual), {"data": {"n": str(self.count)}})

    def reflect(self, ctx: Context, pair: Pair) -> Obj | None:
        return None


async def test_syncer_that_is_never_content_is_slowed_down(two: Two) -> None:
    async with two.daemon([NeverContent]) as daemon:
        await daemon.settled()
        await asyncio.sleep(60)
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert 0 < verbs(two.host, since)["patch"] < 100


# -- the other roles -------------------------------------------------------------------------------


async def test_host_object_comes_up_changes_and_goes(two: Two) -> None:
    shown = two.host.put(configmap("motd", {"text": "hello"}, namespace=HOME, metadata={"labels": {"show": "1"}}))
    two.host.put(configmap("hidden", namespace=HOME))
    async with two.daemon([Imports]) as daemon:
        await until(lambda: two.original("configmaps", "motd"))
        two.host.put(merged(shown, {"data": {"text": "bye", "more": "1"}}))
        await until(lambda: (two.original("configmaps", "motd") or {})["data"] == {"text": "bye", "more": "1"})
        two.host.put(merged(shown, {"data": {"more": None}}))
        await until(lambda: (two.original("configmaps", "motd") or {})["data"] == {"text": "hello"})
        two.host.delete("configmaps", f"{HOME}/motd")
        await until(lambda: not two.original("configmaps", "motd"))
        await daemon.settled()
        assert two.original("configmaps", "hidden") is None
        assert [line for line in writes(two.host) if "motd" in line] == []


class Prepares(Maps, Initialize, OwnController):
    """Makes what it needs before anything is watched, and does something of its own beside."""

    done: ClassVar[list[str]] = []

    async def init(self, live: Live) -> None:
        await live.host.create(CONFIG_MAPS, configmap("prepared", namespace=HOME))
        self.done.append("init")

    async def register(self, live: Live) -> None:
        self.done.append("register")
        try:
            await asyncio.Event().wait()
        finally:
            self.done.append("end")

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        if "asked" not in self.done:
            self.done.append("asked")
        return super().sync_down(ctx, virtual)


async def test_initialise_then_own_controller_then_the_end(two: Two) -> None:
    Prepares.done.clear()
    two.virtual.put(configmap("x"))
    async with two.daemon([Prepares]) as daemon:
        await daemon.settled()
        assert two.host.get("configmaps", f"{HOME}/prepared")
        assert Prepares.done[0] == "init"
    assert sorted(Prepares.done) == ["asked", "end", "init", "register"]
    assert Prepares.done[-1] == "end"


async def test_pod_waits_for_its_service_account(two: Two) -> None:
    two.host.faults.add(Rule(verb="create", resource="serviceaccounts", latency=10))
    two.virtual.put(pod("web"))
    async with two.daemon() as daemon:
        assert await until(lambda: two.copy("pods", "web")) == pytest.approx(10, abs=1)
        await daemon.settled()
        assert daemon.requests("pods") == []
