"""The alerts: each fires in its bad case and alone, and none while all is well; and the dashboard. By promtool."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from hack.realnode import builds
from syncer.observe.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
FILES = ROOT / "charts" / "library" / "files"
ALERTS = (FILES / "alerts.yaml", ROOT / "charts" / "virtual-cluster" / "files" / "control-plane-alerts.yaml")
RUNBOOKS = ROOT / "docs" / "runbooks.md"

#: Metrics of others that alerts and panels may name.
FOREIGN = re.compile(r"up|process_\w+|kube_\w+|kubelet_volume_stats_\w+|ALERTS|container_\w+")
_NAME = re.compile(r"\b[a-z][a-z0-9_]*(?:_[a-z0-9]+)+\b|\bup\b|\bALERTS\b")
_FUNCTIONS = {
    *(
        "group_left",
        "group_right",
        "histogram_quantile",
        "min_over_time",
        "max_over_time",
        "label_replace",
        "label_values",
    ),
}

D = 'job="syncer",namespace="vc",pod="s-0"'
SHOP = f'cluster="shop",{D}'
QUEUE = f'{SHOP},name="syncer",controller="syncer"'
PODS = f'{SHOP},syncer="pods"'
CRON = 'namespace="vc",cronjob="vc-cluster-'
DISK = '{namespace="vc",persistentvolumeclaim="data-vc-cluster-control-plane-0"}'
SET = '{namespace="vc",statefulset="vc-cluster-control-plane"}'
WEEK = 7 * 24 * 3600

#: Each series in three healthy hours, a value a minute.
HEALTHY = {
    f"up{{{D}}}": "1x180",
    f'leader_election_master_status{{{D},name="syncer"}}': "1x180",
    f"process_start_time_seconds{{{D}}}": "100x180",
    f'syncer_cluster_up{{{SHOP},side="virtual"}}': "1x180",
    f'syncer_cluster_up{{cluster="",{D},side="host"}}': "1x180",
    f'syncer_watch_up{{{SHOP},side="host",resource="pods"}}': "1x5 0 1x174",
    f'syncer_watch_up{{{SHOP},side="virtual",resource="pods"}}': "1x180",
    f"workqueue_depth{{{QUEUE}}}": "900x3 0x177",
    f'workqueue_queue_duration_seconds_bucket{{{QUEUE},le="30.0"}}': "0+60x180",
    f'workqueue_queue_duration_seconds_bucket{{{QUEUE},le="300.0"}}': "0+60x180",
    f'workqueue_queue_duration_seconds_bucket{{{QUEUE},le="+Inf"}}': "0+60x180",
    f"workqueue_longest_running_processor_seconds{{{QUEUE}}}": "1x180",
    f'controller_runtime_reconcile_total{{{SHOP},controller="pods",result="success"}}': "0+100x180",
    f'controller_runtime_reconcile_errors_total{{{SHOP},controller="pods"}}': "0+1x180",
    f'rest_client_requests_total{{{SHOP},side="virtual",host="h",code="200",method="GET"}}': "0+100x180",
    f'rest_client_requests_total{{{SHOP},side="virtual",host="h",code="503",method="GET"}}': "0+1x180",
    f'syncer_parked{{{PODS},reason="QuotaExceeded"}}': "0x20 3x20 0x140",
    f'syncer_deletions_held{{{PODS},side="host"}}': "0x180",
    f'syncer_drift_total{{{PODS},class="field",outcome="repaired"}}': "5x180",
    f'syncer_drift_objects{{{PODS},class="field"}}': "0x50 1x10 0x120",
    f"syncer_patrol_last_success_timestamp_seconds{{{PODS}}}": "0x180",
    f'syncer_store_corrections_total{{{SHOP},side="host",resource="pods"}}': "0x180",
    f"syncer_frozen_fields{{{PODS}}}": "0x180",
    f'syncer_quarantined_objects{{{SHOP},side="host",resource="pods"}}': "0x180",
    f"process_resident_memory_bytes{{{D}}}": "80x180",
    'kube_pod_container_resource_limits{namespace="vc",pod="s-0",container="syncer",resource="memory"}': "100x180",
    f'syncer_certificate_end_timestamp_seconds{{{SHOP},side="virtual"}}': f"{5 * WEEK}x180",
    f"kube_statefulset_status_replicas_ready{SET}": "1x60 0x5 1x115",
    f"kube_statefulset_replicas{SET}": "1x180",
    f"kubelet_volume_stats_available_bytes{DISK}": "50x180",
    f"kubelet_volume_stats_capacity_bytes{DISK}": "100x180",
    f'kube_cronjob_status_last_successful_time{{{CRON}pki"}}': "0x180",
    f'kube_cronjob_status_last_schedule_time{{{CRON}backup"}}': "0x90 5400x90",
    f'kube_cronjob_status_last_successful_time{{{CRON}backup"}}': "30x95 5500x85",
    f'kube_cronjob_created{{{CRON}backup"}}': "0x180",
}


def has(metric: str, value: str, *, of: str = "") -> dict[str, str]:
    """Return the healthy series of a metric with another value; ``of`` is a part of their labels."""
    found = {series: value for series in HEALTHY if series.partition("{")[0] == metric and of in series}
    assert found
    return found


#: For each alert the series that make it fire, in place of the healthy ones.
BAD: dict[str, dict[str, str]] = {
    "SyncerDown": has("up", "0x180"),
    "SyncerNoLeader": has("leader_election_master_status", "0x180"),
    "SyncerRestarts": has("process_start_time_seconds", "100x150 110 120 130 140 150x26"),
    "SyncerVirtualClusterDown": has("syncer_cluster_up", "0x180", of='side="virtual"')
    | has("syncer_watch_up", "0x180", of='side="virtual"'),
    "SyncerHostDown": has("syncer_cluster_up", "0x180", of='side="host"')
    | has("syncer_watch_up", "0x180", of='side="host"'),
    "SyncerWatchBroken": has("syncer_watch_up", "0x180", of='side="host"'),
    "SyncerQueueNotDraining": has("workqueue_depth", "101x180"),
    "SyncerRequestsLate": has("workqueue_queue_duration_seconds_bucket", "0+58x180", of='le="30.0"'),
    "SyncerRequestStuck": has("workqueue_longest_running_processor_seconds", "0x175 130 190 250 310 370"),
    "SyncerErrors": has("controller_runtime_reconcile_errors_total", "0+30x180"),
    "SyncerAPIErrors": has("rest_client_requests_total", "0+30x180", of='code="503"'),
    "SyncerObjectsParked": has("syncer_parked", "1x180"),
    "SyncerDeletionsHeld": has("syncer_deletions_held", "3x180"),
    "SyncerIdentityLost": {f'syncer_parked{{{PODS},reason="IdentityLost"}}': "0x175 3x5"},
    "SyncerDriftFound": has("syncer_drift_total", "5x150 7x30"),
    "SyncerDriftLeft": has("syncer_drift_objects", "1x180"),
    "SyncerPatrolOverdue": has("syncer_patrol_last_success_timestamp_seconds", f"{-7 * 3600}x180"),
    "SyncerCacheWrong": has("syncer_store_corrections_total", "0x150 1x30"),
    "SyncerFieldsFought": has("syncer_frozen_fields", "1x180"),
    "SyncerObjectsUnreadable": has("syncer_quarantined_objects", "1x180"),
    "SyncerMemoryNearLimit": has("process_resident_memory_bytes", "90x180"),
    "SyncerCertificateEnds": has("syncer_certificate_end_timestamp_seconds", f"{WEEK}x180"),
    "VirtualClusterControlPlaneDown": has("kube_statefulset_status_replicas_ready", "0x180"),
    "VirtualClusterDiskNearlyFull": has("kubelet_volume_stats_available_bytes", "10x180"),
    "VirtualClusterCertificatesNotRenewed": has(
        "kube_cronjob_status_last_successful_time", f"{-4 * 24 * 3600}x180", of="pki"
    ),
    "VirtualClusterBackupFailed": has("kube_cronjob_status_last_successful_time", "30x180", of="backup"),
}


def scenario(series: dict[str, str], *, fires: str) -> dict[str, object]:
    """Return a test of promtool: after 179 minutes this alert fires and no other."""
    expected = [{"labels": f'{{alertname="{fires}"}}', "value": 1}] if fires else []
    return {
        "name": fires or "healthy",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'max by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "179m",
                "exp_samples": expected,
            }
        ],
    }


def checked(tests: list[dict[str, object]], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool's rule tests."""
    file = folder / "tests.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(path) for path in ALERTS], "evaluation_interval": "1m", "tests": tests})
    )
    return subprocess.run(
        [str(builds.tool("promtool")), "test", "rules", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def rules() -> list[dict[str, object]]:
    """Return all alerts."""
    return [rule for path in ALERTS for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def test_alerts_fire_in_their_bad_case_alone_and_not_while_all_is_well(tmp_path: Path) -> None:
    tests = [scenario(HEALTHY, fires=""), *(scenario(HEALTHY | bad, fires=name) for name, bad in BAD.items())]
    done = checked(tests, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_first_drift_fires_though_its_counter_was_not_there_before(tmp_path: Path) -> None:
    first = HEALTHY | has("syncer_drift_total", "_x150 1x30")
    done = checked([scenario(first, fires="SyncerDriftFound")], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("code", ["401", "429", "<error>"])
def test_alert_of_api_errors_fires_by_each_code_that_its_text_names(code: str, tmp_path: Path) -> None:
    name = f'rest_client_requests_total{{{SHOP},side="host",host="h",code="{code}",method="GET"}}'
    done = checked([scenario(HEALTHY | {name: "0+30x180"}, fires="SyncerAPIErrors")], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_when_nothing_is_scraped_any_more(tmp_path: Path) -> None:
    done = checked([scenario({}, fires="SyncerDown")], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_each_have_a_bad_case() -> None:
    assert sorted(BAD) == sorted(str(rule["alert"]) for rule in rules())


@pytest.mark.parametrize("path", ALERTS, ids=lambda path: path.stem)
def test_alerts_are_valid(path: Path) -> None:
    done = subprocess.run(
        [str(builds.tool("promtool")), "check", "rules", "--lint=all", "--lint-fatal", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_name_a_remedy() -> None:
    text = RUNBOOKS.read_text()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    for rule in rules():
        name, annotations = str(rule["alert"]), rule["annotations"]
        assert isinstance(annotations, dict)
        assert set(annotations) == {"summary", "description", "runbook_url"}
        assert annotations["runbook_url"].endswith(f"/docs/runbooks.md#{name.lower()}")
        for part in ("**Cause.**", "**Look here.**", "**Do this.**"):
            assert part in sections[name], (name, part)
    assert sorted(sections) == sorted(BAD)


def known() -> set[str]:
    """Return the names under which a scrape shows the metrics of the catalogue."""
    names = set()
    for metric in CATALOGUE.values():
        suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}[metric.kind]
        names |= {metric.name + suffix for suffix in suffixes}
    return names


def expressions() -> list[str]:
    """Return every expression of the alerts and of the dashboard."""
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return [str(rule["expr"]) for rule in rules()] + targets


def test_metrics_of_alerts_and_dashboard_exist() -> None:
    for expression in expressions():
        bare = re.sub(r"\{[^}]*\}|\b(?:by|on|without|group_left|group_right)\s*\([^)]*\)|\[[^\]]*\]", " ", expression)
        named = set(_NAME.findall(bare)) - _FUNCTIONS
        assert named, expression
        for name in named:
            assert name in known() or FOREIGN.fullmatch(name), f"{name} in {expression}"


def test_dashboard_is_valid() -> None:
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    panels = dashboard["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(set(ids)) == len(ids)
    positions = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(positions)) == len(positions)
    assert all(panel["title"] for panel in panels)
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {
        "datasource",
        "namespace",
        "job",
        "cluster",
    }


def test_dashboard_has_queries_that_parse(tmp_path: Path) -> None:
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 20
    rules = [
        {"record": f"panel{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(
        [str(builds.tool("promtool")), "check", "rules", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
