"""Functions of a controller that raise: map functions, predicates, setups, and those of sources."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, SECRETS, Site, eventually, running

from syncer.api import Key, Obj
from syncer.multicluster import Cluster, Controller, ControllerOptions, Manager, Request, WatchOptions
from syncer.multicluster.pages import checks_of
from syncer.observe.health import Heartbeat
from syncer.testing.objects import pod, secret


class Log:
    """Records log lines: their text, and what they are about."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda text, **about: self.lines.append((level, text, about))

    def about(self, *names: str) -> list[tuple[Any, ...]]:
        """Return what the errors are about."""
        return [tuple(str(about.get(name)) for name in names) for level, _, about in self.lines if level == "error"]


class Recorder:
    """A controller that records its requests."""

    def __init__(self, name: str = "copies", **options: Any) -> None:
        self.requests: list[Request] = []
        self.log = Log()
        self.controller = Controller(self.reconcile, ControllerOptions(name=name, log=self.log, **options))

    async def reconcile(self, request: Request) -> None:
        self.requests.append(request)

    def names(self) -> list[str]:
        return sorted(request.name for request in self.requests)


class Faulty:
    """Maps an object to itself, and raises for some; as a predicate it selects everything else."""

    def __init__(self, *names: str, error: Callable[[], BaseException] = lambda: KeyError("spec")) -> None:
        self.names, self.error = set(names), error
        self.asked: list[float] = []

    def judge(self, obj: Obj) -> bool:
        name = obj["metadata"]["name"]
        if name in self.names:
            self.asked.append(asyncio.get_running_loop().time())
            raise self.error()
        return True

    def requests(self, obj: Obj) -> Iterable[Request]:
        self.judge(obj)
        yield Request("eu", "shop", obj["metadata"]["name"])


def watched_by_predicate(recorder: Recorder, cluster: Cluster, faulty: Faulty) -> None:
    recorder.controller.watch_object(cluster, PODS, WatchOptions(predicate=faulty.judge))


def watched_by_map_function(recorder: Recorder, cluster: Cluster, faulty: Faulty) -> None:
    recorder.controller.watch_map_func(cluster, PODS, faulty.requests)


WATCHES = pytest.mark.parametrize("watch", [watched_by_predicate, watched_by_map_function])


# -- map functions and predicates ----------------------------------------------------------------------


@WATCHES
async def test_object_for_which_a_function_raises_is_asked_about_until_it_does_not(
    watch: Callable[[Recorder, Cluster, Faulty], None],
) -> None:
    site, recorder, faulty = Site("eu", pod("a"), pod("b"), pod("c")), Recorder(), Faulty("a", "b")
    watch(recorder, site.cluster, faulty)
    async with running(site, recorder.controller):
        await asyncio.sleep(600)
        assert recorder.names() == ["c"]
        assert {"a", "b"} == {key.split("/")[1] for (key,) in recorder.log.about("key")}
        first, *_ = recorder.log.about("cluster", "controller", "kind")
        assert first == ("eu", "copies", "Pod")
        faulty.names.clear()
        await asyncio.sleep(120)
        assert recorder.names() == ["a", "b", "c"], "though no object has changed"


async def test_delays_grow_up_to_the_last_retry_and_reset_after_a_success() -> None:
    site, recorder, faulty = Site("eu", pod("a")), Recorder(max_retry_delay=30.0), Faulty("a")
    watched_by_predicate(recorder, site.cluster, faulty)
    async with running(site, recorder.controller):
        await asyncio.sleep(300)
        gaps = [later - before for before, later in zip(faulty.asked, faulty.asked[1:], strict=False)]
        assert gaps[0] < 1
        assert 10 < gaps[-1] <= 30
        faulty.names.clear()
        await eventually(lambda: recorder.names() == ["a"])
        faulty.names.add("a")
        faulty.asked.clear()
        site.server.put(pod("a", metadata={"labels": {"app": "web"}}))
        await eventually(lambda: len(faulty.asked) > 1)
        assert faulty.asked[1] - faulty.asked[0] < 1


async def test_watch_goes_on_though_a_predicate_asks_a_future_that_was_cancelled() -> None:
    site, recorder, faulty = Site("eu", pod("a"), pod("b")), Recorder(), Faulty("a", error=asyncio.CancelledError)
    watched_by_predicate(recorder, site.cluster, faulty)
    async with running(site, recorder.controller):
        await eventually(lambda: recorder.names() == ["b"])
        site.server.put(pod("c"))
        await eventually(lambda: recorder.names() == ["b", "c"])
        faulty.names.clear()
        await eventually(lambda: recorder.names() == ["a", "b", "c"])


async def test_deleted_object_is_asked_about_no_more_and_leads_to_the_request_that_it_led_to() -> None:
    site, recorder, faulty = Site("eu", pod("a"), pod("b")), Recorder(), Faulty("b")
    watched_by_predicate(recorder, site.cluster, faulty)
    async with running(site, recorder.controller):
        await eventually(lambda: recorder.names() == ["a"])
        faulty.names.add("a")
        site.server.put(pod("a", metadata={"labels": {"app": "web"}}))
        await asyncio.sleep(1)
        for name in ("a", "b"):
            site.server.delete("pods", Key("shop", name))
        await eventually(lambda: recorder.names() == ["a", "a"])
        await asyncio.sleep(1)
        faulty.asked.clear()
        await asyncio.sleep(600)
        assert faulty.asked == []


async def test_function_of_one_controller_or_cluster_that_raises_delays_no_other() -> None:
    eu, us = Site("eu", *(pod(f"p{number}") for number in range(300))), Site("us", pod("b"))
    bad, good = Recorder("bad"), Recorder("good")
    faulty = Faulty(*(f"p{number}" for number in range(300)))
    for site in (eu, us):
        watched_by_predicate(bad, site.cluster, faulty)
        good.controller.watch_object(site.cluster, PODS)
    async with running(eu, us, bad.controller, good.controller):
        await eventually(lambda: len(good.requests) == 301)
        await eventually(lambda: bad.names() == ["b"])
        bad.controller.disengage("eu")
        await asyncio.sleep(120)
        faulty.asked.clear()
        await asyncio.sleep(600)
        assert faulty.asked == [], "a cluster that has gone takes its retries along"


# -- setups --------------------------------------------------------------------------------------------


class Setup:
    """Watches pods, then raises in some clusters, before it watches secrets."""

    def __init__(self, recorder: Recorder, *clusters: str) -> None:
        self.recorder, self.clusters = recorder, set(clusters)
        self.called: list[str] = []

    def __call__(self, cluster: Cluster) -> None:
        self.called.append(cluster.name)
        self.recorder.controller.watch_object(cluster, PODS)
        if cluster.name in self.clusters:
            raise ValueError("unknown")
        self.recorder.controller.watch_object(cluster, SECRETS)


def readiness(controller: Controller, scene: CacheScene) -> str:
    """Return what /readyz says of cluster a."""
    pages = checks_of(lambda: [controller], lambda: [scene.cache], None, Heartbeat()).app()
    asked: dict[str, Any] = {"PATH_INFO": "/readyz", "QUERY_STRING": "verbose", "REQUEST_METHOD": "GET"}
    body = b"".join(pages(asked, lambda *_: lambda _: None))
    return next(line for line in body.decode().splitlines() if "caches/a" in line)


async def test_setup_that_raises_is_tried_again_while_the_cluster_is_connected_and_not_ready_meanwhile() -> None:
    scene, recorder, other = CacheScene("a", "b"), Recorder(), Recorder("other")
    for name in ("a", "b"):
        scene[name].server.put(pod(f"pod-{name}"))
        scene[name].server.put(secret(f"secret-{name}"))
    setup = Setup(recorder, "a")
    recorder.controller.for_every_cluster(setup)
    other.controller.for_every_cluster(lambda cluster: other.controller.watch_object(cluster, PODS))
    scene.cache.add(recorder.controller)
    scene.cache.add(other.controller)
    async with scene.running(), running(recorder.controller, other.controller):
        await asyncio.sleep(600)
        assert recorder.names() == ["pod-b", "secret-b"]
        assert other.names() == ["pod-a", "pod-b"]
        assert readiness(recorder.controller, scene) == (
            "[!]caches/a degraded: a setup of controller copies raised there, and is tried again"
        )
        assert recorder.controller.is_ready("b")
        assert len(recorder.controller.clusters["a"].informer(PODS).handlers.map_functions) == 1, (
            "the other controller's"
        )
        assert setup.called.count("b") == 1
        assert 5 < setup.called.count("a") < 30, "with delays that grow"
        assert set(recorder.log.about("cluster", "controller")) == {("a", "copies")}
        setup.clusters.clear()
        await eventually(lambda: len(recorder.requests) == 4)
        assert readiness(recorder.controller, scene) == "[+]caches/a ok"
        await asyncio.sleep(120)
        assert recorder.names() == ["pod-a", "pod-b", "secret-a", "secret-b"], "each is watched once"
        assert len(recorder.controller.clusters["a"].informer(PODS).handlers.map_functions) == 2


async def test_setup_that_raises_in_a_cluster_of_a_manager_is_tried_again_and_the_others_begin() -> None:
    eu, us, manager = Site("eu", pod("a"), secret("s")), Site("us", pod("b")), Manager()
    recorder, other = Recorder(), Recorder("other")
    setup = Setup(recorder, "eu")
    recorder.controller.for_every_cluster(setup)
    other.controller.for_every_cluster(lambda cluster: other.controller.watch_object(cluster, PODS))
    manager.add(recorder.controller)
    manager.add(other.controller)
    manager.engage(eu.cluster)
    async with running(manager):
        manager.engage(us.cluster)
        await eventually(lambda: (recorder.names(), other.names()) == (["b"], ["a", "b"]))
        await asyncio.sleep(60)
        assert not recorder.controller.is_ready("eu")
        setup.clusters.clear()
        await eventually(lambda: recorder.names() == ["a", "b", "s"])
        calls = list(setup.called)
        await asyncio.sleep(600)
        assert setup.called == calls
    async with running(manager):
        await eventually(lambda: recorder.controller.is_ready("eu"), "it can run again")


async def test_setup_that_comes_later_and_raises_in_one_cluster_is_called_for_all_and_tried_again_there() -> None:
    sites, recorder = [Site(name, pod(f"pod-{name}")) for name in ("eu", "us", "asia")], Recorder()
    setup = Setup(recorder, "us")
    for site in sites:
        recorder.controller.engage(site.cluster)
    async with running(*sites, recorder.controller):
        await eventually(lambda: recorder.controller.is_ready("us"))
        recorder.controller.for_every_cluster(setup)
        assert setup.called == ["eu", "us", "asia"]
        await eventually(lambda: recorder.names() == ["pod-asia", "pod-eu"])
        assert not recorder.controller.is_ready("us")
        setup.clusters.clear()
        await eventually(lambda: len(recorder.requests) == 3)
        assert recorder.controller.is_ready("us")


async def test_setup_that_raised_is_not_called_for_a_cluster_that_has_left() -> None:
    site, recorder = Site("eu"), Recorder()
    setup = Setup(recorder, "eu")
    recorder.controller.for_every_cluster(setup)
    async with running(site, recorder.controller):
        recorder.controller.engage(site.cluster)
        await asyncio.sleep(60)
        recorder.controller.disengage("eu")
        calls = list(setup.called)
        await asyncio.sleep(600)
        assert setup.called == calls
        assert site.cluster.informer(PODS).handlers.map_functions == []


async def test_waiting_for_filled_caches_waits_for_a_setup_that_raised() -> None:
    site, recorder = Site("eu"), Recorder()
    setup = Setup(recorder, "eu")
    recorder.controller.for_every_cluster(setup)
    recorder.controller.engage(site.cluster)
    async with running(site, recorder.controller):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(120):
                await recorder.controller.filled("eu")
        setup.clusters.clear()
        await recorder.controller.filled("eu")
        assert site.cluster.informer(SECRETS).synced


# -- sources -------------------------------------------------------------------------------------------


async def test_cluster_that_a_source_could_not_map_is_mapped_again_and_delays_no_other() -> None:
    scene, home, recorder = CacheScene("a", "b"), Site("home"), Recorder()
    broken = {"a"}

    def owners(cluster: str) -> Iterable[Request]:
        if cluster in broken:
            raise KeyError("owner")
        return [Request("home", "fleet", cluster)]

    recorder.controller.engage(home.cluster)
    recorder.controller.watch_source(scene.cache.source("owners", owners))
    async with scene.running(), running(home, recorder.controller):
        await asyncio.sleep(300)
        assert recorder.names() == ["b"]
        assert set(recorder.log.about("cluster", "controller", "source")) == {("a", "copies", "owners")}
        assert len(recorder.log.about("cluster")) < 20
        broken.clear()
        await eventually(lambda: recorder.names() == ["a", "b"])
