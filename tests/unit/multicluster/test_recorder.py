"""Events that controllers record about objects, in the clusters of these."""

import asyncio
import threading

import pytest
from fleet_scene import PODS, Site, eventually, running

from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.multicluster import Controller, Manager, Request
from syncer.observe.events import BURST, MOST_BYTES
from syncer.testing.objects import pod


def events_of(site: Site) -> list[Obj]:
    return list(site.server.objects("events"))


async def test_event_is_in_the_cluster_of_its_object_and_names_the_component() -> None:
    eu, us = Site("eu", pod("a")), Site("us", pod("a"))

    async def reconcile(request: Request) -> None:
        cluster = controller.cluster(request.cluster)
        obj = await cluster.get(PODS, request.key)
        assert obj is not None
        cluster.recorder("greeter").event(obj, "Normal", "Greeted", f"hello from {request.cluster}")

    controller = Controller(reconcile)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    manager = Manager()
    manager.add(controller)
    for site in (eu, us):
        manager.engage(site.cluster)
    async with running(manager):
        await eventually(lambda: events_of(eu) and events_of(us))
    for site in (eu, us):
        [event] = events_of(site)
        assert (event["type"], event["reason"]) == ("Normal", "Greeted")
        assert event["message"] == f"hello from {site.cluster}"
        about = (site.server.get("pods", Key("shop", "a")) or {})["metadata"]
        named = {name: event["involvedObject"][name] for name in ("kind", "namespace", "name", "uid")}
        assert named == {"kind": "Pod", "namespace": "shop", "name": "a", "uid": about["uid"]}
        assert event["source"] == {"component": "greeter"}


async def test_equal_events_are_one_with_a_count_and_those_about_an_object_are_limited() -> None:
    eu, about = Site("eu", pod("a")), pod("a")
    async with running(eu):
        recorder = eu.cluster.recorder("greeter")
        for _ in range(3):
            recorder.event(about, "Warning", "Failed", "no image")
        await eventually(lambda: events_of(eu))
        assert [event["count"] for event in events_of(eu)] == [3]
        for number in range(2 * BURST):
            recorder.event(about, "Warning", "Failed", f"no image {number}")
        await asyncio.sleep(60)
        assert len(events_of(eu)) == 1 + BURST - 3


async def test_events_wait_for_their_cluster_in_bounded_memory_and_follow_its_client() -> None:
    eu, moved = Site("eu", pod("a")), Site("moved", pod("a"))
    recorder = eu.cluster.recorder("greeter")
    for number in range(2000):
        recorder.event(pod(f"p{number}"), "Normal", "Waited", "x" * 1000)
    eu.cluster.use(moved.new_client("eu"))
    async with running(eu):
        await asyncio.sleep(400)
    assert 0 < len(events_of(moved)) < MOST_BYTES // 1000
    assert events_of(eu) == []


async def test_cluster_that_takes_no_events_costs_the_reconciler_nothing() -> None:
    eu = Site("eu")
    eu.server.faults.add(Rule(resource="events", latency=3600.0))
    async with running(eu):
        for number in range(100):
            eu.cluster.recorder("greeter").event(pod(f"p{number}"), "Normal", "Waited", "")
        assert asyncio.get_running_loop().time() == 0.0
    assert events_of(eu) == []


async def test_recorder_of_a_component_is_shared_by_aliases_and_other_types_are_refused() -> None:
    eu = Site("eu")
    recorder = eu.cluster.recorder("greeter")
    assert eu.cluster.alias("other").recorder("greeter") is recorder
    assert eu.cluster.recorder("another") is not recorder
    with pytest.raises(ValueError, match="an Event is Normal or Warning, not Error"):
        recorder.event(pod("a"), "Error", "Failed", "")  # type: ignore[arg-type]


def test_reconciler_in_a_thread_may_record_an_event() -> None:
    async def main() -> None:
        eu = Site("eu", pod("a"))
        recorder = eu.cluster.recorder("greeter")
        threads: list[threading.Thread] = []

        def reconcile(request: Request) -> None:
            threads.append(threading.current_thread())
            recorder.event(pod("a"), "Normal", "Greeted", "hello")

        controller = Controller(reconcile)
        controller.watch_object(eu.cluster, PODS)
        async with running(eu, controller):
            await eventually(lambda: events_of(eu))
        assert threading.main_thread() not in threads

    asyncio.run(main())
