"""Every metric of the daemon: its kind, its name, its labels, and its meaning.

The names and meanings of ``workqueue_*``, ``rest_client_*`` and ``leader_election_*`` are
client-go's and those of ``controller_runtime_*`` are controller-runtime's, so that existing
dashboards and alerts work unchanged. A metric without the label ``cluster`` is about the process.
Label values come from the configuration and the code, never from an object.
"""

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """A metric as a scrape shows it; a counter's name is without its ``_total``."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    labels: tuple[str, ...]
    help: str


#: The meaning of each label.
LABELS = {
    "cluster": "The virtual cluster's name. Empty: the connection to the host, which all share.",
    "syncer": "The syncer's name, such as `configmaps`.",
    "controller": "The syncer's name; `syncer` for `workqueue_*` and the shared workers.",
    "name": "The queue, `syncer`; of `leader_election_*` the Lease.",
    "side": "`virtual` or `host`.",
    "resource": "A plural, with its group where it has one.",
    "direction": "`down`: virtual to host. `up`: host to virtual.",
    "verb": "The operation, such as `create`; of `rest_client_*` the same as `method`.",
    "method": "The HTTP method; `WATCH` for a watch.",
    "code": "The HTTP status; `<error>` where no answer came.",
    "host": "The API server's address.",
    "result": "`success`, `error` or `requeue_after`; of the patroller `verified` or `skipped`.",
    "reason": "The class of the error; of `syncer_reasons` the code, as `syncer list` shows it.",
    "namespace": "A host namespace with Secrets of virtual clusters.",
    "state": "`in_step`, `pending`, `paused`, `frozen`, `failing`, `parked` or `skipped`.",
    "class": "The class of drift, such as `orphan`.",
    "outcome": "The result: `repaired`, `failed`, `reported`, `ignored` or `held`.",
    "version": "The daemon's version.",
    "python": "The interpreter's version.",
}

_QUEUE = ("cluster", "name", "controller")
_CONTROLLER = ("cluster", "controller")
_SYNCER = ("cluster", "syncer")
_STORE = ("cluster", "side", "resource")
_CLIENT = ("cluster", "side", "host")

#: Metrics that are updated as things happen.
RECORDED = (
    Metric("counter", "workqueue_adds", _QUEUE, "Requests put into the queue."),
    Metric(
        "histogram",
        "workqueue_queue_duration_seconds",
        _QUEUE,
        "How long a request waits before it is worked on.",
    ),
    Metric(
        "histogram",
        "workqueue_work_duration_seconds",
        _QUEUE,
        "How long working on a request takes.",
    ),
    Metric("counter", "workqueue_retries", _QUEUE, "Requests put back because they failed."),
    Metric(
        "counter",
        "controller_runtime_reconcile",
        (*_CONTROLLER, "result"),
        "Requests worked on, by result.",
    ),
    Metric(
        "counter",
        "controller_runtime_reconcile_errors",
        _CONTROLLER,
        "Requests that ended in an error.",
    ),
    Metric(
        "histogram",
        "controller_runtime_reconcile_time_seconds",
        _CONTROLLER,
        "Time from decide to carried out.",
    ),
    Metric(
        "counter",
        "rest_client_requests",
        (*_CLIENT, "code", "method"),
        "Requests to an API server, by reply.",
    ),
    Metric(
        "histogram",
        "rest_client_request_duration_seconds",
        (*_CLIENT, "verb"),
        "Time until a reply was there.",
    ),
    Metric(
        "histogram",
        "syncer_lag_seconds",
        (*_SYNCER, "direction"),
        "From an observed change to its write, by direction.",
    ),
    Metric("counter", "syncer_writes", (*_SYNCER, "side", "verb"), "Writes to an API server."),
    Metric("counter", "syncer_noop", _SYNCER, "Decisions that needed no write."),
    Metric(
        "counter",
        "syncer_futile_writes",
        (*_SYNCER, "side"),
        "Writes that changed nothing; it should stay 0, but where an API server rewrites values.",
    ),
    Metric("counter", "syncer_errors", (*_SYNCER, "reason"), "Errors by class."),
    Metric(
        "counter",
        "syncer_watch_restarts",
        _STORE,
        "Watches that were restarted after the first one.",
    ),
)

#: Metrics whose value is computed at each scrape.
READ = (
    Metric("gauge", "workqueue_depth", _QUEUE, "Requests that wait."),
    Metric(
        "gauge",
        "workqueue_unfinished_work_seconds",
        _QUEUE,
        "Seconds spent so far on unfinished work.",
    ),
    Metric(
        "gauge",
        "workqueue_longest_running_processor_seconds",
        _QUEUE,
        "The age of the oldest unfinished work.",
    ),
    Metric(
        "gauge",
        "controller_runtime_active_workers",
        _CONTROLLER,
        "Workers busy with the syncer.",
    ),
    Metric(
        "gauge",
        "controller_runtime_max_concurrent_reconciles",
        ("controller",),
        "Workers that there are.",
    ),
    Metric(
        "gauge",
        "leader_election_master_status",
        ("name",),
        "1 while this process leads, else 0.",
    ),
    Metric("gauge", "syncer_objects", (*_SYNCER, "state"), "Objects by state."),
    Metric(
        "gauge",
        "syncer_reasons",
        (*_SYNCER, "state", "reason"),
        "Objects that are not in step, by the reason.",
    ),
    Metric(
        "gauge",
        "syncer_parked",
        (*_SYNCER, "reason"),
        "Requests that wait for a change of their object.",
    ),
    Metric(
        "gauge",
        "syncer_mappings",
        _SYNCER,
        "Objects that have their counterpart on the other side.",
    ),
    Metric(
        "gauge",
        "syncer_collisions",
        _SYNCER,
        "Requests that wait because another object has the name.",
    ),
    Metric(
        "counter",
        "syncer_drift",
        (*_SYNCER, "class", "outcome"),
        "Drift that scans of the patroller have found.",
    ),
    Metric(
        "gauge",
        "syncer_drift_objects",
        (*_SYNCER, "class"),
        "Drift that the latest scan has left.",
    ),
    Metric(
        "gauge",
        "syncer_patrol_seconds",
        _SYNCER,
        "How long the latest scan took, with its repairs.",
    ),
    Metric(
        "gauge",
        "syncer_patrol_last_success_timestamp_seconds",
        _SYNCER,
        "When the latest complete scan ended, in seconds since 1970; 0 before.",
    ),
    Metric(
        "counter",
        "syncer_patrol_pairs",
        (*_SYNCER, "result"),
        "Pairs verified, or skipped as unchanged.",
    ),
    Metric("counter", "syncer_store_corrections", _STORE, "Objects that the cache had wrong."),
    Metric(
        "gauge",
        "syncer_deletions_held",
        (*_SYNCER, "side"),
        "Deletions that wait for `syncer patrol --confirm`.",
    ),
    Metric(
        "counter",
        "syncer_fights",
        _SYNCER,
        "Times that a field was frozen: another writer sets it back.",
    ),
    Metric(
        "gauge",
        "syncer_frozen_fields",
        _SYNCER,
        "Fields left alone: another writer sets them back.",
    ),
    Metric(
        "gauge",
        "syncer_paused_deletions",
        _SYNCER,
        "Copies of deleted objects that a pause on the host keeps.",
    ),
    Metric(
        "gauge",
        "syncer_quarantined_objects",
        _STORE,
        "Objects that can't be read, or that there is no room for, and so aren't synced.",
    ),
    Metric(
        "gauge",
        "syncer_cluster_up",
        ("cluster", "side"),
        "1 while the cluster's API server answers and accepts our credentials, else 0.",
    ),
    Metric(
        "gauge",
        "syncer_secrets_refused",
        ("namespace", "reason"),
        "Secrets that are refused as virtual clusters.",
    ),
    Metric(
        "gauge",
        "syncer_certificate_end_timestamp_seconds",
        ("cluster", "side"),
        "When the client certificate for the cluster ends, in seconds since 1970.",
    ),
    Metric(
        "gauge",
        "syncer_watch_up",
        _STORE,
        "1 while a watch keeps the cache up to date, else 0.",
    ),
    Metric("gauge", "syncer_cache_objects", _STORE, "Objects in the cache."),
    Metric(
        "gauge",
        "syncer_build_info",
        ("version", "python"),
        "Always 1; the labels are the running versions.",
    ),
)

#: All metrics, by name.
CATALOGUE = {metric.name: metric for metric in (*RECORDED, *READ)}
