"""The bounds of bodies are those of a real API server and its etcd."""

import base64

import pytest
from api import RESOURCES
from scene import Scene

from syncer.api import Invalid, Obj
from syncer.clusters import bodies, client, codec
from syncer.engine.controllers.retry_policy import NEVER, retry_for
from syncer.testing.objects import configmap, pod

pytestmark = pytest.mark.controlplane

MB = 1 << 20


def commanded(ns: str, size: int) -> Obj:
    return pod("a", namespace=ns, spec={"containers": [{"name": "c", "image": "i", "command": ["x" * size]}]})


def test_body_over_the_limit_of_etcd_is_accepted_if_its_stored_form_is_not(world: Scene, ns: str) -> None:
    data = {"a": base64.b64encode(b"x" * MB).decode()}
    metadata = {"name": "a", "namespace": ns, "annotations": {"a": "x" * 250_000}}
    world.virtual.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    world.virtual.create(configmap("a", {"a": "\n" * (MB - 10)}, namespace=ns))


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (1_800_000, "etcdserver: request is too large"),
        (2_600_000, "trying to send message larger than max"),
        (bodies.LARGEST, "Request entity too large: limit is 3145728"),
    ],
)
def test_body_that_is_too_large_is_refused_for_good(
    world: Scene, ns: str, monkeypatch: pytest.MonkeyPatch, size: int, says: str
) -> None:
    monkeypatch.setattr(bodies, "LARGEST", 10 * MB)
    with pytest.raises(Invalid, match=says) as refused:
        world.virtual.create(commanded(ns, size))
    assert (refused.value.status, retry_for(refused.value, 0).seconds) == (413, NEVER)


def test_object_over_the_bound_of_a_response_is_listed_by_its_metadata(
    world: Scene, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LARGEST_PAGE", "LARGEST_REPLY"):
        monkeypatch.setattr(client, name, MB // 2)
    made = world.virtual.create(configmap("large", {"a": "x" * (MB - 10)}, namespace=ns))
    world.virtual.create(configmap("small", namespace=ns))
    listed = world.virtual.loop.run(world.virtual.cluster.list(RESOURCES["ConfigMap"], namespace=ns))
    found = {each["metadata"]["name"]: each for each in listed}
    assert found["large"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert {name for name, each in found.items() if codec.UNREADABLE in each} == {"large"}
