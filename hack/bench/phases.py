"""The phases of a run: objects are created, updated and deleted while the daemon is measured."""

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from hack.bench.daemon import Daemon
from hack.kubelet import Kubelet, is_ready
from hack.side_tasks import helped_by
from syncer.api import Key, Obj, Unreachable
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.resources.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICES

NAMESPACE = "shop"
HOST_NAMESPACE = "vc-shop"
RESOURCES = {resource.plural: resource for resource in (CONFIG_MAPS, SECRETS, SERVICES, PODS)}
MARK = "vsyncer.dev/cluster=shop.vc-shop"
WRITES = ("POST", "PUT", "PATCH", "DELETE")

#: Seconds in which all objects of a phase must have arrived.
PATIENCE = 600.0
#: The figures of a phase.
Figures = dict[str, Any]
#: The figure with the latency of each object, in milliseconds; it isn't shown.
LATENCIES = "latencies_ms"
#: Writes the object of this name.
Write = Callable[[str], Awaitable[Any]]
#: Returns the name of the object whose arrival an event shows; None for other events.
Arrival = Callable[[str, Obj], str | None]


@dataclass(frozen=True, slots=True)
class Load:
    """The objects of a run."""

    kind: str = "configmaps"
    n: int = 1000
    #: Size of an object's contents, in bytes.
    size: int = 1000
    #: Writes per second; 0: as fast as possible.
    rate: float = 0.0
    #: Concurrent writers.
    concurrency: int = 16
    #: For Pods only: simulate scheduler and kubelet, until they are Ready, and until they have
    #: ended.
    life: bool = False
    #: The prefix of the objects' names.
    prefix: str = "object"

    def make(self, name: str, revision: int) -> Obj:
        """Return an object."""
        resource = RESOURCES[self.kind]
        text = "x" * self.size
        annotations = {"revision": str(revision)}
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
        obj: Obj = {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata}
        match self.kind:
            case "configmaps":
                obj["data"] = {"revision": str(revision), "text": text}
            case "secrets":
                obj["stringData"] = {"revision": str(revision), "text": text}
            case "services":
                ports = [{"port": 80, "targetPort": 8080}]
                obj["spec"] = {"selector": {"app": name}, "ports": ports}
            case "pods":
                named = {"name": "main", "image": "example.org/shop:1"}
                container = {**named, "env": [{"name": "TEXT", "value": text}]}
                obj["spec"] = {"containers": [container], "terminationGracePeriodSeconds": 1}
        return obj

    def change(self, name: str) -> Obj:
        """Return the patch of an update; most of a Pod can't be changed."""
        changed = self.make(name, 1)
        return {"metadata": changed["metadata"]} if self.kind == "pods" else changed


@dataclass
class Waiting:
    """The objects that are to arrive: when each was written, and when it arrived."""

    written: dict[str, float] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    expected: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, number: int) -> None:
        """Start a phase."""
        self.written.clear()
        self.arrived.clear()
        self.expected = number
        self.done.clear()

    def arrive(self, name: str) -> None:
        """Record that an object has arrived."""
        self.arrived.setdefault(name, time.perf_counter())
        if len(self.arrived) >= self.expected:
            self.done.set()

    def latencies(self) -> list[float]:
        """Return the milliseconds from write to arrival."""
        arrived = self.arrived
        taken = (arrived[name] - at for name, at in self.written.items() if name in arrived)
        return [max(seconds, 0.0) * 1000 for seconds in taken]


@dataclass(frozen=True, slots=True)
class Reading:
    """The resources that the daemon had used at a moment."""

    calls: dict[str, float]
    futile: float
    cpu: float
    at: float

    @classmethod
    def of(cls, daemon: Daemon) -> "Reading":
        """Read the daemon; the CPU last, since reading its metrics costs it some."""
        calls = daemon.calls()
        futile = daemon.total("syncer_futile_writes_total")
        return cls(calls, futile, daemon.cpu(), time.perf_counter())


class Bench:
    """A daemon under a load. Each phase returns its figures."""

    def __init__(self, load: Load, virtual: SideClient, host: SideClient, daemon: Daemon) -> None:
        self.load = load
        self.virtual = virtual
        self.host = host
        self.daemon = daemon
        self.resource = RESOURCES[load.kind]
        self.names = [f"{load.prefix}-{number:06d}" for number in range(load.n)]
        self.waiting = Waiting()
        self.kubelet: Kubelet | None = None
        self._arrival: Arrival = lambda event, obj: None

    # -- phases ------------------------------------------------------------------------------------

    async def create(self, names: Sequence[str]) -> Figures:
        """Create objects."""
        arrival = self._is_ready if self.load.life else self._is_written("ADDED", 0)
        return await self._phase("create", names, self._create, arrival)

    async def update(self, names: Sequence[str]) -> Figures:
        """Change objects."""
        return await self._phase("update", names, self._update, self._is_written("MODIFIED", 1))

    async def delete(self, names: Sequence[str]) -> Figures:
        """Delete objects."""
        return await self._phase("delete", names, self._delete, self._is_gone)

    async def restart(self) -> Figures:
        """Stop the daemon, and start it with all objects there."""
        self.daemon.stop()
        start = time.perf_counter()
        self.daemon.start()
        still = await asyncio.to_thread(self.daemon.wait_still)
        cpu = self.daemon.cpu()
        nothing = Reading({}, 0.0, 0.0, start)
        return self._figures("restart", self.load.n, nothing, seconds=still - start, cpu=cpu)

    async def idle(self, seconds: float) -> Figures:
        """Measure a rest."""
        before = Reading.of(self.daemon)
        await asyncio.sleep(seconds)
        cpu = self.daemon.cpu()
        passed = time.perf_counter() - before.at
        figures = self._figures("idle", self.load.n, before, seconds=passed, cpu=cpu)
        return figures | {"cpu_percent": round(100 * figures["cpu_s"] / figures["seconds"], 3)}

    async def _phase(
        self, phase: str, names: Sequence[str], write: Write, arrival: Arrival
    ) -> Figures:
        """Write objects, wait until all have arrived and the daemon is idle."""
        before = Reading.of(self.daemon)
        begun = self.daemon.wakeups()
        await self._write(names, write, arrival)
        seconds = time.perf_counter() - before.at
        wakeups = self.daemon.wakeups() - begun
        cpu = await self._calm()
        figures = self._figures(phase, len(names), before, seconds=seconds, cpu=cpu)
        figures["wakeups"] = wakeups
        latencies = self.waiting.latencies()
        return figures | percentiles(latencies) | {LATENCIES: latencies}

    async def _write(self, names: Sequence[str], write: Write, arrival: Arrival) -> None:
        """Write objects, and wait until all have arrived."""
        self._arrival = arrival
        self.waiting.expect(len(names))
        await self._write_all(names, write)
        await self._all_arrived()

    async def _all_arrived(self) -> None:
        """Wait until all objects have arrived.

        Raises:
            SystemExit: The daemon has ended, or not all have arrived in `PATIENCE` seconds.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + PATIENCE
        while clock() < deadline:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.waiting.done.wait()
                    return
            self.daemon.must_run()
        arrived = len(self.waiting.arrived)
        raise SystemExit(f"{arrived} of {self.waiting.expected} objects arrived in {PATIENCE:g} s")

    async def _write_all(self, names: Sequence[str], write: Write) -> None:
        load = self.load
        queue = iter(enumerate(names))
        begin = time.perf_counter()

        async def writer() -> None:
            for number, name in queue:
                if load.rate:
                    await asyncio.sleep(max(begin + number / load.rate - time.perf_counter(), 0))
                await write(name)
                self.waiting.written[name] = time.perf_counter()

        await asyncio.gather(*(writer() for _ in range(load.concurrency)))

    async def _calm(self) -> float:
        """Wait until the daemon is idle; return its CPU seconds before it was asked."""
        while True:
            await asyncio.to_thread(self.daemon.wait_still)
            cpu = self.daemon.cpu()
            if self.daemon.depth() == 0:
                return cpu

    # -- figures -----------------------------------------------------------------------------------

    def _figures(
        self, phase: str, n: int, before: Reading, *, seconds: float, cpu: float
    ) -> Figures:
        used = cpu - before.cpu
        now = Reading.of(self.daemon)
        sent = {name: round(count - before.calls.get(name, 0)) for name, count in now.calls.items()}
        figures = {
            "phase": phase,
            "kind": self.load.kind,
            "n": n,
            "seconds": round(seconds, 3),
            "objects_per_s": round(n / seconds, 1),
            "cpu_ms_per_object": round(used * 1000 / n, 4),
            "cpu_s": round(used, 4),
            "rss_mb": round(self.daemon.rss(), 1),
            "writes_per_object": round(sum(sent.get(name, 0) for name in WRITES) / n, 3),
            "calls": {name: number for name, number in sent.items() if number},
            "futile": now.futile - before.futile,
        }
        if self.kubelet:
            figures["status_overwritten"] = self.kubelet.overwritten
        return figures

    # -- writes ------------------------------------------------------------------------------------

    async def _create(self, name: str) -> None:
        await self.virtual.create(self.resource, self.load.make(name, 0))

    async def _update(self, name: str) -> None:
        await self.virtual.patch(self.resource, Key(NAMESPACE, name), self.load.change(name))

    async def _delete(self, name: str) -> None:
        await self.virtual.delete(self.resource, Key(NAMESPACE, name))

    # -- arrivals ----------------------------------------------------------------------------------

    def _is_written(self, wanted: str, revision: int) -> Arrival:
        def arrival(event: str, obj: Obj) -> str | None:
            revised = (obj["metadata"].get("annotations") or {}).get("revision")
            return _original(obj) if event == wanted and revised == str(revision) else None

        return arrival

    def _is_ready(self, event: str, obj: Obj) -> str | None:
        return obj["metadata"]["name"] if is_ready(obj) and _original(obj) is None else None

    def _is_gone(self, event: str, obj: Obj) -> str | None:
        if event != "DELETED":
            return None
        original = _original(obj)
        if self.load.life:  # its copy goes first
            return obj["metadata"]["name"] if original is None else None
        return original or obj["metadata"]["name"]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch arrivals while the block runs; with `life`, watch the virtual side, too,
        and simulate the kubelet.
        """
        helpers = [self._watch(self.host, HOST_NAMESPACE, MARK)]
        if self.load.life:
            helpers.append(self._watch(self.virtual, NAMESPACE, ""))
            self.kubelet = Kubelet(self.host, HOST_NAMESPACE)
            helpers.append(self.kubelet.run())
        async with helped_by(*helpers):
            await asyncio.sleep(0.5)
            yield

    async def _watch(self, cluster: SideClient, namespace: str, selector: str) -> None:
        """Watch arrivals in a cluster."""
        version = ""
        while True:  # the API server ends the watch of a slow reader
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
        name = self._arrival(event.type, obj) if event.type != "BOOKMARK" else None
        if name:
            self.waiting.arrive(name)
        return str(obj["metadata"].get("resourceVersion", ""))


def percentiles(latencies: Sequence[float]) -> Figures:
    """Return the percentiles of at least two latencies, in milliseconds."""
    points = statistics.quantiles(latencies, n=100)
    return {f"p{percent}_ms": round(points[percent - 1], 2) for percent in (50, 95, 99)}


def _original(obj: Obj) -> str | None:
    """Return the name of the virtual object that an object is the copy of; None if it is none."""
    name: str | None = (obj["metadata"].get("annotations") or {}).get("vsyncer.dev/virtual-name")
    return name
