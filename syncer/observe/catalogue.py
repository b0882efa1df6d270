"""Every metric of the daemon: its kind, its name, its labels, and what it says.

The names and meanings of ``workqueue_*``, ``rest_client_*`` and ``leader_election_*`` are client-go's and those of
``controller_runtime_*`` are controller-runtime's, so that existing dashboards and alerts work unchanged. Label values
come from the configuration only, never from objects.
"""

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """What a scrape shows under one name. The ``_total`` of a counter's name is not part of ``name``."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    labels: tuple[str, ...]
    help: str


_QUEUE = ("name", "controller")
_CONTROLLER = ("controller",)

_ALL = (
    Metric("gauge", "workqueue_depth", _QUEUE, "Requests that wait."),
    Metric("counter", "workqueue_adds", _QUEUE, "Requests put into the queue."),
    Metric("histogram", "workqueue_queue_duration_seconds", _QUEUE, "How long a request waits before it is worked on."),
    Metric("histogram", "workqueue_work_duration_seconds", _QUEUE, "How long working on a request takes."),
    Metric("gauge", "workqueue_unfinished_work_seconds", _QUEUE, "Seconds spent so far on what is not finished."),
    Metric("gauge", "workqueue_longest_running_processor_seconds", _QUEUE, "The age of the oldest unfinished work."),
    Metric("counter", "workqueue_retries", _QUEUE, "Requests put back because they failed."),
    Metric("counter", "controller_runtime_reconcile", ("controller", "result"), "Requests worked on, by result."),
    Metric("counter", "controller_runtime_reconcile_errors", _CONTROLLER, "Requests that ended in an error."),
    Metric("histogram", "controller_runtime_reconcile_time_seconds", _CONTROLLER, "Time from decide to carried out."),
    Metric("gauge", "controller_runtime_active_workers", _CONTROLLER, "Workers busy with this syncer."),
    Metric("gauge", "controller_runtime_max_concurrent_reconciles", _CONTROLLER, "Workers that it may keep busy."),
    Metric("counter", "rest_client_requests", ("code", "method", "host"), "Requests to an API server, by reply."),
    Metric("histogram", "rest_client_request_duration_seconds", ("verb", "host"), "Time until a reply was there."),
    Metric("gauge", "leader_election_master_status", ("name",), "1 while this process leads, else 0."),
    Metric("gauge", "syncer_objects", ("syncer", "state"), "Objects by state: in_step, pending, failing, skipped."),
    Metric("gauge", "syncer_parked", ("syncer", "reason"), "Requests that wait for a change of their object."),
    Metric("histogram", "syncer_lag_seconds", ("syncer", "direction"), "Change seen to change written, by direction."),
    Metric("counter", "syncer_writes", ("syncer", "side", "verb"), "Writes to an API server."),
    Metric("counter", "syncer_noop", ("syncer",), "Decisions that needed no write."),
    Metric("counter", "syncer_futile_writes", ("syncer", "side"), "Writes that changed nothing; it should stay 0."),
    Metric("counter", "syncer_errors", ("syncer", "reason"), "Errors by class."),
    Metric("counter", "syncer_drift", ("syncer", "class", "outcome"), "Drift that scans of the patroller have found."),
    Metric("gauge", "syncer_drift_objects", ("syncer", "class"), "Drift that the latest scan has left."),
    Metric("gauge", "syncer_patrol_seconds", ("syncer",), "How long the latest scan took, with its repairs."),
    Metric("counter", "syncer_patrol_pairs", ("syncer", "result"), "Pairs verified, or skipped as unchanged."),
    Metric("counter", "syncer_store_corrections", ("side", "resource"), "Objects that the cache had wrong."),
    Metric("gauge", "syncer_deletions_held", ("syncer", "side"), "Deletions that wait for `syncer patrol --confirm`."),
    Metric("counter", "syncer_fights", ("syncer",), "Times that a field was frozen: somebody else sets it back."),
    Metric("gauge", "syncer_frozen_fields", ("syncer",), "Fields left alone because somebody else sets them back."),
    Metric("gauge", "syncer_cluster_up", ("side",), "1 while the cluster's API server answers, else 0."),
    Metric("counter", "syncer_watch_restarts", ("side", "resource"), "Watches begun anew after the first."),
    Metric("gauge", "syncer_cache_objects", ("side", "resource"), "Objects in the cache."),
    Metric("gauge", "syncer_build_info", ("version", "python"), "Always 1; the labels say what is running."),
)

#: By name.
CATALOGUE = {metric.name: metric for metric in _ALL}
