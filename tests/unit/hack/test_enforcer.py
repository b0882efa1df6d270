"""The enforcer of NetworkPolicies sets the rules of what it sees; what they do is tested in test_network_policies."""

import asyncio
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from hack.realnode.enforcer import Enforcer
from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.clusters.client import Client
from syncer.multicluster import Cluster
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.testing.in_process import ApiServer
from syncer.testing.objects import build, pod


def running_pod(name: str, address: str, **status: object) -> Obj:
    return pod(name, status={"phase": "Running", "podIP": address, **status})


async def test_rules_follow_policies_and_pods_and_are_not_set_again_without_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules: list[str] = []

    def run(command: list[str], *, input: str, **_: Any) -> None:  # noqa: A002 — the name in subprocess
        assert command == ["nft", "-f", "-"]
        rules.append(input)

    async def to_thread(function: Callable[..., None], *arguments: object, **named: object) -> None:
        function(*arguments, **named)  # virtual time waits for no thread

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(asyncio, "to_thread", to_thread)

    async def set_within(seconds: float) -> str:
        """Return the only rules that have been set meanwhile; ``""`` if there are none."""
        await asyncio.sleep(seconds)
        taken = [*rules]
        rules.clear()
        assert len(taken) < 2
        return "".join(taken)

    server = ApiServer(controllers=False)
    server.put(build(NETWORK_POLICIES, "closed", namespace="shop", spec={"podSelector": {}}))
    server.put(running_pod("web", "10.0.0.7"))
    server.faults.add(slow := Rule(verb="list", resource="namespaces", latency=5.0))
    async with helped_by(Enforcer(Cluster("node", Client("node", server.transport()))).run()):
        assert await set_within(4) == ""  # not before everything is listed
        assert "10.0.0.7" in await set_within(4)
        server.faults.remove(slow)
        server.put(running_pod("web", "10.0.0.7", message="a change that concerns no policy"))
        assert await set_within(4) == ""
        server.put(running_pod("new", "10.0.0.8"))
        assert "10.0.0.8" in await set_within(4)
        server.faults.add(down := Rule(reset="before"))
        server.cut_watches()
        server.delete("pods", Key("shop", "web"))
        await asyncio.sleep(4)
        server.faults.remove(down)
        assert "10.0.0.7" not in (await set_within(60) or "10.0.0.7")
        server.delete("networkpolicies.networking.k8s.io", Key("shop", "closed"))
        assert "10.0.0.8" not in (await set_within(4) or "10.0.0.8")
