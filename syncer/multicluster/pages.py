"""The pages of a manager: the metrics of its controllers, and whether they work."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from syncer.leaderelection.lease import Lease
from syncer.multicluster.cluster_cache import ClusterCache
from syncer.multicluster.cluster_status import ClusterStatus, State
from syncer.multicluster.controller import Controller
from syncer.observe.health import Checks, Heartbeat
from syncer.observe.server import metrics_app, serve

_LABELS = ("controller", "cluster")


class ControllerCollector(Collector):
    """Reads the metrics of controllers at each scrape; the series of a cluster go with it.

    They are those of controller-runtime, with the label ``cluster``. Controllers of one name are
    counted together::

        REGISTRY.register(ControllerCollector(lambda: [controller]))
    """

    def __init__(self, controllers: Callable[[], Sequence[Controller]]) -> None:
        self._controllers = controllers

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield nothing: controllers are read at scrapes alone."""
        return iter(())

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the ended reconciles by result, those in work, the requests that wait, and the most
        at a time.
        """
        ended = CounterMetricFamily(
            "controller_runtime_reconcile",
            "Reconciles that have ended, by result.",
            labels=[*_LABELS, "result"],
        )
        active = GaugeMetricFamily(
            "controller_runtime_active_workers",
            "Reconciles in work.",
            labels=_LABELS,
        )
        depth = GaugeMetricFamily(
            "workqueue_depth",
            "Requests that wait for a worker.",
            labels=_LABELS,
        )
        most = GaugeMetricFamily(
            "controller_runtime_max_concurrent_reconciles",
            "The most reconciles at a time.",
            labels=["controller"],
        )
        found = list(self._controllers())
        for family, read in (
            (ended, lambda each: each.results()),
            (active, lambda each: each.active()),
            (depth, lambda each: each.depths()),
        ):
            for labels, number in _together(found, read).items():
                family.add_metric(labels, number)
        for name, number in Counter({each.name: each.options.workers for each in found}).items():
            most.add_metric([name], number)
        yield from (ended, active, depth, most)


def _together(
    controllers: Sequence[Controller],
    read: Callable[[Controller], Mapping[tuple[str, ...], int]],
) -> Mapping[tuple[str, ...], int]:
    """Return the sums of the numbers of controllers, by their name and the labels of a number."""
    sums = Counter[tuple[str, ...]]()
    for each in controllers:
        for labels, number in read(each).items():
            sums[each.name, *labels] += number
    return sums


def checks_of(
    controllers: Callable[[], Sequence[Controller]],
    caches: Callable[[], Sequence[ClusterCache]],
    lease: Lease | None,
    heartbeat: Heartbeat,
) -> Checks:
    """Return the checks of a manager: it lives while its event loop does, and is ready once some
    cluster is connected, and the caches there are filled. A process that stands by is ready.
    """

    def filled() -> Mapping[str, str | None]:
        if lease is not None and not lease.is_leader:
            return {}
        unfilled: dict[str, str | None] = {}
        for cache in list(caches()):
            for name in cache:
                unfilled[name] = _lost(cache.get_status(name))
        for each in list(controllers()):
            for name in list(each.clusters):
                unfilled[name] = unfilled.get(name) or _waits(each, name)
        return unfilled

    checks = Checks()
    checks.live("loop", heartbeat)
    checks.ready_by_cluster("caches", filled)
    return checks


def _waits(controller: Controller, name: str) -> str | None:
    """Return why a controller doesn't work in a cluster, or works there from old caches."""
    if not controller.is_set_up(name):
        return f"a setup of controller {controller.name} raised there, and is tried again"
    if not controller.is_ready(name):
        return f"controller {controller.name} waits for its caches there"
    if controller.cluster(name).error is not None:
        return "its caches aren't kept up to date"
    return None


def _lost(status: ClusterStatus) -> str | None:
    """Return what a page for anybody says of a connection: no address and no user is in it."""
    if status.state is State.CONNECTED:
        return None
    if not status.reason:
        return "not connected"
    return f"not connected ({status.reason})"


def serve_pages(
    stack: ExitStack,
    *,
    metrics: str,
    health: str,
    registry: CollectorRegistry,
    checks: Checks,
) -> dict[str, int]:
    """Serve the pages at addresses such as ``:8080`` until the stack is left; return the ports, by
    setting.

    Raises:
        ConfigError: An address is malformed, or can't be listened on.
    """
    ports: dict[str, int] = {}
    for setting, address, app in (
        ("metrics_address", metrics, metrics_app(registry)),
        ("health_address", health, checks.app()),
    ):
        server = serve(address, app, setting=setting)
        if server is not None:
            stack.callback(server.close)
            ports[setting] = server.port
    return ports
