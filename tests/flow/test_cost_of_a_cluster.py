"""What each further virtual cluster costs a daemon beyond its objects: docs/scale.md lists it."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clusters_scene import HOME, World
from harness import built_in, play, until

from syncer.config import VirtualCluster, config_with
from syncer.daemon.process import Process
from syncer.daemon.start import connecting
from syncer.names import SingleNamespace

MODEL = config_with(built_in(), translator=SingleNamespace)
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
#: A row with a number alone.
ROW = re.compile(r"^\| ([^|`]+?) \| (\d+) \|$", re.MULTILINE)
#: What a request is, by its verb.
REQUESTS = {"get": "GETs", "list": "lists", "watch": "watches", "create": "questions"}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    content = {"kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context], "users": users}
    path.write_text(json.dumps(content))
    return str(path)


def clusters_with_defaults(kubeconfig: str, names: list[str]) -> tuple[VirtualCluster, ...]:
    """Return virtual clusters with default options, in one host namespace."""
    given = [{"name": name, "kubeconfig": kubeconfig, "hostNamespace": HOME} for name in names]
    networking = {"apiServer": {"host": "10.96.0.1"}}
    return MODEL.model_validate({"virtualClusters": given, "networking": networking}).clusters()


def is_ready(process: Process, names: list[str]) -> bool:
    pairs = process.pairs.values()
    controllers = [each for pair in pairs for each in pair.controllers.values()]
    return len(pairs) == len(names) and bool(controllers) and all(each.ready for each in controllers)


def cost(monkeypatch: pytest.MonkeyPatch, kubeconfig: str, names: list[str]) -> Counter[str]:
    """Return what a daemon with these virtual clusters has at rest, and what it has asked at its second start."""
    found: Counter[str] = Counter()
    world = World(*names)
    monkeypatch.setattr(connecting, "_connect", world.connect)

    async def scenario() -> None:
        loop: Any = asyncio.get_running_loop()
        served = clusters_with_defaults(kubeconfig, names)
        before = len(asyncio.all_tasks())
        for _ in range(2):
            for server in (world.host, *world.servers.values()):
                server.requests.clear()
            async with world.served(*served) as (process, _fleet):
                await until(lambda: is_ready(process, names))
                await asyncio.sleep(5)  # less than until the first probe
                found["tasks"] = len(asyncio.all_tasks()) - before
                found["timers"] = len([each for each in loop._scheduled if not each.cancelled()])
                found["open watches of the host"] = world.host.open_watches
                found["open watches of its API server"] = sum(each.open_watches for each in world.servers.values())
        for where, servers in (("the host", [world.host]), ("its API server", world.servers.values())):
            asked = Counter(REQUESTS[one.verb] for server in servers for one in server.requests)
            for what in REQUESTS.values():
                found[f"{what} of {where} at a start"] = asked[what]

    play(scenario)
    return found


def test_further_virtual_cluster_costs_what_the_page_says(monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
    two = cost(monkeypatch, kubeconfig, ["bank", "pets"])
    three = cost(monkeypatch, kubeconfig, ["bank", "pets", "shop"])
    each = {what: three[what] - two[what] for what in three}
    named = {what: int(number) for what, number in ROW.findall(PAGE.read_text())}
    assert {what: named.get(what) for what in each} == each
