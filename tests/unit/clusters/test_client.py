"""The requests of each client method, their responses, and the batches of a watch."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cluster_servers import Answer, Call, Peer, free_port, plain_transport, serve

from syncer.api.errors import Conflict, Expired, NotFound, Unreachable
from syncer.api.objects import Key, Obj, Resource, Side
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.transport import Endpoint

pytestmark = pytest.mark.real_time

PODS = Resource("v1", "Pod", "pods")
ROLES = Resource("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
WEB = Key("shop", "web")


class Seen:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []

    def request(self, method: str, code: int, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((method, code))


@asynccontextmanager
async def cluster_on(answer: Answer, **options: Any) -> AsyncIterator[tuple[SideClient, Peer]]:
    async with serve(answer) as peer:
        cluster = SideClient("vc", Side.VIRTUAL, plain_transport(peer.endpoint()), **options)
        try:
            yield cluster, peer
        finally:
            await cluster.close()


def one_call(act: Callable[[SideClient], Awaitable[object]], status: int, reply: object) -> tuple[Call, object]:
    """Return the request that a server with this answer receives, and the caller's result."""

    async def main() -> tuple[Call, object]:
        async with cluster_on(lambda call: call.reply(status, json.dumps(reply).encode())) as (cluster, peer):
            result = await act(cluster)
            [call] = peer.calls
            return call, result

    return asyncio.run(main())


OBJ: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("act", "method", "path", "content_type", "body"),
    [
        (lambda c: c.get(PODS, WEB), "GET", "/api/v1/namespaces/shop/pods/web", None, None),
        (
            lambda c: c.get(ROLES, Key("", "system:a b/ü?")),
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%2F%C3%BC%3F",
            None,
            None,
        ),
        (
            lambda c: c.get(PODS, WEB, subresource="status"),
            "GET",
            "/api/v1/namespaces/shop/pods/web/status",
            None,
            None,
        ),
        (
            lambda c: c.create(PODS, OBJ),
            "POST",
            "/api/v1/namespaces/shop/pods?fieldManager=vsyncer",
            "application/json",
            OBJ,
        ),
        (
            lambda c: c.create(PODS, OBJ, body=b'{"encoded": "before"}'),
            "POST",
            "/api/v1/namespaces/shop/pods?fieldManager=vsyncer",
            "application/json",
            {"encoded": "before"},
        ),
        (
            lambda c: c.create(PODS, {"target": {"name": "n1"}}, subresource="binding", key=WEB),
            "POST",
            "/api/v1/namespaces/shop/pods/web/binding?fieldManager=vsyncer",
            "application/json",
            {"target": {"name": "n1"}},
        ),
        (
            lambda c: c.create(PODS, OBJ, subresource="eviction"),
            "POST",
            "/api/v1/namespaces/shop/pods/web/eviction?fieldManager=vsyncer",
            "application/json",
            OBJ,
        ),
        (
            lambda c: c.create(PODS, {"metadata": {"generateName": "x-", "namespace": "shop"}}),
            "POST",
            "/api/v1/namespaces/shop/pods?fieldManager=vsyncer",
            "application/json",
            {"metadata": {"generateName": "x-", "namespace": "shop"}},
        ),
        (
            lambda c: c.replace(PODS, OBJ, subresource="status"),
            "PUT",
            "/api/v1/namespaces/shop/pods/web/status?fieldManager=vsyncer",
            "application/json",
            OBJ,
        ),
        (
            lambda c: c.patch(PODS, WEB, {"a": None}),
            "PATCH",
            "/api/v1/namespaces/shop/pods/web?fieldManager=vsyncer",
            "application/merge-patch+json",
            {"a": None},
        ),
        (
            lambda c: c.patch(PODS, WEB, {"a": 1}, kind="strategic", subresource="status"),
            "PATCH",
            "/api/v1/namespaces/shop/pods/web/status?fieldManager=vsyncer",
            "application/strategic-merge-patch+json",
            {"a": 1},
        ),
        (
            lambda c: c.patch(PODS, WEB, [{"op": "remove", "path": "/a"}], kind="json"),
            "PATCH",
            "/api/v1/namespaces/shop/pods/web?fieldManager=vsyncer",
            "application/json-patch+json",
            [{"op": "remove", "path": "/a"}],
        ),
        (
            lambda c: c.patch(PODS, WEB, OBJ, kind="apply", force=True),
            "PATCH",
            "/api/v1/namespaces/shop/pods/web?fieldManager=vsyncer&force=true",
            "application/apply-patch+yaml",
            OBJ,
        ),
    ],
)
def test_method_makes_one_request(
    act: Callable[[SideClient], Awaitable[Obj]], method: str, path: str, content_type: str | None, body: object
) -> None:
    call, result = one_call(act, 201, {"answer": 1})
    assert (call.method, call.path, call.header("Content-Type")) == (method, path, content_type)
    assert (json.loads(call.body) if call.body else None) == body
    assert result == {"answer": 1}


def test_delete_carries_its_conditions() -> None:
    call, result = one_call(
        lambda c: c.delete(PODS, WEB, uid="u", resource_version="7", grace=0, propagation="Background"),
        200,
        {"kind": "Status", "status": "Success"},
    )
    assert (call.method, call.path) == ("DELETE", "/api/v1/namespaces/shop/pods/web")
    assert json.loads(call.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }
    assert result is None
    call, _ = one_call(lambda c: c.delete(PODS, WEB), 200, {"kind": "Status"})
    assert json.loads(call.body) == {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.mark.parametrize(
    ("metadata", "spec", "still_there"),
    [
        ({}, {}, False),
        ({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0}, {}, False),
        ({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30}, {}, True),
        ({"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0, "finalizers": ["f"]}, {}, True),
        ({"deletionTimestamp": "t"}, {"finalizers": ["kubernetes"]}, True),
        ({"finalizers": ["f"]}, {}, False),
    ],
)
def test_delete_returns_only_an_object_that_waits(metadata: Obj, spec: Obj, still_there: bool) -> None:
    obj = {"kind": "Pod", "metadata": metadata, "spec": spec}
    _, result = one_call(lambda c: c.delete(PODS, WEB), 200, obj)
    assert result == (obj if still_there else None)


@pytest.mark.parametrize(("code", "kind"), [(404, NotFound), (409, Conflict)])
def test_delete_of_a_gone_or_another_object_is_an_error(code: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        one_call(lambda c: c.delete(PODS, WEB, uid="u"), code, {"kind": "Status", "code": code})


async def test_list_goes_on_until_there_is_no_more() -> None:
    def item(name: str) -> Obj:
        return {"metadata": {"name": name}}

    pages = {
        "/api/v1/namespaces/shop/pods?labelSelector=a%3Db%2C%21c&fieldSelector=x%3D1&limit=2": {
            "metadata": {"resourceVersion": "7", "continue": "t/=", "remainingItemCount": 1},
            "items": [item("a"), item("b")],
        },
        "/api/v1/namespaces/shop/pods?labelSelector=a%3Db%2C%21c&fieldSelector=x%3D1&limit=2&continue=t%2F%3D": {
            "metadata": {"resourceVersion": "7"},
            "items": [item("c")],
        },
    }
    async with cluster_on(lambda call: call.reply(200, json.dumps(pages[call.path]).encode())) as (cluster, _):
        found = [
            page async for page in cluster.list_pages(PODS, namespace="shop", selector="a=b,!c", fields="x=1", limit=2)
        ]
        assert [[codec.decode(raw) for raw in page.items] for page in found] == [
            [item("a"), item("b")],
            [item("c")],
        ]
        assert [(page.resource_version, page.remaining) for page in found] == [("7", 1), ("7", None)]


MALFORMED = b'{"metadata":{"name":"a"},"data":nothing,"more":"%s"}' % (b"x" * codec.MOST_CUT)


@pytest.mark.parametrize(
    ("token", "item"),
    [("always-the-same", b""), ("another-{}", b""), ("always-the-same", MALFORMED)],
    ids=["same token", "no objects", "malformed"],
)
def test_list_that_never_ends_is_given_up(token: str, item: bytes) -> None:
    pages = itertools.count()

    async def answer(call: Call) -> None:
        page = b'{"metadata":{"continue":"%s"},"items":[%s]}'
        await call.reply(200, page % (token.format(next(pages)).encode(), item))

    async def main() -> None:
        async with cluster_on(answer) as (cluster, _):
            with pytest.raises(codec.DecodeError, match="the list never ends"):
                async for _ in cluster.list_pages(PODS):
                    pass

    asyncio.run(main())
    assert next(pages) < 20


async def test_list_that_expires_half_way_raises_expired() -> None:
    async def answer(call: Call) -> None:
        if "continue" in call.path:
            await call.reply(410, b'{"kind":"Status","reason":"Expired"}')
        else:
            await call.reply(200, b'{"metadata":{"continue":"t"},"items":[{"metadata":{"name":"a"}}]}')

    async with cluster_on(answer) as (cluster, _):
        with pytest.raises(Expired):
            await cluster.list(PODS)


def test_listed_objects_have_kind_and_version() -> None:
    call, found = one_call(lambda c: c.list(ROLES), 200, {"items": [{"metadata": {"name": "a"}}, {"kind": "Mine"}]})
    assert call.path == "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=500"
    named = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    assert found == [{**named, "metadata": {"name": "a"}}, {**named, "kind": "Mine"}]


async def test_watch_hands_over_events_and_bookmarks_and_errors() -> None:
    events = [
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "8"}}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}},
        {"type": "ERROR", "object": {"kind": "Status", "code": 410}},
    ]

    async def answer(call: Call) -> None:
        await call.start_chunked()
        for event in events:
            await call.chunk(json.dumps(event).encode() + b"\n")
        await call.chunk(b"")

    seen = Seen()
    async with cluster_on(answer, observer=seen) as (cluster, peer):
        async with cluster.watch(
            PODS, namespace="shop", selector="a=b", resource_version="7", timeout_seconds=300
        ) as watch:
            got = [(event.type, codec.decode(event.object)) async for batch in watch for event in batch]
        assert got == [(event["type"], event["object"]) for event in events]
        [call] = peer.calls
        assert call.path == (
            "/api/v1/namespaces/shop/pods?watch=1&allowWatchBookmarks=true&labelSelector=a%3Db"
            "&resourceVersion=7&timeoutSeconds=300"
        )
    assert seen.requests == [("WATCH", 200)]


@pytest.mark.parametrize(("code", "kind"), [(410, Expired), (404, NotFound), (500, Unreachable)])
async def test_watch_that_is_refused_is_an_error_at_its_beginning(code: int, kind: type[Exception]) -> None:
    seen = Seen()
    async with cluster_on(lambda call: call.reply(code, b'{"kind":"Status"}'), observer=seen) as (cluster, _):
        with pytest.raises(kind):
            async with cluster.watch(PODS):
                pytest.fail("the watch is open")
    assert seen.requests == [("WATCH", code)]


@pytest.mark.parametrize("line", [b"not json\n", b'{"object":{}}\n'])
async def test_line_of_a_watch_that_is_no_event_is_handed_over_as_unreadable(line: bytes) -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked()
        await call.chunk(line)
        await call.chunk(b"")

    async with cluster_on(answer) as (cluster, _), cluster.watch(PODS) as watch:
        assert [[event.type for event in batch] async for batch in watch] == [[codec.UNREADABLE]]


async def test_watch_that_breaks_is_unreachable() -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked()
        await call.chunk(b'{"type":"ADDED","object":{}}\n')
        await asyncio.sleep(0)
        call.writer.close()

    async with cluster_on(answer) as (cluster, _), cluster.watch(PODS) as watch:
        with pytest.raises(Unreachable, match="virtual cluster vc: watch pods"):
            async for _ in watch:
                pass


async def test_exception_in_the_body_of_a_watch_is_passed_on() -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked()
        await call.chunk(b'{"type":"ADDED","object":{}}\n')
        await asyncio.Event().wait()

    async with cluster_on(answer) as (cluster, _):
        with pytest.raises(ConnectionResetError, match="mine"):
            await fail_in_the_body(cluster)


async def fail_in_the_body(cluster: SideClient) -> None:
    async with cluster.watch(PODS) as watch:
        async for _ in watch:
            raise ConnectionResetError("mine")


async def test_missing_server_is_reported_to_the_observer() -> None:
    seen, endpoint = Seen(), Endpoint("127.0.0.1", await free_port(), tls=False)
    cluster = SideClient("host", Side.HOST, plain_transport(endpoint), observer=seen)
    with pytest.raises(Unreachable, match=f"host cluster: get pods shop/web: no connection to {endpoint.authority}"):
        await cluster.get(PODS, WEB)
    with pytest.raises(Unreachable):
        async with cluster.watch(PODS):
            pytest.fail("the watch is open")
    await cluster.close()
    assert seen.requests == [("GET", 0), ("WATCH", 0)]


async def test_requests_have_the_deadline_of_the_cluster() -> None:
    async def answer(call: Call) -> None:
        await asyncio.Event().wait()

    async with cluster_on(answer, timeout=0.05) as (cluster, _):
        with pytest.raises(Unreachable, match="no reply in time"):
            await cluster.get(PODS, WEB)


def test_error_page_of_a_proxy_is_an_error_too() -> None:
    with pytest.raises(Unreachable, match="status 502"):
        asyncio.run(html_reply())


async def html_reply() -> None:
    async with cluster_on(lambda call: call.reply(502, b"<html>")) as (cluster, _):
        await cluster.fetch("/version")


async def test_fetched_document_that_is_no_object_is_malformed() -> None:
    async with cluster_on(lambda call: call.reply(200, b"[]")) as (cluster, _):
        with pytest.raises(codec.DecodeError, match="/version is no JSON object"):
            await cluster.fetch("/version")
