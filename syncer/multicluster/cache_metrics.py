"""The metrics of a cache of clusters, for a registry of prometheus_client."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from syncer.multicluster.cluster_cache import ClusterCache
from syncer.multicluster.cluster_status import State


class ClusterCacheCollector(Collector):
    """Reads the metrics of a cache at each scrape; the series of a cluster go with it.

    They are those of Cluster API's ClusterCache, with the label ``cluster``::

        REGISTRY.register(ClusterCacheCollector(cache))
    """

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield nothing: the cache may be empty, and is read at scrapes alone."""
        return iter(())

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the connection, the last probe and the number of probes of each cluster."""
        up = GaugeMetricFamily(
            "cluster_cache_connection_up",
            "1 while a cluster is connected.",
            labels=["cluster"],
        )
        healthy = GaugeMetricFamily(
            "cluster_cache_healthcheck",
            "1 if the last probe of a cluster succeeded.",
            labels=["cluster"],
        )
        probes = CounterMetricFamily(
            "cluster_cache_healthchecks",
            "Probes of a cluster, by result.",
            labels=["cluster", "status"],
        )
        for name in self._cache:
            status = self._cache.get_status(name)
            up.add_metric([name], float(status.state is State.CONNECTED))
            if status.health.last_probe is not None:
                healthy.add_metric([name], float(not status.health.failures))
        for (name, result), number in list(self._cache.probes.items()):
            probes.add_metric([name, result], number)
        yield from (up, healthy, probes)
