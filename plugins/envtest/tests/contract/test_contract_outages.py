"""Outages that clients live through: restarts, compaction, frozen servers."""

import contextlib
from typing import Any

import aiohttp
import pytest
from contract_client import PATIENCE, Api

Obj = dict[str, Any]


def forget(api: Api) -> None:
    """Compact all history away, and what the server remembers of it."""
    if api.server is not None:
        api.server.compact()
        return
    assert api.plane is not None
    api.plane.compact_etcd()
    restart(api)
    api.reconnect()


def restart(api: Api) -> None:
    if api.server is not None:
        api.call_soon(api.server.restart)
        return
    assert api.plane is not None
    api.plane.restart_apiserver()
    api.plane.wait_ready()


def freeze(api: Api) -> None:
    if api.server is not None:
        api.call_soon(api.server.freeze)
    elif api.plane is not None:
        api.plane.freeze()


def thaw(api: Api) -> None:
    if api.server is not None:
        api.call_soon(api.server.thaw)
    elif api.plane is not None:
        api.plane.thaw()


def test_a_restart_breaks_watches_and_keeps_objects(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps"
    made = api.make(path, {"metadata": {"name": "a"}})
    watch = api.watch(f"{path}?resourceVersion={made['metadata']['resourceVersion']}")
    restart(api)
    with contextlib.suppress(aiohttp.ClientError, ConnectionError):
        assert watch.next() is None
    api.reconnect()
    assert api.get(f"{path}/a").json == made


def test_versions_that_were_compacted_away(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps"
    first = api.make(path, {"metadata": {"name": "a"}})["metadata"]["resourceVersion"]
    for name in "bc":
        api.make(path, {"metadata": {"name": name}})
    page = api.get(f"{path}?limit=1")
    api.make(path, {"metadata": {"name": "d"}})
    forget(api)

    watch = api.watch(f"{path}?resourceVersion={first}")
    event = watch.next()
    assert event is not None
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {first} (")
    assert watch.next() is None

    answer = api.get(f"{path}?limit=1&continue={page['metadata.continue']}")
    assert (answer.status, answer["reason"]) == (410, "Expired")
    assert answer["message"].startswith(
        "The provided continue parameter is too old to display a consistent list result."
    )
    rest = api.get(f"{path}?limit=500&continue={answer['metadata.continue']}")
    names = [item["metadata"]["name"] for item in rest["items"]]
    assert [name for name in names if len(name) == 1] == ["b", "c", "d"]

    exact = api.get(f"{path}?resourceVersion={first}&resourceVersionMatch=Exact")
    assert (exact.status, exact["reason"]) == (410, "Expired")


@pytest.mark.parametrize("query", ["", "?resourceVersion=0"])
def test_lists_go_on_after_compaction(api: Api, ns: str, query: str) -> None:
    assert api.get(f"/api/v1/namespaces/{ns}/configmaps{query}").status == 200


def test_a_frozen_server_answers_when_it_thaws(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps"
    freeze(api)
    pending = api.begin("POST", path, {"metadata": {"name": "a"}})
    assert not pending.done()
    thaw(api)
    assert pending.result(PATIENCE).status == 201
