"""Run the daemon of an installation between two API servers, and record the path of ConfigMaps."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.bench.daemon import Daemon
from hack.callpath import probe
from hack.callpath.probe import Step
from kube_envtest import ApiServer
from syncer.testing.objects import configmap, namespace

HOST_NAMESPACE = "vc-shop"
#: ConfigMaps that are copied before those that are recorded.
WARM_UP = 20
#: Seconds without a request after which the daemon is idle.
REST = 0.3
#: The timeout for a copy, in seconds.
PATIENCE = 120.0
#: Polling interval for a copy, in seconds.
POLL = 0.02


class NotMeasured(Exception):
    """The daemon made no copy, or none was recorded."""


@dataclass(frozen=True, slots=True)
class CallPaths:
    """The steps of each recorded ConfigMap, and the facility that recorded them."""

    counted_with: str
    steps: Sequence[Sequence[Step]]


async def measure(python: Path, count: int) -> CallPaths:
    """Record `count` ConfigMaps, one after the other, in the daemon installed for `python`."""
    virtual = ApiServer(seed="virtual")
    host = ApiServer(seed="host")
    host.put(namespace(HOST_NAMESPACE))
    virtual.put(namespace("shop"))
    with tempfile.TemporaryDirectory(prefix="syncer-measure-") as name:
        folder = Path(name)
        for server, side in ((virtual, "virtual"), (host, "host")):
            await server.start()
            server.kubeconfig(folder / side)
        records = folder / "records.json"
        command = [str(python), "-I", probe.__file__, str(records), r"measured-\d+"]
        daemon = Daemon(_config(folder), folder, command=command)
        try:
            await asyncio.to_thread(daemon.start)
            for number in range(WARM_UP):
                await _copied(virtual, host, f"warm-up-{number:03d}")
            for number in range(count):
                await _at_rest(virtual, host)
                await _copied(virtual, host, f"measured-{number:03d}")
        finally:
            await asyncio.to_thread(daemon.stop)
            await asyncio.gather(virtual.stop(), host.stop())
        return _read(records)


def _config(folder: Path) -> dict[str, Any]:
    """Return a configuration that every version understands."""
    return {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": "shop",
        "virtual": {"kubeconfig": str(folder / "virtual")},
        "host": {"kubeconfig": str(folder / "host"), "namespace": HOST_NAMESPACE},
        "networking": {"apiServer": {"host": "10.96.0.1"}},
        "sync": {"toHost": {"configMaps": {"all": True}}},
    }


async def _copied(virtual: ApiServer, host: ApiServer, name: str) -> None:
    """Create a virtual ConfigMap and wait for its copy."""
    before = len(host.objects("configmaps", HOST_NAMESPACE))
    virtual.put(configmap(name))
    try:
        async with asyncio.timeout(PATIENCE):
            while len(host.objects("configmaps", HOST_NAMESPACE)) == before:  # noqa: ASYNC110
                await asyncio.sleep(POLL)
    except TimeoutError:
        raise NotMeasured(f"ConfigMap shop/{name} was not copied within {PATIENCE:.0f} s") from None


async def _at_rest(*servers: ApiServer) -> None:
    """Wait until no request has come for a moment."""
    known = -1
    while (now := sum(len(server.requests) for server in servers)) != known:
        known = now
        await asyncio.sleep(REST)


def _read(records: Path) -> CallPaths:
    found = json.loads(records.read_text())
    if not found["records"]:
        raise NotMeasured("no watch event came in through a protocol of asyncio: see probe.observe")
    return CallPaths(
        found["counted_with"],
        [[Step(**step) for step in steps] for steps in found["records"].values()],
    )
