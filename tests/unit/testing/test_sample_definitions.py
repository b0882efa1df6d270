"""Samples of kinds whose groups end as those of Kubernetes do, and of kinds without ``spec``."""

from typing import Any

import pytest
from hypothesis import strategies as st

from kube_envtest import ApiServer
from syncer.api import Mirror, Obj, Resource, Side
from syncer.testing.objects import build, namespace
from syncer.testing.samples import Sample

SNAPSHOTS = Resource("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "volumesnapshots")
ROUTES = Resource("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
CLASSES = Resource("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "volumesnapshotclasses", namespaced=False)
BUILT_IN = Resource("storage.k8s.io/v1beta9", "Disk", "disks")


def sample(resource: Resource, down: tuple[str, ...]) -> Sample:
    """Return the sample of a kind that is copied to the host."""
    fields: dict[str, Any] = {
        "name": resource.plural,
        "section": f"toHost.{resource.plural}",
        "resource": resource,
        "down": down,
        "up": ("status",),
        "__doc__": "A kind.",
    }
    syncer = type("Kind", (Mirror,), fields)
    reports = ({"status": {"phase": "Ready"}}, {"status": {"phase": "Failed"}})
    return Sample(syncer=syncer, objects=st.nothing(), reports=reports)


@pytest.mark.parametrize("resource", [SNAPSHOTS, ROUTES], ids=str)
def test_kind_of_others_below_k8s_io_has_a_definition(resource: Resource) -> None:
    server = ApiServer()
    server.put(namespace("shop"))
    server.put(sample(resource, ("spec",)).definition(Side.VIRTUAL))
    obj: Obj = build(resource, "x", namespace="shop", spec={"a": 1})
    assert server.put(obj)["spec"] == {"a": 1}


def test_definition_has_the_top_level_fields_of_the_kind() -> None:
    server = ApiServer()
    server.put(sample(CLASSES, ("driver", "parameters.size")).definition(Side.VIRTUAL))
    made = server.put(build(CLASSES, "x", driver="d", parameters={"size": "1"}, spec={}, color="red"))
    assert (made["driver"], made["parameters"], "color" in made) == ("d", {"size": "1"}, False)


def test_kind_of_kubernetes_has_no_definition() -> None:
    with pytest.raises(ValueError, match=r"doesn't serve disks\.storage\.k8s\.io, a kind of Kubernetes"):
        sample(BUILT_IN, ("spec",)).definition(Side.VIRTUAL)
