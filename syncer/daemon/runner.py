"""The daemon's life: start order, leadership, signals and shutdown."""

import asyncio
import math
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from syncer.api.errors import ConfigError, Problem
from syncer.clusters.client import Cluster
from syncer.clusters.dry_run import DryRun
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.fleet.cluster_sources import ClusterSources
from syncer.daemon.fleet.config_file import ConfigFile
from syncer.daemon.fleet.fleet import Fleet
from syncer.daemon.fleet.leadership import CommandTerm, lease_of, shards_of
from syncer.daemon.fleet.shared_fleet import SharedFleet
from syncer.daemon.pages import status
from syncer.daemon.pages.endpoints import serving
from syncer.daemon.process import Process
from syncer.daemon.start import startup
from syncer.daemon.start.comparison import check_api_servers
from syncer.daemon.start.connecting import START_SECONDS, Clusters, connect_all, connect_host
from syncer.daemon.tasks import beside
from syncer.engine.controllers.pair import ClusterPair
from syncer.leaderelection.lease import Lease
from syncer.leaderelection.shards import Shards
from syncer.observe.health import Heartbeat
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics
from syncer.version import VERSION

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


class _End:
    """The end of a run: a signal, or a kubeconfig of the host that has come to lead to another server."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        #: True after a signal; otherwise everything begins anew.
        self.is_final = False

    def heed_signals(self) -> None:
        """End with the first SIGTERM or SIGINT; the second ends the process at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        if self.is_final:
            os._exit(1)
        self.is_final = True
        self.event.set()


async def run(
    config: SyncerConfig, *, once: bool = False, dry_run: bool = False, file: ConfigFile | None = None
) -> Summary:
    """Run the daemon until a signal stops it, or with ``once`` until both sides are in step.

    Virtual clusters that join, leave or change in ``file`` do so in the daemon.

    ``dry_run`` implies ``once`` and writes nothing.

    A kubeconfig of the host that comes to lead to another server, trust another authority or run another program is
    a new start: nothing that was read is kept, and all that a start compares is compared again. One of a virtual
    cluster is a new start of that cluster alone.

    Raises:
        SyncerError: The daemon can't start.
    """
    end = _End()
    while True:
        summary = await _run(config, end, once=once or dry_run, dry_run=dry_run, file=file)
        if once or dry_run or end.is_final:
            return summary
        end.event.clear()
        log.warning("the host's kubeconfig has come to be of another server or program, so everything begins anew")


async def _run(config: SyncerConfig, end: _End, *, once: bool, dry_run: bool, file: ConfigFile | None) -> Summary:
    check_api_servers(config)
    if once and config.virtual_cluster_secrets:
        why = "is only for a daemon that goes on: with --once or --dry-run, no Secrets are read."
        raise ConfigError(Problem(why, path="virtualClusterSecrets", hint="List the virtual clusters instead."))
    metrics = Metrics(version=VERSION)
    async with AsyncExitStack() as stack:
        if not once:
            host = connect_host(config, metrics, stack, moved=end.event.set)
            return await _daemon(host, config, metrics, stack, end, file)
        served = config.clusters()
        clusters = connect_all(config, served, metrics, stack)
        if dry_run:
            clusters = clusters.dry()
        term = CommandTerm()
        process = await _prepared(config, served, clusters, metrics, stack, until=term.until)
        if dry_run:
            return await _once(process, clusters)
        async with term.leading(process.host, config, process.pairs):
            return await _once(process, clusters)


@asynccontextmanager
async def prepared(
    config: SyncerConfig, cluster: VirtualCluster, *, until: Callable[[str], float] = lambda cluster: math.inf
) -> AsyncIterator[tuple[Process, ClusterPair]]:
    """Yield a prepared process for a virtual cluster, for a command, which may write ``until`` then.

    Raises:
        SyncerError: A cluster can't be reached, or is not ours.
    """
    metrics = Metrics(version=VERSION)
    async with AsyncExitStack() as stack:
        clusters = connect_all(config, (cluster,), metrics, stack)
        process = await _prepared(config, (cluster,), clusters, metrics, stack, until=until)
        yield process, process.pairs[cluster.name]


async def _prepared(
    config: SyncerConfig,
    served: Sequence[VirtualCluster],
    clusters: Clusters,
    metrics: Metrics,
    stack: AsyncExitStack,
    *,
    until: Callable[[str], float],
) -> Process:
    """Return a process with all these virtual clusters, prepared; its connections end with ``stack``."""
    process = Process(host=clusters.host, metrics=metrics, workers=config.workers, until=until)
    stack.push_async_callback(process.close)
    added = [startup.add(process, each, clusters.virtual[each.name]) for each in served]
    await process.host_connection.reach(START_SECONDS)
    await asyncio.gather(*(startup.prepare(one, each) for one, each in zip(added, served, strict=True)))
    return process


async def _once(process: Process, clusters: Clusters) -> Summary:
    async with process.running():
        work = asyncio.create_task(process.work())
        try:
            await status.settle(process)
            summary = _summary(process)
        finally:
            process.queue.close()
            await work
    for cluster in clusters:
        if isinstance(cluster.transport, DryRun):
            summary.planned += [f"{write} on the {cluster.side} side" for write in cluster.transport.writes]
    return summary


def _summary(process: Process) -> Summary:
    unfinished = (*process.statuses.troubles(), *process.statuses.pending())
    troubles = [f"{request.cluster}/{request}: {found.reason}" for request, found in unfinished]
    troubles += [f"{'/'.join(place)}: {reason}" for place, reason in status.hindered(process).items()]
    in_step = {
        (cluster, syncer): n
        for (cluster, syncer, state), n in status.states(process).items()
        if state == status.IN_STEP
    }
    return Summary(dict(process.statuses.done), troubles, in_step=in_step)


# -- the daemon ------------------------------------------------------------------------------------


async def _daemon(
    host: Cluster, config: SyncerConfig, metrics: Metrics, stack: AsyncExitStack, end: _End, file: ConfigFile | None
) -> Summary:
    lease = lease_of(host, config)
    shards = shards_of(host, config)
    process = _process_of_daemon(host, config, metrics, lease, shards)
    stack.push_async_callback(process.close)
    fleet = Fleet(process, config.clusters())
    shared = SharedFleet(process, fleet, shards) if shards else None
    heartbeat, source = Heartbeat(), ClusterSources(process, config, fleet.update)
    async with (
        serving(process, config, heartbeat, lease, shards),
        beside(heartbeat.keep()),
        beside(end.event.wait()) as stopped,
    ):
        end.heed_signals()
        async with beside(process.host_connection.reach(START_SECONDS)) as reached:
            await _first(reached, stopped)
        if reached.cancelled():
            return Summary()
        reached.result()
        async with process.running(), beside(source.run()), beside(fleet.run()) as tended, AsyncExitStack() as stack:
            if file:
                await stack.enter_async_context(beside(file.follow(config, source.update)))
            if shared:
                async with beside(process.work()) as working:
                    async with beside(shared.run()) as sharing:
                        await _first(working, stopped, tended, sharing)
                    await _stop(process, working, config.grace_period, leading=True)
                if not sharing.cancelled():
                    sharing.result()
                return _summary(process)
            async with beside(fleet.begun.wait()) as begun:
                await _first(tended, stopped, begun)
            if fleet.begun.is_set():
                async with beside(lease.lead(process.work) if lease else process.work()) as working:
                    await _first(working, stopped, tended)
                    await _stop(process, working, config.grace_period, leading=lease is None or lease.is_leader)
            summary = _summary(process)
        if not tended.cancelled():
            tended.result()
        return summary


def _process_of_daemon(
    host: Cluster, config: SyncerConfig, metrics: Metrics, lease: Lease | None, shards: Shards | None
) -> Process:
    """Return a process that works for the shards that it leads, or writes while it has the Lease, or else always."""
    if shards:
        return Process(host=host, metrics=metrics, workers=config.workers, leads=shards.leads, until=shards.until)
    if lease:
        return Process(host=host, metrics=metrics, workers=config.workers, until=lambda cluster: lease.until)
    return Process(host=host, metrics=metrics, workers=config.workers)


async def _first(*tasks: "asyncio.Task[Any]") -> None:
    """Wait until one of the tasks has ended."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _stop(process: Process, working: "asyncio.Task[None]", grace: float, *, leading: bool) -> None:
    """Take no more work, finish the requests in work, release the Lease."""
    process.queue.close()
    if not working.done():
        log.info("stopping", running=len(process.queue.running()))
        if not leading:
            working.cancel()
        await asyncio.wait({working}, timeout=grace)
    if not working.done():
        log.warning("the grace period is over; unfinished requests are done again at the next start")
        working.cancel()
        await asyncio.wait({working}, timeout=2.0)
    if working.done() and not working.cancelled():
        working.result()
