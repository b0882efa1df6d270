"""The pages of a kubelet about its node: ``/pods``, ``/metrics/resource`` and ``/stats/summary``.

Their form is the kubelet's (``pkg/kubelet/server`` and
``pkg/kubelet/metrics/collectors/resource_metrics.go`` of Kubernetes,
``k8s.io/kubelet/pkg/apis/stats/v1alpha1``). The figures of a node are the sums of the tenant's own
Pods on it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from syncer.clusters import codec
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.usage import NANO, ContainerUsage, NodeUsage, PodUsage
from syncer.translate import times

#: Largest page, in bytes.
LARGEST_PAGE = 8 << 20
#: The content type of metrics in Prometheus' text format.
TEXT = "text/plain; version=0.0.4; charset=utf-8"
#: The content type of the other pages.
JSON = "application/json"


def bounded(parts: Iterable[bytes], *, first: bytes, last: bytes, between: bytes = b",") -> bytes:
    """Join the parts of a page.

    Raises:
        RefusedRequest: The page would be too large.
    """
    found = []
    size = len(first) + len(last)
    for part in parts:
        size += len(part) + len(between)
        if size > LARGEST_PAGE:
            raise RefusedRequest(413, f"the answer would take more than {LARGEST_PAGE >> 20} MiB")
        found.append(part)
    return first + between.join(found) + last


def pod_list(pods: Iterable[bytes]) -> bytes:
    """Return a ``PodList`` of encoded Pods.

    Raises:
        RefusedRequest: The list would be too large.
    """
    return bounded(
        pods,
        first=b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[',
        last=b"]}",
    )


def metrics(node: NodeUsage | None, pods: Sequence[PodUsage]) -> bytes:
    """Return the metrics of a node's resources, in Prometheus' text format.

    Raises:
        RefusedRequest: They would be too large.
    """
    families = [
        _family(
            "container_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed by the container in core-seconds",
            (
                _line(_labels(pod, container), f"{container.seconds:.9f}", pod.time)
                for pod, container in _containers(pods)
            ),
        ),
        _family(
            "container_memory_working_set_bytes",
            "gauge",
            "Current working set of the container in bytes",
            (
                _line(_labels(pod, container), f"{container.memory}", pod.time)
                for pod, container in _containers(pods)
            ),
        ),
        _family(
            "container_start_time_seconds",
            "gauge",
            "Start time of the container since unix epoch in seconds",
            (
                _line(_labels(pod, container), f"{_timestamp(container.started):.3f}", None)
                for pod, container in _containers(pods)
                if container.started
            ),
        ),
        _family(
            "pod_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed by the pod in core-seconds",
            (_line(_labels(pod), f"{pod.seconds:.9f}", pod.time) for pod in pods),
        ),
        _family(
            "pod_memory_working_set_bytes",
            "gauge",
            "Current working set of the pod in bytes",
            (_line(_labels(pod), str(pod.memory), pod.time) for pod in pods),
        ),
    ]
    if node is not None:
        families += [
            _family(
                "node_cpu_usage_seconds_total",
                "counter",
                "Cumulative cpu time consumed by the node in core-seconds",
                (_line("", f"{node.seconds:.9f}", node.time),),
            ),
            _family(
                "node_memory_working_set_bytes",
                "gauge",
                "Current working set of the node in bytes",
                (_line("", str(node.memory), node.time),),
            ),
        ]
    families.append(
        _family(
            "resource_scrape_error",
            "gauge",
            "1 if there was an error while getting container metrics, 0 otherwise",
            (" 0\n",),
        ),
    )
    return bounded(itertools.chain.from_iterable(families), first=b"", last=b"", between=b"")


def _containers(pods: Sequence[PodUsage]) -> Iterator[tuple[PodUsage, ContainerUsage]]:
    for pod in pods:
        for container in pod.containers:
            yield pod, container


def _timestamp(time: str) -> float:
    """Return an RFC 3339 time in seconds since 1970."""
    return times.read(time).timestamp()


def summary(name: str, node: NodeUsage | None, pods: Sequence[PodUsage]) -> bytes:
    """Return the ``Summary`` of a node.

    Raises:
        RefusedRequest: The summary would be too large.
    """
    of_node: dict[str, Any] = {"nodeName": name}
    if node is not None:
        of_node |= _figures(node.cpu, node.memory, node.seconds, node.time)
    first = b'{"node":' + codec.encode(of_node) + b',"pods":['
    of_pods = (codec.encode(_of_pod(pod)) for pod in pods)
    return bounded(of_pods, first=first, last=b"]}")


def _of_pod(pod: PodUsage) -> dict[str, Any]:
    """Return the ``PodStats`` of a Pod."""
    containers = [
        {
            "name": each.name,
            "startTime": each.started or None,
            **_figures(each.cpu, each.memory, each.seconds, pod.time),
        }
        for each in pod.containers
    ]
    return {
        "podRef": {"name": pod.key.name, "namespace": pod.key.namespace, "uid": pod.uid},
        "startTime": pod.started or None,
        "containers": containers,
        **_figures(pod.cpu, pod.memory, pod.seconds, pod.time),
    }


def _figures(cpu: int, memory: int, seconds: float, time: datetime) -> dict[str, Any]:
    """Return the ``cpu`` and ``memory`` of a node, a Pod or a container."""
    written = times.written(time)
    return {
        "cpu": {
            "time": written,
            "usageNanoCores": cpu,
            "usageCoreNanoSeconds": int(seconds * NANO),
        },
        "memory": {"time": written, "workingSetBytes": memory},
    }


def _family(name: str, kind: str, text: str, lines: Iterable[str]) -> Iterator[bytes]:
    """Yield a metric: its comments, then its samples."""
    yield f"# HELP {name} [STABLE] {text}\n# TYPE {name} {kind}\n".encode()
    for line in lines:
        yield f"{name}{line}".encode()


def _line(labels: str, value: str, time: datetime | None) -> str:
    """Return a sample without its name."""
    if time is None:
        return f"{labels} {value}\n"
    return f"{labels} {value} {int(time.timestamp() * 1000)}\n"


def _labels(pod: PodUsage, container: ContainerUsage | None = None) -> str:
    """Return the labels of a sample; names of Pods and containers need no escapes."""
    first = ""
    if container is not None:
        first = f'container="{container.name}",'
    return f'{{{first}namespace="{pod.key.namespace}",pod="{pod.key.name}"}}'
