"""The dashboard of the charts on a real Prometheus that scrapes a real daemon for a minute: no panel is empty."""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from api import Api, Loop, eventually
from scene import Scene
from scraping import INTERVAL, Dashboard, Prometheus, Target, prometheus, served

from hack.bench.daemon import Process
from hack.kubelet import Kubelet
from hack.realnode import builds
from kube_envtest import ControlPlane, start_all
from syncer.api import Key, Side
from syncer.testing.objects import configmap, secret, service, serviceaccount

pytestmark = pytest.mark.controlplane

FILES = Path(__file__).parents[2] / "charts" / "library" / "files"
PAUSED = "vsyncer.dev/paused"
#: The pod that the daemon would be.
POD = "syncer-0"
#: The only series of a panel that isn't the daemon's: what kube-state-metrics says of its pod.
LIMIT = 'kube_pod_container_resource_limits{{namespace="{}",pod="{}",container="syncer",resource="memory"}} 268435456\n'
#: The Services of a tenant, all of which get lost.
SERVICES = ("web", "lost-0", "lost-1")

#: Scrapes in a minute.
MINUTE = 60 // INTERVAL
SCRAPES = 'sum_over_time(up{job="syncer"}[1h])'
FIRING = 'ALERTS{alertstate="firing"}'


@pytest.fixture
def scene(loop: Loop, tmp_path: Path) -> Iterator[Scene]:
    """A virtual cluster on planes of its own, as other tests must not meet its trouble; its host has a kubelet."""
    if not builds.is_built("prometheus") and os.environ.get("CI") != "true":
        pytest.skip("prometheus is not built: python -m hack.realnode.builds")
    planes = ControlPlane("dashboard-virtual", service_range="10.97.0.0/16"), ControlPlane("dashboard-host")
    start_all(*planes)
    virtual, host = (Api(loop, plane, side) for plane, side in zip(planes, (Side.VIRTUAL, Side.HOST), strict=True))
    made = Scene(virtual, host, tmp_path)
    playing = loop.start(Kubelet(host.cluster, made.host_namespace).run())
    yield made
    made.close()
    loop.end(playing)
    for api in made.sides:
        api.close()
        api.plane.stop()


@pytest.fixture
def daemon(scene: Scene) -> Process:
    """A daemon that looks for drift all the time, leaves that of Secrets, and soon holds deletions and ends fights."""
    to_host = {"configMaps": {"all": True}, "secrets": {"all": True, "drift": {"field": "report"}}}
    patrol = {"interval": "1s", "fresh": "1s", "breaker": {"percent": 50, "count": 1}}
    election = {"enabled": True}
    sync = {"toHost": to_host}
    return scene.daemon(scene.config(leaderElection=election, patrol=patrol, fights={"times": 2}, sync=sync))


@pytest.fixture
def source(scene: Scene, daemon: Process, tmp_path: Path) -> Iterator[Prometheus]:
    """The host's Prometheus, which scrapes the daemon and a page that stands in for kube-state-metrics."""
    folder = tmp_path / "prometheus"
    folder.mkdir()
    labels = {"namespace": scene.host_namespace, "pod": POD}
    with served(LIMIT.format(scene.host_namespace, POD)) as state_metrics:
        targets = (
            Target("syncer", f"{daemon.address}:{daemon.port}", labels),
            Target("kube-state-metrics", state_metrics, {}, honor_labels=True),
        )
        with prometheus(folder, targets, FILES / "alerts.yaml") as running:
            yield running


def test_panels_of_the_dashboard_each_have_a_series(scene: Scene, daemon: Process, source: Prometheus) -> None:
    began, dashboard = time.time(), Dashboard.read(FILES / "dashboard.json")
    shop = begun(scene, daemon)
    have_trouble(scene, daemon, shop)
    for number in range(1, MINUTE + 1):
        change(scene, Key(shop, "settings"), f"{number}")
        eventually(partial(is_scraped, source, number), f"the daemon was scraped {number} times")
    eventually(lambda: source.numbers_now(FIRING), "an alert fires")

    choices = dashboard.choices(source)
    assert choices == {"namespace": [scene.host_namespace], "job": ["syncer"], "cluster": [scene.name]}
    for cluster in (scene.name, dashboard.all_of("cluster")):
        chosen = {name: values[0] for name, values in choices.items()} | {"cluster": cluster}
        queries = [query.filled(chosen) for query in dashboard.queries()]
        assert len(queries) > 20
        empty = [str(query) for query in queries if not query.is_answered(source, since=began)]
        assert not empty, "panels without a series:\n" + "\n".join(empty)


def begun(scene: Scene, daemon: Process) -> str:
    """Start the daemon for a tenant with a Pod, who has lost all Services, and a ConfigMap whose copy is paused, since
    they were copied; return the namespace.
    """
    shop = scene.shop(settings="settings", login="login")
    kept = Key(shop, "kept")
    scene.virtual.create(serviceaccount("default", namespace=shop))
    for name in SERVICES[1:]:
        scene.virtual.create(service(name, namespace=shop))
    for name in ("kept", "fought"):
        scene.virtual.create(configmap(name, namespace=shop))
    done = daemon.run("run", "--once")
    assert done.returncode == 0, done.stdout + done.stderr

    scene.host.patch("ConfigMap", scene.host_key("ConfigMap", kept), {"metadata": {"annotations": {PAUSED: "true"}}})
    scene.virtual.delete("ConfigMap", kept)
    for name in SERVICES:
        scene.virtual.delete("Service", Key(shop, name))
    daemon.start()
    scene.ready(Key(shop, "web"))
    return shop


def have_trouble(scene: Scene, daemon: Process, shop: str) -> None:
    """Let a copy's name be taken, change a copy whose drift is left and one whose drift isn't until the daemon gives
    in, and restart the host's API server.
    """
    taken, login, fought = (
        scene.host_key(kind, Key(shop, name))
        for kind, name in (("ConfigMap", "taken"), ("Secret", "login"), ("ConfigMap", "fought"))
    )
    scene.host.create(configmap(taken.name, namespace=taken.namespace))
    scene.virtual.create(configmap("taken", namespace=shop))
    scene.host.patch("Secret", login, {"data": secret("any", {"password": "stolen"})["data"]})

    def is_frozen() -> bool:
        scene.host.patch("ConfigMap", fought, {"data": {"color": "red"}})
        return daemon.requests("syncer_frozen_fields") > 0

    eventually(is_frozen, "the daemon leaves the field alone")
    scene.host.plane.restart_apiserver()


def change(scene: Scene, key: Key, value: str) -> None:
    """Change a virtual ConfigMap, and wait for its copy."""
    scene.virtual.patch("ConfigMap", key, {"data": {"changed": value}})
    scene.copied("ConfigMap", key, "data.changed", value)


def is_scraped(source: Prometheus, times: int) -> bool:
    return sum(source.numbers_now(SCRAPES)) >= times
