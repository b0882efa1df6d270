"""Programs are killed while pods of a tenant come and go: each pod runs once, and to its end."""

import json
import time
from contextlib import suppress

from chart_scene import SYNCER
from node_scene import until
from tenant_scene import Tenant

from hack.realnode.inside import Failed

COUNT = 12
PARALLEL = 3
#: Seconds for what remains of the Job. The kubelet starts killed containers again after a pause that doubles with each
#: time, also for those that tests before this one have killed, and pods wait for the control plane meanwhile.
PATIENCE = 400.0
JOB = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: load}}
spec:
  completions: {COUNT}
  parallelism: {PARALLEL}
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{{name: one, image: "vsyncer.dev/busybox:local", args: [-c, "sleep 4"]}}]
"""


def test_killed_daemon_virtual_api_server_and_kubelet_cost_no_pod_of_a_running_job(tenant: Tenant) -> None:
    with tenant.namespace("outages", JOB):
        wait_for_pods(tenant, 1)
        tenant.kill("syncer")
        wait_for_pods(tenant, 4)
        tenant.kill("kube-apiserver")
        wait_for_pods(tenant, 7)
        # A container that a killed kubelet was about to start ends with StartError, on any cluster.
        until("three pods run, and none is being started", lambda: len(running(tenant)) == PARALLEL)
        tenant.host.kill("kubelet")
        until("the virtual API server answers, once the kubelet has seen that it does", tenant.answers)
        wait_for_the_end(tenant)
        counts = "{.status.succeeded} {.status.failed}"
        assert tenant.kubectl("get", "job/load", "-n=outages", f"-o=jsonpath={counts}") == f"{COUNT} "
        assert len(scheduled(tenant)) == COUNT
    until("no copies are left", lambda: tenant.copies("outages", "pods", "secrets", "configmaps") == [])


def wait_for_the_end(tenant: Tenant) -> None:
    """Wait until the Job has ended; fail with the state of all that it takes, at once if a pod has failed."""
    conditions = '-o=jsonpath={.status.conditions[?(@.status=="True")].type}'
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = list[str]()
        with suppress(Failed):  # the API server may be away once more
            ended = tenant.kubectl("get", "job/load", "-n=outages", conditions).split()
        if "Complete" in ended:
            return
        if {"Failed", "FailureTarget"}.intersection(ended):
            raise AssertionError(f"the Job has failed\n\n{state(tenant)}")
        time.sleep(1)
    raise AssertionError(f"the Job has not ended within {PATIENCE:g} s\n\n{state(tenant)}")


def state(tenant: Tenant) -> str:
    """Return the state of all that the Job takes."""
    found = [
        tenant.kubectl("get", "job/load", "-n=outages", "-o=jsonpath={.status}"),
        tenant.kubectl("get", "pods", "-n=outages", "-o=wide"),
        tenant.kubectl("get", "events", "-n=outages", "--sort-by=.lastTimestamp")[-4000:],
        tenant.host.kubectl("get", "pods", "-n", tenant.host_namespace, "-o=wide"),
        tenant.host.kubectl("get", "events", "-n", tenant.host_namespace, "--sort-by=.lastTimestamp")[-4000:],
        tenant.own("get", "pods", "-o=wide"),
        tenant.own("logs", SYNCER, "--tail=60")[-8000:],
    ]
    return "\n\n".join(found)


def wait_for_pods(tenant: Tenant, count: int) -> None:
    """Wait until the host has scheduled so many pods of the Job."""
    until(f"{count} pods are on the host", lambda: len(scheduled(tenant)) >= count)


def running(tenant: Tenant) -> list[str]:
    """Return the copies of the Job's pods that run on the host."""
    selector = "--field-selector=status.phase=Running"
    found = tenant.host.kubectl("get", "pods", "-n", tenant.host_namespace, selector, "-o=name").split()
    return [name for name in found if name.startswith("pod/load-")]


def scheduled(tenant: Tenant) -> list[str]:
    """Return the name of a host pod of the Job for each time that it was scheduled."""
    events = json.loads(tenant.host.kubectl("get", "events", "-n", tenant.host_namespace, "-o=json"))["items"]
    names = [event["involvedObject"]["name"] for event in events if event["reason"] == "Scheduled"]
    return [name for name in names if name.startswith("load-") and "-x-outages-x-" in name]
