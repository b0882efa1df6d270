"""A manager's pages and signals: what its controllers have done, whether they work, and how the process ends."""

import asyncio
import os
import signal
import urllib.error
import urllib.request
from wsgiref.util import setup_testing_defaults

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, Site, eventually, leaving_nothing, running
from prometheus_client import generate_latest

from syncer.api import ConfigError
from syncer.multicluster import Controller, ControllerOptions, Manager, Reason, Request, Result, State
from syncer.multicluster.pages import checks_of
from syncer.observe.health import Checks, Heartbeat
from syncer.testing.objects import pod

OUTCOMES = {"good": None, "later": Result(requeue_after=600.0), "again": Result(requeue=True)}


async def reconcile(request: Request) -> Result | None:
    if request.name == "bad":
        raise ValueError("no")
    return OUTCOMES[request.name]


def controller_of(*sites: Site) -> Controller:
    made = Controller(reconcile, ControllerOptions(name="pods", workers=3))
    for site in sites:
        made.watch_object(site.cluster, PODS)
    return made


def samples(manager: Manager) -> list[str]:
    return [line for line in generate_latest(manager.registry).decode().splitlines() if not line.startswith("#")]


async def test_metrics_count_reconciles_by_cluster_and_result_and_go_with_the_cluster() -> None:
    eu, us, manager = Site("eu", *map(pod, ("good", "bad", "later"))), Site("us", pod("again")), Manager()
    manager.add(controller_of(eu, us))
    async with running(manager):
        await asyncio.sleep(1)
        found = samples(manager)
        for expected in (
            'controller_runtime_reconcile_total{cluster="eu",controller="pods",result="success"} 1.0',
            'controller_runtime_reconcile_total{cluster="eu",controller="pods",result="requeue_after"} 1.0',
            'controller_runtime_active_workers{cluster="us",controller="pods"} 0.0',
            'workqueue_depth{cluster="eu",controller="pods"} 0.0',
            'controller_runtime_max_concurrent_reconciles{controller="pods"} 3.0',
        ):
            assert expected in found
        assert any('cluster="eu",controller="pods",result="error"' in line for line in found)
        assert any('cluster="us",controller="pods",result="requeue"' in line for line in found)
        manager.disengage("eu")
        assert not any('cluster="eu"' in line for line in samples(manager))
        assert any('cluster="us"' in line for line in samples(manager))


def page(manager: Manager, setting: str, path: str) -> tuple[int, str]:
    """Return status and text of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{manager.ports[setting]}{path}", timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.real_time
async def test_pages_of_a_manager_name_unfilled_caches() -> None:
    good, hung = Site("good", pod("good")), Site("hung")
    hung.server.freeze()
    manager = Manager(metrics_address="127.0.0.1:0", health_address="127.0.0.1:0")
    manager.add(controller_of(hung))
    async with running(manager):
        await eventually(lambda: manager.ports)
        status, text = await asyncio.to_thread(page, manager, "health_address", "/readyz?verbose")
        assert status == 500
        assert "[-]caches/hung failed: controller pods waits for its caches there" in text
        assert (await asyncio.to_thread(page, manager, "health_address", "/livez"))[0] == 200
        more = controller_of(good)
        manager.add(more)
        await eventually(lambda: more.is_ready("good"))
        status, text = await asyncio.to_thread(page, manager, "health_address", "/readyz?verbose")
        assert status == 200
        assert "[!]caches/hung degraded" in text
        _, text = await asyncio.to_thread(page, manager, "metrics_address", "/metrics")
        assert 'workqueue_depth{cluster="good",controller="pods"}' in text
    assert manager.ports == {}


@pytest.mark.real_time
async def test_page_names_clusters_of_a_cache_that_were_never_connected_and_no_address() -> None:
    cached = CacheScene("good", "bad")
    cached["bad"].tokens.clear()
    manager = Manager(health_address="127.0.0.1:0")
    manager.add(controller_of())
    manager.add(cached.cache)
    async with running(manager):
        await eventually(lambda: cached.cache.get_status("bad").reason == Reason.UNAUTHORIZED)
        await eventually(lambda: cached.cache.get_status("good").state is State.CONNECTED)
        status, text = await asyncio.to_thread(page, manager, "health_address", "/readyz?verbose")
        assert status == 200
        assert "[+]caches/good ok" in text
        assert "[!]caches/bad degraded: not connected (Unauthorized)\n" in text
        cached.static.remove("good")
        status, _ = await asyncio.to_thread(page, manager, "health_address", "/readyz")
        assert status == 500


@pytest.mark.real_time
async def test_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="metrics_address"):
        await Manager(metrics_address="nonsense").run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_and_leaves_nothing(number: signal.Signals) -> None:
    async def main() -> None:
        site, manager = Site("eu", pod("good")), Manager()
        controller = controller_of(site)
        manager.add(controller)
        running = asyncio.create_task(manager.run_until_signalled())
        await eventually(lambda: controller.results())
        os.kill(os.getpid(), number)
        await running
        assert not site.cluster.is_running

    before = signal.getsignal(number)
    asyncio.run(leaving_nothing(main()))
    assert signal.getsignal(number) is before


@pytest.mark.real_time
async def test_error_of_a_controller_ends_it_as_if_it_ran_without_signals() -> None:
    manager = Manager(metrics_address="nonsense")
    with pytest.raises(ConfigError):
        await manager.run_until_signalled()


def readiness(checks: Checks) -> str:
    """Return the status of ``/readyz``."""
    statuses: list[str] = []
    environ: dict[str, object] = {"REQUEST_METHOD": "GET"}
    setup_testing_defaults(environ)
    environ["PATH_INFO"] = "/readyz"
    list(checks.app()(environ, lambda status, headers: statuses.append(status)))  # type: ignore[arg-type]
    return statuses[0]


async def test_readiness_falls_when_the_caches_of_a_cluster_are_no_longer_kept_up_to_date() -> None:
    site = Site("eu", pod("good"))
    controller = controller_of(site)
    checks = checks_of(lambda: [controller], list, None, Heartbeat())
    async with running(site, controller):
        await eventually(lambda: controller.is_ready("eu"))
        assert readiness(checks).startswith("200")
        site.server.freeze()
        await asyncio.sleep(600)
        assert readiness(checks).startswith("500")
        site.server.thaw()
        await eventually(lambda: readiness(checks).startswith("200"))
