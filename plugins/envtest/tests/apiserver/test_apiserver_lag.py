"""An API server whose lists and watches have fallen behind, and the reports of all changes with their authors."""

import asyncio
import json
from typing import Any

import pytest

from kube_envtest import ApiServer, Change, Reply

Obj = dict[str, Any]

MAPS = "/api/v1/namespaces/default/configmaps"


def put(server: ApiServer, name: str, color: str = "blue") -> int:
    """Store a ConfigMap; gives the revision of that."""
    server.put(configmap(name, color))
    return server.revision


def configmap(name: str, color: str) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}}


async def get(server: ApiServer, path: str, user: str = "admin") -> Reply:
    return await server.client(user).request("GET", path)


async def listed(server: ApiServer, user: str = "admin", query: str = "") -> tuple[list[str], int]:
    """Return the names and colours of a list, and its version."""
    body = json.loads((await get(server, MAPS + query, user)).body)
    items = [one for one in body["items"] if one["metadata"]["name"] != "kube-root-ca.crt"]
    shown = [f"{one['metadata']['name']} {one['data']['color']}" for one in items]
    return shown, int(body["metadata"]["resourceVersion"])


class Follower:
    """Reads a watch into a list."""

    def __init__(self, server: ApiServer, revision: int, user: str = "admin", query: str = "") -> None:
        self.received: list[str] = []
        self.task = asyncio.ensure_future(self._read(server, f"{MAPS}?watch=1&resourceVersion={revision}{query}", user))

    async def _read(self, server: ApiServer, path: str, user: str) -> None:
        async with server.client(user).stream(path) as stream:
            async for batch in stream:
                self.received += [shown(json.loads(line)) for line in batch]


def shown(event: Obj) -> str:
    obj = event["object"]
    if event["type"] in ("ERROR", "BOOKMARK"):
        return f"{event['type']} {obj.get('code') or obj['metadata']['resourceVersion']}"
    return f"{event['type']} {obj['metadata']['name']} {obj['data']['color']}"


async def test_a_list_is_as_of_then_and_a_get_as_of_now() -> None:
    server = ApiServer()
    put(server, "a")
    then = put(server, "b")
    put(server, "a", "red")
    server.delete("configmaps", "default/b")
    put(server, "c")
    lag = server.lag(then)
    assert await listed(server) == (["a blue", "b blue"], then)
    assert json.loads((await get(server, f"{MAPS}/a")).body)["data"] == {"color": "red"}
    assert (await get(server, f"{MAPS}/b")).status == 404
    lag.end()
    assert await listed(server) == (["a red", "c blue"], server.revision)


async def test_the_pages_of_a_list_are_all_as_of_then() -> None:
    server = ApiServer()
    for name in "abc":
        put(server, name)
    then = server.revision
    put(server, "bb")
    server.lag(then)
    names, query = [], "?limit=2"
    while query:
        body = json.loads((await get(server, MAPS + query)).body)
        names += [one["metadata"]["name"] for one in body["items"]]
        assert body["metadata"]["resourceVersion"] == str(then)
        token = body["metadata"].get("continue")
        query = f"?limit=2&continue={token}" if token else ""
    assert names == ["a", "b", "c", "kube-root-ca.crt"]


async def test_a_watch_from_then_on_shows_nothing_until_the_server_has_caught_up() -> None:
    server = ApiServer()
    then = put(server, "a")
    put(server, "a", "red")
    lag = server.lag(then)
    follower = Follower(server, then)
    await asyncio.sleep(1)
    put(server, "b")
    await asyncio.sleep(1)
    assert follower.received == []
    lag.end()
    await asyncio.sleep(1)
    put(server, "c")
    await asyncio.sleep(1)
    assert follower.received == ["MODIFIED a red", "ADDED b blue", "ADDED c blue"]


async def test_an_open_watch_stalls_and_goes_on_where_it_was() -> None:
    server = ApiServer()
    then = put(server, "a")
    follower = Follower(server, then, query="&allowWatchBookmarks=true")
    await asyncio.sleep(1)
    put(server, "a", "red")
    await asyncio.sleep(1)
    reached = server.revision
    lag = server.lag(then)
    put(server, "b")
    await asyncio.sleep(100)
    assert follower.received == ["MODIFIED a red", f"BOOKMARK {reached}"], "a bookmark never goes back"
    lag.end()
    await asyncio.sleep(1)
    assert follower.received[2:] == ["ADDED b blue"]


async def test_a_lag_with_relist_ends_open_watches_with_410() -> None:
    server = ApiServer()
    then = put(server, "a")
    put(server, "a", "red")
    travels, stays = Follower(server, server.revision, "daemon"), Follower(server, server.revision)
    await asyncio.sleep(1)
    server.lag(then, user="daemon", relist=True)
    await asyncio.sleep(1)
    assert travels.received == ["ERROR 410"]
    assert stays.received == []
    assert server.open_watches == 1
    assert await listed(server, "daemon") == (["a blue"], then)


async def test_only_some_users_and_resources_fall_behind() -> None:
    server = ApiServer()
    then = put(server, "a")
    now = put(server, "a", "red")
    server.lag(then, user="daemon", resource="secrets")
    assert await listed(server, "daemon") == (["a red"], now)
    both = server.lag(then, user="daemon", resource="configmaps")
    assert await listed(server, "daemon") == (["a blue"], then)
    assert await listed(server) == (["a red"], now)
    further = server.lag(then - 1, user="daemon")
    assert await listed(server, "daemon") == ([], then - 1)
    further.end()
    assert await listed(server, "daemon") == (["a blue"], then)
    both.end()
    assert await listed(server, "daemon") == (["a red"], now)


async def test_a_read_of_a_version_that_a_lagging_server_lacks_gets_504() -> None:
    server = ApiServer()
    then = put(server, "a")
    now = put(server, "a", "red")
    server.lag(then)
    reply = await get(server, f"{MAPS}?resourceVersion={now}&resourceVersionMatch=NotOlderThan")
    assert reply.status == 504
    assert json.loads(reply.body)["message"] == f"Too large resource version: {now}, current: {then}"


async def test_initial_events_are_as_of_then() -> None:
    server = ApiServer()
    then = put(server, "a")
    put(server, "a", "red")
    server.lag(then)
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name=a"
    follower = Follower(server, 0, query=query)
    await asyncio.sleep(1)
    assert follower.received == ["ADDED a blue"]


def test_nothing_older_than_the_history_can_be_shown() -> None:
    server = ApiServer()
    then = put(server, "a")
    put(server, "b")
    server.compact()
    with pytest.raises(ValueError, match="is compacted"):
        server.lag(then)
    with pytest.raises(ValueError, match="not reached"):
        server.lag(server.revision + 1)


async def test_followers_get_every_change_with_its_author() -> None:
    server = ApiServer()
    changes: list[Change] = []
    server.follow(changes.append)
    client = server.client("daemon")
    await client.request("POST", MAPS, body=json.dumps(configmap("a", "blue")).encode())
    put(server, "a", "red")
    await client.request("DELETE", f"{MAPS}/a")
    await client.request("DELETE", f"{MAPS}/a")
    reported = [(one.user, one.resource, one.before and one.before["data"], one.after) for one in changes]
    assert [(user, resource, before, bool(after)) for user, resource, before, after in reported] == [
        ("daemon", "configmaps", None, True),
        ("", "configmaps", {"color": "blue"}, True),
        ("daemon", "configmaps", {"color": "red"}, False),
    ]


async def test_changes_by_the_servers_controllers_have_no_author() -> None:
    server = ApiServer()
    owner = server.put(configmap("owner", "blue"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = configmap("owned", "blue")
    owned["metadata"]["ownerReferences"] = [reference]
    server.put(owned)
    changes: list[Change] = []
    server.follow(changes.append)
    await server.client("daemon").request("DELETE", f"{MAPS}/owner")
    assert [(one.user, (one.before or {})["metadata"]["name"]) for one in changes] == [
        ("daemon", "owner"),
        ("", "owned"),
    ]
