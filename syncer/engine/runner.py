"""The daemon's life: start order, leadership, signals and shutdown."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random_exponential

from syncer.api.errors import ConfigError, Problem, Unreachable
from syncer.api.objects import Side
from syncer.clusters.client import Cluster
from syncer.clusters.connection import ConnectionSettings, connect, first_contact
from syncer.clusters.dry_run import DryRun
from syncer.config import ConnectionSection, SyncerConfig, VirtualCluster
from syncer.directions import direction_of
from syncer.engine import status
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.endpoints import serving
from syncer.engine.engine import Engine
from syncer.engine.leaderelection.identity import claim
from syncer.engine.leaderelection.leadership import leading, lease_of
from syncer.engine.reconcile.policies.contention import contention_rules
from syncer.observe.health import Heartbeat
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics
from syncer.version import VERSION

#: Seconds that a cluster may take for its first answer; it may be starting at the same time as the
#: daemon.
START_SECONDS = 60.0

log = get_logger(__name__)


@dataclass(slots=True)
class Summary:
    """The result of a run."""

    #: Number of calls that changed something, by virtual cluster, syncer, side and verb.
    done: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)
    #: The requests that are not in step, each with the reason.
    troubles: list[str] = field(default_factory=list)
    #: Calls that a dry run would have made.
    planned: list[str] = field(default_factory=list)
    #: Number of objects in step, by virtual cluster and syncer.
    in_step: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 if both sides are in step, otherwise 1."""
        return 1 if self.troubles else 0

    def lines(self) -> list[str]:
        """Return the summary for people."""
        lines = [f"would {line}" for line in self.planned]
        if not self.planned:
            for (cluster, syncer, side, verb), number in sorted(self.done.items()):
                lines.append(f"{cluster}/{syncer}: {verb} on the {side} side: {number}")
        lines += [f"{cluster}/{syncer}: in step: {n}" for (cluster, syncer), n in sorted(self.in_step.items()) if n]
        return [*lines, *(f"not in step: {line}" for line in self.troubles)]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clients of the host and, by name, of virtual clusters."""

    host: Cluster
    virtual: Mapping[str, Cluster]

    def __iter__(self) -> Iterator[Cluster]:
        yield from (self.host, *self.virtual.values())

    def dry(self) -> "Clusters":
        """Return clients of the same clusters that write nothing."""
        over = {name: cluster.over(DryRun(cluster.transport)) for name, cluster in self.virtual.items()}
        return Clusters(self.host.over(DryRun(self.host.transport)), over)


async def run(config: SyncerConfig, *, once: bool = False, dry_run: bool = False) -> Summary:
    """Run the daemon until a signal stops it, or with ``once`` until both sides are in step.

    ``dry_run`` implies ``once`` and writes nothing.

    Raises:
        SyncerError: The daemon can't start.
    """
    metrics, served = Metrics(version=VERSION), config.clusters()
    async with AsyncExitStack() as stack:
        clusters = _connected(config, served, metrics, stack)
        if dry_run:
            clusters = clusters.dry()
        engine = _engine(config, served, clusters, metrics)
        if dry_run:
            await _prepare(engine, served)
            return await _once(engine, clusters)
        if once:
            await _prepare(engine, served)
            async with leading(engine.host, config) as lease:
                engine.may_write = lambda: lease is None or lease.is_leader
                return await _once(engine, clusters)
        await _daemon(engine, config, served, stack)
        return _summary(engine)


@asynccontextmanager
async def prepared(config: SyncerConfig, cluster: VirtualCluster) -> AsyncIterator[tuple[Engine, ClusterPair]]:
    """Yield a prepared engine for a virtual cluster, for a command.

    Raises:
        SyncerError: A cluster can't be reached, or is not ours.
    """
    metrics = Metrics(version=VERSION)
    async with AsyncExitStack() as stack:
        engine = _engine(config, (cluster,), _connected(config, (cluster,), metrics, stack), metrics)
        await _prepare(engine, (cluster,))
        yield engine, engine.pairs[cluster.name]


@asynccontextmanager
async def connected(config: SyncerConfig, cluster: VirtualCluster) -> AsyncIterator[Mapping[Side, Cluster]]:
    """Yield clients of a virtual cluster and the host, once both answer. Nothing is written.

    Raises:
        SyncerError: A cluster can't be reached.
    """
    async with AsyncExitStack() as stack:
        clusters = _connected(config, (cluster,), Metrics(version=VERSION), stack)
        await asyncio.gather(*(_reach(each, START_SECONDS) for each in clusters))
        yield {Side.VIRTUAL: clusters.virtual[cluster.name], Side.HOST: clusters.host}


def _engine(config: SyncerConfig, served: Sequence[VirtualCluster], clusters: Clusters, metrics: Metrics) -> Engine:
    engine = Engine(host=clusters.host, metrics=metrics, workers=config.workers)
    for each in served:
        engine.add(
            each.settings(),
            [(enabled.syncer, enabled.section) for enabled in each.enabled()],
            virtual=clusters.virtual[each.name],
            entries=each.custom_entries(),
            contention=contention_rules(each),
        )
    return engine


async def _prepare(engine: Engine, served: Sequence[VirtualCluster]) -> None:
    """Prepare everything before the caches: reach the clusters, check the identity of the virtual
    ones, run discovery.
    """
    clusters = [engine.host, *(pair.virtual for pair in engine.pairs.values())]
    await asyncio.gather(*(_reach(cluster, START_SECONDS) for cluster in clusters))
    for each in served:
        pair = engine.pairs[each.name]
        copied = [enabled.syncer for enabled in each.enabled() if direction_of(enabled.syncer).goes_down]
        await claim(pair.virtual, pair.settings, translator=each.names.translator, host=pair.host, copied=copied)
    await engine.prepare()


def _connected(
    config: SyncerConfig, served: Sequence[VirtualCluster], metrics: Metrics, stack: AsyncExitStack
) -> Clusters:
    """Return the clients, which are closed with ``stack``; nothing is sent yet."""
    virtual = {}
    for each in served:
        virtual[each.name] = _virtual(each, metrics)
        stack.push_async_callback(virtual[each.name].close)
    host = _connect(config.host, Side.HOST, "", "host.kubeconfig", metrics)
    stack.push_async_callback(host.close)
    for name, cluster in virtual.items():
        _must_differ(name, cluster, host)
    return Clusters(host, virtual)


def _virtual(cluster: VirtualCluster, metrics: Metrics) -> Cluster:
    place = f"kubeconfig of virtual cluster {cluster.name}"
    if not (cluster.connection.kubeconfig or cluster.connection.context):
        why = "is required to run: a kubeconfig (or a context) of its API server"
        raise ConfigError(Problem(why, path=place))
    return _connect(cluster.connection, Side.VIRTUAL, cluster.name, place, metrics)


def _connect(given: ConnectionSection, side: Side, name: str, place: str, metrics: Metrics) -> Cluster:
    settings = ConnectionSettings(given.kubeconfig, given.context, qps=given.qps, burst=given.burst)
    try:
        made = connect(settings, side=side, environ=os.environ, name=name)
    except ConfigError as error:
        raise ConfigError(*(replace(problem, path=problem.path or place) for problem in error.problems)) from error
    made.observer = metrics.client(made.virtual_cluster, side.value, made.origin.address)
    return made


def _must_differ(name: str, virtual: Cluster, host: Cluster) -> None:
    """Refuse the same API server on both sides, which would be synced into itself.

    Raises:
        ConfigError: Both sides are the same API server.
    """
    if virtual.origin.address == host.origin.address:
        why = f"the virtual and the host cluster are the same API server, {host.origin.address}"
        raise ConfigError(Problem(why, path=f"kubeconfig of virtual cluster {name}"))


async def _reach(cluster: Cluster, seconds: float) -> None:
    """Wait until the cluster answers; refused credentials are final."""

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if state.attempt_number == 1:
            log.warning(
                "no answer yet, will try again", cluster=cluster.virtual_cluster, side=cluster.side, error=str(error)
            )

    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(Unreachable),
        stop=stop_after_delay(seconds),
        wait=wait_random_exponential(multiplier=0.4, min=0.1, max=5.0),
        before_sleep=tell,
        reraise=True,
    ):
        with attempt:
            version = await first_contact(cluster)
    log.info("connected", cluster=cluster.virtual_cluster, side=cluster.side, version=version)


async def _once(engine: Engine, clusters: Clusters) -> Summary:
    async with engine.running():
        work = asyncio.create_task(engine.work())
        try:
            await status.settle(engine)
            summary = _summary(engine)
        finally:
            engine.queue.close()
            await work
    for cluster in clusters:
        if isinstance(cluster.transport, DryRun):
            summary.planned += [f"{write} on the {cluster.side} side" for write in cluster.transport.writes]
    return summary


def _summary(engine: Engine) -> Summary:
    unfinished = (*engine.statuses.troubles(), *engine.statuses.pending())
    troubles = [f"{request.cluster}/{request}: {found.reason}" for request, found in unfinished]
    troubles += [f"{'/'.join(place)}: {reason}" for place, reason in status.degraded(engine).items()]
    in_step = {
        (cluster, syncer): n for (cluster, syncer, state), n in status.states(engine).items() if state == status.IN_STEP
    }
    return Summary(dict(engine.statuses.done), troubles, in_step=in_step)


# -- the daemon ------------------------------------------------------------------------------------


async def _daemon(
    engine: Engine, config: SyncerConfig, served: Sequence[VirtualCluster], stack: AsyncExitStack
) -> None:
    lease = lease_of(engine.host, config)
    if lease:
        engine.may_write = lambda: lease.is_leader
    heartbeat = Heartbeat()
    await stack.enter_async_context(serving(engine, config, heartbeat, lease))
    stopped = _stop_signal()
    async with _beside(heartbeat.keep()):
        preparing = asyncio.create_task(_prepare(engine, served))
        if not await _is_done_first(preparing, stopped):
            preparing.cancel()
            await asyncio.wait({preparing})
            return
        preparing.result()
        async with engine.running():
            working = asyncio.create_task(lease.lead(engine.work) if lease else engine.work())
            await _is_done_first(working, stopped)
            await _stop(engine, working, config.grace_period, leading=lease is None or lease.is_leader)


async def _is_done_first(task: "asyncio.Task[None]", stopped: asyncio.Event) -> bool:
    """Wait for the task or the stop signal. Return True if the task has ended."""
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return task.done()


@asynccontextmanager
async def _beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def _stop(engine: Engine, working: "asyncio.Task[None]", grace: float, *, leading: bool) -> None:
    """Take no more work, finish the requests in work, release the Lease."""
    engine.queue.close()
    if not working.done():
        log.info("stopping", running=len(engine.queue.running()))
        if not leading:
            working.cancel()
        await asyncio.wait({working}, timeout=grace)
    if not working.done():
        log.warning("the grace period is over; unfinished requests are done again at the next start")
        working.cancel()
        await asyncio.wait({working}, timeout=2.0)
    if working.done() and not working.cancelled():
        working.result()


def _stop_signal() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets; the second ends the process at once."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop() -> None:
        if stopped.is_set():
            os._exit(1)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopped
