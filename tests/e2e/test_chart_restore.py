"""etcd of an installed chart loses all data, and is restored by the commands of the chart's README."""

import json
import shutil
from collections.abc import Mapping

from chart_scene import NAME, WORKLOADS, Chart
from node_scene import until

from hack.realnode.inside import Failed

SNAPSHOT = "by-hand"


def test_restore_after_the_loss_of_etcd_restarts_no_pod_and_deletes_nothing(chart: Chart) -> None:
    chart.kubectl("create", "configmap", "deleted-since", "-n=shop", "--from-literal=is=there")
    chart.upgrade("backup.enabled=true")
    chart.own("create", "job", f"--from=cronjob/{NAME}-backup", SNAPSHOT)
    chart.own("wait", "--for=condition=Complete", "--timeout=60s", f"job/{SNAPSHOT}")
    assert SNAPSHOT in chart.own("logs", f"job/{SNAPSHOT}", "--container=keep")
    chart.kubectl("delete", "configmap", "deleted-since", "-n=shop")
    younger = chart.run_pod("shop", "younger")
    until("the younger pod runs", lambda: younger in chart.runs())
    before, copies = chart.runs(), uids(chart)

    for folder in chart.etcd.iterdir():
        shutil.rmtree(folder)
    chart.kill("etcd")
    chart.kill("kube-apiserver")
    until("the virtual cluster is empty", lambda: is_forbidden(chart))
    assert (chart.runs(), uids(chart)) == (before, copies)

    chart.upgrade(f"restore.snapshot={SNAPSHOT}", "restore.running=true", "restore.hold=true")
    chart.own("wait", "--for=condition=Complete", "--timeout=90s", "job", "--selector=vsyncer.dev/part=restore")
    chart.upgrade("restore.running=false")
    chart.wait_until_ready()
    assert (chart.runs(), uids(chart)) == (before, copies)
    assert exists(chart, "configmap/vsyncer", "-n=kube-system")
    assert exists(chart, "configmap/deleted-since", "-n=shop")
    assert not exists(chart, "pod/younger", "-n=shop")
    until("the daemon holds the younger pod", lambda: "shop/younger" in chart.syncer("parked"))
    assert all("shop/younger" in line for line in chart.syncer("parked", "--no-headers").splitlines())
    assert "pods on the host side would be deleted, and none is" in chart.syncer("patrol")
    after = chart.run_pod("shop", "after")
    chart.kubectl("wait", "pod/after", "-n=shop", "--for=condition=Ready", "--timeout=60s")
    assert {name: run for name, run in chart.runs().items() if name != after} == before

    chart.syncer("patrol", "--confirm")
    until("the younger pod is gone", lambda: younger not in chart.runs())
    chart.upgrade("restore.hold=false")
    chart.wait_until_ready()
    assert {name for name in before if name != younger} | {after} == set(chart.runs())
    assert all(chart.runs()[name] == run for name, run in before.items() if name != younger)


def uids(chart: Chart) -> Mapping[str, str]:
    """Return the uids of the copies on the host."""
    kinds = "pods,services,configmaps,secrets,serviceaccounts"
    items = json.loads(chart.host.kubectl("get", kinds, "-n", WORKLOADS, "-o=json"))["items"]
    return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["uid"] for item in items}


def is_forbidden(chart: Chart) -> bool:
    """Return True if the tenant may do nothing, since their binding is gone with all else."""
    try:
        chart.kubectl("--request-timeout=5s", "get", "namespaces")
    except Failed as failure:
        return "Forbidden" in str(failure)
    return False


def exists(chart: Chart, *query: str) -> bool:
    return bool(chart.kubectl("get", *query, "-o=name", "--ignore-not-found"))
