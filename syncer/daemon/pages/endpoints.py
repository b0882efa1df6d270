"""The endpoints of a daemon: metrics, health pages, the control socket, and the page."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from syncer.api.errors import ConfigError
from syncer.api.objects import Side
from syncer.cache.reflector import ReflectorState
from syncer.config import SyncerConfig
from syncer.daemon.connections import Connection
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages import monitoring, page_handlers, status
from syncer.daemon.pages.history import History
from syncer.daemon.pages.page import page_app
from syncer.daemon.process import Process
from syncer.daemon.tasks import beside
from syncer.daemon.unserved import UNLISTED
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol import patrollers
from syncer.engine.stores.informers import store_of
from syncer.leaderelection.lease import Lease
from syncer.leaderelection.shards import Shards
from syncer.observe.control import Control
from syncer.observe.health import Checks, Heartbeat, at_most
from syncer.observe.logs import get_logger
from syncer.observe.metrics import QUEUE
from syncer.observe.server import metrics_app, serve

#: Seconds after which a request in work counts as stuck; longer than all its timeouts together.
STUCK_SECONDS = 300.0
#: Seconds after which a watch that has brought nothing counts as stuck: longer than any watch lives
#: (``WATCH_SECONDS`` and ``LATE_SECONDS`` of the reflector), and API servers send a bookmark about
#: each minute.
STUCK_WATCH_SECONDS = 900.0

#: The values of a metric, by its labels.
Readings = Mapping[tuple[str, ...], float]

log = get_logger(__name__)


@asynccontextmanager
async def serving(
    process: Process,
    config: SyncerConfig,
    heartbeat: Heartbeat,
    lease: Lease | None,
    shards: Shards | None = None,
) -> AsyncIterator[None]:
    """Serve metrics, health, the control API and the page while the block runs, as configured.

    Metrics and health have their own threads, so that they answer even while the event loop hangs.

    Raises:
        ConfigError: An address or a socket can't be served.
    """
    measure(process, config, lease, shards)
    checks = _checks(process, heartbeat, lease)
    async with AsyncExitStack() as stack:
        for server in (
            serve(
                config.metrics.address,
                metrics_app(process.metrics.registry),
                setting="metrics.address",
            ),
            serve(config.health.address, checks.app(), setting="health.address"),
        ):
            if server:
                stack.callback(server.close)
        control = _control(process, lease)
        monitoring.add(
            control,
            process.metrics.registry,
            checks,
            lambda: [*process.served, *process.unserved.clusters],
        )
        await _serve_control(stack, control, config, lease)
        await _serve_page(stack, control, process, config)
        yield


def _control(process: Process, lease: Lease | None) -> Control:
    """Return what answers commands, and the page."""

    def led_by() -> str | None:
        """Return who leads instead of this process."""
        return None if lease is None or lease.is_leader else lease.holder

    control = Control(led_by=led_by)
    control_api.add(control, process)
    return control


async def _serve_page(
    stack: AsyncExitStack, control: Control, process: Process, config: SyncerConfig
) -> None:
    """Serve the page, if it is on, and keep its numbers of the last hour."""
    app = page_app(control, asyncio.get_running_loop())
    server = serve(config.page.address, app, setting="page.address")
    if server is None:
        return
    stack.callback(server.close)
    history = History(process.metrics, lambda: list(process.pairs))
    page_handlers.add(control, process, history)
    await stack.enter_async_context(beside(history.keep()))


async def _serve_control(
    stack: AsyncExitStack,
    control: Control,
    config: SyncerConfig,
    lease: Lease | None,
) -> None:
    """Serve the control socket. Without it if another candidate on the same machine has it."""
    try:
        await stack.enter_async_context(control.serving(config.control_socket(os.environ)))
    except ConfigError as error:
        if lease is None:
            raise
        log.warning("no control socket; commands can't ask this daemon", error=str(error))


def _checks(process: Process, heartbeat: Heartbeat, lease: Lease | None) -> Checks:

    def degraded() -> dict[str, str]:
        return _degraded(process) | _led_elsewhere(lease)

    checks = Checks()
    checks.live("loop", heartbeat)
    checks.live(
        "workers",
        at_most(STUCK_SECONDS, partial(_longest, process), "a request has been worked on"),
    )
    checks.live(
        "watches",
        at_most(
            STUCK_WATCH_SECONDS, partial(_longest_silence, process), "a watch has brought nothing"
        ),
    )
    checks.ready("host", partial(_down, process.host_connection))
    checks.ready_by_cluster("virtual", partial(_virtual, process))
    checks.ready_by_cluster("caches", partial(_caches, process))
    checks.ready_by_cluster("secrets", partial(_unlisted, process))
    checks.remark("degraded", degraded)
    checks.remark("paused", partial(_paused, process))
    return checks


def _degraded(process: Process) -> dict[str, str]:
    """Return the faults. Secrets are only counted, as there may be any number of them."""
    found = {"/".join(part): why for part, why in status.degraded(process, details=False).items()}
    by_namespace: dict[str, list[str]] = {}
    for (namespace, why), number in sorted(_refused(process).items()):
        by_namespace.setdefault(namespace, []).append(f"{why}: {number}")
    for namespace, reasons in by_namespace.items():
        found[f"secrets/{namespace}"] = ", ".join(reasons)
    return found


def _paused(process: Process) -> dict[str, str]:
    return {"/".join(part): why for part, why in status.paused(process).items()}


def _led_elsewhere(lease: Lease | None) -> dict[str, str]:
    """Return who leads, if that is no replica of this daemon."""
    if lease is None or not lease.stranger:
        return {}
    why = f"{lease.stranger} holds it, a pod of another Deployment: uninstall one of them"
    return {"lease": why}


def _refused(process: Process) -> Mapping[tuple[str, ...], int]:
    """Return the number of refused Secrets by namespace and reason; of those beyond the most, 1."""
    refused = process.unserved.secrets.items()
    return Counter((namespace, why.public) for (namespace, _), why in refused)


def _unlisted(process: Process) -> Mapping[str, str | None]:
    """Return why Secrets with virtual clusters aren't known, by namespace.

    Nothing is returned if a virtual cluster is served meanwhile.
    """
    if process.pairs or process.unserved.clusters:
        return {}
    unlisted: dict[str, str | None] = {}
    for (namespace, secret), why in process.unserved.secrets.items():
        if secret == UNLISTED:
            unlisted[namespace] = why.public
    return unlisted


def _virtual(process: Process) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {}
    for cluster, why in process.unserved.clusters.items():
        found[cluster] = why.public
    for cluster, served in list(process.served.items()):
        found[cluster] = _down(served.connection)
    return found


def _caches(process: Process) -> Mapping[str, str | None]:
    unfilled = status.unfilled(process)
    clusters = list(process.served)
    return {cluster: "; ".join(unfilled.get(cluster, ())) or None for cluster in clusters}


def _down(connection: Connection) -> str | None:
    """Return the class of the error.

    The message names addresses, users and files, and anybody may read the page.
    """
    return type(connection.error).__name__ if connection.error else None


def _longest(process: Process) -> float:
    return max(
        (process.clock() - begun for begun in list(process.queue.running().values())),
        default=0.0,
    )


def _longest_silence(process: Process) -> float:
    """Return for how many seconds a watch of an API server that answers has brought nothing."""
    now = process.clock()
    longest = 0.0
    for served in list(process.served.values()):
        for reflector in list(served.pair.reflectors.values()):
            if served.connections[store_of(reflector).side].up:
                longest = max(longest, reflector.silence(now))
    return longest


def measure(
    process: Process,
    config: SyncerConfig,
    lease: Lease | None,
    shards: Shards | None = None,
) -> None:
    """Register metrics for the current state of a process."""

    def workers() -> Readings:
        return {("syncer",): config.workers}

    ask = process.metrics.ask
    ask("workqueue_depth", partial(_depths, process))
    ask("workqueue_unfinished_work_seconds", partial(_unfinished, process, sum))
    ask("workqueue_longest_running_processor_seconds", partial(_unfinished, process, max))
    ask("controller_runtime_active_workers", partial(_active, process))
    ask("controller_runtime_max_concurrent_reconciles", workers)
    ask("syncer_objects", partial(status.states, process))
    ask("syncer_reasons", process.statuses.count_reasons)
    ask("syncer_parked", process.statuses.parked)
    ask("syncer_mappings", partial(status.mappings, process))
    ask("syncer_collisions", partial(status.collisions, process))
    for name in patrollers.METRICS:
        ask(name, partial(_of_patrols, process, name))
    ask("syncer_deletions_held", partial(_stopped_deletions, process))
    ask("syncer_fights", partial(_by_cluster, process, _fights))
    ask("syncer_frozen_fields", partial(_by_cluster, process, _frozen_fields))
    ask("syncer_cache_objects", partial(_by_cluster, process, _cached))
    ask("syncer_paused_deletions", partial(_by_cluster, process, status.kept_by_pauses))
    ask("syncer_quarantined_objects", partial(status.quarantined, process))
    ask("syncer_cluster_up", partial(_up, process))
    ask("syncer_secrets_refused", partial(_refused, process))
    ask("syncer_certificate_end_timestamp_seconds", partial(_certificates, process))
    ask("syncer_watch_up", partial(_by_cluster, process, _watched))
    if lease:
        ask("leader_election_master_status", partial(_leads, config.lease_name, lease))
    if shards:
        ask("leader_election_master_status", partial(_led_shards, shards))


def _leads(name: str, lease: Lease) -> Readings:
    return {(name,): float(lease.is_leader)}


def _led_shards(shards: Shards) -> Readings:
    return {(name,): float(is_led) for name, is_led in shards.led().items()}


def _depths(process: Process) -> Readings:
    return {(cluster, *QUEUE): depth for cluster, depth in process.queue.depths().items()}


def _of_patrols(process: Process, metric: str) -> Readings:
    return patrollers.readings(process.patrollers(), metric)


def _stopped_deletions(process: Process) -> Readings:
    return patrollers.stopped_deletions(list(process.pairs.values()))


def _fights(pair: ClusterPair) -> Readings:
    return pair.policies.contention.counted()


def _frozen_fields(pair: ClusterPair) -> Readings:
    return pair.policies.contention.numbers()


def _cached(pair: ClusterPair) -> Readings:
    return pair.informers.sizes()


def _unfinished(process: Process, combine: Callable[[list[float]], float]) -> Readings:
    """Combine the ages of the requests in work, in seconds, by virtual cluster."""
    now = process.clock()
    ages = {cluster: [0.0] for cluster in list(process.pairs)}
    for request, begun in list(process.queue.running().items()):
        ages.setdefault(request.cluster, []).append(now - begun)
    return {(cluster, *QUEUE): combine(each) for cluster, each in ages.items()}


def _active(process: Process) -> Readings:
    """Count the requests in work, by virtual cluster and syncer."""
    busy = Counter[tuple[str, ...]]()
    for request in list(process.queue.running()):
        busy[request.cluster, request.syncer] += 1
    for pair in list(process.pairs.values()):
        for syncer in list(pair.controllers):
            busy[pair.name, syncer] += 0
    return busy


def _up(process: Process) -> Readings:
    found: dict[tuple[str, ...], float] = {}
    for cluster in process.unserved.clusters:
        found[cluster, Side.VIRTUAL.value] = 0.0
    for labels, connection in _connections(process).items():
        found[labels] = float(connection.up)
    return found


def _certificates(process: Process) -> Readings:
    """Return the ends of client certificates; a login without a certificate is left out."""
    found: dict[tuple[str, ...], float] = {}
    for labels, connection in _connections(process).items():
        end = connection.cluster.origin.ends()
        if end is not None:
            found[labels] = end
    return found


def _connections(process: Process) -> Mapping[tuple[str, ...], Connection]:
    """Return the connections by virtual cluster and side."""
    found: dict[tuple[str, ...], Connection] = {("", Side.HOST.value): process.host_connection}
    for cluster, served in list(process.served.items()):
        found[cluster, Side.VIRTUAL.value] = served.connection
    return found


def _watched(pair: ClusterPair) -> Readings:
    """Return whether each resource of a side has its watches, by side and resource."""
    found: dict[tuple[str, ...], float] = {}
    for (side, resource, *_part), reflector in list(pair.reflectors.items()):
        labels = (side.value, str(resource))
        is_watched = float(reflector.state is ReflectorState.WATCHING)
        found[labels] = min(found.get(labels, 1.0), is_watched)
    return found


def _by_cluster(process: Process, read: Callable[[ClusterPair], Readings]) -> Readings:
    """Read values from each pair, with its virtual cluster as the first label."""
    found: dict[tuple[str, ...], float] = {}
    for pair in list(process.pairs.values()):
        for labels, value in read(pair).items():
            found[pair.name, *labels] = value
    return found
