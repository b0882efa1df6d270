"""Combined roles: fakes for keys without real objects; syncers that sync nothing."""

from collections.abc import Sequence
from typing import Any, ClassVar

from harness import HOME, NAMESPACE, Two, until
from small_syncers import Imports, Maps, copies

from syncer.api import (
    Context,
    Decision,
    FakeSyncUp,
    Index,
    Indexes,
    Initialize,
    Key,
    Live,
    Obj,
    Settings,
    Side,
    Source,
    Syncer,
    Watch,
    Watches,
    apply,
    delete,
    key_of,
    skip,
)
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.objects import configmap, secret

SECRETS_HERE = Source(Side.VIRTUAL, SECRETS)


class StandsIn(Syncer, FakeSyncUp, Watches):
    """Makes a ConfigMap up for each Secret of the shop that has none of its name."""

    def watches(self) -> Sequence[Watch]:
        return [Watch(SECRETS_HERE, lambda obj, settings: [key_of(obj)])]

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        if key.namespace != NAMESPACE or ctx.virtual(SECRETS, key) is None:
            return skip("no Secret needs it")
        metadata = {"name": key.name, "namespace": key.namespace, "labels": {ctx.marks.cluster: ctx.identity}}
        return apply(virtual={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"fake": "1"}})

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        if ctx.virtual(SECRETS, key_of(virtual)) is None:
            return delete(virtual=virtual, reason="its Secret is gone")
        return skip("it is as it should be")


class MapsOrFakes(Maps, StandsIn):
    """Copies a tenant's ConfigMaps."""

    reads = (SECRETS_HERE,)


class ImportsOrFakes(Imports, StandsIn):
    """Shows the host's ConfigMaps."""

    reads = (SECRETS_HERE,)
    reverts_virtual_changes = True

    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key(HOME, key.name)


def copied(two: Two) -> set[str]:
    return copies(two) - {"kube-root-ca.crt"}


def data(two: Two, name: str) -> Any:
    found = two.original("configmaps", name)
    return found["data"] if found else None


async def test_kind_that_goes_down_is_faked_where_a_tenant_has_none(two: Two) -> None:
    two.virtual.put(configmap("own", {"a": "1"}))
    two.virtual.put(secret("own"))
    two.virtual.put(secret("needed"))
    async with two.daemon([MapsOrFakes]) as daemon:
        await daemon.settled()
        assert data(two, "needed") == {"fake": "1"}
        assert data(two, "own") == {"a": "1"}
        assert copied(two) == {"own"}, "a fake has no copy"
        two.virtual.delete("configmaps", f"{NAMESPACE}/needed")
        assert await until(lambda: data(two, "needed") == {"fake": "1"}) < 1
        two.virtual.delete("secrets", f"{NAMESPACE}/needed")
        assert await until(lambda: data(two, "needed") is None) < 6
        two.virtual.put(configmap("needed", {"a": "2"}))
        assert await until(lambda: copied(two) == {"own", "needed"}) < 1
        two.virtual.delete("configmaps", f"{NAMESPACE}/needed")
        assert await until(lambda: copied(two) == {"own"}) < 1
        assert data(two, "needed") is None


async def test_kind_that_begins_on_the_host_is_faked_where_the_host_has_none(two: Two) -> None:
    shown = configmap("motd", {"a": "1"}, namespace=HOME, metadata={"labels": {"show": "1"}})
    two.virtual.put(secret("motd"))
    async with two.daemon([ImportsOrFakes]) as daemon:
        await daemon.settled()
        assert data(two, "motd") == {"fake": "1"}
        two.host.put(shown)
        assert await until(lambda: data(two, "motd") == {"a": "1"}) < 1
        two.virtual.delete("configmaps", f"{NAMESPACE}/motd")
        assert await until(lambda: data(two, "motd") == {"a": "1"}) < 1
        two.host.delete("configmaps", f"{HOME}/motd")
        two.virtual.delete("secrets", f"{NAMESPACE}/motd")
        assert await until(lambda: data(two, "motd") is None) < 6


class Prepares(Syncer, Initialize):
    """Makes a ConfigMap once, and nothing else."""

    name = "prepares"
    section = "fake.prepares"
    fails: ClassVar[int] = 0

    async def init(self, live: Live) -> None:
        if Prepares.fails:
            Prepares.fails -= 1
            raise ValueError("not yet")
        live.request(Key(NAMESPACE, "nothing"))
        await live.virtual.create(CONFIG_MAPS, configmap("made-at-start", {"a": "1"}))


class ByData(Syncer, Indexes):
    """Lets others find Secrets by their type."""

    name = "by-type"
    section = "fake.byType"

    def indexes(self) -> Sequence[Index]:
        return [Index(SECRETS_HERE, "type", lambda obj: [obj.get("type", "")])]


class Counts(Maps):
    """Says in each copy how many Secrets of a type there are."""

    reads = (SECRETS_HERE,)

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        found = ctx.reader.indexed(Side.VIRTUAL, SECRETS, "type", "Opaque")
        return super().translate(ctx, virtual) | {"data": {"found": str(len(found))}}


async def test_syncer_that_only_initialises_does_so_before_the_others_begin(two: Two) -> None:
    async with two.daemon([Prepares, Maps]) as daemon:
        await daemon.settled()
        assert copied(two) == {"made-at-start"}
        [patroller] = daemon.process.patrollers()
        assert [scan.syncer for scan in await patroller.scan_all()] == ["maps"]


async def test_syncer_that_only_initialises_is_tried_again(two: Two) -> None:
    Prepares.fails = 2
    async with two.daemon([Prepares, Maps]):
        assert await until(lambda: copied(two) == {"made-at-start"}, within=900) > 1


async def test_index_of_a_syncer_that_has_nothing_else_serves_another_one(two: Two) -> None:
    two.virtual.put(secret("a", type="Opaque"))
    two.virtual.put(secret("b", type="Opaque"))
    two.virtual.put(configmap("x"))
    async with two.daemon([Counts, ByData]) as daemon:
        await daemon.settled()
        copy = two.copy("configmaps", "x")
        assert copy
        assert copy["data"] == {"found": "2"}
