"""Metrics: the customary names, with the recorded or computed values."""

import io

import pytest
from prometheus_client import generate_latest

from syncer.observe import logs
from syncer.observe.catalogue import CATALOGUE, LABELS, READ, RECORDED
from syncer.observe.metrics import Metrics


def shown(metrics: Metrics) -> dict[str, float]:
    """Return a scrape as ``{series: value}``, with the labels as Prometheus writes them."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def busy(metrics: Metrics, cluster: str) -> None:
    """Record each thing once that can be recorded of a virtual cluster."""
    pods, queue = metrics.syncer(cluster, "pods"), metrics.queue(cluster)
    pods.reconciled("error", 0.2)
    pods.wrote("host", "create")
    pods.no_op()
    pods.futile("virtual")
    pods.lag("up", 0.04)
    pods.failed("Forbidden")
    queue.added()
    queue.waited(0.5)
    queue.worked(0.25)
    queue.retried()
    metrics.client(cluster, "virtual", "api:6443").request("POST", 201, 0.004)
    metrics.watch_restarted(cluster, "virtual", "pods")


def test_syncer_is_shown_under_the_names_of_controller_runtime_and_ours() -> None:
    metrics = Metrics(version="1.2.3")
    pods = metrics.syncer("shop", "pods")
    pods.reconciled("success", 0.003)
    pods.reconciled("error", 0.2)
    pods.wrote("host", "create")
    pods.wrote("host", "create")
    pods.no_op()
    pods.futile("virtual")
    pods.lag("up", 0.04)
    pods.failed("Forbidden")
    found = shown(metrics)
    controller, syncer = 'cluster="shop",controller="pods"', 'syncer="pods"'
    assert found[f'controller_runtime_reconcile_total{{{controller},result="success"}}'] == 1
    assert found[f"controller_runtime_reconcile_errors_total{{{controller}}}"] == 1
    assert found[f'controller_runtime_reconcile_time_seconds_bucket{{{controller},le="0.005"}}'] == 1
    assert found[f"controller_runtime_reconcile_time_seconds_count{{{controller}}}"] == 2
    assert found[f"controller_runtime_reconcile_time_seconds_sum{{{controller}}}"] == pytest.approx(0.203)
    assert found[f'syncer_writes_total{{cluster="shop",side="host",{syncer},verb="create"}}'] == 2
    assert found[f'syncer_noop_total{{cluster="shop",{syncer}}}'] == 1
    assert found[f'syncer_futile_writes_total{{cluster="shop",side="virtual",{syncer}}}'] == 1
    assert found[f'syncer_futile_writes_total{{cluster="shop",side="host",{syncer}}}'] == 0
    assert found[f'syncer_lag_seconds_count{{cluster="shop",direction="up",{syncer}}}'] == 1
    assert found[f'syncer_errors_total{{cluster="shop",reason="Forbidden",{syncer}}}'] == 1


def test_queue_is_shown_under_the_names_of_client_go() -> None:
    metrics = Metrics(version="1")
    queue = metrics.queue("shop")
    queue.added()
    queue.waited(0.5)
    queue.worked(0.25)
    queue.retried()
    metrics.ask("workqueue_depth", lambda: {("shop", "syncer", "syncer"): 3})
    found, labels = shown(metrics), '{cluster="shop",controller="syncer",name="syncer"}'
    assert found["workqueue_depth" + labels] == 3
    assert found["workqueue_adds_total" + labels] == 1
    assert found["workqueue_retries_total" + labels] == 1
    assert found["workqueue_queue_duration_seconds_sum" + labels] == 0.5
    assert found["workqueue_work_duration_seconds_sum" + labels] == 0.25


@pytest.mark.parametrize(
    ("cluster", "side", "code", "shows"), [("shop", "virtual", 201, "201"), ("", "host", 0, "<error>")]
)
def test_request_is_shown_by_cluster_side_address_and_reply(cluster: str, side: str, code: int, shows: str) -> None:
    metrics = Metrics(version="1")
    metrics.client(cluster, side, "api:6443").request("POST", code, 0.004)
    found, where = shown(metrics), f'host="api:6443",{{}}side="{side}"'
    calls = f'cluster="{cluster}",code="{shows}",' + where.format('method="POST",')
    assert found[f"rest_client_requests_total{{{calls}}}"] == 1
    times = f'cluster="{cluster}",host="api:6443",side="{side}",verb="POST"'
    assert found[f"rest_client_request_duration_seconds_count{{{times}}}"] == 1


def test_recorded_metric_has_no_second_series_of_when_it_was_made() -> None:
    metrics = Metrics(version="1")
    busy(metrics, "shop")
    assert [series for series in shown(metrics) if "_created" in series] == []


def test_recorded_metrics_are_all_recorded() -> None:
    metrics = Metrics(version="1")
    busy(metrics, "shop")
    with_values = {family.name for family in metrics.registry.collect() if family.samples}
    assert {metric.name for metric in RECORDED} <= with_values


def test_cluster_that_leaves_takes_its_series_along_and_no_others() -> None:
    metrics = Metrics(version="1")
    for cluster in ("shop", "bank"):
        busy(metrics, cluster)
        busy(metrics, cluster)
    before = shown(metrics)
    old = metrics.syncer("shop", "pods"), metrics.queue("shop")
    metrics.drop("shop")
    metrics.drop("none of that name")
    left = shown(metrics)
    assert {series for series in before if 'cluster="shop"' in series}
    assert {series for series in left if 'cluster="shop"' in series} == set()
    bank = {series: value for series, value in before.items() if 'cluster="bank"' in series}
    assert bank.items() <= left.items()
    old[0].no_op()  # a request that was being worked on
    old[1].worked(1)
    assert {series for series in shown(metrics) if 'cluster="shop"' in series} == set()
    metrics.syncer("shop", "pods").no_op()
    assert shown(metrics)['syncer_noop_total{cluster="shop",syncer="pods"}'] == 1


def test_cluster_that_works_for_long_has_no_more_to_forget() -> None:
    metrics = Metrics(version="1")
    busy(metrics, "shop")
    series = len(shown(metrics))
    for _ in range(100):
        busy(metrics, "shop")
    assert len(shown(metrics)) == series


def test_metrics_of_a_name_are_always_the_same() -> None:
    metrics = Metrics(version="1")
    assert metrics.syncer("shop", "pods") is metrics.syncer("shop", "pods")
    assert metrics.syncer("shop", "pods") is not metrics.syncer("bank", "pods")
    assert metrics.queue("shop") is metrics.queue("shop")


def test_reading_is_called_at_each_scrape() -> None:
    metrics = Metrics(version="1")
    depth = 3
    metrics.ask("syncer_cache_objects", lambda: {("shop", "virtual", "pods"): depth, ("shop", "host", "pods"): 2})
    metrics.ask("syncer_fights", lambda: {("shop", "pods"): 5})
    found = shown(metrics)
    assert found['syncer_cache_objects{cluster="shop",resource="pods",side="virtual"}'] == 3
    assert found['syncer_cache_objects{cluster="shop",resource="pods",side="host"}'] == 2
    assert found['syncer_fights_total{cluster="shop",syncer="pods"}'] == 5
    depth = 0
    assert shown(metrics)['syncer_cache_objects{cluster="shop",resource="pods",side="virtual"}'] == 0


def test_reading_that_raises_costs_only_itself_and_is_logged_once() -> None:
    lines = io.StringIO()
    logs.configure("info", "json", stream=lines)
    try:
        metrics = Metrics(version="1")
        metrics.ask("syncer_objects", lambda: {("shop", "pods", "in_step"): 1 // 0})
        metrics.ask("syncer_parked", lambda: {("shop", "pods", "Refused"): 1})
        for _ in range(2):
            assert shown(metrics)['syncer_parked{cluster="shop",reason="Refused",syncer="pods"}'] == 1
        assert lines.getvalue().count("a metric could not be read") == 1
    finally:
        logs.configure()


@pytest.mark.parametrize("name", ["syncer_object", "syncer_noop"])
def test_reading_of_a_metric_that_is_not_to_be_read_is_refused(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        Metrics(version="1").ask(name, dict)


def test_process_and_build_are_shown() -> None:
    found = shown(Metrics(version="1.2.3"))
    assert found["process_resident_memory_bytes"] > 0
    assert any(series.startswith("syncer_build_info{") and 'version="1.2.3"' in series for series in found)


def test_catalogue_follows_prometheus_naming() -> None:
    assert len(CATALOGUE) == len(RECORDED) + len(READ)
    for metric in CATALOGUE.values():
        assert not metric.name.endswith("_total"), "the library adds it"
        assert metric.help.endswith("."), metric.name
        assert metric.kind != "histogram" or metric.name.endswith("_seconds")


def test_catalogue_explains_every_label_and_puts_the_cluster_first() -> None:
    assert {label for metric in CATALOGUE.values() for label in metric.labels} == set(LABELS)
    process = {"controller_runtime_max_concurrent_reconciles", "leader_election_master_status", "syncer_build_info"}
    process.add("syncer_secrets_refused")
    assert {metric.name for metric in CATALOGUE.values() if metric.labels[0] != "cluster"} == process
