"""What the daemon counts: plain numbers that are cheap to change, turned into Prometheus families at a scrape.

Everything is recorded on the event loop's thread, so nothing is locked. A scrape comes on another thread and copies
before it adds up; a sum may then be ahead of its counts by one observation, which the next scrape shows.
"""

import platform
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from syncer.observe.catalogue import CATALOGUE, Metric
from syncer.observe.logs import get_logger

Result = Literal["success", "error", "requeue", "requeue_after"]
Direction = Literal["down", "up"]

#: Upper bounds in seconds of every histogram: from a decision without a write to an API server that is away.
BOUNDS = (
    *(0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
_LABELS = (*map(str, BOUNDS), "+Inf")

log = get_logger(__name__)


class Histogram:
    """Counts of values by bucket; an observation costs 0.2 µs, a fifth of what the library's takes."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(_LABELS)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bound and how many values are at most as large, as a scrape shows them."""
        seen, result = 0, []
        for label, count in zip(_LABELS, list(self.counts), strict=True):
            seen += count
            result.append((label, float(seen)))
        return result


class Sample(NamedTuple):
    """One number or histogram under a name of the catalogue."""

    name: str
    labels: tuple[str, ...]
    value: float | Histogram


class SyncerMetrics:
    """The numbers of one syncer."""

    __slots__ = ("_errors", "_futile", "_lag", "_name", "_noop", "_results", "_time", "_writes")

    def __init__(self, name: str) -> None:
        self._name = name
        self._results: dict[Result, int] = {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
        self._time = Histogram()
        self._lag: dict[Direction, Histogram] = {"down": Histogram(), "up": Histogram()}
        self._writes: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._futile: dict[str, int] = {"virtual": 0, "host": 0}
        self._errors: defaultdict[str, int] = defaultdict(int)
        self._noop = 0

    def reconciled(self, result: Result, seconds: float) -> None:
        """A request has been worked on."""
        self._results[result] += 1
        self._time.observe(seconds)

    def wrote(self, side: str, verb: str) -> None:
        """An API server was written to."""
        self._writes[side, verb] += 1

    def no_op(self) -> None:
        """A decision needed no write."""
        self._noop += 1

    def futile(self, side: str) -> None:
        """A write did not change the object's resourceVersion."""
        self._futile[side] += 1

    def lag(self, direction: Direction, seconds: float) -> None:
        """A change has arrived on the other side, so many seconds after it was seen."""
        self._lag[direction].observe(seconds)

    def failed(self, reason: str) -> None:
        """A request ended in an error; ``reason`` is the error's class, so that there are few."""
        self._errors[reason] += 1

    def samples(self) -> Iterator[Sample]:
        """What a scrape shows."""
        name = self._name
        for result, count in self._results.items():
            yield Sample("controller_runtime_reconcile", (name, result), count)
        yield Sample("controller_runtime_reconcile_errors", (name,), self._results["error"])
        yield Sample("controller_runtime_reconcile_time_seconds", (name,), self._time)
        yield Sample("syncer_noop", (name,), self._noop)
        for direction, lag in self._lag.items():
            yield Sample("syncer_lag_seconds", (name, direction), lag)
        for side, count in self._futile.items():
            yield Sample("syncer_futile_writes", (name, side), count)
        for (side, verb), count in list(self._writes.items()):
            yield Sample("syncer_writes", (name, side, verb), count)
        for reason, count in list(self._errors.items()):
            yield Sample("syncer_errors", (name, reason), count)


class QueueState(NamedTuple):
    """What a queue holds at this moment; the ages are in seconds."""

    depth: int
    unfinished: float
    longest: float


class QueueMetrics:
    """The numbers of one queue; ``state`` is asked at each scrape, on the scrape's thread."""

    __slots__ = ("_adds", "_name", "_retries", "_state", "_waited", "_worked")

    def __init__(self, name: str, state: Callable[[], QueueState]) -> None:
        self._name = name
        self._state = state
        self._adds = self._retries = 0
        self._waited, self._worked = Histogram(), Histogram()

    def added(self) -> None:
        """A request was put in that was not in yet."""
        self._adds += 1

    def waited(self, seconds: float) -> None:
        """A request was taken out, so many seconds after it became due."""
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        """The work on a request has ended."""
        self._worked.observe(seconds)

    def retried(self) -> None:
        """A request was put back to be tried again."""
        self._retries += 1

    def samples(self) -> Iterator[Sample]:
        """What a scrape shows."""
        labels = (self._name, self._name)
        state = self._state()
        yield Sample("workqueue_depth", labels, state.depth)
        yield Sample("workqueue_unfinished_work_seconds", labels, state.unfinished)
        yield Sample("workqueue_longest_running_processor_seconds", labels, state.longest)
        yield Sample("workqueue_adds", labels, self._adds)
        yield Sample("workqueue_retries", labels, self._retries)
        yield Sample("workqueue_queue_duration_seconds", labels, self._waited)
        yield Sample("workqueue_work_duration_seconds", labels, self._worked)


#: Gives the present values of one metric by label values, in the order of the catalogue.
Reading = Callable[[], Mapping[tuple[str, ...], float]]


class Metrics(Collector):
    """All numbers of this process, in a registry of their own; ``registry`` is what the metrics server shows."""

    def __init__(self, *, version: str) -> None:
        self._syncers: dict[str, SyncerMetrics] = {}
        self._queues: dict[str, QueueMetrics] = {}
        self._readings: list[tuple[str, Reading]] = []
        self._requests: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._durations: defaultdict[tuple[str, str], Histogram] = defaultdict(Histogram)
        self._restarts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._failed: set[str] = set()
        self._build = (version, platform.python_version())
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def syncer(self, name: str) -> SyncerMetrics:
        """The numbers of a syncer; always the same for a name."""
        if name not in self._syncers:
            self._syncers[name] = SyncerMetrics(name)
        return self._syncers[name]

    def queue(self, name: str, state: Callable[[], QueueState]) -> QueueMetrics:
        """The numbers of a queue, whose present state comes from ``state`` at each scrape."""
        self._queues[name] = QueueMetrics(name, state)
        return self._queues[name]

    def request(self, cluster: str, method: str, code: int | str, seconds: float) -> None:
        """An API server has answered; ``code`` is ``"<error>"`` (as client-go has it) where it has not."""
        self._requests[str(code), method, cluster] += 1
        self._durations[method, cluster].observe(seconds)

    def watch_restarted(self, side: str, resource: str) -> None:
        """A watch was begun anew."""
        self._restarts[side, resource] += 1

    def ask(self, name: str, read: Reading) -> None:
        """Show what ``read`` gives under a name of the catalogue.

        It runs on the scrape's thread: it must be quick, and copy (``list(d.items())``) what the loop may change.
        A metric may have several readings. A reading that raises is left out of that scrape, and logged once.
        Raises KeyError for a name that is not in the catalogue.
        """
        CATALOGUE[name]
        self._readings.append((name, read))

    def describe(self) -> Iterable[Family]:
        """Nothing is known before a scrape; so the registry does not collect when it is built."""
        return ()

    def collect(self) -> Iterable[Family]:
        """One family for each metric that has a value."""
        families: dict[str, Family] = {}
        for sample in self._samples():
            if sample.name not in families:
                families[sample.name] = _family(CATALOGUE[sample.name])
            _add(families[sample.name], sample)
        return families.values()

    def _samples(self) -> Iterator[Sample]:
        yield Sample("syncer_build_info", self._build, 1)
        for syncer in list(self._syncers.values()):
            yield from syncer.samples()
        for name, queue in list(self._queues.items()):
            yield from self._guarded(f"queue {name}", queue.samples)
        yield from self._client_samples()
        for name, read in list(self._readings):
            yield from self._guarded(name, lambda name=name, read=read: _read(name, read))  # type: ignore[misc]

    def _client_samples(self) -> Iterator[Sample]:
        for request, count in list(self._requests.items()):
            yield Sample("rest_client_requests", request, count)
        for call, duration in list(self._durations.items()):
            yield Sample("rest_client_request_duration_seconds", call, duration)
        for watch, count in list(self._restarts.items()):
            yield Sample("syncer_watch_restarts", watch, count)

    def _guarded(self, name: str, samples: Callable[[], Iterable[Sample]]) -> list[Sample]:
        """One number that can't be read must not cost the others: without them nobody sees what is wrong."""
        try:
            return list(samples())
        except Exception as error:  # noqa: BLE001  # whatever a callback raises
            if name not in self._failed:
                self._failed.add(name)
                log.warning("a metric could not be read", metric=name, error=repr(error))
            return []


def _read(name: str, read: Reading) -> Iterator[Sample]:
    for labels, value in read().items():
        yield Sample(name, labels, value)


def _family(metric: Metric) -> Family:
    match metric.kind:
        case "counter":
            return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case "gauge":
            return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case "histogram":
            return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)


def _add(family: Family, sample: Sample) -> None:
    match family, sample.value:
        case HistogramMetricFamily(), Histogram() as histogram:
            family.add_metric(sample.labels, histogram.buckets(), histogram.total)
        case ((CounterMetricFamily() | GaugeMetricFamily()), float() | int() as value):
            family.add_metric(sample.labels, value)
