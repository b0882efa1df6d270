"""Parts of an installed chart are away, are killed, or meet a hostile tenant; the tenant's pods run on."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml
from chart_scene import NAME, POD, PODS, SLEEP, SYNCER, WORKLOADS, Chart
from node_scene import until

#: How long the daemon is away, in seconds.
AWAY_SECONDS = float(os.environ.get("E2E_DAEMON_AWAY_SECONDS", "30"))


def many(name: str, count: int) -> str:
    """Return the manifest of a Deployment of so many pods that sleep."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": SLEEP}
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def virtual_pods(chart: Chart) -> Mapping[str, str]:
    """Return the uids of the tenant's pods in the virtual cluster, by namespace and name."""
    items = json.loads(chart.kubectl("get", "pods", "--all-namespaces", "-o=json"))["items"]
    found = [item["metadata"] for item in items]
    return {f"{metadata['namespace']}/{metadata['name']}": metadata["uid"] for metadata in found}


def selectors(chart: Chart) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Return the labels by which objects of the chart's own namespace select pods, with who does."""

    def below(value: Any) -> Iterator[Mapping[str, str]]:
        if isinstance(value, dict):
            for key, field in value.items():
                if key in ("selector", "podSelector") and isinstance(field, dict):
                    yield field.get("matchLabels", field)
                else:
                    yield from below(field)
        elif isinstance(value, list):
            for item in value:
                yield from below(item)

    kinds = "services,poddisruptionbudgets,networkpolicies,statefulsets,deployments"
    for item in json.loads(chart.own("get", kinds, "-o=json"))["items"]:
        for labels in below(item["spec"]):
            yield f"{item['kind']} {item['metadata']['name']}", labels


def names(items: Iterable[Any]) -> set[str]:
    return {item["metadata"]["name"] for item in items}


def test_pods_with_the_charts_labels_are_not_selected_by_the_chart(chart: Chart) -> None:
    parts = "-l=vsyncer.dev/part in (control-plane,syncer)"
    own = json.loads(chart.own("get", "pods,services", parts, "-o=json"))["items"]
    labels = [item["metadata"]["labels"] for item in own]
    with chart.namespace("hostile"):
        # A pod for each set of labels: of the control plane, of the daemon, of their Services.
        distinct = [dict(each) for each in {tuple(sorted(one.items())) for one in labels}]
        copies = {chart.run_pod("hostile", f"like-{number}", found) for number, found in enumerate(distinct)}
        until("the hostile pods run", lambda: copies <= set(chart.runs()))

        instance = ("get", "pods", "-n", WORKLOADS, "-l=app.kubernetes.io/instance=shop", "-o=json")
        assert names(json.loads(chart.host.kubectl(*instance))["items"]) == copies, "their labels are on the host"

        checked = set()
        for who, selector in selectors(chart):
            checked.add(who)
            assert selector, f"{who} selects all pods of its namespace"
            selected = json.loads(chart.host.kubectl("get", "pods", "-A", f"-l={joined(selector)}", "-o=json"))["items"]
            assert selected, f"{who} selects nothing"
            assert not names(selected) & copies, who
        assert {who.partition(" ")[0] for who in checked} == {
            "Service",
            "PodDisruptionBudget",
            "NetworkPolicy",
            "StatefulSet",
            "Deployment",
        }
        slices = json.loads(chart.own("get", "endpointslices", "-o=json"))["items"]
        targets = {point["targetRef"]["name"] for each in slices for point in each["endpoints"]}
        assert targets <= names(own)
        assert POD in targets
        budget = json.loads(chart.own("get", f"poddisruptionbudget/{NAME}-syncer", "-o=json"))
        assert budget["status"]["expectedPods"] == 1
    until("the hostile pods are gone", lambda: not copies & set(chart.runs()))


def joined(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def test_control_plane_comes_back_while_the_tenants_quota_is_full(chart: Chart) -> None:
    before = chart.runs()
    with chart.namespace("greedy", many("many", PODS)):
        used = ("get", "resourcequota", NAME, "-n", WORKLOADS, "-o=jsonpath={.status.used.pods}")
        until("the quota is full", lambda: chart.host.kubectl(*used) == str(PODS) and len(chart.runs()) == PODS)
        full, virtual = chart.runs(), virtual_pods(chart)

        chart.kill("etcd")
        chart.wait_until_ready()
        chart.own("delete", "pod", POD, "--now")
        chart.wait_until_ready()
        assert (chart.runs(), virtual_pods(chart)) == (full, virtual)
    until("the hungry pods are gone", lambda: chart.runs().keys() <= before.keys())
    assert chart.runs() == before


def test_pods_run_on_while_the_daemon_is_away(chart: Chart) -> None:
    host, virtual = chart.runs(), virtual_pods(chart)
    chart.own("scale", SYNCER, "--replicas=0")
    chart.own("wait", "pod", "--for=delete", "--selector=vsyncer.dev/part=syncer", "--timeout=60s")
    end = time.monotonic() + AWAY_SECONDS
    while time.monotonic() < end:
        time.sleep(min(10.0, AWAY_SECONDS / 5))
        assert (chart.runs(), virtual_pods(chart)) == (host, virtual)
    chart.own("scale", SYNCER, "--replicas=1")
    chart.wait_until_ready()
    # The daemon is at work again, and has found nothing to delete.
    back = chart.run_pod("shop", "back")
    until("a new pod runs", lambda: back in chart.runs())
    assert {name: run for name, run in chart.runs().items() if name != back} == host
    chart.kubectl("delete", "pod", "back", "-n=shop", "--now")
    assert virtual_pods(chart) == virtual
    until("its copy is gone", lambda: chart.runs() == host)
