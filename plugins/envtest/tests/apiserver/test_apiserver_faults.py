"""Faults of the in-process API server, as its clients see them, in virtual time."""

import asyncio
import json
from typing import Any

import pytest

from kube_envtest import ApiServer, ConnectionLost, MemoryClient, Reply, Rule, virtual_time

Obj = dict[str, Any]

MAPS = "/api/v1/namespaces/default/configmaps"


async def post(client: MemoryClient, name: str, **options: Any) -> Reply:
    body = json.dumps({"metadata": {"name": name}}).encode()
    return await client.request("POST", MAPS, body=body, **options)


async def lines(client: MemoryClient, path: str, count: int) -> list[Obj]:
    """Return the first events of a watch."""
    found: list[Obj] = []
    async with client.stream(path) as stream:
        async for batch in stream:
            found.extend(json.loads(line) for line in batch)
            if len(found) >= count:
                break
    return found


def status_of(reply: Reply) -> Obj:
    found: Obj = json.loads(reply.body)
    return found


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (409, "Conflict"),
        (410, "Expired"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ],
)
async def test_a_status_instead_of_an_answer(status: int, reason: str) -> None:
    server = ApiServer()
    client = server.client()
    rule = server.faults.add(Rule(verb="create", resource="configmaps", status=status, count=2, retry_after=7))
    for _ in range(2):
        reply = await post(client, "a")
        assert (reply.status, status_of(reply)["reason"]) == (status, reason)
        assert reply.headers.get("retry-after", "7") == "7"
    assert (await post(client, "a")).status == 201
    assert rule.hits == 2
    assert server.get("configmaps", "default/a") is not None


async def test_rewrite_replaces_bodies_and_events() -> None:
    server = ApiServer()
    server.faults.add(Rule(verb="list", resource="configmaps", rewrite=lambda body: body + b"?"))
    server.faults.add(Rule(verb="watch", resource="configmaps", rewrite=lambda line: b'{"was":%d}' % len(line)))
    client = server.client()
    begun = server.revision
    reply = await post(client, "a")
    assert (reply.status, status_of(reply)["metadata"]["name"]) == (201, "a"), "other verbs are as they were"
    assert (await client.request("GET", MAPS)).body.endswith(b"}?")
    async with client.stream(f"{MAPS}?watch=1&resourceVersion={begun}") as stream:
        await post(client, "b")
        expected = await anext(aiter(stream))
    assert json.loads(expected[-1])["was"] > 100


async def test_rules_match_verb_resource_user_and_path() -> None:
    server = ApiServer()
    server.faults.add(Rule(verb="get", status=500))
    server.faults.add(Rule(resource="secrets", status=500))
    server.faults.add(Rule(user="bob", status=500))
    server.faults.add(Rule(path="*/kube-system/*", status=500))
    client = server.client()
    assert (await client.request("GET", "/api/v1/configmaps")).status == 200
    assert (await client.request("GET", "/api/v1/secrets")).status == 500
    assert (await client.request("GET", f"{MAPS}/kube-root-ca.crt")).status == 500
    assert (await client.request("GET", "/api/v1/namespaces/kube-system/pods")).status == 500
    assert (await server.client("bob").request("GET", "/api/v1/configmaps")).status == 500
    server.faults.clear()
    assert (await client.request("GET", f"{MAPS}/kube-root-ca.crt")).status == 200


def test_probability_is_repeatable() -> None:
    async def outcome() -> list[int]:
        server = ApiServer()
        server.faults.add(Rule(verb="list", status=500, probability=0.5))
        return [(await server.client().request("GET", "/api/v1/pods")).status for _ in range(30)]

    first, second = virtual_time.run(outcome()), virtual_time.run(outcome())
    assert first == second
    assert set(first) == {200, 500}


async def test_latency_takes_virtual_time() -> None:
    server = ApiServer()
    server.faults.add(Rule(verb="create", latency=20.0))
    loop = asyncio.get_running_loop()
    assert (await post(server.client(), "a")).status == 201
    assert loop.time() == 20.0
    with pytest.raises(TimeoutError):
        await post(server.client(), "b", timeout=5.0)
    assert loop.time() == 25.0
    assert server.get("configmaps", "default/b") is None


@pytest.mark.parametrize(("reset", "stored"), [("before", False), ("after", True)])
async def test_connections_are_reset_before_or_after_the_effect(reset: str, stored: bool) -> None:
    server = ApiServer()
    server.faults.add(Rule(verb="create", reset=reset, count=1))
    with pytest.raises(ConnectionLost):
        await post(server.client(), "a")
    assert (server.get("configmaps", "default/a") is not None) == stored
    assert server.requests[-1][:4] == ("create", MAPS, "admin", 0)


def test_a_wrong_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="'before' or 'after'"):
        ApiServer().faults.add(Rule(reset="sometimes"))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(drop=True, count=1), ["b", "c", "d"]),
        (Rule(duplicate=True, count=1), ["a", "a", "b", "c"]),
    ],
)
async def test_events_are_dropped_and_repeated(rule: Rule, expected: list[str]) -> None:
    server = ApiServer()
    server.faults.add(rule)
    client = server.client()
    path = f"{MAPS}?watch=1&resourceVersion={server.revision}"
    reading = asyncio.ensure_future(lines(client, path, len(expected)))
    await asyncio.sleep(1)
    for name in "abcd":
        await post(client, name)
    assert [event["object"]["metadata"]["name"] for event in await reading][: len(expected)] == expected


async def test_a_watch_is_cut_in_the_middle() -> None:
    server = ApiServer()
    server.faults.add(Rule(resource="configmaps", cut=True, count=1))
    client = server.client()
    reading = asyncio.ensure_future(lines(client, f"{MAPS}?watch=1&resourceVersion={server.revision}", 1))
    await asyncio.sleep(1)
    assert server.open_watches == 1
    await post(client, "a")
    with pytest.raises(ConnectionLost):
        await reading
    assert server.open_watches == 0


async def test_frozen_and_thawed() -> None:
    server = ApiServer()
    client = server.client()
    watching = asyncio.ensure_future(lines(client, f"{MAPS}?watch=1&resourceVersion={server.revision}", 1))
    await asyncio.sleep(1)
    server.freeze()
    with pytest.raises(TimeoutError):
        await post(client, "a", timeout=10.0)
    server.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "default"}})
    await asyncio.sleep(60)
    assert not watching.done()
    server.thaw()
    assert (await watching)[0]["object"]["metadata"]["name"] == "b"
    assert (await post(client, "a")).status == 201


async def test_a_stream_without_a_byte_is_given_up() -> None:
    server = ApiServer()
    async with server.client().stream(f"{MAPS}?watch=1&resourceVersion=1", idle_timeout=30.0) as stream:
        server.freeze()
        with pytest.raises(TimeoutError):
            _ = [batch async for batch in stream]
    assert asyncio.get_running_loop().time() == 30.0


async def test_restart() -> None:
    server = ApiServer()
    client = server.client()
    await post(client, "a")
    server.faults.add(Rule(verb="create", latency=60.0, count=1))
    pending = asyncio.ensure_future(post(client, "b"))
    watching = asyncio.ensure_future(lines(client, f"{MAPS}?watch=1&resourceVersion={server.revision}", 1))
    await asyncio.sleep(1)
    server.restart(down=10.0)
    for lost in (pending, watching):
        with pytest.raises(ConnectionLost):
            await lost
    assert asyncio.get_running_loop().time() == 1.0, "connections die at once"
    with pytest.raises(ConnectionLost):
        await post(client, "c")
    await asyncio.sleep(10)
    assert (await post(client, "c")).status == 201
    assert [obj["metadata"]["name"] for obj in server.objects("configmaps", "default")][:2] == ["a", "c"]


async def test_compaction() -> None:
    server = ApiServer()
    client = server.client()
    await post(client, "a")
    before = server.revision
    await post(client, "b")
    server.compact()
    [event] = await lines(client, f"{MAPS}?watch=1&resourceVersion={before}", 1)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    watching = asyncio.ensure_future(lines(client, f"{MAPS}?watch=1&resourceVersion={server.revision}", 1))
    await asyncio.sleep(1)
    server.expire_watches()
    [event] = await watching
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")
