"""Metrics, health pages and the control socket of a process with two virtual clusters, asked over their sockets."""

import asyncio
import math
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import ALL, Daemon, Tenant, built_in, configured, namespace, serving

from hack.ports import free_port
from hack.side_tasks import helped_by
from syncer.api import Key, Obj, ObjectRef, Side, SyncRequest, Unreachable
from syncer.cache.reflector import ReflectorState
from syncer.cli.daemon import Unanswered, ask
from syncer.config import Loaded, SyncerConfig
from syncer.daemon.pages import endpoints
from syncer.daemon.pages.endpoints import STUCK_WATCH_SECONDS
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.plan import Frozen
from syncer.engine.reconcile.policies.breaker import StoppedDeletions
from syncer.engine.stores.informers import store_of
from syncer.observe.catalogue import CATALOGUE, READ
from syncer.observe.health import DEADLINE, Heartbeat
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing import ApiServer
from syncer.testing.objects import configmap

MAPS = built_in("configmaps")
CLUSTERS = ("bank", "shop")

Scene = Callable[[Daemon, SyncerConfig], Coroutine[Any, Any, None]]


#: Seconds, after which a test gives up.
PATIENCE = 120.0


def page(address: str, path: str) -> tuple[int, str]:
    """Return the status and the text of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def samples(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the name and the labels of each series of a scrape."""
    rows = (row.rpartition(" ")[0] for row in text.splitlines() if row[0] != "#")
    return [(row.partition("{")[0], dict(re.findall(r'(\w+)="([^"]*)"', row))) for row in rows]


def shown(
    folder: Path,
    scene: Scene,
    *,
    clusters: Sequence[str] = CLUSTERS,
    taken: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Play a scene in real time with a process that serves these clusters, each with a ConfigMap ``x``.

    ``taken``: the place of its copy is another owner's. ``clock`` is the heartbeat's.
    """
    host, tenants = ApiServer(seed="host"), []
    for name in clusters:
        home = f"vc-{name}"
        host.put(namespace(home))
        tenants.append(Tenant(ApiServer(seed=name), name, home, ALL))
        tenants[-1].server.put(namespace("shop"))
        tenants[-1].server.put(configmap("x"))
        if taken:
            host.put(configmap(f"x-x-shop-x-{name}", namespace=home))
    given = {
        "metrics": {"address": f"127.0.0.1:{free_port()}"},
        "health": {"address": f"127.0.0.1:{free_port()}"},
        "control": {"socket": str(folder / "s")},
    }
    plain = configured(tenants[0], MAPS)
    config = type(plain).model_validate(plain.model_dump(by_alias=True, exclude_unset=True) | given)

    async def scenario() -> None:
        heartbeat = Heartbeat(clock=clock)
        async with (
            serving(host, tenants, MAPS) as daemon,
            endpoints.serving(daemon.process, config, heartbeat, None),
            helped_by(heartbeat.keep()),
        ):
            await daemon.settled(patience=0.0)
            await scene(daemon, config)

    asyncio.run(scenario())


def test_livez_answers_and_fails_while_the_event_loop_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.health.BEAT", 0.05)
    now = 0.0

    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        nonlocal now
        with ThreadPoolExecutor() as kubelet:
            assert await asyncio.to_thread(page, config.health.address, "/livez") == (200, "ok")
            now += DEADLINE + 1
            for name in ("/livez", "/healthz"):
                status, text = kubelet.submit(page, config.health.address, name).result()  # meanwhile, the loop hangs
                assert status == 500
                assert "[-]loop failed: the event loop has given no sign of life for 61 s" in text
            assert kubelet.submit(page, config.metrics.address, "/metrics").result()[0] == 200
            async with asyncio.timeout(PATIENCE):
                while await asyncio.to_thread(page, config.health.address, "/livez") != (200, "ok"):
                    pass

    shown(tmp_path, scene, clock=lambda: now)


def test_livez_fails_while_a_watch_of_an_api_server_that_answers_hangs(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        process = daemon.process
        await daemon.settled()
        assert await asyncio.to_thread(page, config.health.address, "/livez") == (200, "ok")
        for reflector in process.pairs["shop"].reflectors.values():
            if store_of(reflector).side is Side.VIRTUAL:
                reflector._heard -= STUCK_WATCH_SECONDS + 1
        status, text = await asyncio.to_thread(page, config.health.address, "/livez")
        assert status == 500
        assert re.search(
            r"^\[-\]watches failed: a watch has brought nothing for 9\d\d s, more than 900 s$", text, re.MULTILINE
        )
        process.served["shop"].connection._error = Unreachable("no answer")
        assert await asyncio.to_thread(page, config.health.address, "/livez") == (200, "ok")
        process.served["shop"].connection._error = None

    shown(tmp_path, scene)


def test_metric_of_workers_counts_the_busy_ones_of_each_syncer(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        async def busy() -> dict[tuple[str, str], float]:
            text = (await asyncio.to_thread(page, config.metrics.address, "/metrics"))[1]
            lines = [line for line in text.splitlines() if line.startswith("controller_runtime_active_workers{")]
            found = {}
            for line, (_, labels) in zip(lines, samples("\n".join(lines)), strict=True):
                found[labels["cluster"], labels["controller"]] = float(line.rpartition(" ")[2])
            return found

        await daemon.settled()
        idle = {(cluster, "configmaps"): 0.0 for cluster in CLUSTERS}
        assert await busy() == idle
        requests = {SyncRequest("shop", "configmaps", Key("shop", name)): 0.0 for name in "ab"}
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(daemon.process.queue, "running", lambda: requests)
            assert await busy() == idle | {("shop", "configmaps"): 2.0}

    shown(tmp_path, scene)


def test_metrics_name_the_virtual_cluster_or_are_about_the_process(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        text = (await asyncio.to_thread(page, config.metrics.address, "/metrics"))[1]
        ours = re.compile("workqueue_|controller_runtime_|rest_client_|syncer_").match
        series = [(name, labels) for name, labels in samples(text) if ours(name)]
        assert {labels.get("cluster") for _, labels in series} == {*CLUSTERS, "", None}
        bare = {name for name, labels in series if "cluster" not in labels}
        assert bare == {"controller_runtime_max_concurrent_reconciles", "syncer_build_info"}
        assert {name for name, labels in series if labels.get("cluster") == ""} == {"syncer_cluster_up"}
        of = {cluster: {name for name, labels in series if labels.get("cluster") == cluster} for cluster in CLUSTERS}
        assert of["bank"] == of["shop"]
        assert {"workqueue_depth", "syncer_objects", "syncer_cache_objects", "syncer_writes_total"} <= of["shop"]

    shown(tmp_path, scene)


def test_metric_of_watches_is_0_while_one_is_broken(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        async def watched() -> dict[tuple[str, str, str], float]:
            text = (await asyncio.to_thread(page, config.metrics.address, "/metrics"))[1]
            lines = [line for line in text.splitlines() if line.startswith("syncer_watch_up{")]
            assert lines
            found = {}
            for line, (_, labels) in zip(lines, samples("\n".join(lines)), strict=True):
                found[labels["cluster"], labels["side"], labels["resource"]] = float(line.rpartition(" ")[2])
            return found

        await daemon.settled()
        assert set((await watched()).values()) == {1.0}
        for source, reflector in daemon.process.pairs["shop"].reflectors.items():
            if source == (Side.HOST, CONFIG_MAPS):
                monkeypatch.setattr(reflector, "state", ReflectorState.LISTING)
        broken = {source for source, value in (await watched()).items() if not value}
        assert broken == {("shop", "host", "configmaps")}

    with pytest.MonkeyPatch.context() as monkeypatch:
        shown(tmp_path, scene)


def test_metrics_of_the_process_are_the_same_for_a_fleet(tmp_path: Path) -> None:
    bare: list[list[str]] = []

    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        text = (await asyncio.to_thread(page, config.metrics.address, "/metrics"))[1]
        bare.append([name for name, labels in samples(text) if not labels.get("cluster")])

    for number, clusters in enumerate((CLUSTERS[:1], [f"tenant-{number}" for number in range(10)])):
        (tmp_path / str(number)).mkdir()
        shown(tmp_path / str(number), scene, clusters=clusters)
    assert bare[0] == bare[1]


def test_metrics_that_are_to_be_read_are_all_read(tmp_path: Path) -> None:
    asked: list[str] = []

    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        class Metrics:
            def ask(self, name: str, read: Callable[[], Any]) -> None:
                asked.append(name)
                assert {len(labels) for labels in read()} <= {len(CATALOGUE[name].labels)}

        class Leader:
            is_leader = True

        monkeypatch.setattr(daemon.process, "metrics", Metrics())
        endpoints.measure(daemon.process, config, Leader())  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as monkeypatch:
        shown(tmp_path, scene)
    assert sorted([*asked, "syncer_build_info"]) == sorted(metric.name for metric in READ)


def test_readyz_names_the_virtual_cluster_in_each_row(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        daemon.process.served["shop"].own_controllers.broken["configmaps"] = "users bob cannot list at 10.0.0.1"
        status, text = await asyncio.to_thread(page, config.health.address, "/readyz?verbose")
        assert status == 200
        assert text.splitlines() == [
            "[+]ping ok",
            "[+]host ok",
            *(f"[+]virtual/{cluster} ok" for cluster in CLUSTERS),
            *(f"[+]caches/{cluster} ok" for cluster in CLUSTERS),
            "[!]shop/configmaps degraded: it could not be started",
            "readyz check passed",
        ]

    shown(tmp_path, scene)


def test_readyz_shows_pauses_and_stays_ready(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        async def paused(cluster: str, key: str, value: str) -> list[str]:
            """Annotate a virtual ConfigMap, and return the lines about pauses once they have changed."""
            patch = {"metadata": {"annotations": {"vsyncer.dev/paused": value}}}
            before = await lines()
            await daemon.process.pairs[cluster].virtual.patch(CONFIG_MAPS, Key.parse(key), patch)
            async with asyncio.timeout(PATIENCE):
                while (found := await lines()) == before:
                    pass
            return found

        async def lines() -> list[str]:
            status, text = await asyncio.to_thread(page, config.health.address, "/readyz?verbose")
            assert status == 200
            return [line for line in text.splitlines() if " paused: " in line]

        assert await lines() == []
        await daemon.process.pairs["shop"].virtual.create(CONFIG_MAPS, configmap("vsyncer", namespace="kube-system"))
        note = "the virtual ConfigMap kube-system/vsyncer"
        one = "[!]bank/configmaps paused: 1 of its objects; see which: syncer list --state paused"
        assert await paused("bank", "shop/x", "true") == [one]
        some = f"[!]shop/configmaps paused: take configmaps out of the annotation vsyncer.dev/paused of {note}"
        assert await paused("shop", "kube-system/vsyncer", "configmaps,nothing") == [some, one]
        whole = f"[!]shop paused: remove the annotation vsyncer.dev/paused from {note}"
        assert await paused("shop", "kube-system/vsyncer", "true") == [whole, one]

    shown(tmp_path, scene)


def test_readyz_has_the_class_of_an_error_and_the_control_socket_its_message(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        daemon.process.host_connection._error = Unreachable("no answer from 10.0.0.1:6443 as bob of /etc/kubeconfig")
        status, text = await asyncio.to_thread(page, config.health.address, "/readyz")
        rows = await asyncio.to_thread(ask, Loaded(config), "GET", "/status", {"cluster": ""})
        daemon.process.host_connection._error = None
        assert status == 500
        assert "[-]host failed: Unreachable" in text.splitlines()
        assert {row["reason"] for row in rows} == {"no answer from 10.0.0.1:6443 as bob of /etc/kubeconfig"}

    shown(tmp_path, scene)


def test_control_answers_name_the_virtual_cluster_in_each_row(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        async def answers(method: str, path: str) -> Any:
            return await asyncio.to_thread(ask, Loaded(config), method, path, {"cluster": ""})

        for method, path in (("GET", "/parked"), ("POST", "/retry")):
            rows = await answers(method, path)
            assert sorted((row["cluster"], row["key"]) for row in rows) == [(each, "shop/x") for each in CLUSTERS]
        await scanned(daemon)
        reports = await answers("GET", "/patrol")
        assert clusters(reports) == clusters(kind for report in reports for kind in report["kinds"]) == [*CLUSTERS]
        assert await answers("POST", "/thaw") == []
        with pytest.raises(Unanswered, match="a confirmation is for one virtual cluster: name it"):
            await answers("POST", "/confirm")

    shown(tmp_path, scene, taken=True)


def test_control_answers_are_about_the_virtual_cluster_that_is_asked_about(tmp_path: Path) -> None:
    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        async def answers(method: str, path: str, cluster: str) -> Any:
            return await asyncio.to_thread(ask, Loaded(config), method, path, {"cluster": cluster})

        await scanned(daemon)
        request = SyncRequest("bank", "configmaps", Key("shop", "x"))
        for pair in daemon.process.pairs.values():
            stopped = StoppedDeletions(
                "configmaps", Side.HOST, 2, {(request.key, "uid"): request._replace(cluster=pair.name)}
            )
            pair.policies.breaker.stopped["configmaps", Side.HOST] = stopped
            freeze(pair, request._replace(cluster=pair.name))
        asked = (
            *(("GET", "/status"), ("GET", "/parked"), ("GET", "/patrol")),
            *(("POST", "/retry"), ("POST", "/confirm"), ("POST", "/thaw")),
        )
        for method, path in asked:
            assert clusters(await answers(method, path, "bank")) == ["bank"], path
            with pytest.raises(Unanswered, match=r"no virtual cluster 'bnak'; it serves bank, shop"):
                await answers(method, path, "bnak")
        assert [bool(pair.policies.breaker.stopped) for pair in daemon.process.pairs.values()] == [False, True]
        assert [len(pair.policies.contention.frozen()) for pair in daemon.process.pairs.values()] == [0, 1]

    shown(tmp_path, scene, taken=True)


def freeze(pair: ClusterPair, request: SyncRequest) -> None:
    """Let a field count as one that another manager keeps setting back."""
    contention = pair.policies.contention
    ref = ObjectRef(Side.HOST, CONFIG_MAPS, request.key)
    field = Frozen(ref, ("data", "color"), request, ours=1, until=math.inf, ends="")
    contention._frozen[ref] = {field.path: field}


async def scanned(daemon: Daemon) -> None:
    """Let the patroller of each virtual cluster have scanned ConfigMaps."""
    for pair, patroller in ((each.pair, each.patroller) for each in daemon.process.served.values()):
        assert patroller is not None
        await patroller.scan(pair.controllers["configmaps"], fresh=False)


def clusters(rows: Iterable[Obj]) -> list[str]:
    """Return the virtual clusters that rows are about."""
    return [row["cluster"] for row in rows]
