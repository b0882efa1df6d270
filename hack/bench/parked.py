"""Measure whether failing objects slow down healthy ones; prints JSON.

Two virtual clusters share a host that refuses red ConfigMaps. One has a thousand of them, the other
none. Healthy ones are created in both, one at a time and in turns, and each is timed from the
response to its creation to its copy's event on the host. Half-way, the red ones move to the other
virtual cluster, so that no difference between the two is measured.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from hack.bench.daemon import Daemon
from hack.endings import interrupt_on_sigterm
from hack.planes import find_programs
from hack.side_tasks import helped_by
from kube_envtest import ControlPlane, start_all
from syncer.api import ClusterError, Key, Obj, Resource, Side
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources.kinds import CONFIG_MAPS

NAMES = ("one", "two")
NAMESPACE = "shop"
ADMISSION = "admissionregistration.k8s.io/v1"
POLICIES = Resource(
    ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
BINDINGS = Resource(
    ADMISSION,
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
#: Concurrent creations of red ones.
CONCURRENCY = 16
#: Healthy ones before those that count.
WARM_UP = 20
#: Polling interval, in seconds.
POLL = 0.2


def config_map(name: str, color: str) -> Obj:
    """Return a ConfigMap of some size."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"color": color, "text": "x" * 1000},
    }


@dataclass
class Tenant:
    """A virtual cluster, its daemon, and its latencies in ms without and with the red ones."""

    name: str
    cluster: SideClient
    daemon: Daemon
    latencies: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    cpu: dict[bool, float] = field(default_factory=lambda: {False: 0.0, True: 0.0})

    def parked(self) -> float:
        """Return the number of parked requests of its daemon."""
        return self.daemon.total("syncer_parked")


class Bench:
    """A run of the benchmark."""

    def __init__(
        self, options: argparse.Namespace, tenants: list[Tenant], host: SideClient
    ) -> None:
        self.options = options
        self.tenants = tenants
        self.host = host
        self._arrived: dict[str, asyncio.Future[float]] = {}
        self._numbers = iter(range(1_000_000))

    async def run(self) -> dict[str, Any]:
        """Run both halves."""
        await self._refuse_red()
        async with helped_by(self._watch()):
            await asyncio.sleep(0.5)
            for half in range(2):
                burdened = self.tenants[half]
                await self._burden(burdened)
                await self._by_turns(burdened, WARM_UP, counts=False)
                await self._by_turns(burdened, self.options.n // 2, counts=True)
                await self._relieve(burdened)
        return self._figures()

    # -- the red ones ------------------------------------------------------------------------------

    async def _refuse_red(self) -> None:
        rules = [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
            }
        ]
        has_no_color = "!has(object.data) || !('color' in object.data)"
        red = {"expression": f"{has_no_color} || object.data.color != 'red'"}
        spec = {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{**red, "message": "no red here"}],
        }
        for resource, body in (
            (POLICIES, spec),
            (BINDINGS, {"policyName": "no-red", "validationActions": ["Deny"]}),
        ):
            named = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": "no-red"},
            }
            await self.host.create(resource, {**named, "spec": body})
        trial = config_map("trial", "red")
        trial["metadata"]["namespace"] = f"vc-{NAMES[0]}"
        while True:
            try:
                await self.host.create(CONFIG_MAPS, trial)
            except ClusterError as error:
                if "no red here" in str(error):
                    return
                raise
            await self.host.delete(CONFIG_MAPS, Key(trial["metadata"]["namespace"], "trial"))
            await asyncio.sleep(POLL)

    async def _burden(self, tenant: Tenant) -> None:
        """Create the red ones of a tenant, and wait until all are parked and have their events."""
        names = iter(range(self.options.failing))

        async def writer() -> None:
            for number in names:
                await tenant.cluster.create(CONFIG_MAPS, config_map(f"red-{number}", "red"))

        await asyncio.gather(*(writer() for _ in range(CONCURRENCY)))
        while await asyncio.to_thread(tenant.parked) < self.options.failing:  # noqa: ASYNC110 — no event for it
            await asyncio.sleep(POLL)
        await self._calm(tenant)

    async def _calm(self, tenant: Tenant) -> None:
        """Wait until its daemon sends no more requests."""
        before: dict[str, float] = {}
        now = await asyncio.to_thread(tenant.daemon.calls)
        while now != before:
            await asyncio.sleep(5 * POLL)
            before = now
            now = await asyncio.to_thread(tenant.daemon.calls)

    async def _relieve(self, tenant: Tenant) -> None:
        names = iter(range(self.options.failing))

        async def writer() -> None:
            for number in names:
                await tenant.cluster.delete(CONFIG_MAPS, Key(NAMESPACE, f"red-{number}"))

        await asyncio.gather(*(writer() for _ in range(CONCURRENCY)))
        while await asyncio.to_thread(tenant.parked):  # noqa: ASYNC110 — no event for it
            await asyncio.sleep(POLL)

    # -- the fine ones -----------------------------------------------------------------------------

    async def _by_turns(self, burdened: Tenant, n: int, *, counts: bool) -> None:
        before = {tenant.name: tenant.daemon.cpu() for tenant in self.tenants}
        for turn in range(n):
            for tenant in self.tenants if turn % 2 else reversed(self.tenants):
                taken = await self._one(tenant)
                if counts:
                    tenant.latencies[tenant is burdened].append(taken)
        for tenant in self.tenants if counts else ():
            tenant.cpu[tenant is burdened] += tenant.daemon.cpu() - before[tenant.name]

    async def _one(self, tenant: Tenant) -> float:
        """Create a healthy one; return the milliseconds until its copy exists."""
        name = f"fine-{next(self._numbers)}"
        arrived: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._arrived[name] = arrived
        await tenant.cluster.create(CONFIG_MAPS, config_map(name, "blue"))
        written = time.perf_counter()
        async with asyncio.timeout(60):
            at = await arrived
        del self._arrived[name]
        return max(at - written, 0.0) * 1000

    async def _watch(self) -> None:
        async with self.host.watch(
            CONFIG_MAPS, selector="vsyncer.dev/cluster", resource_version="0"
        ) as events:
            async for batch in events:
                now = time.perf_counter()
                for event in batch:
                    name = codec.head(event.object).key.name.partition("-x-")[0]
                    arrived = self._arrived.get(name)
                    if event.type == "ADDED" and arrived and not arrived.done():
                        arrived.set_result(now)

    def _figures(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bench": "parked",
            "failing": self.options.failing,
            "n": self.options.n,
        }
        for name, burdened in (("without", False), ("with", True)):
            times = [taken for tenant in self.tenants for taken in tenant.latencies[burdened]]
            points = statistics.quantiles(times, n=100)
            cpu = sum(tenant.cpu[burdened] for tenant in self.tenants)
            found[name] = {
                "p50_ms": round(points[49], 2),
                "p99_ms": round(points[98], 2),
                "cpu_ms_per_object": round(cpu * 1000 / len(times), 2),
            }
        change = found["with"]["p99_ms"] / found["without"]["p99_ms"] - 1
        return {**found, "p99_change_percent": round(100 * change, 1)}


@contextmanager
def planes() -> Iterator[tuple[list[ControlPlane], Path]]:
    """Yield two virtual clusters and a host, and a folder."""
    found = find_programs()
    made = [ControlPlane(name, programs=found) for name in (*NAMES, "host")]
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as folder:
        start_all(*made)
        try:
            yield made, Path(folder)
        finally:
            for plane in made:
                plane.stop()


def daemon_of(name: str, plane: ControlPlane, host: ControlPlane, folder: Path) -> Daemon:
    """Return the daemon of a virtual cluster."""
    config = {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": name,
        "virtual": {"kubeconfig": str(plane.kubeconfig())},
        "host": {"kubeconfig": str(host.kubeconfig()), "namespace": f"vc-{name}"},
        "networking": {"apiServer": {"host": "10.96.0.1"}},
        "sync": {"toHost": {"configMaps": {"all": True}}},
        "log": {"level": "error"},
    }
    own = folder / name
    own.mkdir()
    return Daemon(config, own)


async def measure(
    options: argparse.Namespace, pair: list[ControlPlane], folder: Path
) -> dict[str, Any]:
    """Start the daemons and run the benchmark."""
    *virtuals, host = pair
    tenants = [
        Tenant(name, _connect(plane, Side.VIRTUAL), daemon_of(name, plane, host, folder))
        for name, plane in zip(NAMES, virtuals, strict=True)
    ]
    there = _connect(host, Side.HOST)
    try:
        for tenant in tenants:
            await asyncio.to_thread(tenant.daemon.start)
        return await Bench(options, tenants, there).run()
    finally:
        for tenant in tenants:
            tenant.daemon.stop()
            print(tenant.daemon.log.read_text()[-2000:], file=sys.stderr)
        for cluster in (there, *(tenant.cluster for tenant in tenants)):
            await cluster.close()


def _connect(plane: ControlPlane, side: Side) -> SideClient:
    return connect(ConnectionSettings(str(plane.kubeconfig()), ""), side=side, environ={})


def main() -> None:
    """Start three control planes and run the benchmark."""
    parser = argparse.ArgumentParser(prog="hack/bench/parked", description=__doc__)
    parser.add_argument("-n", type=int, default=200, help="fine objects in each of both cases")
    parser.add_argument("--failing", type=int, default=1000, help="objects that the host refuses")
    options = parser.parse_args()
    with planes() as (pair, folder):
        for name, plane in zip(NAMES, pair, strict=False):
            plane.kubectl("create", "namespace", NAMESPACE)
            pair[-1].kubectl("create", "namespace", f"vc-{name}")
        print(json.dumps(uvloop.run(measure(options, pair, folder))))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
