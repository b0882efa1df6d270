"""Measure metrics: CPU of recording an object, and CPU, series and memory of a scrape;
JSON lines.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable

from prometheus_client import generate_latest

from hack.bench.store import rss
from syncer.observe.metrics import Metrics, SyncerMetrics

ROUNDS = 5
COUNT = 20_000
#: The syncers that are enabled by default.
SYNCERS = (
    "configmaps",
    "endpoints",
    "events",
    "ingresses",
    "namespaces",
    "nodes",
    "pods",
    "secrets",
    "services",
)


def show(what: str, **figures: float) -> None:
    """Print a line."""
    print(
        json.dumps(
            {
                "bench": "metrics",
                "what": what,
                **{key: round(value, 3) for key, value in figures.items()},
            }
        )
    )


def per_call(step: Callable[[], object]) -> float:
    """Return the CPU microseconds of a call: the minimum of some rounds, as other work on the
    machine only adds.
    """
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(COUNT):
            step()
        rounds.append((time.process_time() - start) / COUNT * 1e6)
    return min(rounds)


def work(metrics: Metrics, cluster: str, syncer: str) -> Callable[[], None]:
    """Return a function that records everything about a new object that is copied to the host."""
    client = metrics.client("", "host", "127.0.0.1:6443")

    def counted() -> None:
        metrics.queue(cluster).added()
        queue = metrics.queue(cluster)
        queue.waited(0.002)
        of = metrics.syncer(cluster, syncer)
        client.request("POST", 201, 0.004)
        of.wrote("host", "create")
        of.lag("down", 0.007)
        of.reconciled("success", 0.004)
        queue.worked(0.005)

    return counted


def single(of: SyncerMetrics) -> None:
    """Measure the two kinds of recorded metrics."""
    show("count", cpu_us=per_call(of.no_op))
    show("observe", cpu_us=per_call(lambda: of.lag("down", 0.004)))


def fleet(clusters: int) -> None:
    """Measure a scrape of this number of virtual clusters, each of whose syncers has copied an
    object both ways.
    """
    metrics = Metrics(version="bench")
    gc.collect()
    before = rss()
    for cluster in range(clusters):
        for syncer in SYNCERS:
            work(metrics, f"tenant-{cluster:03d}", syncer)()
            metrics.syncer(f"tenant-{cluster:03d}", syncer).lag("up", 0.004)
    memory = rss() - before
    start = time.process_time()
    page = generate_latest(metrics.registry)
    taken = time.process_time() - start
    show(
        "scrape", clusters=clusters, series=page.count(b"\n"), cpu_ms=taken * 1e3, mb=memory / 2**20
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--clusters", type=int, default=100, help="virtual clusters of the fleet (100)"
    )
    clusters = parser.parse_args().clusters
    metrics = Metrics(version="bench")
    single(metrics.syncer("vc", "configmaps"))
    show("object", cpu_us=per_call(work(metrics, "vc", "configmaps")))
    for number in (1, clusters):
        fleet(number)


if __name__ == "__main__":
    main()
