"""The virtual clusters of a daemon: which of them are served here, and how one is served.

Each has a lifecycle of its own (:mod:`syncer.multicluster.lifecycles`): it begins, fails, and
begins again.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from syncer.api.errors import SyncerError, Unreachable
from syncer.api.objects import Resource
from syncer.clusters.kubeconfig import NoKubeconfig
from syncer.config import VirtualCluster
from syncer.daemon.fleet.fleet_memory import FleetMemory, OverBudget
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
from syncer.multicluster.lifecycles import Backoff, Lifecycles
from syncer.observe.logs import get_logger

#: Seconds before a virtual cluster that can't be served begins again: about the first delay,
#: doubled up to the last.
FIRST_DELAY = 1.0
LAST_DELAY = 60.0

log = get_logger(__name__)


class ServedFleet:
    """Serves virtual clusters. A fault of one delays no other."""

    def __init__(self, process: Process, clusters: Sequence[VirtualCluster]) -> None:
        self._process = process
        self._all = {each.name: each for each in clusters}
        #: True if the fleet may get further virtual clusters without another configuration.
        self._grows = False
        #: True once it is known which virtual clusters there are.
        self._is_known = bool(clusters)
        #: Those of all that are to be served here.
        self._wanted = dict(self._all)
        #: Returns True for those that are served here; None if all are.
        self._keeps: Callable[[str], bool] | None = None
        process.unserved.expect(self._wanted)
        self._lifecycles = Lifecycles(
            self._serve,
            failed=self._failed,
            retry_delay=self._retry_delay,
        )
        self._backoff = Backoff(first=FIRST_DELAY, last=LAST_DELAY, least_part=0.5)
        #: The addresses and ports at which kubelets of the virtual clusters answer.
        self._kubelet_ports = PortsInUse()
        self._kubelet_ports.shared = not self._is_alone()
        self._memory = FleetMemory(is_alone=self._is_alone())
        self._changed = asyncio.Event()
        #: Why the only virtual cluster can't be served.
        self._fatal: Exception | None = None
        #: Set once a virtual cluster is prepared.
        self.begun = asyncio.Event()

    def update(self, clusters: Sequence[VirtualCluster], grows: bool = False) -> None:
        """Serve these from now on. Those that are the same go on undisturbed; one that has changed
        begins again.

        One that is alone is as one of several if the fleet ``grows`` by itself.
        """
        self._all = {each.name: each for each in clusters}
        self._grows = grows
        self._is_known = True
        self.assign()

    def serve_only(self, keeps: Callable[[str], bool]) -> None:
        """Serve only those for which this returns True; :meth:`assign` asks it again."""
        self._keeps = keeps
        self._process.unserved.clear()
        self.assign()

    @property
    def wanted(self) -> Collection[str] | None:
        """The names of those that are to be served here; None if it isn't known yet which there
        are.
        """
        return self._wanted if self._is_known else None

    def has(self, name: str) -> bool:
        """Return True if there is a virtual cluster of this name, wherever it is served, or it
        isn't known yet.
        """
        return name in self._all or not self._is_known

    def assign(self) -> None:
        """Serve those that are kept here from now on."""
        keeps = self._keeps
        wanted = dict(self._all)
        if keeps is not None:
            wanted = {name: each for name, each in wanted.items() if keeps(name)}
        self._wanted = wanted
        self._memory.limit(is_alone=self._is_alone())
        self._kubelet_ports.shared = not self._is_alone()
        for name, cluster in self._wanted.items():
            self._memory.update(cluster)
            pair = self._process.pairs.get(name)
            if pair is not None:
                pair.informers.limit(self._memory.most(cluster))
        self._changed.set()

    async def run(self) -> None:
        """Serve them until cancelled.

        Raises:
            SyncerError: The only virtual cluster can't be served.
        """
        try:
            while self._fatal is None:
                self._changed.clear()
                self._follow()
                await self._changed.wait()
            raise self._fatal
        finally:
            await self._lifecycles.close()

    def _follow(self) -> None:
        """Serve what is wanted. What runs under a name ends first if it isn't wanted, or has other
        options.
        """
        for name in list(self._lifecycles.names):
            if name not in self._wanted:
                self._lifecycles.remove(name)
                self._ends(name)
        for name, cluster in self._wanted.items():
            if self._lifecycles.put(name, cluster, version=cluster.options):
                self._ends(name)

    def _ends(self, name: str) -> None:
        log.info("a virtual cluster is no longer served as it was", cluster=name)
        self._process.unserved.begun(name)

    def _failed(self, name: str, cluster: VirtualCluster, error: Exception, seconds: float) -> None:
        """Show why a virtual cluster isn't served. The failure of the only one ends the fleet.

        The fleet goes on if that may change soon: the only one was unreachable for a short time,
        has too many objects, or is still to get its kubeconfig.
        """
        is_short = isinstance(error, Unreachable) and seconds < START_SECONDS
        is_to_come = isinstance(error, NoKubeconfig) and cluster.connection.waits_for_kubeconfig
        may_change = is_short or is_to_come or isinstance(error, OverBudget)
        if self._is_alone() and not may_change:
            self._fatal = error
            self._changed.set()
            return
        if isinstance(error, SyncerError):
            log.warning("a virtual cluster can't be served", cluster=name, error=str(error))
        else:
            log.error("serving a virtual cluster failed", cluster=name, exc_info=error)
        self._process.unserved.failed(name, _condition(error))

    def _retry_delay(self, failures: int) -> float:
        return self._backoff.delay(failures, self._process.rng.uniform)

    def _is_alone(self) -> bool:
        """Return True if there is, and will be, a single virtual cluster."""
        return len(self._all) == 1 and not self._grows and self._keeps is None

    async def _serve(self, name: str, cluster: VirtualCluster) -> None:
        """Serve a virtual cluster until its kubeconfig is of another server or program.

        Raises:
            SyncerError: It can't be served.
        """
        process = self._process
        moved = asyncio.Event()
        ended = asyncio.Event()

        def move() -> None:
            moved.set()
            ended.set()

        async with AsyncExitStack() as stack:
            memory = stack.enter_context(self._memory.joined(cluster, ended.set))
            virtual = connect_virtual(
                cluster, process.metrics, stack, replies=memory.replies, moved=move
            )
            must_be_another(name, virtual, process.host)
            served = startup.add(process, cluster, virtual, budget=memory.objects, work=memory.work)
            stack.push_async_callback(process.remove, name)

            if await _ends_before(startup.prepare(served, cluster, waits=True), ended):
                process.unserved.begun(name)
                self.begun.set()
                served.add_duty(notices_of(served).run)
                if cluster.kubelet.enabled:
                    # Imported late: it takes some megabytes.
                    from syncer.daemon.kubelet.node_server import answering

                    kubelets = answering(
                        served, cluster.kubelet, self._kubelet_ports, memory.connections
                    )
                    await stack.enter_async_context(kubelets)
                await _ends_before(_served(served, cluster), ended)

            if not moved.is_set():
                raise OverBudget(self._memory.reason(cluster))
        text = "kubeconfig now leads to another server or program; restarting the virtual cluster"
        log.warning(text, cluster=name)


async def _served(served: ServedCluster, cluster: VirtualCluster) -> None:
    """Serve a prepared virtual cluster until cancelled, and warn about its settings."""
    pair = served.pair
    host = served.host_at_start
    async with (
        beside(warn_of_selectors(host, pair.settings)),
        beside(warn_of_pod_templates(host, pair.settings, _custom_kinds(pair))),
        beside(startup.check_certificate(pair, cluster)),
    ):
        await served.serve()


def _custom_kinds(pair: ClusterPair) -> list[Resource]:
    """Return the host resources of the kinds of `sync.custom` that go to the host."""
    syncers = [each.syncer for each in pair.controllers.values() if each.direction.goes_down]
    return [syncer.host_resource for syncer in syncers if syncer.section.startswith("custom.")]


async def _ends_before(coroutine: Coroutine[Any, Any, None], event: asyncio.Event) -> bool:
    """Run a coroutine until it ends or the event is set; return True if it has ended by itself.

    What the coroutine raises is raised.
    """
    async with beside(coroutine) as task, beside(event.wait()) as waiting:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if task.cancelled():
        return False
    task.result()
    return True


def _condition(error: Exception) -> Condition:
    """Return why a virtual cluster can't be served, for the operator and for the public.

    The public may see the path of a missing kubeconfig.
    """
    if isinstance(error, NoKubeconfig):
        return Condition(str(error), f"there is no kubeconfig {error.problems[0].file}")
    public = type(error).__name__
    return Condition(f"{public}: {error}", public)
