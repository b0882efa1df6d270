"""The shortcuts of the codec are taken on what a real API server writes, and change nothing."""

import json
from collections.abc import Callable

import pytest
from api import RESOURCES, Api
from scene import Scene

from syncer.api import Key, Obj
from syncer.clusters import codec
from syncer.clusters.transport import HttpRequest
from syncer.testing.objects import configmap, pod, service

pytestmark = pytest.mark.controlplane


def watched(api: Api, kind: str, ns: str) -> list[bytes]:
    """Return the lines of a watch that shows all objects of a namespace."""
    path = f"{RESOURCES[kind].collection(ns)}?watch=1&resourceVersion=0&timeoutSeconds=1"

    async def lines() -> list[bytes]:
        async with api.cluster.transport.stream(HttpRequest("GET", path)) as stream:
            return [line for batch in [batch async for batch in stream] for line in batch]

    return api.loop.run(lines())


@pytest.mark.parametrize("make", [configmap, pod, service], ids=["ConfigMap", "Pod", "Service"])
def test_event_of_a_built_in_kind_is_opened_without_its_managed_fields(
    world: Scene, ns: str, make: Callable[..., Obj]
) -> None:
    made = world.virtual.create(make("a", namespace=ns, metadata={"labels": {"tier": "gold"}}))
    kind = made["kind"]
    world.virtual.patch(kind, Key(ns, "a"), {"metadata": {"annotations": {"note": "x"}}})
    *_, line = [line for line in watched(world.virtual, kind, ns) if b'"name":"a"' in line]
    whole = json.loads(line)
    assert len(whole["object"]["metadata"]["managedFields"]) >= 1
    event = codec.watch_event(line)
    assert event.type == whole["type"]
    assert codec.decode(event.object) == whole["object"]
    metadata = whole["object"]["metadata"]
    assert codec.head(event.object) == codec.Head(Key(ns, "a"), metadata["uid"], metadata["resourceVersion"], kind)
    del metadata["managedFields"]
    assert codec.lean(event.object) == whole["object"]
