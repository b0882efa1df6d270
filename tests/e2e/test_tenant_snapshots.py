"""Data are written, snapshotted, lost and restored through a virtual cluster, on a real node."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from chart_scene import WORKLOADS
from node_scene import running, until
from tenant_scene import Tenant

from hack.realnode import storage
from hack.realnode.inside import Failed

NAMESPACE = "saved"
NS = f"-n={NAMESPACE}"
SELECTED = {"enabled": True, "selector": {"matchLabels": storage.LABELS}}
SYNC: dict[str, Any] = {
    "toHost": {"volumeSnapshots": {"enabled": True}},
    "fromHost": {
        "storageClasses": SELECTED,
        "volumeSnapshotClasses": SELECTED,
        "customResourceDefinitions": {"enabled": True, "allow": ["*.snapshot.storage.k8s.io"], "onRemoval": "delete"},
    },
}

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: folders
  resources: {{requests: {{storage: 1Mi}}}}
  {source}
"""
FROM_SNAPSHOT = "dataSource: {{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: {}}}"
FROM_CLAIM = "dataSource: {kind: PersistentVolumeClaim, name: restored}"
FROM_POPULATOR = "dataSourceRef: {apiGroup: hello.example.org, kind: Hello, name: world}"
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: shell
    image: vsyncer.dev/busybox:local
    args: [-c, sleep 3600]
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {name}}}}}]
"""
SNAPSHOT = """
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {{name: {name}}}
spec: {{volumeSnapshotClassName: {of_class}, source: {source}}}
"""
OF_DATA = "{persistentVolumeClaimName: data}"


@pytest.fixture(scope="module")
def saving(tenant: Tenant) -> Iterator[Tenant]:
    """Return the tenant, whose claims and snapshots a driver of the host's provides.

    The CRDs and the classes come while the daemon runs, and leave the virtual cluster with the host's.
    """
    with tenant.configured(sync=SYNC):
        before = offered(tenant)
        with storage.provided(tenant.host.site):
            until("the virtual cluster has a class of snapshots", lambda: shows_snapshots(tenant))
            with tenant.namespace(NAMESPACE):
                yield tenant
        until("the virtual cluster has no more than before", lambda: offered(tenant) == before)


def offered(tenant: Tenant) -> str:
    return tenant.kubectl("get", "storageclasses,customresourcedefinitions", "-o=name")


def shows_snapshots(tenant: Tenant) -> bool:
    try:
        return storage.SHOWN in tenant.kubectl("get", "volumesnapshotclasses", "-o=name")
    except Failed:
        return False


def apply(tenant: Tenant, *manifests: str) -> None:
    for manifest in manifests:
        tenant.kubectl("apply", NS, "-f", "-", stdin=manifest)


def get(tenant: Tenant, *query: str) -> Any:
    return json.loads(tenant.kubectl("get", NS, *query, "-o=json"))


def mount(tenant: Tenant, name: str, source: str = "") -> None:
    """Make a claim, and a pod that mounts it, and wait until it runs."""
    apply(tenant, CLAIM.format(name=name, source=source), POD.format(name=name))
    running(tenant, NAMESPACE, f"app={name}")


def read(tenant: Tenant, name: str) -> str:
    return tenant.exec(NAMESPACE, name, "cat", "/data/file")


def is_ready(tenant: Tenant, name: str) -> bool:
    return bool(get(tenant, "volumesnapshot", name).get("status", {}).get("readyToUse"))


def has_event(tenant: Tenant, name: str, reason: str) -> bool:
    found = get(tenant, "events")["items"]
    return (name, reason) in {(each["involvedObject"]["name"], each["reason"]) for each in found}


def test_data_are_written_snapshotted_lost_and_restored(saving: Tenant) -> None:
    mount(saving, "data")
    saving.exec(NAMESPACE, "data", "sh", "-c", "echo good > /data/file; sync")
    claim = get(saving, "pvc", "data")
    volume = claim["spec"]["volumeName"]
    stand_in = get(saving, "pv", volume)
    assert stand_in["status"]["phase"] == "Bound"
    assert stand_in["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert stand_in["spec"]["csi"] == {"driver": storage.DRIVER, "volumeHandle": volume}

    apply(saving, SNAPSHOT.format(name="daily", of_class=storage.SHOWN, source=OF_DATA))
    until("the snapshot is ready", lambda: is_ready(saving, "daily"))
    saving.exec(NAMESPACE, "data", "sh", "-c", "echo bad > /data/file; sync")
    saving.kubectl("delete", "pod,pvc", "data", NS)
    until("the stand-in is gone", lambda: volume not in saving.kubectl("get", "pv", "-o=name"))
    until("the host's volume is gone", lambda: volume not in saving.host.kubectl("get", "pv", "-o=name"))

    contents = ("get", "volumesnapshotcontents", "-o=name")
    taken = saving.host.kubectl(*contents)
    saving.restart()
    mount(saving, "restored", FROM_SNAPSHOT.format("daily"))
    assert read(saving, "restored") == "good\n"
    mount(saving, "cloned", FROM_CLAIM)
    assert read(saving, "cloned") == "good\n"
    assert saving.host.kubectl(*contents) == taken

    saving.kubectl("delete", "volumesnapshot", "daily", NS)
    until("the host has no snapshot any more", lambda: saving.host.kubectl(*contents) == "")


def test_data_of_others_are_refused_with_a_reason(saving: Tenant) -> None:
    """A tenant knows all names of the host's, and writes whatever the virtual API server accepts."""
    shown = saving.kubectl("get", "storageclasses,volumesnapshotclasses", "-o=name")
    assert storage.HIDDEN not in shown

    hosts = saving.copy(NAMESPACE, "theirs")
    of_host = SNAPSHOT.format(name=hosts, of_class=storage.HIDDEN, source=OF_DATA)
    saving.host.kubectl("apply", f"-n={WORKLOADS}", "-f", "-", stdin=of_host)
    content = "{volumeSnapshotContentName: of-the-host}"
    apply(
        saving,
        SNAPSHOT.format(name="content", of_class=storage.SHOWN, source=content),
        SNAPSHOT.format(name="hidden", of_class=storage.HIDDEN, source=OF_DATA),
        CLAIM.format(name="populated", source=FROM_POPULATOR),
        CLAIM.format(name="stolen", source=FROM_SNAPSHOT.format("theirs")),
    )
    for name, reason in (
        ("content", "DataSourceRefused"),
        ("hidden", "ClassNotListed"),
        ("populated", "DataSourceRefused"),
        ("stolen", "NameCollision"),
    ):
        until(f"{name} gets the event {reason}", lambda: has_event(saving, name, reason))  # noqa: B023
        made = saving.copies(NAMESPACE, "volumesnapshots", "persistentvolumeclaims")
        assert not [each for each in made if saving.copy(NAMESPACE, name) in each]
    saving.host.kubectl("delete", "volumesnapshot", hosts, f"-n={WORKLOADS}")
