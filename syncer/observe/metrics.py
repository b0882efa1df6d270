"""The metrics of the process, kept by prometheus-client: recorded as things happen, or read at a scrape.

What is recorded is changed on the event loop's thread, and a scrape comes on another. The labels of a series are
resolved once, when its first value comes: an observation then costs a microsecond.
"""

import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from syncer.observe.catalogue import READ, RECORDED, Metric
from syncer.observe.logs import get_logger

Result = Literal["success", "error", "requeue", "requeue_after"]
Direction = Literal["down", "up"]

#: Upper bounds in seconds of every histogram: from a decision without a write to an API server that is away. Each bound
#: is a series for each histogram of each syncer of each virtual cluster, so there are few.
BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0)

#: The labels ``name`` and ``controller`` of the one queue.
QUEUE = ("syncer", "syncer")

#: Return the present values of a metric by label values, in the order of the catalogue.
Reading = Callable[[], Mapping[tuple[str, ...], float]]

log = get_logger(__name__)

Labels = TypeVar("Labels")
Child = TypeVar("Child", Counter, Histogram)


class _Children(dict[Labels, Child]):
    """The series of one metric by the labels that differ; a series is made when it is first asked for."""

    def __init__(self, make: Callable[[Labels], Child]) -> None:
        self._make: Callable[[Labels], Child] = make

    def __missing__(self, labels: Labels) -> Child:
        child: Child = self._make(labels)
        self[labels] = child
        return child


class _Recorded:
    """The recorded metrics, and which series of them belong to which virtual cluster."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counters = {
            one.name: Counter(one.name, one.help, one.labels, registry=registry)
            for one in RECORDED
            if one.kind == "counter"
        }
        self._histograms = {
            one.name: Histogram(one.name, one.help, one.labels, registry=registry, buckets=BOUNDS)
            for one in RECORDED
            if one.kind == "histogram"
        }
        self._series: defaultdict[str, set[tuple[Counter | Histogram, tuple[str, ...]]]] = defaultdict(set)

    def counter(self, name: str, cluster: str, *labels: str) -> Counter:
        """Return the series of a counter with these labels, in the order of the catalogue."""
        return self._child(self._counters[name], cluster, labels)

    def histogram(self, name: str, cluster: str, *labels: str) -> Histogram:
        """Return the series of a histogram with these labels, in the order of the catalogue."""
        return self._child(self._histograms[name], cluster, labels)

    def drop(self, cluster: str) -> None:
        """Remove all series of a virtual cluster."""
        for metric, labels in self._series.pop(cluster, ()):
            metric.remove(*labels)

    def _child(self, metric: Child, cluster: str, labels: tuple[str, ...]) -> Child:
        self._series[cluster].add((metric, (cluster, *labels)))
        return metric.labels(cluster, *labels)


class SyncerMetrics:
    """Count the work of one syncer of one virtual cluster."""

    __slots__ = ("_errors", "_failed", "_futile", "_lag", "_noop", "_results", "_time", "_writes")

    def __init__(self, recorded: _Recorded, cluster: str, name: str) -> None:
        def counters(metric: str) -> _Children[tuple[str, ...], Counter]:
            return _Children(lambda labels: recorded.counter(metric, cluster, name, *labels))

        def histograms(metric: str) -> _Children[tuple[str, ...], Histogram]:
            return _Children(lambda labels: recorded.histogram(metric, cluster, name, *labels))

        self._results = counters("controller_runtime_reconcile")
        self._failed = counters("controller_runtime_reconcile_errors")[()]
        self._time = histograms("controller_runtime_reconcile_time_seconds")[()]
        self._lag = histograms("syncer_lag_seconds")
        self._writes = counters("syncer_writes")
        self._noop = counters("syncer_noop")[()]
        self._futile = counters("syncer_futile_writes")
        self._errors = counters("syncer_errors")
        for side in ("virtual", "host"):
            self._futile[side,].inc(0)  # shown from the beginning, as any other value is a bug

    def reconciled(self, result: Result, seconds: float) -> None:
        """Count a request that was worked on for so many seconds."""
        self._results[result,].inc()
        self._time.observe(seconds)
        if result == "error":
            self._failed.inc()

    def wrote(self, side: str, verb: str) -> None:
        """Count a write to an API server."""
        self._writes[side, verb].inc()

    def no_op(self) -> None:
        """Count a decision that needed no write."""
        self._noop.inc()

    def futile(self, side: str) -> None:
        """Count a write that didn't change the object's resourceVersion."""
        self._futile[side,].inc()

    def lag(self, direction: Direction, seconds: float) -> None:
        """Count a change that was written so many seconds after it was seen."""
        self._lag[direction,].observe(seconds)

    def failed(self, reason: str) -> None:
        """Count an error; ``reason`` is its class, so that there are few."""
        self._errors[reason,].inc()


class QueueMetrics:
    """Count the requests of one virtual cluster in the queue."""

    __slots__ = ("_adds", "_retries", "_waited", "_worked")

    def __init__(self, recorded: _Recorded, cluster: str) -> None:
        self._adds = recorded.counter("workqueue_adds", cluster, *QUEUE)
        self._retries = recorded.counter("workqueue_retries", cluster, *QUEUE)
        self._waited = recorded.histogram("workqueue_queue_duration_seconds", cluster, *QUEUE)
        self._worked = recorded.histogram("workqueue_work_duration_seconds", cluster, *QUEUE)

    def added(self) -> None:
        """Count a request that was put in and wasn't in yet."""
        self._adds.inc()

    def waited(self, seconds: float) -> None:
        """Count a request that was taken out so many seconds after it became due."""
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        """Count a request on which the work has ended."""
        self._worked.observe(seconds)

    def retried(self) -> None:
        """Count a request that was put back to be tried again."""
        self._retries.inc()


class ClientMetrics:
    """Count the requests to one API server; an :class:`~syncer.clusters.client.Observer`."""

    __slots__ = ("_durations", "_requests")

    def __init__(self, recorded: _Recorded, *labels: str) -> None:
        self._requests: _Children[tuple[int, str], Counter] = _Children(
            lambda reply: recorded.counter("rest_client_requests", *labels, str(reply[0] or "<error>"), reply[1])
        )
        self._durations: _Children[str, Histogram] = _Children(
            lambda method: recorded.histogram("rest_client_request_duration_seconds", *labels, method)
        )

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request by the status of its reply; 0 for none becomes ``<error>``, as client-go has it."""
        self._requests[code, method].inc()
        self._durations[method].observe(seconds)


class Metrics:
    """All metrics of this process; ``registry`` is what the metrics server shows."""

    def __init__(self, *, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nothing needs
        self.registry = CollectorRegistry()
        self._recorded = _Recorded(self.registry)
        self._readings = _Readings()
        self._syncers: dict[tuple[str, str], SyncerMetrics] = {}
        self._queues: dict[str, QueueMetrics] = {}
        self.registry.register(self._readings)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        build = (version, platform.python_version())
        self.ask("syncer_build_info", lambda: {build: 1})

    def syncer(self, cluster: str, name: str) -> SyncerMetrics:
        """Return the metrics of a syncer of a virtual cluster, always the same for both names."""
        found = self._syncers.get((cluster, name))
        if found is None:
            found = self._syncers[cluster, name] = SyncerMetrics(self._recorded, cluster, name)
        return found

    def queue(self, cluster: str) -> QueueMetrics:
        """Return the metrics of the queue for a virtual cluster, always the same for a name."""
        found = self._queues.get(cluster)
        if found is None:
            found = self._queues[cluster] = QueueMetrics(self._recorded, cluster)
        return found

    def client(self, cluster: str, side: str, host: str) -> ClientMetrics:
        """Return the metrics of the requests to an API server; ``cluster`` is ``""`` for the host's."""
        return ClientMetrics(self._recorded, cluster, side, host)

    def watch_restarted(self, cluster: str, side: str, resource: str) -> None:
        """Count a watch that was begun anew."""
        self._recorded.counter("syncer_watch_restarts", cluster, side, resource).inc()

    def ask(self, name: str, read: Reading) -> None:
        """Show the values that ``read`` returns at each scrape, under a name of the catalogue.

        It runs on the scrape's thread: it must be quick, and copy (``list(d.items())``) what the loop may change. A
        reading that raises is left out of that scrape, and logged once. Raises KeyError for a name that is not to be
        read.
        """
        self._readings.add(name, read)

    def drop(self, cluster: str) -> None:
        """Forget a virtual cluster that has left, and all its series."""
        self._recorded.drop(cluster)
        self._queues.pop(cluster, None)
        for place in [place for place in self._syncers if place[0] == cluster]:
            del self._syncers[place]


class _Readings(Collector):
    """The metrics that are read at each scrape."""

    def __init__(self) -> None:
        self._known = {metric.name: metric for metric in READ}
        self._reads: dict[str, Reading] = {}
        self._failed: set[str] = set()

    def add(self, name: str, read: Reading) -> None:
        """Read a metric so from now on. Raises KeyError for an unknown name."""
        self._known[name]
        self._reads[name] = read

    def describe(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Describe nothing: else registering would read everything."""
        return ()

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield a family for each metric that has a value."""
        for name, read in list(self._reads.items()):
            values = self._values(name, read)
            if values:
                family = _family(self._known[name])
                for labels, value in values.items():
                    family.add_metric(labels, value)
                yield family

    def _values(self, name: str, read: Reading) -> Mapping[tuple[str, ...], float]:
        """Return nothing for a metric that can't be read: without the others nobody sees what is wrong."""
        try:
            return read()
        except Exception as error:  # noqa: BLE001  # whatever a callback raises
            if name not in self._failed:
                self._failed.add(name)
                log.warning("a metric could not be read", metric=name, error=repr(error))
            return {}


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return made(metric.name, metric.help, labels=metric.labels)
