"""The in-process API server, connected to the daemon's client through memory; the message if it
isn't installed.
"""

import sys
from typing import Any

import pytest

import syncer.testing
from kube_envtest import Rule
from syncer.api import Key, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, HttpRequest
from syncer.testing import ApiServer

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
PATH = "/api/v1/configmaps"


async def test_cluster_reads_and_writes_through_memory() -> None:
    server = ApiServer()
    cluster = SideClient("host", Side.HOST, server.transport())
    made = await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    assert made == server.get(CONFIG_MAPS, Key("default", "a"))


@pytest.mark.parametrize(
    ("fault", "error"),
    [({"latency": 60.0}, DeadlineExceeded), ({"reset": "before"}, ConnectionFailed)],
    ids=["late", "reset"],
)
async def test_request_without_an_answer_raises_the_error_of_the_transport(
    fault: dict[str, Any], error: type[Exception]
) -> None:
    server = ApiServer()
    server.faults.add(Rule(**fault))
    with pytest.raises(error) as caught:
        await server.transport().send(HttpRequest("GET", PATH))
    assert type(caught.value) is error
    with pytest.raises(error):
        async with server.transport().stream(HttpRequest("GET", f"{PATH}?watch=1")):
            pass


async def test_stream_that_is_cut_or_silent_raises_the_error_of_the_transport() -> None:
    server = ApiServer()
    watch = HttpRequest("GET", f"{PATH}?watch=1&resourceVersion={server.revision}", idle_timeout=5.0)
    async with server.transport().stream(watch) as stream:
        server.cut_watches()
        with pytest.raises(ConnectionFailed):
            await anext(aiter(stream))
    async with server.transport().stream(watch) as stream:
        with pytest.raises(DeadlineExceeded):
            await anext(aiter(stream))
    assert server.open_watches == 0


@pytest.mark.parametrize("name", ["ApiServer", "ControlPlane"])
def test_missing_server_is_named_with_the_package_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] == "kube_envtest"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, "syncer.testing.in_process")
    monkeypatch.setitem(sys.modules, "kube_envtest", None)
    with pytest.raises(ImportError, match=rf"^syncer\.testing\.{name} needs .* `pip install ./plugins/envtest"):
        getattr(syncer.testing, name)
