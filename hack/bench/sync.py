"""Measures the daemon between two real API servers; one JSON line a phase.

Latency is from the reply to the virtual write to the host's watch event (for pods with ``--life``: from the reply to
the create to the virtual watch event that shows the pod Ready). CPU and memory are the daemon's alone.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from hack.bench.daemon import SYNCER, Daemon, two_planes
from hack.kubelet import Kubelet, is_ready
from kube_envtest import ControlPlane
from syncer.api import Key, Obj, Side, Unreachable
from syncer.clusters import codec
from syncer.clusters.client import Cluster
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICES

NAMESPACE, HOST_NAMESPACE = "shop", "vc-shop"
RESOURCES = {resource.plural: resource for resource in (CONFIG_MAPS, SECRETS, SERVICES, PODS)}
MARK = "vsyncer.dev/cluster=shop.vc-shop"
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def make(kind: str, name: str, revision: int, size: int) -> Obj:
    """An object of about ``size`` bytes of content."""
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": {"revision": str(revision)}}
    resource = RESOURCES[kind]
    obj: Obj = {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata}
    match kind:
        case "configmaps":
            obj["data"] = {"revision": str(revision), "text": "x" * size}
        case "secrets":
            obj["stringData"] = {"revision": str(revision), "text": "x" * size}
        case "services":
            obj["spec"] = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
        case "pods":
            container = {"name": "main", "image": "example.org/shop:1", "env": [{"name": "TEXT", "value": "x" * size}]}
            obj["spec"] = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return obj


@dataclass
class Waiting:
    """What is to arrive: when each was written, and the latency of those that came."""

    written: dict[str, float] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    expected: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, number: int) -> None:
        """Begin a phase."""
        self.written.clear()
        self.arrived.clear()
        self.expected = number
        self.done.clear()

    def arrive(self, name: str) -> None:
        """Something has arrived."""
        self.arrived.setdefault(name, time.perf_counter())
        if len(self.arrived) >= self.expected:
            self.done.set()

    def latencies(self) -> list[float]:
        """Milliseconds from written to arrived."""
        return [max(self.arrived[name] - at, 0.0) * 1000 for name, at in self.written.items() if name in self.arrived]


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, virtual: Cluster, host: Cluster, daemon: Daemon) -> None:
        self.options, self.virtual, self.host, self.daemon = options, virtual, host, daemon
        self.resource = RESOURCES[options.kind]
        self.waiting = Waiting()
        self.wanted: Callable[[str, Obj], str | None] = lambda kind, obj: None
        self.kubelet: Kubelet | None = None

    async def run(self) -> None:
        """All phases."""
        options = self.options
        async with self._background():
            names = [f"object-{number:06d}" for number in range(options.n)]
            await self.phase("create", names, self._create, self._seen("ADDED", 0))
            if not options.life:
                await self.phase("update", names, self._update, self._seen("MODIFIED", 1))
            if options.restart:
                await self.restart()
            if options.idle:
                await self.idle(options.idle)
            await self.phase("delete", names, self._delete, self._gone())

    # -- phases ----------------------------------------------------------------------------------------------------

    async def phase(
        self,
        name: str,
        names: list[str],
        write: Callable[[str], Awaitable[Any]],
        wanted: Callable[[str, Obj], str | None],
    ) -> None:
        """Write all, wait until all has arrived, print what it took."""
        self.wanted = wanted
        self.waiting.expect(len(names))
        calls, cpu, start = self.daemon.calls(), self.daemon.cpu(), time.perf_counter()
        futile = self.daemon.total("syncer_futile_writes_total")
        await self._write_all(names, write)
        async with asyncio.timeout(600):
            await self.waiting.done.wait()
        seconds = time.perf_counter() - start
        await self._calm()
        self._print(
            name, len(names), seconds, cpu, calls, futile=self.daemon.total("syncer_futile_writes_total") - futile
        )

    async def _write_all(self, names: list[str], write: Callable[[str], Awaitable[Any]]) -> None:
        options = self.options
        queue = iter(names)
        begin = time.perf_counter()

        async def writer(slot: int) -> None:
            for name in queue:
                if options.rate:
                    number = int(name.rpartition("-")[2])
                    await asyncio.sleep(max(begin + number / options.rate - time.perf_counter(), 0))
                await write(name)
                self.waiting.written[name] = time.perf_counter()

        await asyncio.gather(*(writer(slot) for slot in range(options.concurrency)))

    async def restart(self) -> None:
        """Stop the daemon and start it with everything there."""
        self.daemon.stop()
        start = time.perf_counter()
        self.daemon.start()
        await asyncio.to_thread(self.daemon.wait_still)
        seconds = time.perf_counter() - start
        self._print("restart", self.options.n, seconds, 0.0, {}, latency=False)

    async def idle(self, seconds: float) -> None:
        """Let nothing happen."""
        calls, cpu, start = self.daemon.calls(), self.daemon.cpu(), time.perf_counter()
        await asyncio.sleep(seconds)
        used = self.daemon.cpu() - cpu
        extra = {"cpu_percent": round(100 * used / (time.perf_counter() - start), 3)}
        self._print("idle", self.options.n, time.perf_counter() - start, cpu, calls, latency=False, **extra)

    async def _calm(self) -> None:
        """Wait until the daemon has nothing to do."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0.2)
            quiet = quiet + 1 if self.daemon.depth() == 0 else 0

    def _print(
        self,
        phase: str,
        n: int,
        seconds: float,
        cpu: float,
        calls: dict[str, float],
        *,
        latency: bool = True,
        **extra: Any,
    ) -> None:
        used = (self.daemon.cpu() - cpu) * 1000
        now = self.daemon.calls()
        sent = {method: round(now[method] - calls.get(method, 0)) for method in now}
        sent = {method: number for method, number in sent.items() if number}
        line: dict[str, Any] = {"phase": phase, "kind": self.options.kind, "n": n}
        line["objects_per_s"] = round(n / seconds, 1)
        if latency:
            points = statistics.quantiles(self.waiting.latencies(), n=100)
            line |= {"p50_ms": round(points[49], 2), "p95_ms": round(points[94], 2), "p99_ms": round(points[98], 2)}
        line["cpu_ms_per_object"] = round(used / n, 3)
        line["cpu_s"] = round(used / 1000, 2)
        line["rss_mb"] = round(self.daemon.rss(), 1)
        line["writes_per_object"] = round(sum(sent.get(method, 0) for method in WRITES) / n, 3)
        line["calls"] = sent
        if self.kubelet:
            line["status_overwritten"] = self.kubelet.overwritten
        print(json.dumps(line | extra), flush=True)

    # -- writes ----------------------------------------------------------------------------------------------------

    async def _create(self, name: str) -> None:
        await self.virtual.create(self.resource, make(self.options.kind, name, 0, self.options.size))

    async def _update(self, name: str) -> None:
        patch = make(self.options.kind, name, 1, self.options.size)
        await self.virtual.patch(self.resource, Key(NAMESPACE, name), patch)

    async def _delete(self, name: str) -> None:
        await self.virtual.delete(self.resource, Key(NAMESPACE, name))

    # -- what counts as arrived ------------------------------------------------------------------------------------

    def _seen(self, kind: str, revision: int) -> Callable[[str, Obj], str | None]:
        def wanted(event: str, obj: Obj) -> str | None:
            annotations = obj["metadata"].get("annotations") or {}
            fits = event == kind and annotations.get("revision") == str(revision)
            return annotations.get("vsyncer.dev/virtual-name") if fits else None

        def ready(event: str, obj: Obj) -> str | None:
            return obj["metadata"]["name"] if is_ready(obj) else None

        return ready if self.options.life else wanted

    def _gone(self) -> Callable[[str, Obj], str | None]:
        def wanted(event: str, obj: Obj) -> str | None:
            metadata = obj["metadata"]
            name: str = (metadata.get("annotations") or {}).get("vsyncer.dev/virtual-name") or metadata["name"]
            return name if event == "DELETED" else None

        return wanted

    @asynccontextmanager
    async def _background(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._watch())]
        if self.options.life:
            self.kubelet = Kubelet(self.host, HOST_NAMESPACE)
            tasks.append(asyncio.create_task(self.kubelet.run()))
        await asyncio.sleep(0.5)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()

    async def _watch(self) -> None:
        """See what arrives: on the host, or with ``--life`` what comes back to the virtual side."""
        cluster, namespace = (self.virtual, NAMESPACE) if self.options.life else (self.host, HOST_NAMESPACE)
        selector = "" if self.options.life else MARK
        version = ""
        while True:  # the API server ends the watch of a reader that it finds too slow
            try:
                async with cluster.watch(
                    self.resource, namespace=namespace, selector=selector, resource_version=version
                ) as events:
                    async for batch in events:
                        for event in batch:
                            version = self._take(event) or version
            except Unreachable as error:
                print(error, file=sys.stderr)

    def _take(self, event: codec.WatchEvent) -> str:
        obj = codec.decode(event.object)
        name = self.wanted(event.type, obj) if event.type != "BOOKMARK" else None
        if name:
            self.waiting.arrive(name)
        return str(obj["metadata"].get("resourceVersion", ""))


def config(options: argparse.Namespace, virtual: ControlPlane, host: ControlPlane) -> dict[str, Any]:
    """The daemon's configuration."""
    return {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": "shop",
        "virtual": {"kubeconfig": str(virtual.kubeconfig())},
        "host": {"kubeconfig": str(host.kubeconfig()), "namespace": HOST_NAMESPACE},
        "sync": {"toHost": {"configMaps": {"all": True}, "secrets": {"all": True}}},
        "log": {"level": "warning"},
    }


async def measure(options: argparse.Namespace, virtual: ControlPlane, host: ControlPlane, folder: Path) -> None:
    """Connect the load, start the daemon, run."""
    clusters = [
        connect(ConnectionSettings(str(plane.kubeconfig())), side=side, environ={})
        for plane, side in ((virtual, Side.VIRTUAL), (host, Side.HOST))
    ]
    daemon = Daemon(config(options, virtual, host), folder, command=(options.syncer,))
    daemon.start()
    try:
        await Bench(options, clusters[0], clusters[1], daemon).run()
    finally:
        daemon.stop()
        for cluster in clusters:
            await cluster.close()


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="hack/bench/sync", description=__doc__)
    parser.add_argument("--kind", choices=sorted(RESOURCES), default="configmaps")
    parser.add_argument("-n", type=int, default=1000, help="objects")
    parser.add_argument("--size", type=int, default=1000, help="bytes of content an object")
    parser.add_argument("--rate", type=float, default=0, help="writes a second; 0: as fast as they go")
    parser.add_argument("--concurrency", type=int, default=16, help="writers")
    parser.add_argument("--restart", action="store_true", help="also restart the daemon with n objects present")
    parser.add_argument("--idle", type=float, default=0, help="also let nothing happen for so many seconds")
    parser.add_argument("--life", action="store_true", help="pods: play scheduler and kubelet until they are Ready")
    parser.add_argument("--syncer", default=SYNCER, metavar="PATH", help="the command that is measured (this Python's)")
    options = parser.parse_args()
    if options.life and options.kind != "pods":
        parser.error("--life needs --kind pods")
    return options


def main() -> None:
    """Start two control planes and measure."""
    options = parse()
    with two_planes() as (virtual, host, folder):
        virtual.kubectl("create", "namespace", NAMESPACE)
        host.kubectl("create", "namespace", HOST_NAMESPACE)
        virtual.kubectl("create", "serviceaccount", "default", "--namespace", NAMESPACE)
        uvloop.run(measure(options, virtual, host, folder))


if __name__ == "__main__":
    main()
