"""The optional roles: the order of their calls, their abilities, and that each begin has an end."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from harness import HOME, NAMESPACE, Two, until, writes
from small_syncers import Maps, copies

from kube_envtest import Rule
from syncer.api import (
    AroundReconcile,
    Context,
    Decision,
    Excludes,
    Index,
    Indexes,
    Initialize,
    Key,
    Live,
    Obj,
    OwnController,
    Refused,
    Settings,
    Side,
    Source,
    SyncRequest,
    Watch,
    Watches,
    annotations_of,
    key_of,
    labels_of,
    skip,
)
from syncer.api.reasons import RequestState
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret

SECRETS_HERE = Source(Side.VIRTUAL, SECRETS)


def owner(obj: Obj, *_: Any) -> list[Key]:
    """Return the ConfigMap that a Secret is for."""
    name = labels_of(obj).get("for")
    return [Key(key_of(obj).namespace, name)] if name else []


def secret_for(name: str, owned_by: str) -> Obj:
    return secret(name, metadata={"labels": {"for": owned_by}})


# -- the order -------------------------------------------------------------------------------------


class Ordered(Maps, Initialize, Indexes, Watches, OwnController):
    """Writes down what it is called for."""

    calls: ClassVar[list[str]] = []
    two: ClassVar[Two]

    async def init(self, live: Live) -> None:
        await asyncio.sleep(3)
        watched = [one for one in self.two.virtual.requests if one.resource == "configmaps" and one.verb == "watch"]
        self.calls.append(f"init, with {len(watched)} watches")

    def indexes(self) -> Sequence[Index]:
        return [Index(SECRETS_HERE, "owner", self._values)]

    def watches(self) -> Sequence[Watch]:
        return [Watch(SECRETS_HERE, self._keys)]

    def _values(self, obj: Obj) -> list[str]:
        self.calls.append("index")
        return [key.name for key in owner(obj)]

    def _keys(self, obj: Obj, settings: Settings) -> list[Key]:
        self.calls.append("watch")
        return owner(obj)

    async def register(self, live: Live) -> None:
        self.calls.append("register")

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        found = ctx.reader.indexed(Side.VIRTUAL, SECRETS, "owner", virtual["metadata"]["name"])
        if virtual["metadata"]["name"] == "x":
            self.calls.append(f"asked, with {len(found)} of 2 secrets")
        return super().sync_down(ctx, virtual)


async def test_first_decision_follows_initialise_indexes_watches_and_full_caches(two: Two) -> None:
    Ordered.calls.clear()
    Ordered.two = two
    two.virtual.put(configmap("x"))
    for name in ("a", "b"):
        two.virtual.put(secret_for(name, "x"))
    two.virtual.faults.add(Rule(verb="list", resource="secrets", latency=5))
    async with two.daemon([Ordered]) as daemon:
        await daemon.settled()
        first = [line for index, line in enumerate(Ordered.calls) if line not in Ordered.calls[:index]]
        # the controller runs as soon as this process leads, and does not wait for what the syncer reads
        first.remove("register")
        assert first == ["init, with 0 watches", "index", "watch", "asked, with 2 of 2 secrets"]
        assert Ordered.calls.count("init, with 0 watches") == 1


# -- indexes and watches ---------------------------------------------------------------------------


class Counts(Maps, Indexes, Watches):
    """Says in each copy how many Secrets are for it."""

    when: ClassVar[Any] = "keys"
    asked: ClassVar[list[str]] = []

    def indexes(self) -> Sequence[Index]:
        return [Index(SECRETS_HERE, "owner", lambda obj: [str(key) for key in owner(obj)])]

    def watches(self) -> Sequence[Watch]:
        return [Watch(SECRETS_HERE, owner, when=self.when)]

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        self.asked.append(virtual["metadata"]["name"])
        found = ctx.reader.indexed(Side.VIRTUAL, SECRETS, "owner", str(key_of(virtual)))
        return merged(super().translate(ctx, virtual), {"data": {"secrets": str(len(found))}})


def count(two: Two, name: str) -> str:
    copy = two.copy("configmaps", name)
    return str(copy["data"]["secrets"]) if copy else ""


async def test_index_finds_and_a_watch_wakes_whenever_an_object_begins_or_ceases_to_name_a_key(two: Two) -> None:
    two.virtual.put(configmap("x"))
    two.virtual.put(configmap("y"))
    async with two.daemon([Counts]) as daemon:
        await until(lambda: count(two, "x") == "0")
        made = two.virtual.put(secret_for("a", "x"))
        assert await until(lambda: count(two, "x") == "1") < 1
        moved = two.virtual.put(merged(made, {"metadata": {"labels": {"for": "y"}}}))
        assert await until(lambda: (count(two, "x"), count(two, "y")) == ("0", "1")) < 1
        await daemon.settled()
        Counts.asked.clear()
        two.virtual.put(merged(moved, {"metadata": {"annotations": {"note": "no news"}}}))
        await daemon.settled()
        assert Counts.asked == [], "it names what it named before"
        two.virtual.delete("secrets", f"{NAMESPACE}/a")
        assert await until(lambda: count(two, "y") == "0") < 1


async def test_watch_of_changes_wakes_at_any_change_of_an_object_that_names_a_key(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counts, "when", "change")
    two.virtual.put(configmap("x"))
    async with two.daemon([Counts]) as daemon:
        made = two.virtual.put(secret_for("a", "x"))
        await until(lambda: count(two, "x") == "1")
        await daemon.settled()
        Counts.asked.clear()
        two.virtual.put(merged(made, {"metadata": {"annotations": {"note": "news"}}}))
        await daemon.settled()
        assert Counts.asked[:1] == ["x"]


# -- around a request ------------------------------------------------------------------------------


class Around(Maps, AroundReconcile):
    """Skips what is asleep, refuses what is black, stumbles over what is cracked."""

    ended: ClassVar[list[tuple[str, str]]] = []
    open: ClassVar[list[str]] = []

    def reconcile_start(self, ctx: Context, key: Key) -> str | None:
        self.open.append(key.name)
        virtual = ctx.virtual(CONFIG_MAPS, key)
        return "it is asleep" if virtual and "asleep" in annotations_of(virtual) else None

    def reconcile_end(self, ctx: Context, key: Key, error: Exception | None) -> None:
        self.open.remove(key.name)
        self.ended.append((key.name, type(error).__name__))

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        match virtual["data"].get("color"):
            case "black":
                raise Refused("it would be black")
            case "cracked":
                raise ZeroDivisionError
            case "none":
                return skip("it has no color")
        return super().sync_down(ctx, virtual)


async def test_reconcile_end_is_called_whatever_happens(two: Two) -> None:
    Around.ended.clear()
    for color in ("blue", "black", "cracked", "none"):
        two.virtual.put(configmap(color, {"color": color}))
    two.virtual.put(configmap("sleeper", metadata={"annotations": {"asleep": "1"}}))
    async with two.daemon([Around]) as daemon:
        await daemon.settled()
        assert Around.open == []
        assert {
            ("blue", "NoneType"),
            ("black", "Refused"),
            ("cracked", "ZeroDivisionError"),
            ("none", "NoneType"),
            ("sleeper", "NoneType"),
        } <= set(Around.ended)
        assert "blue" in copies(two)


async def test_request_skipped_at_its_start_is_decided_again_after_a_change(two: Two) -> None:
    sleeper = two.virtual.put(configmap("sleeper", metadata={"annotations": {"asleep": "1"}}))
    async with two.daemon([Around]) as daemon:
        await daemon.settled()
        status = daemon.process.statuses.of(_request(daemon.process.pairs["vc"].name, "sleeper"))
        assert status
        assert (status.state, status.reason) == (RequestState.SKIPPED, "it is asleep")
        assert "sleeper" not in copies(two)
        two.virtual.put(merged(sleeper, {"metadata": {"annotations": {"asleep": None}}}))
        assert await until(lambda: "sleeper" in copies(two)) < 1


def _request(cluster: str, name: str) -> Any:
    return SyncRequest(cluster, "maps", Key(NAMESPACE, name))


# -- objects that are left alone -------------------------------------------------------------------


class Leaves(Maps, Excludes):
    """Leaves alone what is labelled so, on either side."""

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        return f"the {side} object wants to be left alone" if "alone" in labels_of(obj) else None


ALONE: Obj = {"metadata": {"labels": {"alone": "1"}}}


@pytest.mark.parametrize("side", ["virtual", "host"])
async def test_excluded_object_is_neither_created_nor_changed_nor_deleted(two: Two, side: str) -> None:
    two.virtual.put(configmap("never", **ALONE))
    shown = two.virtual.put(configmap("shown"))
    async with two.daemon([Leaves]) as daemon:
        await daemon.settled()
        assert copies(two) >= {"shown"}
        assert "never" not in copies(two)
        if side == "virtual":
            shown = two.virtual.put(merged(shown, ALONE))
        else:
            two.host.put(merged(two.copy("configmaps", "shown") or {}, ALONE))
        await daemon.settled()
        before = two.copy("configmaps", "shown")
        since = len(two.host.requests)
        shown = two.virtual.put(merged(shown, {"data": {"color": "red"}}))
        await daemon.settled()
        if side == "host":
            two.virtual.delete("configmaps", f"{NAMESPACE}/shown")
            await daemon.settled()
        assert two.copy("configmaps", "shown") == before
        assert writes(two.host, since) == []


async def test_object_that_is_no_longer_excluded_is_synced(two: Two) -> None:
    original = two.virtual.put(configmap("x", **ALONE))
    async with two.daemon([Leaves]) as daemon:
        await daemon.settled()
        two.virtual.put(merged(original, {"metadata": {"labels": {"alone": None}}}))
        assert await until(lambda: "x" in copies(two)) < 1


# -- a controller of its own -----------------------------------------------------------------------


class Controls(Maps, OwnController, AroundReconcile):
    """Says when its controller runs, and asks for a key that no other would."""

    running: ClassVar[dict[str, int]] = {}
    asked: ClassVar[set[Key]] = set()

    def reconcile_start(self, ctx: Context, key: Key) -> str | None:
        self.asked.add(key)
        return None

    def reconcile_end(self, ctx: Context, key: Key, error: Exception | None) -> None:
        """Nothing was begun."""

    async def register(self, live: Live) -> None:
        me = await self._who(live)
        self.running[me] = self.running.get(me, 0) + 1
        live.request(Key(NAMESPACE, "asked-for"))
        try:
            await asyncio.Event().wait()
        finally:
            self.running[me] -= 1

    async def _who(self, live: Live) -> str:
        name = f"mark-{len(self.running)}"
        await live.host.create(CONFIG_MAPS, configmap(name, namespace=HOME))
        return name


async def test_own_controller_runs_only_where_it_leads_and_ends_with_leadership(two: Two) -> None:
    Controls.running.clear()
    async with two.candidate([Controls], "ann"), two.candidate([Controls], "bob"):
        await until(lambda: two.leader() and Controls.running)
        old = two.leader()
        new = {"ann": "bob", "bob": "ann"}[old]
        assert list(Controls.running.values()) == [1], "the other one stands by"
        two.host.faults.add(Rule(user=old, reset="before"))
        await until(lambda: two.leader() == new)
        await until(lambda: list(Controls.running.values()) == [0, 1])
        two.host.faults.clear()
        await asyncio.sleep(60)
        assert list(Controls.running.values()) == [0, 1], "who lost the lead begins nothing again"
    assert list(Controls.running.values()) == [0, 0]


async def test_own_controller_can_requeue_a_key(two: Two) -> None:
    Controls.running.clear()
    Controls.asked.clear()
    async with two.daemon([Controls]):
        assert await until(lambda: Key(NAMESPACE, "asked-for") in Controls.asked) < 1
