"""In-place resizing of a running Pod: what is sent, and when the host's own values stay."""

from typing import Any

import pytest

from syncer.api import Obj
from syncer.resources.pods.record import PodRecord
from syncer.resources.pods.resizing import lacking, resources_digest
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import pod, serviceaccount

COPY = "vc-ns/web-x-shop-x-vc"
SIZE: Obj = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
SENT = "vsyncer.dev/pod-resources"


def container(name: str = "app", **resources: Any) -> Obj:
    return {"name": name, "image": "i", "resources": resources}


def spec(*containers: Obj, **parts: Any) -> Obj:
    return {"containers": list(containers), **parts}


def running(world: World, virtual: Obj) -> World:
    """Return a world with a Pod of this spec on the host."""
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web", spec=virtual, metadata={"generation": 1})]).settle("pods", "shop/web")
    return world


def resized(world: World, virtual: Obj) -> list[str]:
    """Let the tenant change the spec; return the requests that this takes."""
    there = world.virtual("Pod", "shop/web") or {}
    generation = there["metadata"]["generation"] + 1
    world.given(virtual=[merged(there, {"spec": virtual, "metadata": {"generation": generation}})])
    return [str(one) for one in world.settle("pods", "shop/web")]


def on_host(world: World, change: Obj) -> World:
    return world.given(host=[merged(world.host("Pod", COPY) or {}, change)])


def test_resources_are_changed_through_resize_once(world: World) -> None:
    running(world, spec(container(**SIZE)))
    requests = resized(world, spec(container(**merged(SIZE, {"limits": {"cpu": "2"}}))))
    assert requests == [f"patch host pods/resize {COPY}", f"patch host pods {COPY}"]
    copy = world.host("Pod", COPY) or {}
    assert copy["spec"]["containers"][0]["resources"] == merged(SIZE, {"limits": {"cpu": "2"}})
    assert world.settle("pods", "shop/web") == []


OWN = PodRecord({"containers": ["a", "gone", "app"], "initContainers": ["s"]})


def test_only_cpu_and_memory_that_differ_are_sent() -> None:
    own = {"limits": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "2Gi"}, "requests": {"cpu": "1"}}
    theirs = {"limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}, "requests": {"cpu": "1"}}
    wanted = spec(container("a", **own), container("gone", **own), initContainers=[container("s", **own)])
    actual = spec(container("a", **theirs), container("injected"), initContainers=[container("s", **own)])
    assert lacking(wanted, actual, OWN) == {"containers": [{"name": "a", "resources": {"limits": {"cpu": "2"}}}]}
    assert lacking(actual, actual, OWN) == {}


def test_resources_of_a_container_that_was_not_sent_stay() -> None:
    """An API server of the tenant's own may show any container in a running Pod."""
    wanted, actual = (spec(container("a", limits={"cpu": cpu})) for cpu in ("2", "1"))
    assert lacking(wanted, actual, PodRecord({"initContainers": ["a"]})) == {}


def test_resources_of_a_sidecar_and_of_the_pod_as_a_whole_are_sent() -> None:
    wanted = spec(container(), initContainers=[container("s", **SIZE)], resources={"limits": {"cpu": "4"}})
    actual = spec(container(), initContainers=[container("s")], resources={"limits": {"cpu": "2"}})
    assert lacking(wanted, actual, OWN) == {
        "resources": {"limits": {"cpu": "4"}},
        "initContainers": [
            {"name": "s", "resources": {"limits": SIZE["limits"], "requests": SIZE["requests"]}},
        ],
    }


@pytest.mark.parametrize("resources", [{}, SIZE])
def test_digest_is_on_the_copy_only_if_there_are_resources(world: World, resources: Obj) -> None:
    running(world, spec(container(**resources)))
    annotations = (world.host("Pod", COPY) or {})["metadata"]["annotations"]
    assert (SENT in annotations) is bool(resources)


def test_digest_distinguishes_all_resources() -> None:
    specs = [
        spec(container(**SIZE)),
        spec(container("b", **SIZE)),
        spec(container(limits=SIZE["limits"])),
        spec(container(), initContainers=[container("app", **merged(SIZE, {"limits": {"cpu": "3"}}))]),
        spec(container(), resources=SIZE),
    ]
    assert len(set(map(resources_digest, specs))) == len(specs)
    backwards: Obj = {side: dict(reversed(each.items())) for side, each in reversed(SIZE.items())}
    assert resources_digest(spec(container(**backwards))) == resources_digest(specs[0])


def test_resources_that_the_host_has_changed_stay_though_the_tenant_changes_something_else(world: World) -> None:
    """A webhook of the host lowered the requests, and a LimitRange added a limit."""
    running(world, spec(container(requests={"cpu": "1"})))
    on_host(world, {"spec": spec(container(requests={"cpu": "100m"}, limits={"memory": "1Gi"}))})
    assert resized(world, {"tolerations": [{"key": "k", "operator": "Exists"}]}) == [f"patch host pods {COPY}"]
    assert resized(world, spec(container(requests={"cpu": "2"})))[0] == f"patch host pods/resize {COPY}"
    host = (world.host("Pod", COPY) or {})["spec"]["containers"][0]["resources"]
    assert host == {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}


def test_status_waits_for_the_kubelet_to_observe_the_resized_copy(world: World) -> None:
    """A tenant's tool that waits for its generation would else read the conditions of before."""
    running(world, spec(container(**SIZE)))
    conditions = [{"type": "Ready", "status": "True", "observedGeneration": 1}]
    status = {"phase": "Running", "startTime": "x", "observedGeneration": 1, "conditions": conditions}
    on_host(world, {"metadata": {"generation": 1}, "status": status})
    world.settle("pods", "shop/web")
    assert (world.virtual("Pod", "shop/web") or {})["status"]["observedGeneration"] == 1
    there = world.virtual("Pod", "shop/web") or {}
    larger = spec(container(**merged(SIZE, {"limits": {"cpu": "2"}})))
    world.given(virtual=[merged(there, {"spec": larger, "metadata": {"generation": 2}})])
    writes = [
        write for write in world.decide("pods", "shop/web").writes if "status" in write.obj and not write.subresource
    ]
    assert [write.obj["status"]["observedGeneration"] for write in writes] == [1]
    assert [write.obj["status"]["conditions"][0]["observedGeneration"] for write in writes] == [1]
    on_host(world, {"spec": larger, "metadata": {"generation": 2}})
    world.settle("pods", "shop/web")
    assert (world.virtual("Pod", "shop/web") or {})["status"]["observedGeneration"] == 1, "not observed yet"
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "observedGeneration": 2}
    on_host(world, {"status": {"observedGeneration": 2, "conditions": [*conditions, pending]}})
    world.settle("pods", "shop/web")
    found = (world.virtual("Pod", "shop/web") or {})["status"]
    assert found["observedGeneration"] == 2
    assert pending in found["conditions"]
