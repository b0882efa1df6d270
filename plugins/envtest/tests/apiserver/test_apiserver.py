"""The in-process API server as a tool of tests: helpers, determinism, bounds, the client."""

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kube_envtest import ApiServer, ConnectionLost, User, virtual_time
from kube_envtest.apiserver.storage import Storage

Obj = dict[str, Any]


class Resource(NamedTuple):
    """A resource as another library describes it."""

    group: str
    version: str
    plural: str


PODS = Resource("", "v1", "pods")


def pod(name: str, namespace: str = "shop", **status: Any) -> Obj:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, **({"status": status} if status else {})}


def test_helpers_work_without_a_loop() -> None:
    server = ApiServer()
    made = server.put(pod("a", phase="Running"))
    assert made["status"]["phase"] == "Running", "put takes the status too"
    assert server.get("namespaces", "shop") is not None, "put makes the namespace"
    assert server.get("pods", "shop/a") == made
    assert server.get(PODS, ("shop", "a")) == made
    assert server.get("pods", "shop/none") is None
    changed = pod("a", phase="Failed")
    changed["metadata"]["labels"] = {"x": "y"}
    changed["spec"]["nodeName"] = "n1"
    again = server.put(changed)
    assert (again["metadata"]["labels"], again["spec"]["nodeName"]) == ({"x": "y"}, "n1")
    assert again["metadata"]["uid"] == made["metadata"]["uid"]
    assert [obj["status"]["phase"] for obj in server.objects("pods", "shop")] == ["Failed"]
    assert server.objects("deployments.apps") == []
    server.delete("pods", "shop/a")
    assert server.objects(PODS) == [], "no grace"


def test_a_read_returns_a_copy() -> None:
    server = ApiServer()
    server.put(pod("a"))
    found = server.get("pods", "shop/a")
    assert found is not None
    found["metadata"]["name"] = "changed"
    assert server.objects("pods")[0]["metadata"]["name"] == "a"


def test_unknown_names_are_refused() -> None:
    server = ApiServer()
    with pytest.raises(KeyError, match="no such resource: deployments"):
        server.objects("deployments")
    with pytest.raises(KeyError, match="no such kind: v1 Nonsense"):
        server.put({"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "a"}})


def test_a_seed_makes_names_and_uids_repeatable() -> None:
    async def names(seed: str) -> list[str]:
        client = ApiServer(seed=seed).client()
        body = b'{"metadata":{"generateName":"a-"}}'
        made = [
            json.loads((await client.request("POST", "/api/v1/namespaces/default/configmaps", body=body)).body)
            for _ in range(3)
        ]
        return [obj["metadata"][field] for obj in made for field in ("name", "uid", "creationTimestamp")]

    first = virtual_time.run(names("x"))
    assert first == virtual_time.run(names("x"))
    assert not set(first[:2]) & set(virtual_time.run(names("y")))
    assert first[2] == "2026-01-01T00:00:00Z"


async def test_requests_are_logged() -> None:
    server = ApiServer()
    client = server.client("bob")
    await client.request("GET", "/api/v1/pods?limit=1")
    await asyncio.sleep(5)
    await client.request("PATCH", "/api/v1/namespaces/x/pods/a/status", body=b"{}", content_type="x/y")
    await client.request("GET", "/healthz")
    first, second, third = server.requests
    assert first[:5] == ("list", "/api/v1/pods", "bob", 200, "pods")
    assert second[:5] == ("patch", "/api/v1/namespaces/x/pods/a/status", "bob", 415, "pods")
    assert third[:5] == ("get", "/healthz", "bob", 200, "")
    assert second.at - first.at == 5.0


async def test_rbac_in_memory() -> None:
    bob = User("bob", ("team",))
    server = ApiServer(rbac=True, tokens={"t": bob})
    path = "/api/v1/namespaces/default/pods"
    assert (await server.client("bob").request("GET", path)).status == 403
    assert (await server.client().request("GET", path)).status == 200
    subject = {"kind": "Group", "name": "team", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    server.put(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "default"},
            "roleRef": role,
            "subjects": [subject],
        }
    )
    assert (await server.client("bob").request("GET", path)).status == 200
    assert (await server.client("bob").request("DELETE", path)).status == 403


def test_history_is_bounded_and_old_watches_expire() -> None:
    storage = Storage(history=10)
    for number in range(30):
        storage.create("/x", f"ns/{number}", {"metadata": {}})
    table = storage.table("/x")
    assert len(table.history) == 10
    assert storage.oldest("/x") == storage.revision - 10
    assert len(table.since(storage.oldest("/x"))) == 10


async def test_a_reader_that_is_too_slow_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube_envtest.apiserver.watch.BUFFER", 5)
    server = ApiServer()
    path = f"/api/v1/configmaps?watch=1&resourceVersion={server.revision}"
    async with server.client().stream(path) as stream:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        for number in range(20):
            server.put({**body, "data": {"n": str(number)}})
        assert server.open_watches == 0
        received = [line async for batch in stream for line in batch]
        assert len(received) == 6, "the watch ends after what was buffered"


async def test_memory_transport_without_server_errors() -> None:
    server = ApiServer()
    client = server.client()
    with pytest.raises(ValueError, match="is a watch"):
        await client.request("GET", "/api/v1/pods?watch=1")
    assert server.open_watches == 0
    async with client.stream("/api/v1/nonsense?watch=1") as stream:
        assert stream.status == 404
        assert json.loads(await stream.body())["reason"] == "NotFound"
    await client.close()
    with pytest.raises(ConnectionLost):
        await client.request("GET", "/api/v1/pods")


async def test_watches_end_after_half_an_hour_or_more() -> None:
    server = ApiServer(seed=1)
    path = f"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={server.revision}"
    async with server.client().stream(path) as stream:
        batches = [json.loads(line)["type"] async for batch in stream for line in batch]
    ended = asyncio.get_running_loop().time()
    assert 1800 <= ended <= 3600
    assert set(batches) == {"BOOKMARK"}
    assert len(batches) == ended // 60 + 1
    assert server.open_watches == 0


def test_kubeconfig(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        with pytest.raises(RuntimeError, match="start"):
            server.kubeconfig(tmp_path / "config")
        url = await server.start(tls=True)
        path = server.kubeconfig(tmp_path / "config")
        assert path.stat().st_mode & 0o777 == 0o600
        content = yaml.safe_load(path.read_text())
        assert content["clusters"][0]["cluster"]["server"] == url
        published = server.get("configmaps", "default/kube-root-ca.crt")
        assert published is not None
        assert published["data"] == {"ca.crt": server.certificate}
        assert content["users"][0]["user"] == {"token": "admin-token"}
        with pytest.raises(KeyError, match="no token for user 'bob'"):
            server.kubeconfig(tmp_path / "config", "bob")
        await server.stop()

    asyncio.run(main())
