"""Monitoring in all charts: who is scraped, which alerts there are, and that they are about this release alone."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, rendered

from hack.realnode import builds
from syncer.api import Obj, labels_of

KINDS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")
OPERATOR = [f"--api-versions=monitoring.coreos.com/v1/{kind}" for kind in KINDS]
#: Each chart with the values that it can't do without; a fleet is one of charts/syncer.
CASES: dict[str, dict[str, Any]] = {
    "syncer": {
        "virtualClusters": [
            {"name": "shop", "kubeconfigSecret": {"name": "shop", "key": "config"}, "hostNamespace": "vc-shop"}
        ]
    },
    "fleet": {
        "fleet": {
            "enabled": True,
            "virtualClusterSecrets": [{"namespace": "team-a", "hostNamespaces": ["team-a-pods"]}],
        }
    },
    "virtual-cluster": {},
}
each_chart = pytest.mark.parametrize("chart", CASES)


def objects(chart: str, *, operator: bool = True, **values: Any) -> dict[tuple[str, str], Obj]:
    """Return the objects of a chart, by kind and name."""
    options = OPERATOR if operator else []
    folder = CHARTS / ("syncer" if chart == "fleet" else chart)
    made = rendered(folder, {**CASES[chart], **values}, options=options)
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in made}


def daemon(found: dict[tuple[str, str], Obj]) -> Obj:
    """Return the daemon's Deployment."""
    [deployment] = [obj for (kind, _), obj in found.items() if kind == "Deployment"]
    return deployment


@each_chart
def test_service_monitor_leads_to_the_daemon(chart: str) -> None:
    found = objects(chart)
    pod = daemon(found)["spec"]["template"]
    [monitor] = [obj for (kind, _), obj in found.items() if kind == "ServiceMonitor"]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert "vsyncer.dev/part" in wanted
    [endpoint] = monitor["spec"]["endpoints"]
    [service] = [
        obj
        for (kind, _), obj in found.items()
        if kind == "Service"
        and wanted.items() <= labels_of(obj).items()
        and endpoint["port"] in [port["name"] for port in obj["spec"]["ports"]]
    ]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert "vsyncer.dev/part" in service["spec"]["selector"]
    ports = [port["name"] for container in pod["spec"]["containers"] for port in container["ports"]]
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["metrics"]
    assert "metrics" in ports


@each_chart
def test_alerts_are_about_the_release(chart: str, tmp_path: Path) -> None:
    found = objects(chart)
    names = {name for kind, name in found if kind in ("Service", "StatefulSet", "CronJob")}
    rules = [obj for (kind, _), obj in found.items() if kind == "PrometheusRule"]
    assert len(rules) == (2 if chart == "virtual-cluster" else 1)
    for number, obj in enumerate(rules):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(obj["spec"]))
        subprocess.run(
            [str(builds.tool("promtool")), "check", "rules", str(file)], check=True, capture_output=True, timeout=600
        )
        for rule in (rule for group in obj["spec"]["groups"] for rule in group["rules"]):
            expression = rule["expr"]
            assert 'namespace="shop"' in expression, rule["alert"]
            for label, value in re.findall(r'(job|statefulset|cronjob)="([^"]*)"', expression):
                assert value in names or value.endswith("-backup"), (rule["alert"], label, value)


@each_chart
def test_kinds_of_the_operator_are_left_out_where_they_are_not_served_or_wanted(chart: str) -> None:
    assert not [kind for kind, _ in objects(chart, operator=False) if kind in KINDS]
    off = {"serviceMonitor": {"enabled": False}, "rules": {"enabled": False}, "dashboard": {"enabled": False}}
    left = objects(chart, monitoring=off)
    assert not [name for kind, name in left if kind in KINDS or name.endswith("-dashboard")]


@each_chart
def test_dashboard_is_found_by_its_label(chart: str) -> None:
    found = objects(chart, operator=False)
    name = daemon(found)["metadata"]["name"]
    dashboard = found["ConfigMap", f"{name}-dashboard"]
    assert labels_of(dashboard)["grafana_dashboard"] == "1"
    [text] = dashboard["data"].values()
    assert json.loads(text)["title"] == f"vsyncer: shop/{name}"
    assert re.fullmatch(r"vsyncer-[0-9a-f]{12}", json.loads(text)["uid"])
    chosen = {each["name"]: each["current"].get("value") for each in json.loads(text)["templating"]["list"]}
    assert (chosen["namespace"], chosen["job"]) == ("shop", f"{name}-metrics"), "it opens on its own daemon"
    assert ("Service", chosen["job"]) in found
    original = json.loads((CHARTS / "library" / "files" / "dashboard.json").read_text())
    assert json.loads(text)["panels"] == original["panels"]


def test_pod_monitor_stands_for_the_service_monitor_under_the_same_job() -> None:
    chosen = {
        "serviceMonitor": {"enabled": False},
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    }
    found = objects("syncer", monitoring=chosen)
    assert not [kind for kind, _ in found if kind == "ServiceMonitor"]
    monitor = found["PodMonitor", "shop-syncer-shop"]
    pod = daemon(found)["spec"]["template"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in pod["spec"]["containers"][0]["ports"]]
    [job] = endpoint["relabelings"]
    rules = json.dumps(found["PrometheusRule", "shop-syncer-shop"]["spec"])
    assert f'job=\\"{job["replacement"]}\\"' in rules
    assert not [kind for kind, _ in objects("syncer", operator=False, monitoring=chosen) if kind == "PodMonitor"]
