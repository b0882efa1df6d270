"""A trouble of the kubelet's server is shown, and ends nothing else, not even the server."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from harness import CLUSTER, Daemon, Two, built_in, connected, play, until
from small_syncers import Maps

from hack.ports import free_port
from syncer.api.objects import Key, Side, key_of
from syncer.byte_budget import ByteBudget
from syncer.config.options import Kubelet
from syncer.daemon.kubelet.node_server import (
    AGAIN_SECONDS,
    CERTIFICATE_SECONDS,
    LOOK_SECONDS,
    SIGN_AGAIN_SECONDS,
    NodeServer,
    answering,
)
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages import status
from syncer.engine.controllers.pair import Condition
from syncer.kubelet import certificates
from syncer.kubelet.certificates import NotSigned, Serving
from syncer.kubelet.listener import Bounds
from syncer.kubelet.pods import HostedPod
from syncer.kubelet.ports import PortsInUse
from syncer.observe.control import Control
from syncer.resources.kinds import NODES
from syncer.testing.merge import merged
from syncer.testing.objects import pod

NOBODY_VERIFIES = "the certificate can't be verified, as the virtual cluster signs none"


@contextlib.asynccontextmanager
async def kubelet(daemon: Daemon, **options: Any) -> AsyncIterator[None]:
    served = connected(daemon)
    section = Kubelet(**{"enabled": True, "address": "127.0.0.1", "listen": "127.0.0.1", **options})
    async with answering(served, section, PortsInUse(), ByteBudget()):
        await asyncio.sleep(1.0)
        yield


@contextlib.asynccontextmanager
async def with_a_node(two: Two) -> AsyncIterator[Daemon]:
    """Run a daemon that stands in for a node of the host, as a Pod runs there."""
    two.virtual.put(pod("web"))
    async with two.daemon(built_in("pods", "nodes", "serviceaccounts")) as daemon:
        await daemon.settled()
        two.host.put(merged(two.copy("pods", "web") or {}, {"spec": {"nodeName": "node-1"}}))
        await daemon.settled()
        yield daemon


def public(daemon: Daemon) -> str:
    """Return the health page's text about the kubelet."""
    return status.degraded(daemon.process, details=False).get((CLUSTER, "kubelet"), "")


async def test_unsigned_certificate_is_shown_and_blocks_no_syncer(two: Two) -> None:
    async with two.daemon([Maps]) as daemon, kubelet(daemon):
        await daemon.settled()
        assert public(daemon).startswith(NOBODY_VERIFIES)
        control = Control()
        control_api.add(control, daemon.process)
        _, rows = await control.answer("GET", "/status", {})
        found = {row["syncer"]: (row["state"], row["reason"]) for row in json.loads(json.dumps(rows))}
        assert found["maps"][0] == "ready"
        assert found["kubelet"][0] == "degraded"
        assert found["kubelet"][1].startswith(NOBODY_VERIFIES)
        assert status.hindered(daemon.process) == {}


def test_certificate_is_requested_again_until_one_is_signed_and_a_signed_one_is_kept_to_its_end(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller manager that starts late, or fails at the time of a renewal, costs no trust for a year."""
    asked: list[float] = []
    may_sign = False

    async def signed(virtual: Any, addresses: Sequence[str]) -> Serving:
        asked.append(asyncio.get_running_loop().time())
        if not may_sign:
            raise NotSigned("no controller")
        made = certificates.self_signed(addresses)
        return replace(made, is_signed=True, renew_at=made.renew_at - timedelta(days=300))

    monkeypatch.setattr(certificates, "signed", signed)

    async def scenario() -> None:
        nonlocal may_sign
        async with two.daemon([Maps]) as daemon, kubelet(daemon):
            await asyncio.sleep(SIGN_AGAIN_SECONDS - 2 * CERTIFICATE_SECONDS)
            assert public(daemon).startswith(NOBODY_VERIFIES)
            assert len(asked) == 1, "each request is an object in the virtual cluster"
            may_sign = True
            await asyncio.sleep(4 * CERTIFICATE_SECONDS)
            assert "certificate" not in public(daemon)
            before = len(asked)
            assert before > 2, "the new one is to be renewed at once"
            may_sign = False
            await asyncio.sleep(2 * CERTIFICATE_SECONDS)
            assert "and the virtual cluster signs no other one" in public(daemon)
            assert len(asked) == before + 1

    play(scenario)


async def test_figures_are_of_the_containers_that_were_sent(two: Two) -> None:
    """The tenant may give an ephemeral container the name of a sidecar of the host's."""
    two.virtual.put(pod("web"))
    async with two.daemon(built_in("pods", "nodes", "serviceaccounts")) as daemon:
        await until(lambda: two.copy("pods", "web"))
        there = two.copy("pods", "web") or {}
        injected = [*there["spec"]["containers"], {"name": "proxy", "image": "i"}]
        two.host.put(merged(there, {"spec": {"containers": injected, "nodeName": "n1"}}))
        original = two.original("pods", "web") or {}
        two.virtual.put(merged(original, {"spec": {"ephemeralContainers": [{"name": "proxy", "image": "i"}]}}))
        await daemon.settled()
        server = NodeServer(connected(daemon), Kubelet(), PortsInUse(), Bounds(ByteBudget()))
        await server._subscribe()
        found = server._copied(key_of(there))
        assert found is not None
        assert found.containers == {"app"}
        assert [own.containers for own in server._copies("n1").values()] == [{"app"}]


async def test_refusal_of_the_host_is_reported_without_names_of_the_host(two: Two) -> None:
    two.virtual.put(pod("web"))
    async with two.daemon(built_in("pods", "nodes", "serviceaccounts")) as daemon:
        await daemon.settled()
        server, key = (
            NodeServer(connected(daemon), Kubelet(), PortsInUse(), Bounds(ByteBudget())),
            key_of(two.copy("pods", "web") or {}),
        )
        hosted = HostedPod(key, "h-1", Key("default", "web"), "v-1")
        for text, expected in (
            (
                f'path "/var/log/pods/{key.namespace}_{key.name}_h-1/c/0.log"',
                'path "/var/log/pods/default_web_v-1/c/0.log"',
            ),
            (f"pod {key.name}_{key.namespace} not found", "pod web_default not found"),
            (f"pods {key} of {key.namespace}: h-1", "pods default/web of default: v-1"),
        ):
            assert server._for_tenant(hosted, text) == expected


async def test_failure_of_the_server_is_shown_until_it_serves_again(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception]
    follow, failures = NodeServer._follow, [ValueError("odd"), KeyError("of the host")]

    async def failing(self: NodeServer) -> None:
        if failures:
            raise failures.pop()
        await follow(self)

    monkeypatch.setattr(NodeServer, "_follow", failing)
    async with two.daemon([Maps]) as daemon, kubelet(daemon):
        assert "the server failed; restarting: KeyError" in public(daemon)
        assert "of the host" not in public(daemon), "anybody may read that page"
        await asyncio.sleep(3 * AGAIN_SECONDS)
        assert "the server failed" not in public(daemon)
        assert failures == []


def free_pair() -> int:
    """Return a port that no outgoing connection can take, and after which the next is free, too."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
            return port


def test_port_that_others_have_is_shown_and_the_node_gets_another(two: Two) -> None:
    port = free_pair()
    with socket.create_server(("127.0.0.1", port)):

        async def scenario() -> None:
            async with with_a_node(two) as daemon, kubelet(daemon, first_port=port, ports=2):
                await asyncio.sleep(5.0)
                shown = two.virtual.get(NODES.plural, "node-1") or {}
                assert shown["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == port + 1
                assert f"ports that others have: {port}" in public(daemon)

        play(scenario)


async def test_replica_that_begins_to_lead_writes_its_address_at_once(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown() -> bool:
        node = two.virtual.get(NODES.plural, "node-1") or {}
        return bool(node["status"]["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}])

    async with with_a_node(two) as daemon:
        monkeypatch.setattr(daemon.process.served[CLUSTER], "may_write", lambda: False)
        async with kubelet(daemon, first_port=free_port()):
            await asyncio.sleep(1.5 * LOOK_SECONDS)
            assert not shown(), "another replica leads"
            monkeypatch.undo()
            *_, lead = daemon.process.served[CLUSTER]._duties
            await lead()
            await asyncio.sleep(LOOK_SECONDS / 5)
            assert shown()
        assert lead not in daemon.process.served[CLUSTER]._duties


async def test_node_of_a_tenant_that_changes_again_and_again_has_no_other_node_read(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(150):
        two.virtual.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"own-{number}"}})
    async with with_a_node(two) as daemon:
        port = free_port()
        async with kubelet(daemon, first_port=port):
            await asyncio.sleep(5.0)
            shown = two.virtual.get(NODES.plural, "node-1") or {}
            assert shown["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == port
            read: list[str] = []
            store = daemon.process.pairs[CLUSTER].informers.store(Side.VIRTUAL, NODES)
            get = store.get

            def counted(key: Key) -> Any:
                read.append(key.name)
                return get(key)

            monkeypatch.setattr(store, "get", counted)
            for number in range(20):
                node = two.virtual.get(NODES.plural, "own-1") or {}
                two.virtual.put(merged(node, {"metadata": {"labels": {"number": str(number)}}}))
                await asyncio.sleep(0.5)
            assert {name for name in read if name != "own-1"} <= {"node-1"}
            forged = merged(node, {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}})
            two.virtual.put(merged(shown, {"status": forged["status"]}))
            await asyncio.sleep(2.0)
            shown = two.virtual.get(NODES.plural, "node-1") or {}
            assert shown["status"]["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}]


async def test_condition_hides_no_error_of_its_syncer(two: Two) -> None:
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        pair = daemon.process.pairs[CLUSTER]
        pair.degrade("maps", Condition("slower than 10.0.0.1", "slow"))
        assert status.degraded(daemon.process)[CLUSTER, "maps"] == "slower than 10.0.0.1"
        assert status.degraded(daemon.process, details=False)[CLUSTER, "maps"] == "slow"
        daemon.process.served[CLUSTER].own_controllers.broken["maps"] = "broken"
        assert status.degraded(daemon.process)[CLUSTER, "maps"] == "broken"
