"""Measure the daemon with many CustomResourceDefinitions on the host, some of them public; JSON
lines.

``start`` is a new virtual cluster, from the start of the process; ``plain`` is the time that the
same CRDs take a client that does nothing else; ``restart`` is with all in place.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import uvloop

from hack.bench.daemon import Daemon, two_planes
from hack.endings import interrupt_on_sigterm
from hack.planes import find_programs
from kube_envtest import ControlPlane
from syncer.api import Obj, Side, dig, labels_of
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.clusters.discovery import Discovery
from syncer.resources.definitions.config import PUBLIC_LABEL
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS
from syncer.testing.objects import crd, crd_version

HOST_NAMESPACE = "vc-shop"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
#: The smallest CRD, in bytes; those of cert-manager and prometheus-operator have 10 KB to 500 KB.
SMALLEST = 10_000
#: The largest CRD, in bytes.
LARGEST = 40_000
#: Where the API groups are.
GROUP = "bench.example.com"
#: Polling interval, in seconds.
POLL = 0.2
#: Concurrent requests.
CONCURRENCY = 16
WORDS = (
    "volume",
    "replica",
    "backend",
    "policy",
    "window",
    "schedule",
    "endpoint",
    "region",
    "bucket",
    "retention",
)


def make(number: int, *, public: bool) -> Obj:
    """Return a CRD with a schema of random size, the same for the same number."""
    rng = random.Random(number)
    size = rng.randint(SMALLEST, LARGEST)
    properties = dict[str, Any]()
    while len(json.dumps(properties)) < size:
        properties[f"{rng.choice(WORDS)}{len(properties)}"] = _part(rng)
    schema = {"properties": {"spec": {"properties": properties}}}
    version = crd_version("v1", storage=True, schema={"openAPIV3Schema": schema})
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["x-kubernetes-preserve-unknown-fields"]
    labels = {PUBLIC_LABEL: "true"} if public else {}
    return crd(f"{_plural(number)}.g{number % 30}.{GROUP}", [version], metadata={"labels": labels})


def _plural(number: int) -> str:
    return f"kind{chr(97 + number % 26)}{number}s"


def _part(rng: random.Random) -> Obj:
    """Return an object schema with some fields and long descriptions, like generated schemas."""
    fields: dict[str, Any] = {
        f"{rng.choice(WORDS)}{field}": {
            "type": rng.choice(["string", "integer", "boolean"]),
            "description": " ".join(rng.choices(WORDS, k=rng.randint(8, 40))),
        }
        for field in range(rng.randint(3, 9))
    }
    fields["items"] = {
        "type": "array",
        "items": {"type": "object", "properties": dict(list(fields.items())[:3])},
    }
    return {
        "type": "object",
        "description": " ".join(rng.choices(WORDS, k=30)),
        "properties": fields,
    }


class Arrivals:
    """The CRDs that a cluster has and serves, by a watch."""

    def __init__(self, cluster: SideClient, wanted: int) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._there = set[str]()
        self._served = set[str]()
        self.there = asyncio.Event()
        self.served = asyncio.Event()

    async def run(self) -> None:
        """Watch until all are served."""
        async with self._cluster.watch(CUSTOM_RESOURCE_DEFINITIONS, resource_version="0") as events:
            async for batch in events:
                for event in batch:
                    self._see(codec.decode(event.object))
                if self.served.is_set():
                    return

    def _see(self, obj: Obj) -> None:
        if PUBLIC_LABEL not in labels_of(obj):
            return
        name = obj["metadata"]["name"]
        self._there.add(name)
        conditions = dig(obj, "status.conditions") or ()
        if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
            self._served.add(name)
        if len(self._there) >= self._wanted:
            self.there.set()
        if len(self._served) >= self._wanted:
            self.served.set()


class Bench:
    """A run of the benchmark."""

    def __init__(
        self, options: argparse.Namespace, virtual: ControlPlane, host: ControlPlane, folder: Path
    ) -> None:
        self.options = options
        self.virtual = virtual
        self.host = host
        self.public = [make(number, public=True) for number in range(options.public)]
        self.others = [make(number, public=False) for number in range(options.public, options.n)]
        self.daemon = Daemon(self._config(), folder)

    async def run(self) -> None:
        """Run all phases."""
        host = _connect(self.host, Side.HOST)
        virtual = _connect(self.virtual, Side.VIRTUAL)
        try:
            await _create_all(host, [*self.others, *self.public])
            await _discovered(host, self.options.n)
            sizes = [len(json.dumps(each)) for each in self.public]
            self._print("given", {"kb_each": sum(sizes) / len(sizes) / 1000})
            await self._start("start", virtual)
            self.daemon.stop()
            await self._start("restart", virtual)
        finally:
            self.daemon.stop()
            await host.close()
            await virtual.close()

    async def _start(self, phase: str, virtual: SideClient) -> None:
        arrivals = Arrivals(virtual, len(self.public))
        watching = asyncio.create_task(arrivals.run())
        await asyncio.sleep(0.5)
        began = time.perf_counter()
        line = dict[str, Any]()
        self.daemon.spawn()
        for name, waiting in (
            ("ready_s", asyncio.to_thread(self.daemon.wait_ready)),
            ("all_there_s", arrivals.there.wait()),
            ("all_established_s", arrivals.served.wait()),
            ("custom_at_work_s", self._at_work()),
            ("still_s", asyncio.to_thread(self.daemon.wait_still)),
        ):
            await waiting
            line[name] = time.perf_counter() - began
        await watching
        self._print(phase, line | self._cost())

    async def _at_work(self) -> None:
        """Wait until the custom resources to sync are watched on both sides."""
        while self._watched(GROUP) < 2 * self.options.custom:  # noqa: ASYNC110 — there is no event for it
            await asyncio.sleep(POLL)

    def _watched(self, group: str = "") -> int:
        return sum(
            name == "syncer_cache_objects" and group in labels
            for name, labels in self.daemon.samples()
        )

    def _cost(self) -> dict[str, Any]:
        cpu = self.daemon.cpu()
        rss = self.daemon.rss()
        samples = self.daemon.samples()
        calls = self.daemon.calls()
        return {
            "cpu_s": cpu,
            "rss_mb": round(rss, 1),
            "watches": self._watched(),
            "watches_of_custom_kinds": self._watched(GROUP),
            "crds_watched_on_the_host": sum(
                value
                for (name, labels), value in samples.items()
                if name == "syncer_cache_objects"
                and 'side="host"' in labels
                and "customresourcedefinitions" in labels
            ),
            "writes": sum(calls.get(method, 0) for method in WRITES),
            "futile": self.daemon.total("syncer_futile_writes_total"),
            "calls": calls,
        }

    def _config(self) -> dict[str, Any]:
        wanted: dict[str, Obj] = {
            each["metadata"]["name"]: {} for each in self.public[: self.options.custom]
        }
        return {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": "shop",
            "virtual": {"kubeconfig": str(self.virtual.kubeconfig())},
            "host": {"kubeconfig": str(self.host.kubeconfig()), "namespace": HOST_NAMESPACE},
            "networking": {"apiServer": {"host": "10.96.0.1"}},
            "sync": {
                "fromHost": {"customResourceDefinitions": {"enabled": True}},
                "custom": wanted,
            },
            "log": {"level": "warning"},
        }

    def _print(self, phase: str, figures: dict[str, Any]) -> None:
        _print(
            phase,
            {"crds": self.options.n, "public": self.options.public, "custom": self.options.custom}
            | figures,
        )


async def plain(options: argparse.Namespace, plane: ControlPlane) -> None:
    """Measure the API server itself: the public CRDs from a client that only creates them."""
    cluster = _connect(plane, Side.VIRTUAL)
    arrivals = Arrivals(cluster, options.public)
    watching = asyncio.create_task(arrivals.run())
    await asyncio.sleep(0.5)
    began = time.perf_counter()
    created = await _create_all(
        cluster, [make(number, public=True) for number in range(options.public)]
    )
    await watching
    established = time.perf_counter() - began
    await _discovered(cluster, options.public)
    _print(
        "plain",
        {
            "public": options.public,
            "created_s": created,
            "all_established_s": established,
            "all_discovered_s": time.perf_counter() - began,
        },
    )
    await cluster.close()


async def _discovered(cluster: SideClient, number: int) -> None:
    """Wait until an API server's discovery has this number of kinds;
    it takes seconds if many are new.
    """
    discovery = Discovery(cluster)
    while sum(GROUP in resource.group for resource in discovery.resources()) < number:
        await asyncio.sleep(POLL)
        await discovery.refresh()


async def _create_all(cluster: SideClient, objects: Iterable[Obj]) -> float:
    queue = iter(objects)
    began = time.perf_counter()

    async def creator() -> None:
        for obj in queue:
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, obj)

    await asyncio.gather(*(creator() for _ in range(CONCURRENCY)))
    return time.perf_counter() - began


def _connect(plane: ControlPlane, side: Side) -> SideClient:
    return connect(ConnectionSettings(str(plane.kubeconfig())), side=side, environ={})


def _print(phase: str, figures: dict[str, Any]) -> None:
    rounded = {
        name: round(value, 2) if isinstance(value, float) else value
        for name, value in figures.items()
    }
    print(json.dumps({"phase": phase} | rounded), flush=True)


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="hack/bench/crds", description=__doc__)
    parser.add_argument("-n", type=int, default=300, help="CRDs on the host")
    parser.add_argument("--public", type=int, default=50, help="how many of them are public")
    parser.add_argument(
        "--custom", type=int, default=5, help="how many of those have their objects synced"
    )
    options = parser.parse_args()
    if not 0 <= options.custom <= options.public <= options.n:
        parser.error("expected --custom <= --public <= -n")
    return options


def main() -> None:
    """Start the control planes and measure."""
    options = parse()
    with two_planes() as (virtual, host, folder):
        host.kubectl("create", "namespace", HOST_NAMESPACE)
        uvloop.run(Bench(options, virtual, host, folder).run())
    with ControlPlane("plain", programs=find_programs()) as plane:
        uvloop.run(plain(options, plane))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
