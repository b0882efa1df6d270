"""The in-process API server on a thread of its own, over HTTP."""

import asyncio
import gc
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
import warnings
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from kube_envtest import ApiServer, BackgroundApiServer, Rule, User

#: Seconds, after which a test gives up.
PATIENCE = 60.0
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
PATH = "/api/v1/namespaces/shop/configmaps"


def fetch(server: BackgroundApiServer, path: str, **options: Any) -> Any:
    with urllib.request.urlopen(server.url + path, timeout=PATIENCE, **options) as reply:
        return json.load(reply)


def test_objects_that_are_put_are_served_and_the_other_way_round(api_server: BackgroundApiServer) -> None:
    made = api_server.put(CONFIG_MAP)
    assert fetch(api_server, f"{PATH}/a") == made
    assert api_server.get("configmaps", "shop/a") == made
    assert made in api_server.objects("configmaps", "shop")
    api_server.delete("configmaps", "shop/a")
    assert api_server.get("configmaps", "shop/a") is None


def test_watch_delivers_at_once_the_object_put_by_another_thread(api_server: BackgroundApiServer) -> None:
    api_server.put(CONFIG_MAP)
    revision = api_server.call(lambda server: server.revision)
    url = f"{api_server.url}/api/v1/configmaps?watch=1&resourceVersion={revision}"
    with urllib.request.urlopen(url, timeout=PATIENCE) as stream:
        api_server.put(CONFIG_MAP | {"data": {"x": "1"}})
        event = json.loads(stream.readline())
    assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"x": "1"})


def test_watch_is_closed_with_its_connection(api_server: BackgroundApiServer) -> None:
    with urllib.request.urlopen(f"{api_server.url}/api/v1/configmaps?watch=1", timeout=PATIENCE):
        assert api_server.call(lambda server: server.open_watches) == 1
    deadline = time.monotonic() + PATIENCE
    while api_server.call(lambda server: server.open_watches):
        assert time.monotonic() < deadline, "the watch is still open"
        time.sleep(0.01)


def test_connection_is_reset_after_the_effect(api_server: BackgroundApiServer) -> None:
    api_server.call(lambda server: server.faults.add(Rule(verb="create", reset="after", count=1)))
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{api_server.url}/api/v1/namespaces/default/configmaps", body, headers)
    with pytest.raises((RemoteDisconnected, ConnectionResetError)):
        urllib.request.urlopen(request, timeout=PATIENCE)
    assert api_server.get("configmaps", "default/a") is not None


def test_kubeconfig_is_private_and_its_token_counts(tmp_path: Path) -> None:
    tokens = {"t": User("bob")}
    with BackgroundApiServer(tls=True, rbac=True, tokens=tokens) as server:
        path = server.kubeconfig(tmp_path / "config", "bob")
        assert path.stat().st_mode & 0o777 == 0o600
        config = yaml.safe_load(path.read_text())
        assert config["clusters"][0]["cluster"]["server"] == server.url
        assert server.url.startswith("https://")
        trust = ssl.create_default_context(cadata=server.certificate)
        token = config["users"][0]["user"]["token"]
        request = urllib.request.Request(server.url + PATH, headers={"Authorization": f"Bearer {token}"})
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=PATIENCE, context=trust)
        assert caught.value.code == 403
        assert 'User "bob" cannot list' in json.load(caught.value)["message"]
        caught.value.close()


def test_stopped_server_leaves_no_thread_and_no_port() -> None:
    with BackgroundApiServer() as server:
        url = server.url
        assert "kube-envtest-apiserver" in {thread.name for thread in threading.enumerate()}
    assert "kube-envtest-apiserver" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(url, timeout=PATIENCE)


@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("tls", [False, True])
def test_connection_accepted_as_the_server_stops_is_closed(tls: bool, steps: int) -> None:
    async def scenario() -> None:
        server = ApiServer()
        address = urlsplit(await server.start(tls=tls))
        with socket.create_connection((address.hostname, address.port)):
            for _ in range(steps):  # of the loop, in one of which the connection is accepted
                await asyncio.sleep(0)
            await server.stop()

    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        asyncio.run(scenario())
        gc.collect()
    assert [str(each.message) for each in complaints] == []
