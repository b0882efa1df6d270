"""The live host is asked about an object only where copies may be: nothing elsewhere is read for a tenant."""

from dataclasses import replace
from typing import Any

import pytest
from applier_bench import Bench

from syncer.api import (
    Config,
    Conflict,
    Context,
    Decision,
    FakeSyncUp,
    Key,
    Obj,
    ObjectRef,
    Precondition,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    Syncer,
    SyncFromHost,
    delete,
    key_of,
    skip,
)
from syncer.clusters.client import SideClient
from syncer.engine.apply.preconditions import must_be_served, must_be_vacant
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.controller import Vacant
from syncer.names import Unchanged
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace

SINCE = "2026-01-01T00:00:00Z"
SETTINGS = Settings(
    "vc", "vc-ns", Unchanged(cluster="vc", namespace="vc-ns"), namespaces=frozenset(("given", "kube-public"))
)
#: Where copies may be: one that was made for the virtual cluster, and those of the configuration.
HOMES = ("ours", "given", "kube-public")


def home(name: str = "ours") -> Obj:
    """Return a host namespace that was made for the virtual cluster."""
    host_key, marks = Key("", name), SETTINGS.marks
    metadata = {
        "labels": marks.labels(SETTINGS.identity, host_key),
        "annotations": marks.annotations(NAMESPACES, namespace(name), host_key),
    }
    return namespace(name, metadata=metadata)


def wanted(bench: Bench, name: str, **precondition: Any) -> Decision:
    """Return a decision to delete a virtual object whose copy is missing in a namespace."""
    original = bench.see(Side.VIRTUAL, CONFIG_MAPS, bench.virtual.put(configmap("x", namespace=name)))
    there = ObjectRef(Side.HOST, CONFIG_MAPS, key_of(original))
    decision = delete(virtual=original, reason="its copy is gone")
    [write] = decision.writes
    return replace(decision, writes=(replace(write, precondition=Precondition(there, **precondition)),))


def asked(bench: Bench, name: str) -> list[str]:
    """Return the requests for objects in a host namespace."""
    return [each.verb for each in bench.host.requests if f"/namespaces/{name}/" in each.path]


def is_left(bench: Bench, name: str) -> bool:
    return bench.virtual.get("configmaps", f"{name}/x") is not None


def beside(syncer: Syncer | None = None) -> Bench:
    """Return a bench beside host namespaces of all kinds."""
    bench = Bench(SETTINGS, syncer)
    for obj in (home(), *map(namespace, ("given", "theirs"))):
        bench.host.put(obj)
    return bench


@pytest.mark.parametrize("name", HOMES)
async def test_missing_copy_is_looked_for_where_copies_are(name: str) -> None:
    bench = beside()
    await bench.apply(wanted(bench, name))
    assert asked(bench, name) == ["get"]
    assert not is_left(bench, name)
    decision = wanted(bench, name)
    metadata = {"labels": {SETTINGS.marks.cluster: SETTINGS.identity}}
    bench.host.put(configmap("x", namespace=name, metadata=metadata))
    with pytest.raises(Conflict):
        await bench.apply(decision)
    assert is_left(bench, name)


@pytest.mark.parametrize(
    ("name", "is_known"), [("default", True), ("kube-system", True), ("theirs", False), ("nowhere", False)]
)
async def test_missing_copy_is_looked_for_nowhere_else(name: str, is_known: bool) -> None:
    bench = beside()
    await bench.apply(wanted(bench, name))
    namespaces = [] if is_known else [f"/api/v1/namespaces/{name}"]
    assert [each.path for each in bench.host.requests] == namespaces
    assert not is_left(bench, name)


async def test_object_that_was_seen_is_looked_for_wherever_it_is() -> None:
    bench = beside()
    with pytest.raises(Conflict):
        await bench.apply(wanted(bench, "theirs", uid="u-1"))
    assert asked(bench, "theirs") == ["get"]


async def test_object_without_a_namespace_is_looked_for() -> None:
    bench = beside()
    decision = wanted(bench, "ours")
    [write] = decision.writes
    there = Precondition(ObjectRef(Side.HOST, NAMESPACES, Key("", "nowhere")))
    await bench.apply(replace(decision, writes=(replace(write, precondition=there),)))
    assert [each.path for each in bench.host.requests] == ["/api/v1/namespaces/nowhere"]
    assert not is_left(bench, "ours")


@pytest.mark.parametrize("name", ["default", "theirs", "nowhere"])
async def test_object_is_not_deleted_for_a_copy_in_a_namespace_that_is_no_longer_ours(name: str) -> None:
    bench = beside()
    with pytest.raises(Refused, match="is gone, or not this virtual cluster's: nothing is deleted") as refused:
        await bench.apply(wanted(bench, name, since=SINCE))
    assert refused.value.reason == "HostNamespaceGone"
    assert asked(bench, name) == []
    assert is_left(bench, name)


async def test_known_namespace_of_ours_is_not_asked_for() -> None:
    bench = beside()
    stored = bench.host.get("namespaces", "ours")
    assert stored
    bench.see(Side.HOST, NAMESPACES, stored)
    await bench.apply(wanted(bench, "ours"))
    assert [each.path for each in bench.host.requests if each.path.endswith("/namespaces/ours")] == []
    lost = merged(stored, {"metadata": {"annotations": None, "resourceVersion": "9"}})
    bench.see(Side.HOST, NAMESPACES, lost)
    await bench.apply(wanted(bench, "ours"))
    assert [each.path for each in bench.host.requests if each.path.endswith("/namespaces/ours")] != []


class FromNamespaces(Syncer, SyncFromHost):
    """Shows objects of a host namespace that the operator has chosen."""

    name = "from-places"
    section = "fromHost.places"
    resource = CONFIG_MAPS
    reads = (Source(Side.HOST, NAMESPACES, marked=True),)

    def __init__(self, *namespaces: str) -> None:
        self._chosen = namespaces or None

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        return self._chosen

    def virtual_key(self, ctx: Context[Config], host: Obj) -> Key | None:
        return key_of(host)

    def sync_from_host(self, ctx: Context[Config], host: Obj) -> Decision:
        return skip("")


class FromNamespacesOrFake(FromNamespaces, FakeSyncUp):
    """Fakes what isn't there."""

    def fake_sync_up(self, ctx: Context[Config], key: Key) -> Decision:
        return skip("")

    def fake_sync(self, ctx: Context[Config], virtual: Obj) -> Decision:
        return skip("")


@pytest.mark.parametrize("kind", [FromNamespaces, FromNamespacesOrFake])
async def test_namespace_that_a_syncer_reads_by_itself_is_read(kind: type[FromNamespaces]) -> None:
    async def named(bench: Bench) -> None:
        host_key = Key("default", "x")
        vacant = Vacant(CONFIG_MAPS, host_key, host_key, about=[*bench.pair.controllers.values()])
        calls = [Call(Operation.CREATE, {"spec": {"name": "x"}})]
        await must_be_vacant(bench.pair.host, [vacant], calls, homes=bench.pair.policies.homes)

    of_copies = beside(kind())
    await of_copies.apply(wanted(of_copies, "default"))
    assert asked(of_copies, "default") == []
    with pytest.raises(Refused, match="names the ConfigMap default/x, and nothing of its namespace is synced"):
        await named(of_copies)
    assert asked(of_copies, "default") == []

    of_its_own = beside(kind("default"))
    await of_its_own.apply(wanted(of_its_own, "default"))
    assert asked(of_its_own, "default") == ["get"]
    await named(of_its_own)
    assert asked(of_its_own, "default") == ["get", "get"]


@pytest.mark.reason("HostKindGone")
async def test_object_is_not_deleted_for_a_copy_of_a_kind_that_is_gone() -> None:
    host = SideClient("host", Side.HOST, ApiServer(seed="host").transport())
    widgets = Resource("example.org/v1", "Widget", "widgets")
    with pytest.raises(Refused, match=r"the kind widgets.example.org is gone on the host") as refused:
        await must_be_served(host, widgets, "vc-ns", since=SINCE, mark="vsyncer.dev/copied")
    assert refused.value.reason == "HostKindGone"
