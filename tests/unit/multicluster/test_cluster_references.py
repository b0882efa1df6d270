"""Owners in other clusters, by an annotation."""

import json

import pytest
from fleet_scene import SECRETS, Site, eventually, running

from syncer.api import Obj, Resource
from syncer.multicluster import (
    ADMIRALTY_REFERENCE_ANNOTATION,
    DEPLOYMENTS,
    REFERENCE_ANNOTATION,
    Controller,
    ControllerOptions,
    ControllerReference,
    Request,
    owner_of,
)
from syncer.testing.objects import pod, secret

#: As Go's multicluster-controller writes it.
WRITTEN = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "name": "web",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
    "clusterName": "us",
    "namespace": "bank",
}


def noted(text: str, annotation: str = REFERENCE_ANNOTATION, **metadata: object) -> Obj:
    return secret("s", metadata={"annotations": {annotation: text}, **metadata})


def test_reference_is_written_and_read_as_the_original_does() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "bank", "uid": "u1"},
    }
    reference = ControllerReference.to(owner, cluster="us")
    for key in (REFERENCE_ANNOTATION, ADMIRALTY_REFERENCE_ANNOTATION):
        child = reference.put_on(secret("s", metadata={"annotations": {"mine": "kept"}}), annotation=key)
        assert child["metadata"]["annotations"]["mine"] == "kept"
        assert json.loads(child["metadata"]["annotations"][key]) == WRITTEN
        assert ControllerReference.of(child, annotation=key) == reference
        assert owner_of(child, DEPLOYMENTS, cluster="eu", annotation=key) == Request("us", "bank", "web")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"text"',
        "null",
        "1",
        "{}",
        json.dumps(WRITTEN | {"name": 7}),
        json.dumps(WRITTEN | {"clusterName": None}),
        json.dumps(WRITTEN | {"namespace": {}}),
        json.dumps({name: value for name, value in WRITTEN.items() if name != "name"}),
        json.dumps(WRITTEN | {"controller": False}),
        "[" * 100_000,
    ],
)
def test_malformed_reference_is_none(text: str) -> None:
    assert ControllerReference.of(noted(text)) is None
    assert owner_of(noted(text), DEPLOYMENTS, cluster="eu") is None


def test_reference_to_another_kind_or_group_is_none_of_the_owners() -> None:
    assert owner_of(noted(json.dumps(WRITTEN | {"kind": "Job"})), DEPLOYMENTS, cluster="eu") is None
    assert owner_of(noted(json.dumps(WRITTEN | {"apiVersion": "v1"})), DEPLOYMENTS, cluster="eu") is None


def test_owner_in_the_same_cluster_comes_first() -> None:
    here = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "near", "uid": "u", "controller": True}
    child = noted(json.dumps(WRITTEN), ownerReferences=[here])
    assert owner_of(child, DEPLOYMENTS, cluster="eu") == Request("eu", "shop", "near")
    nodes = Resource("v1", "Node", "nodes", namespaced=False)
    child = noted(json.dumps(WRITTEN), ownerReferences=[{**here, "apiVersion": "v1", "kind": "Node"}])
    assert owner_of(child, nodes, cluster="eu") == Request("eu", "", "near")
    assert owner_of(child, DEPLOYMENTS, cluster="eu") is None, "it has a controller, of another kind"


async def test_change_of_a_child_requests_its_owner_in_another_cluster() -> None:
    us, eu = Site("us"), Site("eu")
    requests: list[Request] = []

    async def reconcile(request: Request) -> None:
        requests.append(request)

    controller = Controller(reconcile, ControllerOptions(annotation="example.org/owner"))
    controller.engage(us.cluster)
    controller.watch_owner(eu.cluster, SECRETS, DEPLOYMENTS)
    async with running(us, eu, controller):
        await eu.cluster.list(SECRETS)
        eu.server.put(noted(json.dumps(WRITTEN)))
        eu.server.put(noted(json.dumps(WRITTEN), "example.org/owner", name="t"))
        await eventually(lambda: requests)
        assert requests == [Request("us", "bank", "web")]


def test_reference_of_an_object_without_annotations_is_none() -> None:
    assert ControllerReference.of(pod("p")) is None
