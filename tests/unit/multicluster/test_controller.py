"""A controller: which requests come, when they are reconciled, and what a failure or a slow cluster delays."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from fleet_scene import PODS, SECRETS, Site, eventually, running

from kube_envtest import Rule
from syncer.api import Conflict, Key, Obj, TooMany, Unreachable
from syncer.multicluster import (
    DEPLOYMENTS,
    Cluster,
    Controller,
    ControllerOptions,
    NotRunning,
    Request,
    Result,
    WatchOptions,
)
from syncer.testing.objects import pod, secret
from syncer.workqueue.queue import Queue


class Recorded:
    """A reconcile function that records its requests, and does as it is told."""

    def __init__(self, act: Callable[[Request], Result | None] = lambda request: None, *, seconds: float = 0.0) -> None:
        self.requests: list[Request] = []
        self.at: list[float] = []
        self.act, self.seconds = act, seconds
        self.at_a_time: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def __call__(self, request: Request) -> Result | None:
        self.requests.append(request)
        self.at.append(asyncio.get_running_loop().time())
        self.at_a_time[request.cluster] += 1
        self.most[request.cluster] = max(self.most[request.cluster], self.at_a_time[request.cluster])
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_a_time[request.cluster] -= 1
        return self.act(request)

    def names(self, cluster: str = "") -> list[str]:
        return [each.name for each in self.requests if cluster in ("", each.cluster)]


def boom(_: Request) -> None:
    raise ValueError("a bug")


# -- requests ------------------------------------------------------------------------------------------


async def nothing(request: Request) -> None:
    """Reconcile nothing."""


async def test_requests_come_from_many_kinds_in_many_clusters() -> None:
    sites = [Site(name, pod("web"), secret("key")) for name in ("eu", "us", "asia")]
    recorded = Recorded()
    controller = Controller(recorded)
    for site in sites:
        controller.watch_object(site.cluster, PODS)
        controller.watch_object(site.cluster, SECRETS)
    assert list(controller.clusters) == ["eu", "us", "asia"]
    async with running(controller, *sites):
        await eventually(lambda: len(recorded.requests) == 6)
        assert Request("us", "shop", "web") in recorded.requests
        sites[1].server.put(pod("second"))
        sites[1].server.delete("pods", Key("shop", "second"))
        await eventually(lambda: Request("us", "shop", "second") in recorded.requests)
    assert str(recorded.requests[0]).startswith("eu: shop/")


async def test_equal_requests_that_wait_are_reconciled_once_and_never_two_at_a_time() -> None:
    site, recorded = Site("eu", pod("a"), pod("b"), pod("c")), Recorded(seconds=10.0)
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await eventually(lambda: len(recorded.requests) == 3)
        for phase in ("Pending", "Running"):
            for name in "abc":
                site.server.put(pod(name, status={"phase": phase}))
        await asyncio.sleep(30)
    assert Counter(recorded.names()) == {"a": 2, "b": 2, "c": 2}


async def test_request_may_name_the_cluster_otherwise() -> None:
    site, recorded = Site("eu", pod("a")), Recorded()
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS, as_cluster="agent")
    async with running(site, controller):
        await eventually(lambda: recorded.requests)
        assert recorded.requests == [Request("agent", "shop", "a")]
        controller.disengage("eu")
        site.server.put(pod("b"))
        await asyncio.sleep(5)
        assert len(recorded.requests) == 1


async def test_watch_of_owners_requests_the_controller_of_the_wanted_kind() -> None:
    def owned(name: str, *owners: tuple[str, str, str, bool]) -> Obj:
        references = [
            {"apiVersion": version, "kind": kind, "name": owner, "uid": f"u-{owner}", "controller": is_controller}
            for version, kind, owner, is_controller in owners
        ]
        return secret(name, metadata={"ownerReferences": references})

    site, recorded = Site("eu", controllers=False), Recorded()  # no garbage collector: the owners don't exist
    controller = Controller(recorded)
    controller.watch_owner(site.cluster, SECRETS, DEPLOYMENTS)
    async with running(site, controller):
        await site.cluster.list(SECRETS)
        site.server.put(owned("free"))
        site.server.put(owned("mere", ("apps/v1", "Deployment", "mere-owner", False)))
        site.server.put(owned("other", ("apps/v1", "ReplicaSet", "set", True)))
        site.server.put(owned("same-kind", ("example.org/v1", "Deployment", "foreign", True)))
        site.server.put(owned("kept", ("v1", "Pod", "p", False), ("apps/v1beta1", "Deployment", "web", True)))
        await eventually(lambda: recorded.requests)
        await asyncio.sleep(5)
        assert recorded.requests == [Request("eu", "shop", "web")]
        site.server.put(owned("kept", ("apps/v1", "Deployment", "successor", True)))
        await eventually(lambda: len(recorded.requests) == 3)
        assert sorted(recorded.names()) == ["successor", "web", "web"], "a former owner learns of it, too"


async def test_watch_by_a_map_function_requests_its_results_in_engaged_clusters() -> None:
    eu, us, recorded = Site("eu", pod("a")), Site("us"), Recorded()
    controller = Controller(recorded)
    controller.engage(us.cluster)
    controller.watch_map_func(
        eu.cluster, PODS, lambda obj: [Request(name, "", obj["metadata"]["name"]) for name in ("us", "unknown")]
    )
    async with running(eu, us, controller):
        await eventually(lambda: recorded.requests)
        await asyncio.sleep(5)
        assert recorded.requests == [Request("us", "", "a")]


async def test_requests_of_a_cluster_wait_until_it_is_engaged_each_time() -> None:
    """Copies in one cluster are seen before their originals' clusters join: else none would go with its original."""
    home, us, recorded = Site("home", pod("a"), pod("b")), Site("us"), Recorded()
    controller = Controller(recorded)
    controller.watch_map_func(home.cluster, PODS, lambda obj: [Request("us", "", obj["metadata"]["name"])])
    async with running(home, us, controller):
        await home.cluster.list(PODS)
        await asyncio.sleep(5)
        assert recorded.requests == []
        controller.engage(us.cluster)
        await eventually(lambda: sorted(recorded.names()) == ["a", "b"])
        controller.disengage("us")
        home.server.delete("pods", Key("shop", "b"))
        await asyncio.sleep(5)
        recorded.requests.clear()
        controller.engage(us.cluster)
        await eventually(lambda: recorded.names() == ["a"])
        await asyncio.sleep(5)
        assert recorded.names() == ["a"], "no object leads to the other one any more"


async def test_conditions_of_a_watch_are_all_to_be_fulfilled() -> None:
    def labelled(name: str, *, namespace: str = "shop", app: str = "web", note: str = "yes") -> Obj:
        return pod(name, namespace=namespace, metadata={"labels": {"app": app}, "annotations": {"note": note}})

    wanted = WatchOptions(
        namespaces=("shop", "bank"),
        labels={"matchLabels": {"app": "web"}},
        annotations={"matchExpressions": [{"key": "note", "operator": "In", "values": ["yes"]}]},
        predicate=lambda obj: obj["metadata"]["name"] != "hidden",
    )
    site, recorded = Site("eu"), Recorded()
    for obj in (
        labelled("a"),
        labelled("b", namespace="bank"),
        labelled("elsewhere", namespace="park"),
        labelled("unlabelled", app="db"),
        labelled("unnoted", note="no"),
        labelled("hidden"),
    ):
        site.server.put(obj)
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS, wanted)
    async with running(site, controller):
        await eventually(lambda: len(recorded.requests) >= 2)
        await asyncio.sleep(5)
        assert sorted(recorded.names()) == ["a", "b"]
        site.server.put(labelled("a", app="db"))
        await eventually(lambda: len(recorded.requests) == 3, "it learns that an object ceases to be selected")
        site.server.put(labelled("a", app="other"))
        await asyncio.sleep(5)
        assert len(recorded.requests) == 3


async def test_watch_of_a_part_of_a_resource_asks_the_api_server_for_no_more() -> None:
    site, recorded = Site("eu", pod("a"), pod("b", namespace="bank")), Recorded()
    controller = Controller(recorded)
    controller.watch_object(site.cluster, site.cluster.informer(PODS, namespace="bank"))
    async with running(site, controller):
        await eventually(lambda: recorded.requests)
        assert recorded.names() == ["b"]
        assert site.requests("list", PODS) == ["/api/v1/namespaces/bank/pods"]


# -- results and failures ------------------------------------------------------------------------------


async def test_failed_request_is_retried_after_growing_delays_and_its_worker_goes_on() -> None:
    site = Site("eu", *(pod(f"good{number}") for number in range(20)), pod("bad"))
    recorded = Recorded(lambda request: boom(request) if request.name == "bad" else None)
    controller = Controller(recorded, ControllerOptions(workers=1, max_retry_delay=8.0))
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await eventually(lambda: len(set(recorded.names())) == 21)
        assert asyncio.get_running_loop().time() < 1, "nobody waits for the failing request"
        await asyncio.sleep(120)
    times = [at for at, name in zip(recorded.at, recorded.names(), strict=True) if name == "bad"]
    delays = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert delays[0] < 0.1
    assert all(late > early * 1.15 for early, late in itertools.pairwise(delays[:7])), delays
    assert 4.5 < delays[-1] <= 8.0
    assert len(set(delays[-3:])) == 3, "delays have no jitter"


async def test_cluster_with_many_failures_delays_no_retry_of_another() -> None:
    flood, other = Site("flood", *(pod(f"bad{number}") for number in range(300))), Site("other", pod("bad"))
    recorded = Recorded(boom)
    controller = Controller(recorded, ControllerOptions(workers=2, max_retry_delay=8.0, log=Mock()))
    for site in (flood, other):
        controller.watch_object(site.cluster, PODS)
    async with running(flood, other, controller):
        await asyncio.sleep(60)
    times = [at for at, request in zip(recorded.at, recorded.requests, strict=True) if request.cluster == "other"]
    delays = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(recorded.requests) > 900
    for number, delay in enumerate(delays):
        assert delay <= min(0.05 * 2**number * 1.25, 8.0) + 0.05


async def test_requeue_backs_off_and_requeue_after_resets_the_delay() -> None:
    site = Site("eu", pod("a"))
    results = iter([Result(requeue=True)] * 5 + [Result(requeue_after=30.0), Result(requeue=True), None])
    recorded = Recorded(lambda request: next(results))
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await asyncio.sleep(300)
    delays = [later - earlier for earlier, later in itertools.pairwise(recorded.at)]
    assert len(delays) == 7
    assert delays[4] > 9 * delays[0]
    assert delays[5] == pytest.approx(30.0, abs=0.01)
    assert delays[6] < 0.1, "its failures count after it succeeded"


async def test_failures_wait_as_long_as_the_api_server_asks() -> None:
    def busy(request: Request) -> None:
        raise TooMany("busy", retry_after=20.0)

    site, recorded = Site("eu", pod("a")), Recorded(busy)
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await asyncio.sleep(50)
    assert len(recorded.requests) == 3


async def test_reconcile_that_cancels_itself_is_retried_as_after_an_error() -> None:
    def cancelled(_: Request) -> None:
        raise asyncio.CancelledError

    site, recorded = Site("eu", pod("a")), Recorded(cancelled)
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await asyncio.sleep(60)
    assert 5 < len(recorded.requests) < 20


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str, Key]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda text, *, cluster, controller, key, **_: self.lines.append((level, cluster, controller, key))


async def test_log_lines_name_cluster_and_key_and_queue_and_log_are_replaceable() -> None:
    errors: dict[str, Exception] = {"a": ValueError("a bug"), "b": Unreachable("away"), "c": Conflict("changed")}

    def fail(request: Request) -> None:
        if request.name in errors:
            raise errors.pop(request.name)

    site, log = Site("eu", pod("a"), pod("b"), pod("c")), Log()
    queue = Queue(clock=asyncio.get_running_loop().time)
    controller = Controller(Recorded(fail), ControllerOptions(name="copies", queue=queue, log=log))
    controller.watch_object(site.cluster, PODS)
    await asyncio.sleep(0)
    async with running(site):
        await eventually(lambda: queue.depth() == 3)
        async with running(controller):
            await eventually(lambda: len(log.lines) == 3)
    assert sorted(log.lines) == [
        ("debug", "eu", "copies", Key("shop", "c")),
        ("error", "eu", "copies", Key("shop", "a")),
        ("warning", "eu", "copies", Key("shop", "b")),
    ]


async def test_controller_without_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="needs an async function"):
        Controller(None)  # type: ignore[arg-type]


# -- clusters come and go ------------------------------------------------------------------------------


async def test_clusters_join_and_leave_while_it_runs_and_get_every_watch_and_index() -> None:
    eu, us, recorded = Site("eu", pod("a")), Site("us", pod("b"), secret("s")), Recorded()
    controller = Controller(recorded)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    controller.engage(eu.cluster)
    async with running(eu, us, controller):
        await eventually(lambda: recorded.names("eu"))
        controller.engage(us.cluster)
        controller.engage(us.cluster)
        await eventually(lambda: recorded.names("us"))
        controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, SECRETS))
        controller.for_every_cluster(lambda cluster: cluster.add_index(SECRETS, "all", lambda obj: ["yes"]))
        await eventually(lambda: len(recorded.names("us")) == 2)
        assert len(await us.cluster.by_index(SECRETS, "all", "yes")) == 1
        controller.disengage("us")
        controller.disengage("us")
        us.server.put(pod("c"))
        eu.server.put(pod("d"))
        await eventually(lambda: "d" in recorded.names("eu"))
        assert recorded.names("us") == ["b", "s"]
        assert not controller.is_ready("us")
        assert us.cluster.informer(PODS).handlers.map_functions == []


async def test_requests_of_a_cluster_that_has_gone_end_quietly() -> None:
    site, log = Site("eu", *(pod(f"p{number}") for number in range(50))), Log()
    recorded = Recorded(boom, seconds=1000.0)
    controller = Controller(recorded, ControllerOptions(log=log, cluster_workers=10))
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await eventually(lambda: len(recorded.requests) == 10)
        controller.disengage("eu")
        await asyncio.sleep(100)
        assert len(recorded.requests) == 10
        assert sum(recorded.at_a_time.values()) == 0, "a reconcile for a cluster that is gone goes on"
        assert log.lines == []
        recorded.seconds = 0.0
        controller.watch_object(site.cluster, PODS)
        await eventually(lambda: len(set(recorded.names())) == 50, "it may come back")


async def test_cluster_is_replaced_by_another_of_its_name() -> None:
    old, new, recorded = Site("eu", pod("old")), Site("eu", pod("new")), Recorded()
    controller = Controller(recorded)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    controller.engage(old.cluster)
    async with running(old, new, controller):
        await eventually(lambda: recorded.names() == ["old"])
        with pytest.raises(ValueError, match="another cluster is engaged as 'eu'"):
            controller.watch_object(new.cluster, SECRETS)
        controller.engage(new.cluster)
        await eventually(lambda: "new" in recorded.names())
        old.server.put(pod("older"))
        await asyncio.sleep(5)
        assert "older" not in recorded.names()


async def test_work_on_a_cluster_begins_when_its_own_caches_are_filled() -> None:
    late, good, recorded = Site("late", pod("a"), secret("s")), Site("good", pod("b")), Recorded()
    late.server.faults.add(slow := Rule(verb="list", resource="secrets", status=503))
    controller = Controller(recorded)
    for site in (late, good):
        controller.watch_object(site.cluster, PODS)
        controller.watch_object(site.cluster, SECRETS)
    async with running(late, good, controller):
        await eventually(lambda: recorded.names("good"))
        await asyncio.sleep(20)
        assert recorded.names("late") == []
        assert (controller.is_ready("late"), controller.is_ready("good")) == (False, True)
        late.server.faults.remove(slow)
        await eventually(lambda: len(recorded.names("late")) == 2)


# -- fairness ------------------------------------------------------------------------------------------


async def test_slow_cluster_takes_no_worker_from_others() -> None:
    sites = [Site("slow", *(pod(f"p{number}") for number in range(200))), Site("quick", pod("a"))]
    hung = asyncio.Event()

    async def reconcile(request: Request) -> None:
        if request.cluster == "slow":
            await hung.wait()
        else:
            done.append(asyncio.get_running_loop().time())

    done: list[float] = []
    controller = Controller(reconcile, ControllerOptions(workers=8, cluster_workers=4))
    for site in sites:
        controller.watch_object(site.cluster, PODS)
    async with running(controller, sites[0]):
        await asyncio.sleep(10)
        async with running(sites[1]):
            await eventually(lambda: done)
            assert done[0] < 10.5


async def test_reconciles_of_a_cluster_at_a_time_are_limited() -> None:
    sites = [Site(name, *(pod(f"p{number}") for number in range(20))) for name in ("eu", "us")]
    recorded = Recorded(seconds=1.0)
    controller = Controller(recorded, ControllerOptions(workers=5, cluster_workers=3))
    for site in sites:
        controller.watch_object(site.cluster, PODS)
    async with running(controller, *sites):
        await eventually(lambda: len(recorded.requests) == 40)
        assert max(recorded.most.values()) == 3
        assert asyncio.get_running_loop().time() > 7, "five at a time"


async def test_workers_are_shared_by_the_weights_of_clusters() -> None:
    sites = [Site(name, *(pod(f"p{number}") for number in range(400))) for name in ("eu", "us", "asia")]
    recorded = Recorded(seconds=1.0)
    options = ControllerOptions(workers=4, cluster_workers=0, weights={"eu": 2.0})
    controller = Controller(recorded, options)
    for site in sites:
        controller.watch_object(site.cluster, PODS)
    async with running(*sites, controller):
        await eventually(lambda: all(controller.is_ready(name) for name in ("eu", "us", "asia")))
        before = len(recorded.requests)
        await asyncio.sleep(100)
        shares = Counter(each.cluster for each in recorded.requests[before:])
    assert sum(shares.values()) == pytest.approx(400, abs=5)
    assert shares["eu"] == pytest.approx(200, abs=8)
    assert shares["us"] == pytest.approx(100, abs=8)


# -- life ----------------------------------------------------------------------------------------------


async def test_controller_that_is_stopped_and_run_again_loses_no_request() -> None:
    site = Site("eu", *(pod(f"p{number}") for number in range(10)))
    finished: set[str] = set()

    async def reconcile(request: Request) -> None:
        await asyncio.sleep(2)
        finished.add(request.name)

    controller = Controller(reconcile)
    controller.watch_object(site.cluster, PODS)
    async with running(site):
        async with running(controller):
            await asyncio.sleep(3)
            with pytest.raises(NotRunning):
                await controller.run()
        assert len(finished) == 4
        await asyncio.sleep(10)
        assert len(finished) == 4
        async with running(controller):
            await eventually(lambda: len(finished) == 10)


async def test_controller_that_watches_nothing_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    site, idle, busy = Site("eu"), Controller(nothing, ControllerOptions(name="idle")), Controller(nothing)
    late = Controller(nothing, ControllerOptions(name="late"))
    idle.engage(site.cluster)
    busy.watch_object(site.cluster, PODS)
    async with running(site, idle, busy, late):
        await asyncio.sleep(1)
        late.watch_object(site.cluster, PODS)  # as a listener does, once the cluster's caches are filled
        await asyncio.sleep(1)
    output = [line for line in capsys.readouterr().err.splitlines() if "watches nothing" in line]
    assert len(output) == 1
    assert "idle" in output[0]


async def test_silent_cluster_is_logged_once_a_minute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    site, home = Site("eu", *(pod(f"p{number}") for number in range(20))), Site("home")

    async def reconcile(request: Request) -> None:
        raise Unreachable("connection refused", cluster=home.cluster.name)

    controller = Controller(reconcile, ControllerOptions(max_retry_delay=5.0))
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await asyncio.sleep(90)
    output = [line for line in capsys.readouterr().err.splitlines() if "connection refused" in line]
    assert len(output) == 2
    assert "others_before" not in output[0]
    assert "others_before" in output[1]


async def test_argument_of_another_type_is_refused_where_it_is_given() -> None:
    site, controller = Site("eu"), Controller(nothing, ControllerOptions(name="pods"))
    untyped: list[Any] = ["eu", "pods", "context", PODS]
    eu, pods, context, setup = untyped
    for mistake, output in (
        (lambda: controller.engage(eu), "controller pods: what is engaged must be a Cluster, not 'eu'"),
        (lambda: controller.watch_object(eu, PODS), "where a resource is watched must be a Cluster, not 'eu'"),
        (lambda: controller.watch_object(site.cluster, pods), "must be a Resource or ClusterInformer, not 'pods'"),
        (lambda: controller.for_every_cluster(setup), "what is called for every cluster is no function: Resource"),
        (lambda: site.cluster.informer(pods), "what is read from cluster eu must be a Resource, not 'pods'"),
        (lambda: Cluster("eu", context), "the connection of cluster eu must be a Client, not 'context'"),
    ):
        with pytest.raises(TypeError, match=output):
            mistake()
