"""Host namespaces, if each virtual one has its own."""

from syncer.names import PerNamespace, SingleNamespace, Unchanged
from syncer.resources.namespaces import NamespaceSyncer
from syncer.testing import World
from syncer.testing.objects import namespace


def test_host_namespace_is_made_with_the_tenants_labels_but_no_settings_of_the_host() -> None:
    world = World([NamespaceSyncer], translator=PerNamespace)
    labels = {
        "team": "a",
        "kubernetes.io/metadata.name": "shop",
        "pod-security.kubernetes.io/enforce": "privileged",
    }
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": "role=master"}
    world.given(virtual=[namespace("shop", metadata={"labels": labels, "annotations": annotations})])
    [write] = world.decide("namespaces", "shop").writes
    metadata = write.obj["metadata"]
    assert metadata["name"] == "shop-x-vc-x-vc-ns"
    assert metadata["labels"] == {"team": "a", "vsyncer.dev/cluster": "vc.vc-ns"}
    assert all(key.startswith("vsyncer.dev/") for key in metadata["annotations"])


def test_namespace_syncer_does_not_apply_where_all_copies_share_a_namespace() -> None:
    syncer = NamespaceSyncer()
    assert syncer.applies_to(World([], translator=PerNamespace).settings)
    assert not syncer.applies_to(World([], translator=SingleNamespace).settings)


def test_objects_that_every_cluster_has_are_the_hosts_own() -> None:
    world = World([NamespaceSyncer], translator=Unchanged)
    world.given(virtual=[namespace("default"), namespace("shop")])
    assert not world.decide("namespaces", "default").writes
    assert world.decide("namespaces", "shop").writes
