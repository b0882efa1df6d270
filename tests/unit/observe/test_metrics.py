"""Metrics: the names that dashboards know, with the numbers that were recorded."""

import io

import pytest
from prometheus_client import generate_latest

from syncer.observe import logs
from syncer.observe.catalogue import CATALOGUE
from syncer.observe.metrics import BOUNDS, Histogram, Metrics, QueueState


def shown(metrics: Metrics) -> dict[str, float]:
    """A scrape as ``{series: value}``, with the labels as Prometheus writes them."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_what_a_syncer_did_is_shown_under_the_names_of_controller_runtime_and_ours() -> None:
    metrics = Metrics(version="1.2.3")
    pods = metrics.syncer("pods")
    pods.reconciled("success", 0.003)
    pods.reconciled("error", 0.2)
    pods.wrote("host", "apply")
    pods.wrote("host", "apply")
    pods.no_op()
    pods.futile("virtual")
    pods.lag("up", 0.04)
    pods.failed("Forbidden")
    found = shown(metrics)
    assert found['controller_runtime_reconcile_total{controller="pods",result="success"}'] == 1
    assert found['controller_runtime_reconcile_errors_total{controller="pods"}'] == 1
    assert found['controller_runtime_reconcile_time_seconds_bucket{controller="pods",le="0.005"}'] == 1
    assert found['controller_runtime_reconcile_time_seconds_count{controller="pods"}'] == 2
    assert found['controller_runtime_reconcile_time_seconds_sum{controller="pods"}'] == pytest.approx(0.203)
    assert found['syncer_writes_total{side="host",syncer="pods",verb="apply"}'] == 2
    assert found['syncer_noop_total{syncer="pods"}'] == 1
    assert found['syncer_futile_writes_total{side="virtual",syncer="pods"}'] == 1
    assert found['syncer_futile_writes_total{side="host",syncer="pods"}'] == 0
    assert found['syncer_lag_seconds_count{direction="up",syncer="pods"}'] == 1
    assert found['syncer_lag_seconds_count{direction="down",syncer="pods"}'] == 0
    assert found['syncer_errors_total{reason="Forbidden",syncer="pods"}'] == 1
    assert metrics.syncer("pods") is pods


def test_a_queue_shows_its_state_at_the_time_of_the_scrape() -> None:
    metrics = Metrics(version="1")
    state = QueueState(3, 1.5, 1.0)
    queue = metrics.queue("syncer", lambda: state)
    queue.added()
    queue.waited(0.5)
    queue.worked(0.25)
    queue.retried()
    labels = '{controller="syncer",name="syncer"}'
    assert shown(metrics)["workqueue_depth" + labels] == 3
    state = QueueState(0, 0.0, 0.0)
    found = shown(metrics)
    assert found["workqueue_depth" + labels] == 0
    assert found["workqueue_adds_total" + labels] == 1
    assert found["workqueue_retries_total" + labels] == 1
    assert found["workqueue_queue_duration_seconds_sum" + labels] == 0.5
    assert found["workqueue_work_duration_seconds_sum" + labels] == 0.25


def test_requests_and_watches_are_counted_by_cluster() -> None:
    metrics = Metrics(version="1")
    metrics.request("host", "POST", 201, 0.004)
    metrics.request("host", "POST", "<error>", 30.0)
    metrics.watch_restarted("virtual", "pods")
    found = shown(metrics)
    assert found['rest_client_requests_total{code="201",host="host",method="POST"}'] == 1
    assert found['rest_client_requests_total{code="<error>",host="host",method="POST"}'] == 1
    assert found['rest_client_request_duration_seconds_count{host="host",verb="POST"}'] == 2
    assert found['syncer_watch_restarts_total{resource="pods",side="virtual"}'] == 1


def test_readings_of_one_metric_are_shown_together() -> None:
    metrics = Metrics(version="1")
    metrics.ask("syncer_cache_objects", lambda: {("virtual", "pods"): 3})
    metrics.ask("syncer_cache_objects", lambda: {("host", "pods"): 2})
    metrics.ask("leader_election_master_status", lambda: {("vsyncer",): True})
    found = shown(metrics)
    assert found['syncer_cache_objects{resource="pods",side="virtual"}'] == 3
    assert found['syncer_cache_objects{resource="pods",side="host"}'] == 2
    assert found['leader_election_master_status{name="vsyncer"}'] == 1


def test_a_reading_that_raises_costs_only_itself_and_is_logged_once() -> None:
    lines = io.StringIO()
    logs.configure("info", "json", stream=lines)
    try:
        metrics = Metrics(version="1")
        metrics.ask("syncer_objects", lambda: {("pods", "in_step"): 1 // 0})
        metrics.queue("broken", lambda: QueueState(1 // 0, 0, 0))
        metrics.syncer("pods").no_op()
        assert shown(metrics)['syncer_noop_total{syncer="pods"}'] == 1
        shown(metrics)
        assert lines.getvalue().count("a metric could not be read") == 2
    finally:
        logs.configure()


def test_a_name_that_is_not_in_the_catalogue_is_refused_where_it_is_asked_for() -> None:
    with pytest.raises(KeyError, match="syncer_object"):
        Metrics(version="1").ask("syncer_object", dict)


def test_the_process_and_the_build_are_shown() -> None:
    found = shown(Metrics(version="1.2.3"))
    assert found["process_resident_memory_bytes"] > 0
    assert any(series.startswith("syncer_build_info{") and 'version="1.2.3"' in series for series in found)


def test_a_value_on_a_bound_belongs_below_it_and_a_huge_one_in_the_last_bucket() -> None:
    histogram = Histogram()
    histogram.observe(BOUNDS[0])
    histogram.observe(BOUNDS[-1] * 2)
    buckets = histogram.buckets()
    assert buckets[0] == ("0.0001", 1)
    assert buckets[-2] == ("300.0", 1)
    assert buckets[-1] == ("+Inf", 2)


def test_the_catalogue_follows_prometheus_naming() -> None:
    for metric in CATALOGUE.values():
        assert not metric.name.endswith("_total"), "the library adds it"
        assert metric.help.endswith("."), metric.name
        assert metric.kind != "histogram" or metric.name.endswith("_seconds")
