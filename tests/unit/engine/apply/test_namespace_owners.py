"""The host namespace as the controller of what is created in it: by its own uid, and read no more often than needed."""

from dataclasses import replace
from typing import Any

import pytest
from applier_bench import SETTINGS, Bench, copy, ours

from kube_envtest import Rule
from syncer.api import Key, Obj, Settings, Side, apply, uid_of
from syncer.engine.apply.namespace_owners import KNOWN_SECONDS
from syncer.names import PerNamespace
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace


async def created(bench: Bench, name: str = "x", **metadata: Any) -> Obj:
    """Create an object that its namespace controls."""
    wanted = merged(copy(name), {"metadata": metadata})
    await bench.apply(apply(host=wanted, controlled_by_namespace=True))
    found = bench.host.get("configmaps", f"vc-ns/{name}")
    assert found
    return found


def controller(home: Obj | None) -> Obj:
    assert home
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": home["metadata"]["name"],
        "uid": uid_of(home),
        "controller": True,
    }


def owners(obj: Obj) -> list[Obj]:
    found: list[Obj] = obj["metadata"].get("ownerReferences", [])
    return found


def reads(bench: Bench) -> int:
    """Return how often the host namespace was read."""
    return len([one for one in bench.host.requests if one.verb == "get" and one.path.endswith("/namespaces/vc-ns")])


def replaced(bench: Bench) -> Obj:
    """Replace the host namespace by another one of its name."""
    bench.host.delete("namespaces", "vc-ns")
    return bench.host.put(namespace("vc-ns"))


async def test_namespace_is_the_controller_of_what_is_created_so_and_is_read_once() -> None:
    bench = Bench()
    home = bench.host.get("namespaces", "vc-ns")
    for name in "abc":
        assert owners(await created(bench, name)) == [controller(home)]
    assert reads(bench) == 1
    await bench.apply(apply(host=copy("d")))
    assert "ownerReferences" not in (bench.host.get("configmaps", "vc-ns/d") or {})["metadata"]


async def test_object_that_is_there_keeps_its_owners() -> None:
    bench = Bench()
    await bench.apply(apply(host=copy()))
    found = await created(bench, annotations={"changed": "yes"})
    assert found["metadata"]["annotations"]["changed"] == "yes"
    assert (owners(found), reads(bench)) == ([], 0)


@pytest.mark.parametrize("is_controller", [False, True])
async def test_another_owner_stays_and_another_controller_is_the_only_one(is_controller: bool) -> None:
    bench = Bench()
    parent = bench.host.put(configmap("parent", namespace="vc-ns"))
    other: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": uid_of(parent)}
    other["controller"] = is_controller
    found = await created(bench, ownerReferences=[other])
    home = bench.host.get("namespaces", "vc-ns")
    assert owners(found) == ([other] if is_controller else [other, controller(home)])


async def test_namespace_is_read_again_after_a_while() -> None:
    bench = Bench()
    await created(bench, "a")
    home = replaced(bench)
    bench.now += KNOWN_SECONDS
    assert owners(await created(bench, "b")) == [controller(home)]
    assert reads(bench) == 2


async def test_namespace_is_read_again_after_a_refusal_as_while_it_is_being_deleted() -> None:
    bench = Bench()
    await created(bench, "a")
    home = replaced(bench)
    bench.host.faults.add(Rule(verb="create", status=500, count=1))
    with pytest.raises(Exception, match="500"):
        await created(bench, "b")
    assert owners(await created(bench, "b")) == [controller(home)]


async def test_missing_namespace_is_the_refusal_of_the_api_server() -> None:
    bench = Bench()
    bench.host.delete("namespaces", "vc-ns")
    with pytest.raises(Exception, match="the namespace vc-ns does not exist"):
        await created(bench)
    bench.host.put(namespace("vc-ns"))
    assert owners(await created(bench)) == [controller(bench.host.get("namespaces", "vc-ns"))]


async def test_namespace_that_is_watched_is_not_read() -> None:
    names = PerNamespace(cluster="vc", namespace="vc-ns")
    settings: Settings = replace(SETTINGS, host_namespace="", names=names)
    home = names.to_host(CONFIG_MAPS, Key("shop", "x")).namespace
    labels = {settings.marks.cluster: settings.identity}
    bench = Bench(settings)
    original = {"metadata": {"name": "shop", "uid": "u-1"}}
    annotations = settings.marks.annotations(NAMESPACES, original, Key("", home))
    mine = namespace(home, metadata={"labels": labels, "annotations": annotations})
    seen = bench.see(Side.HOST, NAMESPACES, bench.host.put(mine))
    wanted = merged(ours(copy()), {"metadata": {"namespace": home, "labels": labels}})
    await bench.apply(apply(host=wanted, controlled_by_namespace=True))
    assert owners(bench.host.get("configmaps", f"{home}/x") or {"metadata": {}}) == [controller(seen)]
    assert not [one for one in bench.host.requests if one.verb == "get"]
