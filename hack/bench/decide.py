"""Measure the cost of a decision: for a pair that is in step, and for a new object; JSON lines."""

import json
import time
from collections.abc import Callable

from syncer.api import Key, Obj, SyncRequest, key_of
from syncer.testing.objects import configmap, pod, secret, service, serviceaccount
from syncer.testing.world import World

COUNT = 3000
TEXT = "x" * 1000
EVERYTHING = {"sync": {"toHost": {"configMaps": {"all": True}, "secrets": {"all": True}}}}


def per_call(step: Callable[[], object]) -> float:
    """Return the CPU microseconds of a call."""
    start = time.process_time()
    for _ in range(COUNT):
        step()
    return (time.process_time() - start) / COUNT * 1e6


def measure(kind: str, obj: Obj) -> None:
    """Print both figures of a kind."""
    world = World(config=EVERYTHING).given(virtual=[serviceaccount("default"), obj])
    key = key_of(obj)
    pair = world.pair
    request = SyncRequest(pair.name, kind, key)

    def look() -> object:
        return pair.plan(request).calls

    world.settle("serviceaccounts", Key("shop", "default"))
    new = per_call(look)
    world.settle(kind, key)
    print(
        json.dumps(
            {
                "bench": "decide",
                "kind": kind,
                "new_us": round(new, 1),
                "in_step_us": round(per_call(look), 1),
            }
        )
    )


def main() -> None:
    """Measure the most frequent kinds."""
    measure("configmaps", configmap("settings", data={"text": TEXT}))
    measure("secrets", secret("db", data={"text": "eA=="}))
    measure("services", service("web"))
    measure("pods", pod("web"))


if __name__ == "__main__":
    main()
