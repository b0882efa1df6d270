"""The virtual clusters of a daemon: each begins, fails, and begins anew by itself."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from syncer.api.errors import SyncerError, Unreachable
from syncer.api.objects import Resource
from syncer.cache.budget import MemoryBudget
from syncer.clusters.kubeconfig import NoKubeconfig
from syncer.config import VirtualCluster
from syncer.daemon.fleet.memory_limit import memory_limit
from syncer.daemon.notices import notices_of
from syncer.daemon.process import Process
from syncer.daemon.served_cluster import ServedCluster
from syncer.daemon.start import startup
from syncer.daemon.start.connecting import START_SECONDS, connect_virtual, must_be_another
from syncer.daemon.start.host_selectors import warn_of_selectors
from syncer.daemon.start.pod_templates import warn_of_pod_templates
from syncer.daemon.tasks import beside
from syncer.engine.controllers.pair import ClusterPair, Condition
from syncer.kubelet.ports import PortsInUse
from syncer.observe.logs import get_logger

#: Seconds before a virtual cluster that can't be served is begun anew: about the first delay, doubled up to the last.
FIRST_DELAY, LAST_DELAY = 1.0, 60.0
#: Seconds for which a virtual cluster must be served until its next failure counts as the first one again.
GOOD_SECONDS = 300.0

#: The most memory that the objects of a virtual cluster may take by default, in bytes, if there are several.
DEFAULT_BYTES = 256 << 20

log = get_logger(__name__)


class OverBudget(SyncerError):
    """The objects of a virtual cluster take too much of the daemon's memory."""


class ServedFleet:
    """Serves virtual clusters. What is wrong with one delays no other."""

    def __init__(self, process: Process, clusters: Sequence[VirtualCluster]) -> None:
        self._process = process
        self._all, self._grows = {each.name: each for each in clusters}, False
        self._wanted, self._is_told = dict(self._all), bool(clusters)
        #: Returns True for those that are served here; None if all are.
        self._keeps: Callable[[str], bool] | None = None
        process.unserved.expect(self._wanted)
        #: The addresses and ports at which kubelets of the virtual clusters answer.
        self._kubelet_ports = PortsInUse()
        self._served: dict[str, VirtualCluster] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        #: Set once a virtual cluster is prepared.
        self.begun = asyncio.Event()

    def update(self, clusters: Sequence[VirtualCluster], grows: bool = False) -> None:
        """Serve these from now on. Those that are the same go on undisturbed; one that has changed begins anew.

        One that is alone is as one of several if the fleet ``grows`` by itself.
        """
        self._all, self._grows, self._is_told = {each.name: each for each in clusters}, grows, True
        self.assign()

    def serve_only(self, keeps: Callable[[str], bool]) -> None:
        """Serve only those for which this returns True; :meth:`assign` asks it again."""
        self._keeps = keeps
        self._process.unserved.clear()
        self.assign()

    @property
    def wanted(self) -> Collection[str] | None:
        """The names of those that are to be served here; None if it isn't known yet which there are."""
        return self._wanted if self._is_told else None

    def has(self, name: str) -> bool:
        """Return True if there is a virtual cluster of this name, wherever it is served, or it isn't known yet."""
        return name in self._all or not self._is_told

    def assign(self) -> None:
        """Serve those that are kept here from now on."""
        keeps = self._keeps
        self._wanted = {name: each for name, each in self._all.items() if keeps is None or keeps(name)}
        for name, cluster in self._wanted.items():
            if name in self._process.pairs:
                self._process.pairs[name].informers.budget.limit(self._most(cluster))
        self._changed.set()

    async def run(self) -> None:
        """Serve them until cancelled.

        Raises:
            SyncerError: The only virtual cluster can't be served.
        """
        changed = asyncio.create_task(self._changed.wait())
        try:
            while True:
                self._begin()
                await asyncio.wait({changed, *self._tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
                for name in [name for name, task in self._tasks.items() if task.done()]:
                    if not (ended := self._tasks.pop(name)).cancelled():
                        ended.result()
                if changed.done():
                    self._changed.clear()
                    changed = asyncio.create_task(self._changed.wait())
        finally:
            tasks = [changed, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self) -> None:
        """Begin what is wanted and isn't served, once what was served under its name has ended."""
        for name in list(self._served):
            if name not in self._wanted or self._served[name].options != self._wanted[name].options:
                log.info("a virtual cluster is no longer served as it was", cluster=name)
                del self._served[name]
                if name in self._tasks:
                    self._tasks[name].cancel()
                self._process.unserved.begun(name)
        for name, cluster in self._wanted.items():
            if name not in self._served and name not in self._tasks:
                self._served[name] = cluster
                self._tasks[name] = asyncio.create_task(self._keep(cluster))

    async def _keep(self, cluster: VirtualCluster) -> None:
        """Serve a virtual cluster until cancelled, whatever happens.

        Raises:
            SyncerError: It is the only one, and can't be served, or has given no answer for a while.
        """
        process, failures = self._process, 0
        while True:
            begun = process.clock()
            try:
                await self._serve(cluster)
            except Exception as error:
                is_short = isinstance(error, Unreachable) and process.clock() - begun < START_SECONDS
                is_to_come = isinstance(error, NoKubeconfig) and cluster.connection.waits_for_kubeconfig
                if self._is_alone() and not (is_short or is_to_come or isinstance(error, OverBudget)):
                    raise
                if isinstance(error, SyncerError):
                    log.warning("a virtual cluster can't be served", cluster=cluster.name, error=str(error))
                else:
                    log.exception("serving a virtual cluster failed", cluster=cluster.name)
                process.unserved.failed(cluster.name, _condition(error))
                failures = 0 if process.clock() - begun > GOOD_SECONDS else failures + 1
                delay = min(FIRST_DELAY * 2 ** min(failures, 10), LAST_DELAY)
                await asyncio.sleep(delay * process.rng.uniform(0.5, 1.0))
            else:
                failures = 0

    def _is_alone(self) -> bool:
        """Return True if there is, and will be, a single virtual cluster."""
        return len(self._all) == 1 and not self._grows and self._keeps is None

    def _most(self, cluster: VirtualCluster) -> int:
        """Return the most bytes that the objects of a virtual cluster may take; 0 for no limit."""
        if cluster.max_megabytes is not None:
            return cluster.max_megabytes << 20
        return memory_limit() // 2 if self._is_alone() else DEFAULT_BYTES

    async def _serve(self, cluster: VirtualCluster) -> None:
        """Serve a virtual cluster until its kubeconfig has come to be of another server or program.

        Raises:
            SyncerError: It can't be served.
        """
        process, name, moved, ended = self._process, cluster.name, asyncio.Event(), asyncio.Event()

        def move() -> None:
            moved.set()
            ended.set()

        async with AsyncExitStack() as stack:
            virtual = connect_virtual(cluster, process.metrics, stack, moved=move)
            must_be_another(name, virtual, process.host)
            budget = MemoryBudget(self._most(cluster), over=ended.set)
            served = startup.add(process, cluster, virtual, budget=budget)
            stack.push_async_callback(process.remove, name)
            if await _ends_before(startup.prepare(served, cluster, waits=True), ended):
                process.unserved.begun(name)
                self.begun.set()
                served.add_duty(notices_of(served).run)
                if cluster.kubelet.enabled:
                    from syncer.daemon.kubelet.node_server import answering  # imported late: it takes some megabytes

                    await stack.enter_async_context(answering(served, cluster.kubelet, self._kubelet_ports))
                await _ends_before(_served(served, cluster), ended)
            if not moved.is_set():
                most = f"more than {budget.most >> 20} MB of the daemon's memory (maxMegabytes)"
                raise OverBudget(f"its objects take {most}; delete some, or raise the limit")
        log.warning(
            "its kubeconfig has come to be of another server or program, so a virtual cluster begins anew", cluster=name
        )


async def _served(served: ServedCluster, cluster: VirtualCluster) -> None:
    """Serve a prepared virtual cluster until cancelled, and warn of what is odd about it."""
    pair = served.pair
    async with (
        beside(warn_of_selectors(pair.host, pair.settings)),
        beside(warn_of_pod_templates(pair.host, pair.settings, _custom_kinds(pair))),
        beside(startup.check_certificate(pair, cluster)),
    ):
        await served.serve()


def _custom_kinds(pair: ClusterPair) -> list[Resource]:
    """Return the host resources of the kinds of `sync.custom` that go to the host."""
    syncers = (each.syncer for each in pair.controllers.values() if each.direction.goes_down)
    return [syncer.host_resource for syncer in syncers if syncer.section.startswith("custom.")]


async def _ends_before(coroutine: Coroutine[Any, Any, None], event: asyncio.Event) -> bool:
    """Run a coroutine until it ends or the event is set. Return True if it has ended, whose exception is raised."""
    async with beside(coroutine) as task, beside(event.wait()) as waiting:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if task.cancelled():
        return False
    task.result()
    return True


def _condition(error: Exception) -> Condition:
    """Return why a virtual cluster can't be served; the place of its kubeconfig is the operator's, and no secret."""
    if isinstance(error, NoKubeconfig):
        return Condition(str(error), f"there is no kubeconfig {error.problems[0].file}")
    public = type(error).__name__
    return Condition(f"{public}: {error}", public)
