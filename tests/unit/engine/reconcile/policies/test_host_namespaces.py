"""Copies are put only into host namespaces that are ours, or that the configuration lists."""

from typing import Any

import pytest

from syncer.api import Key, NameTranslator, Obj, ObjectRef, Outcome, Refused, Resource, Side, apply
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.stores.informers import Informers
from syncer.names import PerNamespace, Unchanged
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace, serviceaccount

NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
FORCED = {"annotations": {"vsyncer.dev/force-sync": "true"}}


def world_of(translator: type[NameTranslator], *listed: str, space: str = "shop") -> World:
    """Return a world with a ConfigMap that is to be copied; its host namespace isn't there."""
    world = World(translator=translator, config={"names": {"namespaces": list(listed)}})
    return world.given(virtual=[namespace(space), configmap("web", namespace=space, metadata=FORCED)])


def home(world: World, space: str = "shop") -> str:
    found: Key = world.settings.names.to_host(NAMESPACES, Key("", space))
    return found.name


def waits(world: World, key: str = "shop/web") -> str:
    """Return why the ConfigMap isn't copied yet; it is woken by its host namespace."""
    decision = world.decide("configmaps", key)
    assert decision.writes == ()
    assert decision.outcome is Outcome.PENDING
    assert ObjectRef(Side.HOST, NAMESPACES, Key("", home(world))) in decision.on
    return decision.reason


@pytest.mark.parametrize("translator", [PerNamespace, Unchanged])
def test_copy_waits_for_a_host_namespace_of_ours(translator: type[NameTranslator]) -> None:
    world = world_of(translator)
    assert waits(world) == "the host namespace is not there yet"
    world.given(host=[namespace(home(world))])
    assert waits(world) == "the host namespace is not there yet", "the host's own, which isn't even watched"
    world.gone(host=[namespace(home(world))])
    world.settle("namespaces", "shop")
    assert world.settle("configmaps", "shop/web")


def marked(world: World, **metadata: Any) -> Obj:
    """Return the host namespace as the daemon makes it, with other metadata over that."""
    world.settle("namespaces", "shop")
    found = world.host("Namespace", home(world))
    assert found
    return merged(found, {"metadata": metadata})


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"annotations": {"vsyncer.dev/host-name": "another"}}, "the host namespace is not one that was made for it"),
        (
            {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/f"]},
            "the host namespace is being deleted",
        ),
    ],
)
def test_copy_waits_while_the_host_namespace_is_not_as_we_made_it(metadata: Obj, why: str) -> None:
    world = world_of(PerNamespace)
    world.given(host=[marked(world, **metadata)])
    assert waits(world) == why


def test_copy_in_a_namespace_that_is_no_longer_ours_is_deleted_and_not_changed() -> None:
    world = world_of(Unchanged)
    world.settle("namespaces", "shop")
    world.settle("configmaps", "shop/web")
    world.gone(host=[namespace("shop")]).given(host=[namespace("shop")])
    changed = configmap("web", {"color": "red"}, metadata=FORCED)
    world.given(virtual=[changed])
    assert waits(world) == "the host namespace is not there yet"
    with pytest.raises(Refused, match="the host namespace shop is not one that this virtual cluster may write to"):
        copy = world.host("ConfigMap", "shop/web")
        assert copy
        world.apply(apply(host={**copy, "data": {"color": "green"}}), by="configmaps")
    world.gone(virtual=[changed])
    assert [sent.verb for sent in world.settle("configmaps", "shop/web")] == ["delete"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-flannel"])
def test_namespace_that_every_cluster_has_is_used_only_if_it_is_listed(name: str) -> None:
    world = world_of(Unchanged, space=name)
    assert not world.decide("namespaces", name).writes
    with pytest.raises(Refused, match="nothing of its namespace is synced: every cluster has one of this name"):
        world.decide("configmaps", f"{name}/web")
    world.given(virtual=[serviceaccount("default", namespace=name)])
    assert world.decide("serviceaccounts", f"{name}/default").outcome is Outcome.SKIPPED, "each namespace has one"
    listed = world_of(Unchanged, name, space=name)
    assert not listed.decide("namespaces", name).writes
    assert listed.settle("configmaps", f"{name}/web")


def test_own_namespace_with_a_built_in_prefix_is_allowed() -> None:
    world = world_of(PerNamespace, space="kube-system")
    world.settle("namespaces", "kube-system")
    assert world.settle("configmaps", "kube-system/web")


def test_listed_namespace_is_left_as_it_is() -> None:
    world = world_of(Unchanged, "shop")
    assert not world.decide("namespaces", "shop").writes
    assert world.settle("configmaps", "shop/web")


def test_copies_are_in_the_namespaces_of_a_translator_that_names_them() -> None:
    homes = HostNamespaces(World().settings, Informers(clock=lambda: 0.0))
    assert homes.holds_copies("vc-ns")
    assert homes.holds_copies("shop") is False


def test_only_listed_namespaces_are_used_while_none_are_synced() -> None:
    settings = world_of(PerNamespace, "payments").settings
    homes = HostNamespaces(settings, Informers(clock=lambda: 0.0))
    assert homes.forbids("shop-x-vc-x-vc-ns").startswith("Namespaces aren't synced.")
    assert homes.forbids("payments") == homes.lacks("payments") == ""
    assert homes.holds_copies("payments")
    assert homes.holds_copies("shop-x-vc-x-vc-ns") is False
