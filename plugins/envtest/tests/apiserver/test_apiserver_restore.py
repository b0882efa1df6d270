"""An API server whose etcd was restored from a snapshot: its objects, and the events of its clients."""

import asyncio
import json
from typing import Any

import pytest

from kube_envtest import ApiServer

Obj = dict[str, Any]

MAPS = "/api/v1/namespaces/default/configmaps"


def put(server: ApiServer, name: str, color: str = "blue") -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return server.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}})


def service(name: str, address: str = "") -> Obj:
    spec = {"ports": [{"port": 80}], **({"clusterIP": address} if address else {})}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def test_objects_and_versions_are_those_of_the_snapshot() -> None:
    server = ApiServer()
    first = put(server, "a")
    snapshot = server.snapshot()
    lost = put(server, "a", "red")
    put(server, "b")
    server.delete("configmaps", "default/kube-root-ca.crt")
    server.restore(snapshot)
    assert server.get("configmaps", "default/a") == first
    assert server.get("configmaps", "default/b") is None
    assert server.get("configmaps", "default/kube-root-ca.crt")
    assert server.revision == snapshot.revision
    assert put(server, "a", "green")["metadata"]["resourceVersion"] == lost["metadata"]["resourceVersion"]


def test_snapshot_can_be_restored_again() -> None:
    server = ApiServer()
    put(server, "a")
    snapshot = server.snapshot()
    for _ in range(2):
        put(server, "a", "red")
        server.restore(snapshot)
        assert (server.get("configmaps", "default/a") or {})["data"] == {"color": "blue"}


def test_addresses_of_services_are_those_of_the_snapshot() -> None:
    server = ApiServer()
    kept = server.put(service("kept"))["spec"]["clusterIP"]
    snapshot = server.snapshot()
    lost = server.put(service("lost"))["spec"]["clusterIP"]
    server.delete("services", "default/kept")
    server.restore(snapshot)
    assert server.put(service("other", lost))["spec"]["clusterIP"] == lost
    with pytest.raises(Exception, match="already allocated"):
        server.put(service("thief", kept))


async def test_watch_is_cut_and_one_from_the_lost_history_waits_until_it_is_reached() -> None:
    server, received = ApiServer(), list[str]()
    put(server, "a")
    snapshot = server.snapshot()
    for _ in range(3):
        put(server, "a", "red")
        put(server, "a", "blue")

    async def follow(revision: int) -> None:
        path = f"{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}"
        async with server.client().stream(path) as stream:
            async for batch in stream:
                received.extend(json.loads(line)["object"]["metadata"]["resourceVersion"] for line in batch)

    future = server.revision
    cut = asyncio.ensure_future(follow(future))
    await asyncio.sleep(1)
    server.restore(snapshot)
    with pytest.raises(OSError, match="in the middle of the stream"):
        await cut
    following = asyncio.ensure_future(follow(future))
    for color in ("green", "white"):
        put(server, "a", color)
        await asyncio.sleep(100)
    assert received == []
    while server.revision < future:
        put(server, "b", str(server.revision))
    put(server, "a", "black")
    await asyncio.sleep(1)
    assert received == [str(future + 1)]
    following.cancel()


def test_restore_is_refused_after_the_definitions_changed() -> None:
    server = ApiServer()
    snapshot = server.snapshot()
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": "widgets.example.org"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    server.put({**kind, "metadata": metadata, "spec": spec})
    put(server, "a")
    with pytest.raises(ValueError, match="CustomResourceDefinitions have changed since the snapshot"):
        server.restore(snapshot)
    assert server.get("configmaps", "default/a")
