"""The metrics of the process, exposed by prometheus-client.

They are recorded as things happen, or read at a scrape. Only the event loop's thread records, in
plain numbers, since a lock and the checks of prometheus-client's own counters for each of an
object's nine observations would cost a twentieth of its CPU. A scrape runs on another thread and
builds families from copies.
"""

import platform
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import add
from typing import Literal, TypeVar

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from syncer.observe.catalogue import READ, RECORDED
from syncer.observe.logs import get_logger

ReconcileResult = Literal["success", "error", "requeue_after"]
LagDirection = Literal["down", "up"]

#: Upper bounds in seconds of every histogram: from a decision without a write to an unreachable API
#: server. Each bound is a series for each histogram of each syncer of each virtual cluster, so
#: there are few.
BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0)

#: The values of the label ``le`` in Prometheus' format.
LE = (*map(floatToGoString, BOUNDS), "+Inf")

#: The labels ``name`` and ``controller`` of the queue.
QUEUE = ("syncer", "syncer")

#: Returns the current values of a metric by label values, in the order of the catalogue.
Reading = Callable[[], Mapping[tuple[str, ...], float]]

log = get_logger(__name__)

LabelsT = TypeVar("LabelsT")
Series = TypeVar("Series", "Count", "Timings")


class Count:
    """A series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self) -> None:
        """Add 1."""
        self.value += 1


class Timings:
    """A series of a histogram.

    It has the number of durations in each bucket of :data:`BOUNDS`, and their sum.
    """

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class _Children(dict[LabelsT, Series]):
    """The series of a metric by the variable labels; a series is created on first use."""

    def __init__(self, make: Callable[[LabelsT], Series]) -> None:
        self._make: Callable[[LabelsT], Series] = make

    def __missing__(self, labels: LabelsT) -> Series:
        child: Series = self._make(labels)
        self[labels] = child
        return child


class _Recorded(Collector):
    """The recorded metrics as plain numbers; a scrape builds prometheus-client's families."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[tuple[str, ...], Count]] = {}
        self._histograms: dict[str, dict[tuple[str, ...], Timings]] = {}
        for metric in RECORDED:
            if metric.kind == "counter":
                self._counters[metric.name] = {}
            else:
                self._histograms[metric.name] = {}

    def counter(self, name: str, cluster: str, *labels: str) -> Count:
        """Return the series of a counter with these labels, in the order of the catalogue."""
        return self._counters[name].setdefault((cluster, *labels), Count())

    def histogram(self, name: str, cluster: str, *labels: str) -> Timings:
        """Return the series of a histogram with these labels, in the order of the catalogue."""
        return self._histograms[name].setdefault((cluster, *labels), Timings())

    def counts(self, name: str) -> list[tuple[tuple[str, ...], int]]:
        """Return the values of a counter with their labels. Thread-safe."""
        return [(labels, count.value) for labels, count in list(self._counters[name].items())]

    def buckets(self, name: str) -> list[tuple[tuple[str, ...], list[int]]]:
        """Return the counts of each bucket of a histogram with their labels. Thread-safe."""
        series = list(self._histograms[name].items())
        return [(labels, list(timings.counts)) for labels, timings in series]

    def drop(self, cluster: str) -> None:
        """Remove all series of a virtual cluster."""
        for counts in self._counters.values():
            _drop(cluster, counts)
        for timings in self._histograms.values():
            _drop(cluster, timings)

    def describe(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        """Describe nothing: the catalogue's names are unique."""
        return ()

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        """Yield a family for each metric, from copies, as the loop goes on counting."""
        for metric in RECORDED:
            if metric.kind == "counter":
                counter = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
                for labels, count in list(self._counters[metric.name].items()):
                    counter.add_metric(labels, count.value)
                yield counter
            else:
                histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
                for labels, timings in list(self._histograms[metric.name].items()):
                    seconds = timings.seconds
                    below = accumulate(list(timings.counts))
                    histogram.add_metric(labels, list(zip(LE, below, strict=True)), seconds)
                yield histogram


def _drop(cluster: str, series: dict[tuple[str, ...], Series]) -> None:
    for labels in [labels for labels in series if labels[0] == cluster]:
        del series[labels]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return the seconds within which this share of durations was, as ``histogram_quantile`` of
    Prometheus.

    Those over the largest of :data:`BOUNDS` count as that. None if there are no durations.

    Args:
        counts: The number of durations in each bucket of :data:`BOUNDS`, and over the largest.
        share: From 0 to 1.
    """
    rank = share * sum(counts)
    if not any(counts):
        return None
    below = 0
    lower = 0.0
    for bound, count in zip(BOUNDS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (bound - lower) * (rank - below) / count
        below += count
        lower = bound
    return lower


class SyncerMetrics:
    """Counts the work of a syncer of a virtual cluster."""

    __slots__ = ("_errors", "_failed", "_futile", "_lag", "_noop", "_results", "_time", "_writes")

    def __init__(self, recorded: _Recorded, cluster: str, name: str) -> None:
        def counters(metric: str) -> _Children[tuple[str, ...], Count]:
            def child(labels: tuple[str, ...]) -> Count:
                return recorded.counter(metric, cluster, name, *labels)

            return _Children(child)

        def histograms(metric: str) -> _Children[tuple[str, ...], Timings]:
            def child(labels: tuple[str, ...]) -> Timings:
                return recorded.histogram(metric, cluster, name, *labels)

            return _Children(child)

        self._results = counters("controller_runtime_reconcile")
        self._failed = counters("controller_runtime_reconcile_errors")[()]
        self._time = histograms("controller_runtime_reconcile_time_seconds")[()]
        self._lag = histograms("syncer_lag_seconds")
        self._writes = counters("syncer_writes")
        self._noop = counters("syncer_noop")[()]
        self._futile = counters("syncer_futile_writes")
        self._errors = counters("syncer_errors")
        for side in ("virtual", "host"):
            self._futile[side,]  # shown from the beginning, as any value but 0 is a bug

    def reconciled(self, result: ReconcileResult, seconds: float) -> None:
        """Count a request that took so many seconds."""
        self._results[result,].value += 1
        self._time.observe(seconds)
        if result == "error":
            self._failed.inc()

    def wrote(self, side: str, verb: str) -> None:
        """Count a write to an API server."""
        self._writes[side, verb].value += 1

    def no_op(self) -> None:
        """Count a decision that needed no write."""
        self._noop.inc()

    def futile(self, side: str) -> None:
        """Count a write that didn't change the object's resourceVersion."""
        self._futile[side,].inc()

    def lag(self, direction: LagDirection, seconds: float) -> None:
        """Count a change that was written so many seconds after it was observed."""
        self._lag[direction,].observe(seconds)

    def failed(self, reason: str) -> None:
        """Count an error; ``reason`` is its class, so that there are few values."""
        self._errors[reason,].inc()


class QueueMetrics:
    """Counts the requests of a virtual cluster in the queue."""

    __slots__ = ("added", "retried", "waited", "worked")

    def __init__(self, recorded: _Recorded, cluster: str) -> None:
        #: Counts a request that was added to the queue.
        self.added = recorded.counter("workqueue_adds", cluster, *QUEUE).inc
        #: Counts a request that was queued again after a failure.
        self.retried = recorded.counter("workqueue_retries", cluster, *QUEUE).inc
        #: Counts a request that was taken out so many seconds after it became due.
        self.waited = recorded.histogram(
            "workqueue_queue_duration_seconds",
            cluster,
            *QUEUE,
        ).observe
        #: Counts a request that took a worker so many seconds.
        self.worked = recorded.histogram("workqueue_work_duration_seconds", cluster, *QUEUE).observe


class ClientMetrics:
    """Counts the requests to an API server; an :class:`~syncer.clusters.client.Observer`."""

    __slots__ = ("_durations", "_requests")

    def __init__(self, recorded: _Recorded, *labels: str) -> None:
        def requests(reply: tuple[int, str]) -> Count:
            code, method = reply
            shown = str(code or "<error>")
            return recorded.counter("rest_client_requests", *labels, shown, method)

        def durations(method: str) -> Timings:
            return recorded.histogram("rest_client_request_duration_seconds", *labels, method)

        self._requests = _Children(requests)
        self._durations = _Children(durations)

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request by the status of its response; 0 becomes ``<error>``, as in client-go."""
        self._requests[code, method].value += 1
        self._durations[method].observe(seconds)


class Metrics:
    """The metrics of this process; ``registry`` is exposed by the metrics server."""

    def __init__(self, *, version: str) -> None:
        self.registry = CollectorRegistry()
        self._recorded = _Recorded()
        self._readings = _Readings()
        self._syncers: dict[tuple[str, str], SyncerMetrics] = {}
        self._queues: dict[str, QueueMetrics] = {}
        self.registry.register(self._recorded)
        self.registry.register(self._readings)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        build: dict[tuple[str, ...], float] = {(version, platform.python_version()): 1}
        self.ask("syncer_build_info", build.copy)

    def syncer(self, cluster: str, name: str) -> SyncerMetrics:
        """Return the metrics of a syncer of a virtual cluster, always the same object."""
        found = self._syncers.get((cluster, name))
        if found is None:
            found = SyncerMetrics(self._recorded, cluster, name)
            self._syncers[cluster, name] = found
        return found

    def queue(self, cluster: str) -> QueueMetrics:
        """Return the metrics of the queue for a virtual cluster, always the same object."""
        found = self._queues.get(cluster)
        if found is None:
            found = QueueMetrics(self._recorded, cluster)
            self._queues[cluster] = found
        return found

    def client(self, cluster: str, side: str, host: str) -> ClientMetrics:
        """Return the metrics of the requests to an API server.

        ``cluster`` is ``""`` for the host.
        """
        return ClientMetrics(self._recorded, cluster, side, host)

    def watch_restarted(self, cluster: str, side: str, resource: str) -> None:
        """Count a watch that was opened again."""
        self._recorded.counter("syncer_watch_restarts", cluster, side, resource).inc()

    def writes(self) -> Mapping[str, int]:
        """Return the writes so far, by virtual cluster. Thread-safe."""
        found = Counter[str]()
        for (cluster, *_), number in self._recorded.counts("syncer_writes"):
            found[cluster] += number
        return found

    def lags(self) -> Mapping[str, Sequence[int]]:
        """Return by virtual cluster how many changes were written with a lag of each bucket of
        :data:`BOUNDS`. Thread-safe.
        """
        found: dict[str, list[int]] = {}
        for (cluster, *_), counts in self._recorded.buckets("syncer_lag_seconds"):
            before = found.get(cluster)
            if before is not None:
                counts = list(map(add, before, counts))
            found[cluster] = counts
        return found

    def ask(self, name: str, read: Reading) -> None:
        """Expose the values that ``read`` returns at each scrape, under a name of the catalogue.

        It runs on the scrape's thread: it must be quick, and copy (``list(d.items())``) mappings
        that the loop may change. If it raises, its metric is left out of that scrape, and the
        exception is logged once.

        Raises:
            KeyError: The catalogue has no such metric to be read.
        """
        self._readings.add(name, read)

    def drop(self, cluster: str) -> None:
        """Forget a virtual cluster that has left, and remove all its series."""
        self._recorded.drop(cluster)
        self._queues.pop(cluster, None)
        of_cluster = [key for key in self._syncers if key[0] == cluster]
        for key in of_cluster:
            del self._syncers[key]


class _Readings(Collector):
    """The metrics that are read at each scrape."""

    def __init__(self) -> None:
        self._known = {metric.name: metric for metric in READ}
        self._reads: dict[str, Reading] = {}
        self._failed: set[str] = set()

    def add(self, name: str, read: Reading) -> None:
        """Read a metric with this function.

        Raises:
            KeyError: The name is unknown.
        """
        self._known[name]
        self._reads[name] = read

    def describe(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Describe nothing: otherwise registering would read everything."""
        return ()

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield a family for each metric that has a value."""
        for name, read in list(self._reads.items()):
            values = self._values(name, read)
            if not values:
                continue
            metric = self._known[name]
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family

    def _values(self, name: str, read: Reading) -> Mapping[tuple[str, ...], float]:
        """Return the values of a metric.

        If it can't be read, there are none, so that the others are still shown.
        """
        try:
            return read()
        except Exception as error:  # noqa: BLE001  # whatever a callback raises
            if name not in self._failed:
                self._failed.add(name)
                log.warning("a metric could not be read", metric=name, error=repr(error))
            return {}
