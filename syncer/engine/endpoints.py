"""The endpoints of a daemon: metrics, health pages, and the control socket."""

import functools
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from syncer.api.errors import ConfigError
from syncer.api.objects import Side
from syncer.config import SyncerConfig
from syncer.engine import control as control_api
from syncer.engine import status
from syncer.engine.controllers.connection import Connection
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.engine import Engine
from syncer.engine.leaderelection.lease import Lease
from syncer.engine.patrol import patrollers
from syncer.observe.control import Control
from syncer.observe.health import Checks, Heartbeat, at_most
from syncer.observe.logs import get_logger
from syncer.observe.metrics import QUEUE
from syncer.observe.server import metrics_app, serve

#: Seconds after which a request in work counts as stuck; longer than all its timeouts together.
STUCK_SECONDS = 300.0

log = get_logger(__name__)


@asynccontextmanager
async def serving(
    engine: Engine, config: SyncerConfig, heartbeat: Heartbeat, lease: Lease | None
) -> AsyncIterator[None]:
    """Serve metrics, health pages and the control API while the block runs, as configured.

    Metrics and health have their own threads, so that they answer even while the event loop hangs.

    Raises:
        ConfigError: An address or a socket can't be served.
    """
    measure(engine, config, lease)
    checks = _checks(engine, heartbeat)
    async with AsyncExitStack() as stack:
        for server in (
            serve(config.metrics.address, metrics_app(engine.metrics.registry), setting="metrics.address"),
            serve(config.health.address, checks.app(), setting="health.address"),
        ):
            if server:
                stack.callback(server.close)
        await _serve_control(stack, engine, config, lease)
        yield


async def _serve_control(stack: AsyncExitStack, engine: Engine, config: SyncerConfig, lease: Lease | None) -> None:
    """Serve the control socket. Without it if another candidate on the same machine has it."""
    control = Control(led_by=lambda: None if lease is None or lease.is_leader else lease.holder)
    control_api.add(control, engine)
    try:
        await stack.enter_async_context(control.serving(config.control_socket(os.environ)))
    except ConfigError as error:
        if lease is None:
            raise
        log.warning("no control socket; commands can't ask this daemon", error=str(error))


def _checks(engine: Engine, heartbeat: Heartbeat) -> Checks:
    checks = Checks()
    checks.live("loop", heartbeat)
    checks.live("workers", at_most(STUCK_SECONDS, lambda: _longest(engine), "a request has been worked on"))
    checks.ready("host", functools.partial(_down, engine.host_connection))
    checks.ready_by_cluster("virtual", lambda: _virtual(engine))
    checks.ready_by_cluster("caches", lambda: _caches(engine))
    checks.degraded(lambda: {"/".join(place): why for place, why in status.degraded(engine).items()})
    return checks


def _virtual(engine: Engine) -> Mapping[str, str | None]:
    return {cluster: _down(served.connection) for cluster, served in list(engine.served.items())}


def _caches(engine: Engine) -> Mapping[str, str | None]:
    unfilled = status.unfilled(engine)
    return {cluster: "; ".join(unfilled.get(cluster, ())) or None for cluster in list(engine.served)}


def _down(connection: Connection) -> str | None:
    return str(connection.error) if connection.error else None


def _longest(engine: Engine) -> float:
    return max((engine.clock() - begun for begun in list(engine.queue.running().values())), default=0.0)


def measure(engine: Engine, config: SyncerConfig, lease: Lease | None) -> None:
    """Register metrics for the current state of an engine."""
    ask = engine.metrics.ask
    ask("workqueue_depth", lambda: {(cluster, *QUEUE): depth for cluster, depth in engine.queue.depths().items()})
    ask("workqueue_unfinished_work_seconds", lambda: _unfinished(engine, sum))
    ask("workqueue_longest_running_processor_seconds", lambda: _unfinished(engine, max))
    ask("controller_runtime_active_workers", lambda: _active(engine))
    ask("controller_runtime_max_concurrent_reconciles", lambda: {("syncer",): config.workers})
    ask("syncer_objects", lambda: status.states(engine))
    ask("syncer_parked", engine.statuses.parked)
    ask("syncer_mappings", lambda: status.mappings(engine))
    ask("syncer_collisions", lambda: status.collisions(engine))
    for name in patrollers.METRICS:
        ask(name, functools.partial(_of_patrols, engine, name))
    ask("syncer_deletions_held", lambda: patrollers.held(list(engine.pairs.values())))
    ask("syncer_fights", lambda: _by_cluster(engine, lambda pair: pair.policies.contention.counted()))
    ask("syncer_frozen_fields", lambda: _by_cluster(engine, lambda pair: pair.policies.contention.numbers()))
    ask("syncer_cache_objects", lambda: _by_cluster(engine, lambda pair: pair.informers.sizes()))
    ask("syncer_cluster_up", lambda: _up(engine))
    if lease:
        ask("leader_election_master_status", lambda: {(config.lease_name,): float(lease.is_leader)})


def _of_patrols(engine: Engine, metric: str) -> Mapping[tuple[str, ...], float]:
    return patrollers.readings(engine.patrollers(), metric)


def _unfinished(engine: Engine, combine: Callable[[list[float]], float]) -> Mapping[tuple[str, ...], float]:
    """Combine the ages of the requests in work, in seconds, by virtual cluster."""
    now, ages = engine.clock(), {cluster: [0.0] for cluster in list(engine.pairs)}
    for request, begun in list(engine.queue.running().items()):
        ages.setdefault(request.cluster, []).append(now - begun)
    return {(cluster, *QUEUE): combine(each) for cluster, each in ages.items()}


def _active(engine: Engine) -> Mapping[tuple[str, ...], float]:
    busy = Counter(request.cluster for request in list(engine.queue.running()))
    return {(cluster, "syncer"): busy[cluster] for cluster in list(engine.pairs)}


def _up(engine: Engine) -> Mapping[tuple[str, ...], float]:
    connections = {cluster: served.connection for cluster, served in list(engine.served.items())}
    sides = ((Side.HOST, {"": engine.host_connection}), (Side.VIRTUAL, connections))
    return {(cluster, side.value): float(each.up) for side, found in sides for cluster, each in found.items()}


def _by_cluster(
    engine: Engine, read: Callable[[ClusterPair], Mapping[tuple[str, ...], float]]
) -> Mapping[tuple[str, ...], float]:
    """Read values from each pair, with its virtual cluster as the first label."""
    return {(pair.name, *labels): value for pair in list(engine.pairs.values()) for labels, value in read(pair).items()}
