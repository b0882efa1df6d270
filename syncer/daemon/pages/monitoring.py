"""Handlers of the control API for metrics and health, which `syncer debug bundle` collects."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from syncer.observe.control import Control, ControlHandler
from syncer.observe.health import Checks

#: Bytes of a text that the control socket answers with, and of a file of a debug bundle.
MOST_BYTES = 4 << 20


class CutText(NamedTuple):
    """The first lines of a text."""

    text: str
    #: The size of the other lines, in bytes.
    left_out: int


def first_lines(text: str) -> CutText:
    """Return the lines of a text that fit into :data:`MOST_BYTES`."""
    whole = text.encode()
    if len(whole) <= MOST_BYTES:
        return CutText(text, 0)
    kept = whole[: whole.rfind(b"\n", 0, MOST_BYTES) + 1]
    return CutText(kept.decode(), len(whole) - len(kept))


class _OfCluster(Collector):
    """The metrics of a virtual cluster, of the host, and of the process."""

    def __init__(self, registry: CollectorRegistry, cluster: str) -> None:
        self._registry = registry
        self._shown = ("", cluster)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics that have a series left."""
        for metric in self._registry.collect():
            samples = [
                each for each in metric.samples if each.labels.get("cluster", "") in self._shown
            ]
            if samples:
                shown = copy(metric)
                shown.samples = samples
                yield shown


def metrics_of(registry: CollectorRegistry, cluster: str) -> str:
    """Return the metrics in Prometheus' text format; ``""`` stands for all virtual clusters."""
    if not cluster:
        return generate_latest(registry).decode()
    chosen = CollectorRegistry()
    chosen.register(_OfCluster(registry, cluster))
    return generate_latest(chosen).decode()


def add(
    control: Control,
    registry: CollectorRegistry,
    checks: Checks,
    names: Callable[[], Iterable[str]],
) -> None:
    """Register the handlers.

    They work on a thread, as a fleet has ten thousands of series. ``names`` returns the virtual
    clusters that there are.
    """

    def metrics(cluster: str) -> str:
        return metrics_of(registry, cluster)

    def livez(cluster: str) -> str:
        return "\n".join([*checks.live_lines(), ""])

    def readyz(cluster: str) -> str:
        others = set[str]()
        if cluster:
            others = set(names()) - {cluster}
        return "\n".join([*checks.ready_lines(others), ""])

    control.add("GET", "/metrics", _answering(metrics))
    control.add("GET", "/livez", _answering(livez))
    control.add("GET", "/readyz", _answering(readyz))


def _answering(read: Callable[[str], str]) -> ControlHandler:
    """Return the handler that answers with the first lines of a text about a virtual cluster."""

    def lines(cluster: str) -> dict[str, Any]:
        cut = first_lines(read(cluster))
        return {"text": cut.text, "leftOut": cut.left_out}

    async def answer(given: Mapping[str, Any]) -> Any:
        return await asyncio.to_thread(lines, str(given.get("cluster") or ""))

    return answer
