"""A syncer with a bug, wherever it raises: logged once, retried with growing delays, counted; all
others go on.
"""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import pytest
from harness import HOME, NAMESPACE, Daemon, Two, built_in, until
from small_syncers import Imports, Maps, copies

from syncer.api import (
    AroundReconcile,
    Config,
    Context,
    Decision,
    Excludes,
    FakeSyncUp,
    Index,
    Indexes,
    Initialize,
    Key,
    Live,
    Obj,
    OwnController,
    Pair,
    Refused,
    Settings,
    Side,
    Source,
    Syncer,
    SyncUp,
    Watch,
    Watches,
    apply,
    delete,
    key_of,
    skip,
)
from syncer.api.reasons import RequestState
from syncer.daemon.pages.status import degraded
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret

SECRET = built_in("secrets")


class Bug(Exception):
    """Nothing that the flow knows."""


class Buggy(Maps, SyncUp, AroundReconcile, Excludes, Indexes, Watches):
    """Raises in one of its methods, about objects that are called ``bad``."""

    where: ClassVar[str] = ""
    raised: ClassVar[int] = 0

    def _may_raise(self, where: str, name: str) -> None:
        if where == self.where and name.startswith("bad"):
            Buggy.raised += 1
            raise Bug(f"for the {Buggy.raised}. time")

    def predicate(self, virtual: Obj) -> bool:
        self._may_raise("predicate", virtual["metadata"]["name"])
        return True

    def host_key(self, settings: Settings, key: Key) -> Key:
        self._may_raise("host_key", key.name)
        return super().host_key(settings, key)

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        self._may_raise("excluded", obj["metadata"]["name"])
        return None

    def reconcile_start(self, ctx: Context, key: Key) -> str | None:
        self._may_raise("reconcile_start", key.name)
        return None

    def reconcile_end(self, ctx: Context, key: Key, error: Exception | None) -> None:
        self._may_raise("reconcile_end", key.name)

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        self._may_raise("sync_down", virtual["metadata"]["name"])
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        self._may_raise("sync", pair.virtual["metadata"]["name"])
        return super().sync(ctx, pair)

    def sync_up(self, ctx: Context, host: Obj) -> Decision:
        self._may_raise("sync_up", host["metadata"]["name"])
        return delete(host=host, reason="the original is gone")

    def indexes(self) -> Sequence[Index]:
        return [Index(Source(Side.VIRTUAL, CONFIG_MAPS), "by name", self._values)]

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(Side.VIRTUAL, SECRETS), self._keys)]

    def _values(self, obj: Obj) -> list[str]:
        self._may_raise("index", obj["metadata"]["name"])
        return [obj["metadata"]["name"]]

    def _keys(self, obj: Obj, settings: Settings) -> list[Key]:
        self._may_raise("watch", obj["metadata"]["name"])
        return [key_of(obj)]


@pytest.fixture(autouse=True)
def mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Buggy, "where", "")
    monkeypatch.setattr(Buggy, "raised", 0)


def errors(daemon: Daemon, syncer: str = "maps") -> float:
    """Return the requests of a syncer that ended in an error, as a scrape shows them."""
    name = "controller_runtime_reconcile_errors_total"
    return daemon.process.metrics.registry.get_sample_value(name, {"cluster": "vc", "controller": syncer}) or 0


async def others_go_on(two: Two, daemon: Daemon, word: str) -> None:
    """Other objects of the syncer and other syncers are served at once."""
    two.virtual.put(configmap(f"good-{word}"))
    two.virtual.put(secret(f"good-{word}"))
    assert await until(lambda: f"good-{word}" in copies(two)) < 1
    assert await until(lambda: f"good-{word}" in copies(two, "secrets")) < 1
    assert errors(daemon, "secrets") == 0
    assert not daemon.working.done()


AT_REQUESTS = ["sync_down", "host_key", "excluded", "reconcile_start", "reconcile_end", "sync", "sync_up"]


@pytest.mark.parametrize("where", AT_REQUESTS)
async def test_request_that_raises_is_alone_with_it(
    two: Two, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with two.daemon([Buggy, *SECRET]) as daemon:
        if where in ("sync", "sync_up"):
            two.virtual.put(configmap("bad"))
            await until(lambda: "bad" in copies(two))
        await daemon.settled()
        monkeypatch.setattr(Buggy, "where", where)
        if where == "sync_up":
            two.virtual.delete("configmaps", f"{NAMESPACE}/bad")
        else:
            two.virtual.put(merged(two.original("configmaps", "bad") or configmap("bad"), {"data": {"color": "red"}}))
        await asyncio.sleep(300)
        assert 6 <= errors(daemon) <= 30, "it is tried again, each time later"
        status = daemon.status("bad", "maps")
        assert status
        assert (status.state, status.error) == (RequestState.PARKED, "Bug")
        await others_go_on(two, daemon, "a")
        assert capsys.readouterr().err.count("Traceback") == 1

        monkeypatch.setattr(Buggy, "where", "")
        await until(lambda: daemon.status("bad", "maps") is None, within=400)
        copy = two.copy("configmaps", "bad")
        assert (copy["data"] if copy else None) == (None if where == "sync_up" else {"color": "red"})


@pytest.mark.parametrize("where", ["sync_down", "host_key", "excluded", "reconcile_start", "index", "watch"])
async def test_object_that_makes_a_syncer_raise_at_the_start_stops_nothing_else(
    two: Two, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Buggy, "where", where)
    for name in ("bad", "good"):
        two.virtual.put(configmap(name))
        two.virtual.put(secret(name))
    async with two.daemon([Buggy, *SECRET]) as daemon:
        await daemon.settled()
        assert Buggy.raised
        assert copies(two, "secrets") == {"bad", "good"}
        assert "good" in copies(two)
        assert ("bad" in copies(two)) == (where in ("index", "watch"))
        await others_go_on(two, daemon, "later")


async def test_traceback_of_a_bug_is_logged_once_for_many_objects(
    two: Two, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Buggy, "where", "sync_down")
    for number in range(10):
        two.virtual.put(configmap(f"bad-{number}"))
    async with two.daemon([Buggy]) as daemon:
        await daemon.settled()
        log = capsys.readouterr().err
        assert log.count("Traceback") == 1
        assert all(f"{NAMESPACE}/bad-{number}" in log for number in range(10)), "each is named all the same"
        monkeypatch.setattr(Buggy, "where", "excluded")
        two.virtual.put(configmap("bad-too"))
        await until(lambda: daemon.status("bad-too", "maps"))
        assert capsys.readouterr().err.count("Traceback") == 1, "another bug of it"


@pytest.mark.parametrize("where", ["index", "watch"])
async def test_raising_index_or_watch_is_logged_once_and_feeds_the_others(
    two: Two, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with two.daemon([Buggy, *SECRET]) as daemon:
        await daemon.settled()
        monkeypatch.setattr(Buggy, "where", where)
        for number in range(5):
            two.virtual.put(configmap(f"bad-{number}"))
            two.virtual.put(secret(f"bad-{number}"))
        await daemon.settled()
        assert Buggy.raised == 5
        assert capsys.readouterr().err.count("Traceback") == 1
        assert len([name for name in copies(two) if name.startswith("bad")]) == 5
        await others_go_on(two, daemon, "a")


async def test_exception_of_a_predicate_is_logged_once_and_the_object_reconciled(
    two: Two, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with two.daemon([Buggy, *SECRET]) as daemon:
        await daemon.settled()
        monkeypatch.setattr(Buggy, "where", "predicate")
        for number in range(5):
            two.virtual.put(configmap(f"bad-{number}"))
        await daemon.settled()
        assert Buggy.raised >= 5
        assert capsys.readouterr().err.count("Traceback") == 1
        assert len([name for name in copies(two) if name.startswith("bad")]) == 5
        assert errors(daemon) == 0
        await others_go_on(two, daemon, "a")


class RefusesHostKeys(Maps):
    """Has no place for some objects."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        if key.name == "bad":
            raise Refused("there is no place for it")
        return super().host_key(settings, key)


async def test_object_without_a_host_key_is_parked_with_the_reason(two: Two) -> None:
    for name in ("bad", "good"):
        two.virtual.put(configmap(name))
    async with two.daemon([RefusesHostKeys, *SECRET]) as daemon:
        await daemon.settled()
        status = daemon.status("bad", "maps")
        assert status
        assert (status.state, status.reason) == (RequestState.PARKED, "there is no place for it")
        await others_go_on(two, daemon, "a")


# -- what begins on the host, and what is made up --------------------------------------------------


class BadKeys(Imports):
    """Has a bug about the object that is called ``bad``."""

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        if host["metadata"]["name"] == "bad":
            Buggy.raised += 1
            raise Bug("no key")
        return super().virtual_key(ctx, host)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_key_function_that_raises_hides_only_its_object(two: Two, when: str) -> None:
    bad = configmap("bad", namespace=HOME, metadata={"labels": {"show": "1"}})
    if when == "before":
        two.host.put(bad)
    async with two.daemon([BadKeys, *SECRET]) as daemon:
        await daemon.settled()
        if when == "after":
            two.host.put(bad)
        two.host.put(configmap("motd", {"a": "1"}, namespace=HOME, metadata={"labels": {"show": "1"}}))
        assert await until(lambda: two.original("configmaps", "motd")) < 1
        assert Buggy.raised
        two.virtual.put(secret("good"))
        assert await until(lambda: "good" in copies(two, "secrets")) < 1
        assert not daemon.working.done()


class Fakes(Syncer[Config], FakeSyncUp, Watches):
    """Makes a ConfigMap up for each Secret, and has bugs about the one that is called ``bad``."""

    name = "maps"
    section = "fake.maps"
    resource = CONFIG_MAPS
    where: ClassVar[str] = ""

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(Side.VIRTUAL, SECRETS), lambda obj, settings: [key_of(obj)], when="change")]

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return self._made(ctx, key, "fake_sync_up")

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return self._made(ctx, key_of(virtual), "fake_sync")

    def _made(self, ctx: Context, key: Key, where: str) -> Decision:
        if key.namespace != NAMESPACE:
            return skip("not of the shop")
        if key.name == "bad" and self.where == where:
            Buggy.raised += 1
            raise Bug("can't be made up")
        metadata = {"name": key.name, "namespace": key.namespace, "labels": {ctx.marks.cluster: ctx.identity}}
        return apply(virtual={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})


@pytest.mark.parametrize("where", ["fake_sync_up", "fake_sync"])
async def test_object_that_cannot_be_generated_affects_no_others(
    two: Two, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Fakes, "where", where)
    async with two.daemon([Fakes, *SECRET]) as daemon:
        bad = two.virtual.put(secret("bad"))
        await asyncio.sleep(60)
        two.virtual.put(merged(bad, {"metadata": {"labels": {"touched": "1"}}}))
        two.virtual.put(secret("good"))
        assert await until(lambda: two.original("configmaps", "good")) < 1
        await asyncio.sleep(60)
        assert (two.original("configmaps", "bad") is None) == (where == "fake_sync_up")
        assert 1 <= Buggy.raised == errors(daemon)
        assert capsys.readouterr().err.count("Traceback") == 1
        assert copies(two, "secrets") == {"bad", "good"}


# -- init and register -----------------------------------------------------------------------------


class BadStart(Maps, Initialize):
    """Can't prepare what it needs, until it can."""

    async def init(self, live: Live) -> None:
        Buggy.raised += 1
        if Buggy.where == "init":
            raise Bug("no table")


async def test_syncer_with_a_raising_init_waits_and_the_others_start(
    two: Two, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Buggy, "where", "init")
    two.virtual.put(configmap("x"))
    two.virtual.put(secret("s"))
    async with two.daemon([BadStart, *SECRET]) as daemon:
        assert await until(lambda: "s" in copies(two, "secrets")) < 1
        await asyncio.sleep(300)
        assert Buggy.raised > 1, "it is tried again"
        assert "x" not in copies(two)
        assert capsys.readouterr().err.count("Traceback") == 1
        monkeypatch.setattr(Buggy, "where", "")
        await until(lambda: "x" in copies(two), within=400)
        assert not daemon.working.done()


class BadController(Maps, OwnController):
    """Its own controller raises a few times, and its syncer is fine."""

    async def register(self, live: Live) -> None:
        Buggy.raised += 1
        if Buggy.raised < 4:
            raise Bug("fell over")
        await asyncio.Event().wait()


async def test_raising_own_controller_is_reported_and_rerun_and_stops_nothing(two: Two) -> None:
    async with two.daemon([BadController, *SECRET]) as daemon:
        await until(lambda: Buggy.raised)
        assert "Bug: fell over" in degraded(daemon.process)["vc", "maps"]
        await others_go_on(two, daemon, "a")
        taken = await until(lambda: Buggy.raised == 4)
        assert taken > 3, "later each time"
        assert degraded(daemon.process) == {}


class Forgetful(Maps):
    """Has no `return`."""

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        super().sync_down(ctx, virtual)
        return None  # type: ignore[return-value]


async def test_role_that_returns_no_decision_is_the_reason_of_the_failure(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon([Forgetful, *SECRET]) as daemon:
        await until(lambda: daemon.status("x", "maps"))
        status = daemon.status("x", "maps")
        assert status
        assert "maps returned None and not a Decision" in status.reason
