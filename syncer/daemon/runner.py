"""The daemon's life: start order, leadership, signals and shutdown."""

import asyncio
import math
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from syncer.api.errors import SyncerError
from syncer.api.objects import Side
from syncer.clusters.client import SideClient
from syncer.clusters.dry_run import DryRun, UnsentWrite
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.fleet.cluster_sources import ClusterSources
from syncer.daemon.fleet.config_file import ConfigFile
from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.fleet.fleet_memory import host_replies
from syncer.daemon.fleet.leadership import CommandTerm, lease_names, lease_of, shards_of
from syncer.daemon.fleet.run_memory import RunMemory
from syncer.daemon.fleet.shared_fleet import SharedFleet
from syncer.daemon.pages import status
from syncer.daemon.pages.endpoints import serving
from syncer.daemon.process import Process
from syncer.daemon.start import startup
from syncer.daemon.start.comparison import check_api_servers
from syncer.daemon.start.connecting import (
    START_SECONDS,
    connect_host,
    connect_virtual,
    must_be_another,
)
from syncer.daemon.tasks import beside
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.patch_text import patch_text
from syncer.leaderelection.lease import AnotherLeads, Lease
from syncer.leaderelection.shards import Shards
from syncer.observe.health import Heartbeat
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import SECRETS
from syncer.version import VERSION

#: Seconds for which requests that were cancelled at the end of the grace period are awaited.
CANCELLED_SECONDS = 2.0

log = get_logger(__name__)


@dataclass(slots=True)
class Summary:
    """The result of a run."""

    #: Number of calls that changed something, by virtual cluster, syncer, side and verb.
    done: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)
    #: The requests that are not in step, each with the reason.
    troubles: list[str] = field(default_factory=list)
    #: Calls that a dry run would have made, each with its patch on further lines.
    planned: list[str] = field(default_factory=list)
    #: Number of objects in step, by virtual cluster and syncer.
    in_step: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Why virtual clusters could not be served, or not to the end, by name; why Secrets that should
    #: name some are refused, by ``Secret NAMESPACE/NAME``.
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 if both sides of all virtual clusters are in step, otherwise 1."""
        return 1 if self.troubles or self.failed else 0

    def lines(self) -> list[str]:
        """Return the summary for people."""
        lines = [f"would {line}" for line in self.planned]
        if not self.planned:
            for (cluster, syncer, side, verb), number in sorted(self.done.items()):
                lines.append(f"{cluster}/{syncer}: {verb} on the {side} side: {number}")
        for (cluster, syncer), number in sorted(self.in_step.items()):
            if number:
                lines.append(f"{cluster}/{syncer}: in step: {number}")
        lines += [f"not in step: {line}" for line in self.troubles]
        lines += [f"failed: {cluster}: {why}" for cluster, why in sorted(self.failed.items())]
        return lines


class _End:
    """The end of a run: a signal, or a kubeconfig of the host that now leads to another server."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        #: True after a signal; otherwise everything is restarted.
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
    config: SyncerConfig,
    *,
    once: bool = False,
    dry_run: bool = False,
    file: ConfigFile | None = None,
) -> Summary:
    """Run the daemon until a signal stops it, or with ``once`` until both sides are in step.

    Virtual clusters that join, leave or change in ``file`` do so in the daemon.

    ``dry_run`` implies ``once`` and writes nothing. With ``once``, each of several virtual clusters
    is done by itself, as are those that Secrets name at the start: one that can't be served is in
    :attr:`Summary.failed`.

    A kubeconfig of the host that changes to another server, authority or program restarts
    everything: the caches are emptied, and all checks of a start are made again. One of a virtual
    cluster restarts that cluster alone.

    Raises:
        SyncerError: The daemon can't start.
    """
    end = _End()
    while True:
        summary = await _run(config, end, once=once or dry_run, dry_run=dry_run, file=file)
        if once or dry_run or end.is_final:
            return summary
        end.event.clear()
        log.warning("the host's kubeconfig now leads to another server; restarting everything")


async def _run(
    config: SyncerConfig,
    end: _End,
    *,
    once: bool,
    dry_run: bool,
    file: ConfigFile | None,
) -> Summary:
    check_api_servers(config)
    metrics = Metrics(version=VERSION)
    async with AsyncExitStack() as stack:
        if not once:
            host = connect_host(config, metrics, stack, replies=host_replies(), moved=end.event.set)
            return await _daemon(host, config, metrics, stack, end, file)
        clusters = config.clusters()
        refused: Mapping[str, str] = {}
        if config.virtual_cluster_secrets:
            # Imported late: it takes a megabyte.
            from syncer.daemon.fleet.secret_lookup import secret_clusters

            of_secrets, refused = await secret_clusters(config)
            clusters = (*clusters, *of_secrets)
        is_alone = len(clusters) == 1 and not config.virtual_cluster_secrets
        memory = RunMemory(is_alone=is_alone)
        term = CommandTerm()
        process, failed = await _prepared(
            config,
            clusters,
            metrics,
            stack,
            dry_run=dry_run,
            until=term.until,
            memory=memory,
            is_alone=is_alone,
        )
        failed.update(refused)
        if not dry_run:
            failed |= await _lead(process, config, term, stack)
        async with beside(memory.keep(process, failed)):
            return await _once(process, failed, config.marks.prefix, is_alone=is_alone)


@asynccontextmanager
async def prepared(
    config: SyncerConfig,
    cluster: VirtualCluster,
    *,
    dry_run: bool = False,
    until: Callable[[str], float] = lambda cluster: math.inf,
) -> AsyncIterator[tuple[Process, ClusterPair]]:
    """Yield a prepared process for a virtual cluster, for a command that may write ``until`` then.

    With ``dry_run`` it writes nothing.

    Raises:
        SyncerError: A cluster can't be reached, or is not ours.
    """
    async with AsyncExitStack() as stack:
        process, _ = await _prepared(
            config,
            (cluster,),
            Metrics(version=VERSION),
            stack,
            dry_run=dry_run,
            until=until,
            memory=RunMemory(is_alone=True),
        )
        yield process, process.pairs[cluster.name]


async def _prepared(
    config: SyncerConfig,
    clusters: Sequence[VirtualCluster],
    metrics: Metrics,
    stack: AsyncExitStack,
    *,
    dry_run: bool = False,
    until: Callable[[str], float],
    memory: RunMemory,
    is_alone: bool = True,
) -> tuple[Process, dict[str, str]]:
    """Return a prepared process with these virtual clusters, and why others can't be served.

    The reasons are by name. The connections of the process end with ``stack``.

    Raises:
        SyncerError: The host can't be reached, or a virtual cluster that ``is_alone`` can't be
            served.
    """
    host = connect_host(config, metrics, stack)
    if dry_run:
        host = host.over(DryRun(host.transport))
    process = Process(host=host, metrics=metrics, workers=config.workers, until=until)
    stack.push_async_callback(process.close)
    errors: dict[str, Exception] = {}
    for each in clusters:
        try:
            parts = stack.enter_context(memory.joined(each))
            virtual = connect_virtual(each, metrics, stack, replies=parts.replies)
            must_be_another(each.name, virtual, host)
            if dry_run:
                virtual = virtual.over(DryRun(virtual.transport))
            startup.add(process, each, virtual, budget=parts.objects, work=parts.work)
        except SyncerError as error:
            errors[each.name] = error
    if is_alone:
        _must_have_none(errors)
    await process.host_connection.reach(START_SECONDS)
    added = [each for each in clusters if each.name not in errors]
    preparations = [startup.prepare(process.served[each.name], each) for each in added]
    results = await asyncio.gather(*preparations, return_exceptions=True)
    for each, result in zip(added, results, strict=True):
        if isinstance(result, Exception):
            errors[each.name] = result
    if is_alone:
        _must_have_none(errors)
    return process, {name: await _failed(process, name, error) for name, error in errors.items()}


def _must_have_none(errors: Mapping[str, Exception]) -> None:
    """Raise the first of the errors."""
    for error in errors.values():
        raise error


async def _failed(process: Process, name: str, error: Exception) -> str:
    """Continue without a virtual cluster, and return why."""
    if isinstance(error, SyncerError):
        reason = str(error)
        log.warning("a virtual cluster can't be served", cluster=name, error=reason)
    else:
        reason = f"{type(error).__name__}: {error}"
        log.error("serving a virtual cluster failed", cluster=name, exc_info=error)
    if name in process.pairs:
        await process.remove(name)
    return reason


async def _lead(
    process: Process,
    config: SyncerConfig,
    term: CommandTerm,
    stack: AsyncExitStack,
) -> dict[str, str]:
    """Hold the Leases of the virtual clusters until ``stack`` ends.

    Return why some are left to others, by name.

    Raises:
        AnotherLeads: A daemon leads all of them.
    """
    by_lease: dict[str, list[str]] = {}
    for name in process.pairs:
        [lease] = lease_names(config, (name,))
        by_lease.setdefault(lease, []).append(name)
    failed: dict[str, str] = {}
    for names in by_lease.values():
        try:
            await stack.enter_async_context(term.leading(process.host, config, names))
        except AnotherLeads as error:
            if len(by_lease) == 1:
                raise
            for name in names:
                failed[name] = await _failed(process, name, error)
    return failed


async def _once(
    process: Process, failed: Mapping[str, str], prefix: str, *, is_alone: bool
) -> Summary:
    """Bring the virtual clusters of a process in step.

    Others have failed before, for the reasons in ``failed``. ``prefix`` is that of the marks. The
    writes of one that ``is_alone`` are shown without its name.
    """
    async with process.running():
        work = asyncio.create_task(process.work())
        try:
            await status.settle(process)
            summary = _summary(process)
            summary.failed = {**failed, **_lost(process)}
        finally:
            process.queue.close()
            await work
    clients = [process.host, *(served.connection.cluster for served in process.served.values())]
    for client in clients:
        if isinstance(client.transport, DryRun):
            where = f"on the {client.side} side"
            if client.side is Side.VIRTUAL and not is_alone:
                where = f"{where} of {client.virtual_cluster}"
            for write in client.transport.writes:
                summary.planned.append("\n    ".join([f"{write} {where}", *_patch(write, prefix)]))
    return summary


def _patch(write: UnsentWrite, prefix: str) -> list[str]:
    """Return the lines of a write's patch."""
    is_secret = (write.target.group, write.target.plural) == (SECRETS.group, SECRETS.plural)
    return patch_text(write.before, write.after, secret=is_secret, prefix=prefix)


def _lost(process: Process) -> dict[str, str]:
    """Return why virtual clusters don't answer at present, or not to us, by name."""
    lost = {name: served.lost_connection() for name, served in process.served.items()}
    return {name: connection.reason for name, connection in lost.items() if connection is not None}


def _summary(process: Process) -> Summary:
    unfinished = process.statuses.unfinished()
    troubles = [f"{request.cluster}/{request}: {found.reason}" for request, found in unfinished]
    for (cluster, syncer), reason in status.hindered(process).items():
        troubles.append(f"{cluster}/{syncer}: {reason}")
    in_step: dict[tuple[str, str], int] = {}
    for (cluster, syncer, state), number in status.states(process).items():
        if state == status.IN_STEP:
            in_step[cluster, syncer] = number
    return Summary(dict(process.statuses.done), troubles, in_step=in_step)


# -- the daemon ------------------------------------------------------------------------------------


async def _daemon(
    host: SideClient,
    config: SyncerConfig,
    metrics: Metrics,
    stack: AsyncExitStack,
    end: _End,
    file: ConfigFile | None,
) -> Summary:
    lease = lease_of(host, config)
    shards = shards_of(host, config)
    process = _process_of_daemon(host, config, metrics, lease, shards)
    stack.push_async_callback(process.close)
    fleet = ServedFleet(process, config.clusters())
    shared = SharedFleet(process, fleet, shards) if shards else None
    heartbeat = Heartbeat()
    source = ClusterSources(process, config, fleet.update)
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
        async with (
            process.running(),
            beside(source.run()),
            beside(fleet.run()) as tended,
            AsyncExitStack() as stack,
        ):
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
                work = lease.lead(process.work) if lease else process.work()
                async with beside(work) as working:
                    await _first(working, stopped, tended)
                    await _stop(
                        process,
                        working,
                        config.grace_period,
                        leading=lease is None or lease.is_leader,
                    )
            summary = _summary(process)
        if not tended.cancelled():
            tended.result()
        return summary


def _process_of_daemon(
    host: SideClient,
    config: SyncerConfig,
    metrics: Metrics,
    lease: Lease | None,
    shards: Shards | None,
) -> Process:
    """Return a process that works for the shards that it leads, or while it has the Lease.

    Without shards and Lease, it works always.
    """
    if shards:
        return Process(
            host=host,
            metrics=metrics,
            workers=config.workers,
            leads=shards.leads,
            until=shards.until,
        )
    if lease is None:
        return Process(host=host, metrics=metrics, workers=config.workers)

    def until(cluster: str) -> float:
        return lease.until

    return Process(host=host, metrics=metrics, workers=config.workers, until=until)


async def _first(*tasks: "asyncio.Task[Any]") -> None:
    """Wait until one of the tasks has ended."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _stop(
    process: Process,
    working: "asyncio.Task[None]",
    grace: float,
    *,
    leading: bool,
) -> None:
    """Take no more work, finish the requests in work, release the Lease."""
    process.queue.close()
    if not working.done():
        log.info("stopping", running=len(process.queue.running()))
        if not leading:
            working.cancel()
        await asyncio.wait({working}, timeout=grace)
    if not working.done():
        log.warning("grace period over; unfinished requests are repeated at the next start")
        working.cancel()
        await asyncio.wait({working}, timeout=CANCELLED_SECONDS)
    if working.done() and not working.cancelled():
        working.result()
