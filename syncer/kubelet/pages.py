"""The pages of a kubelet about its node: ``/pods``, ``/metrics/resource`` and ``/stats/summary``.

Their form is the kubelet's (``pkg/kubelet/server`` and
``pkg/kubelet/metrics/collectors/resource_metrics.go`` of Kubernetes,
``k8s.io/kubelet/pkg/apis/stats/v1alpha1``). The figures of a node are the sums of the tenant's own
Pods on it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from syncer.clusters import codec
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.usage import NANO, ContainerUsage, NodeUsage, PodUsage
from syncer.translate import times

#: Largest page, in bytes.
LARGEST_PAGE = 8 << 20
#: The content types of metrics, as Prometheus names its text format, and of everything else.
TEXT, JSON = "text/plain; version=0.0.4; charset=utf-8", "application/json"


def bounded(parts: Iterable[bytes], *, first: bytes, last: bytes, between: bytes = b",") -> bytes:
    """Join the parts of a page.

    Raises:
        Refused: The page would be too large.
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
        Refused: It would be too large.
    """
    return bounded(
        pods,
        first=b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[',
        last=b"]}",
    )


def metrics(node: NodeUsage | None, pods: Sequence[PodUsage]) -> bytes:
    """Return the metrics of a node's resources, in Prometheus' text format."""
    of_containers = [(pod, each) for pod in pods for each in pod.containers]
    families = [
        _family(
            "container_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed by the container in core-seconds",
            (_line(_labels(pod, each), f"{each.seconds:.9f}", pod.time) for pod, each in of_containers),
        ),
        _family(
            "container_memory_working_set_bytes",
            "gauge",
            "Current working set of the container in bytes",
            (_line(_labels(pod, each), str(each.memory), pod.time) for pod, each in of_containers),
        ),
        _family(
            "container_start_time_seconds",
            "gauge",
            "Start time of the container since unix epoch in seconds",
            (
                _line(_labels(pod, each), f"{times.read(each.started).timestamp():.3f}", None)
                for pod, each in of_containers
                if each.started
            ),
        ),
        _family(
            "pod_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed by the pod in core-seconds",
            (_line(_labels(pod), f"{sum(each.seconds for each in pod.containers):.9f}", pod.time) for pod in pods),
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
    error = "1 if there was an error while getting container metrics, 0 otherwise"
    families.append(_family("resource_scrape_error", "gauge", error, (" 0\n",)))
    return bounded(
        (part for family in families for part in family),
        first=b"",
        last=b"",
        between=b"",
    )


def summary(name: str, node: NodeUsage | None, pods: Sequence[PodUsage]) -> bytes:
    """Return the ``Summary`` of a node.

    Raises:
        Refused: It would be too large.
    """
    of_node: dict[str, Any] = {"nodeName": name}
    if node is not None:
        of_node |= _figures(node.cpu, node.memory, node.seconds, node.time)
    parts = (
        codec.encode(
            {
                "podRef": {"name": pod.key.name, "namespace": pod.key.namespace, "uid": pod.uid},
                "startTime": pod.started or None,
                "containers": [
                    {
                        "name": each.name,
                        "startTime": each.started or None,
                        **_figures(each.cpu, each.memory, each.seconds, pod.time),
                    }
                    for each in pod.containers
                ],
                **_figures(
                    pod.cpu,
                    pod.memory,
                    sum(each.seconds for each in pod.containers),
                    pod.time,
                ),
            },
        )
        for pod in pods
    )
    return bounded(parts, first=b'{"node":' + codec.encode(of_node) + b',"pods":[', last=b"]}")


def _figures(cpu: int, memory: int, seconds: float, time: datetime) -> dict[str, Any]:
    at = times.written(time)
    return {
        "cpu": {"time": at, "usageNanoCores": cpu, "usageCoreNanoSeconds": int(seconds * NANO)},
        "memory": {"time": at, "workingSetBytes": memory},
    }


def _family(name: str, kind: str, text: str, lines: Iterable[str]) -> Iterable[bytes]:
    yield f"# HELP {name} [STABLE] {text}\n# TYPE {name} {kind}\n".encode()
    for line in lines:
        yield f"{name}{line}".encode()


def _line(labels: str, value: str, time: datetime | None) -> str:
    """Return a sample without its name; names of Pods and containers need no escapes."""
    return f"{labels} {value} {int(time.timestamp() * 1000)}\n" if time else f"{labels} {value}\n"


def _labels(pod: PodUsage, container: ContainerUsage | None = None) -> str:
    first = f'container="{container.name}",' if container else ""
    return f'{{{first}namespace="{pod.key.namespace}",pod="{pod.key.name}"}}'
