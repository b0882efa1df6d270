"""Tenants together take no more of the daemon's memory than its container has for them."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hostile_scene import DAEMON, HOME, HostileScene, Server, eventually
from noise import noise

from syncer.api import Obj
from syncer.testing.objects import configmap, namespace

#: The limit of the container, and how many Secrets lead to API servers with so many large objects each.
LIMIT, SECRETS, OBJECTS = 64 << 20, 4, 16
#: The most by which the daemon grows, in MB; without a limit for all together it is 200.
GROWTH = 64
TEAM = "team"
LABEL = "vsyncer.dev/virtual-cluster"


def _secret(name: str, kubeconfig: bytes) -> Obj:
    metadata = {"name": name, "namespace": TEAM, "labels": {LABEL: ""}}
    data = {"config": base64.b64encode(kubeconfig).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    """The API servers of whoever may write Secrets in one namespace of the host."""
    with ExitStack() as stack:
        made: list[Server] = []
        for number in range(SECRETS):
            server = Server(f"own{number}", tls=True)
            server.start()
            stack.callback(server.stop)
            server.put(namespace("shop"))
            for each in range(OBJECTS):
                server.put(configmap(f"c{each}", {"k": noise(900_000, each)}))
            made.append(server)
        yield made


@pytest.mark.translators("single-namespace", reason="the memory is the same with any of them")
def test_secrets_of_one_namespace_take_no_memory_of_others(hostile: HostileScene, servers: list[Server]) -> None:
    """Before, no Secret was refused: each virtual cluster took 256 MB of its own."""
    listed = {"name": "vc", "kubeconfig": str(hostile.folder / "virtual"), "hostNamespace": HOME}
    sections: dict[str, Any] = {
        "cluster": None,
        "virtual": None,
        "host": {"namespace": None},
        "virtualClusters": [listed],
        "virtualClusterSecrets": [{"namespace": TEAM, "hostNamespaces": [HOME]}],
        "sync": {"toHost": {"configMaps": {"all": True}}},
    }
    hostile.operator.put(namespace(TEAM))
    hostile.start(command=hostile.limited(LIMIT), **sections)
    hostile.serves_others()
    before = hostile.daemon.rss()
    for number, server in enumerate(servers):
        server.kubeconfig(hostile.folder / f"own{number}", DAEMON.name)
        hostile.operator.put(_secret(f"own{number}", (hostile.folder / f"own{number}").read_bytes()))
    text = "there is no room for it"
    eventually(lambda: text in hostile.output_of("clusters") or "maxMegabytes" in hostile.output_of("parked"), text)
    hostile.serves_others()
    assert hostile.daemon.peak() - before < GROWTH
