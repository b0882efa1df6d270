"""Measure the cache: CPU of an event, an echo and a read, and bytes of an object;
a JSON line each.
"""

import gc
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from syncer.api import Obj, Resource
from syncer.cache.informer import Informer
from syncer.clusters import codec

RESOURCE = Resource("v1", "ConfigMap", "configmaps")
COUNT = 20_000


def configmap(number: int) -> Obj:
    """Return a ConfigMap of 1 KB as an API server sends it."""
    fields = {
        "f:data": {".": {}, "f:text": {}, "f:revision": {}},
        "f:metadata": {"f:labels": {"f:app": {}}},
    }
    manager = {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
    metadata = {
        "name": f"object-{number:06d}",
        "namespace": "shop",
        "uid": f"5e0c7b7a-0000-4000-8000-{number:012d}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "shop"},
        "managedFields": [manager],
    }
    data = {"revision": "0", "text": f"{number:06d}" + "x" * 1000}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def rss() -> float:
    """Return the resident memory, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def per_item(items: Iterable[object], step: Callable[[object], object]) -> float:
    """Return the CPU microseconds of a step."""
    todo = list(items)
    start = time.process_time()
    for item in todo:
        step(item)
    return (time.process_time() - start) / len(todo) * 1e6


def show(what: str, **figures: float) -> None:
    """Print a line."""
    print(
        json.dumps(
            {
                "bench": "store",
                "what": what,
                "n": COUNT,
                **{key: round(v, 2) for key, v in figures.items()},
            }
        )
    )


def main() -> None:
    """Run the benchmark."""
    lines = [json.dumps(configmap(number)).encode() for number in range(COUNT)]
    store = Informer(RESOURCE, clock=time.monotonic)
    raws = [codec.Raw(line) for line in lines]
    gc.collect()
    before = rss()
    event = per_item(raws, lambda raw: store.event("ADDED", raw))  # type: ignore[arg-type]
    show("event", cpu_us=event, bytes_per_object=(rss() - before) / COUNT)
    show("echo", cpu_us=per_item(raws, lambda raw: store.event("MODIFIED", raw)))  # type: ignore[arg-type]
    show("get", cpu_us=per_item(list(store.keys()), store.get))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
