"""Data are written, snapshotted, lost and restored through a virtual cluster, on a real node."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from node_scene import running, until
from tenant_scene import Tenant

from hack.realnode import storage
from hack.realnode.inside import Failed

NAMESPACE = "saved"
NS = f"-n={NAMESPACE}"
SHOWN = {"enabled": True, "selector": {"matchLabels": storage.SHOWN["metadata"]["labels"]}}
SECTIONS: dict[str, Any] = {
    "sync": {
        "toHost": {"volumeSnapshots": {"enabled": True}},
        "fromHost": {
            "storageClasses": SHOWN,
            "volumeSnapshotClasses": SHOWN,
            "customResourceDefinitions": {"enabled": True, "onRemoval": "delete"},
        },
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
FROM_SNAPSHOT = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: daily}"
FROM_CLAIM = "dataSource: {kind: PersistentVolumeClaim, name: restored}"
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: shell
    image: vsyncer.dev/busybox:local
    imagePullPolicy: Never
    command: [sh, -c, "sleep 1000000"]
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {name}}}}}]
"""
SNAPSHOT = """
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {{name: {name}}}
spec: {{volumeSnapshotClassName: {of_class}, source: {source}}}
"""


@pytest.fixture(scope="module")
def saving(tenant: Tenant) -> Iterator[Tenant]:
    """Return the tenant, whose claims and snapshots a driver of the host's provides."""
    with storage.provided(tenant.host.site), tenant.configured(**SECTIONS):
        until("the virtual cluster serves snapshots", lambda: serves_snapshots(tenant))
        with tenant.namespace(NAMESPACE):
            yield tenant


def serves_snapshots(tenant: Tenant) -> bool:
    try:
        return "folders" in tenant.kubectl("get", "volumesnapshotclasses", "-o=name")
    except Failed:
        return False


def apply(tenant: Tenant, *manifests: str) -> None:
    for manifest in manifests:
        tenant.kubectl("apply", NS, "-f", "-", stdin=manifest)


def get(tenant: Tenant, *what: str) -> Any:
    return json.loads(tenant.kubectl("get", NS, *what, "-o=json"))


def mounted(tenant: Tenant, name: str, source: str = "") -> None:
    """Make a claim, and a pod that mounts it, and wait until it runs."""
    apply(tenant, CLAIM.format(name=name, source=source), POD.format(name=name))
    running(tenant, NAMESPACE, f"app={name}")


def events(tenant: Tenant, name: str) -> list[str]:
    """Return the reasons of the events about an object."""
    found = get(tenant, "events")["items"]
    return [each["reason"] for each in found if each["involvedObject"]["name"] == name]


def test_data_are_written_snapshotted_lost_and_restored(saving: Tenant) -> None:
    mounted(saving, "data")
    saving.exec(NAMESPACE, "data", "sh", "-c", "echo good > /data/file; sync")
    bound = get(saving, "pvc", "data")
    volume = get(saving, "pv", bound["spec"]["volumeName"])
    assert volume["status"]["phase"] == "Bound"
    assert volume["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert volume["spec"]["csi"] == {"driver": storage.DRIVER, "volumeHandle": volume["metadata"]["name"]}

    apply(saving, SNAPSHOT.format(name="daily", of_class="folders", source="{persistentVolumeClaimName: data}"))
    until("the snapshot is there", lambda: is_ready(saving, "daily"))
    saving.exec(NAMESPACE, "data", "sh", "-c", "echo bad > /data/file; sync")

    saving.kubectl("delete", "pod,pvc", "data", NS)
    until("the volume is gone", lambda: volume["metadata"]["name"] not in saving.kubectl("get", "pv", "-o=name"))
    gone = volume["metadata"]["name"]
    until("the host's is gone, too", lambda: gone not in saving.host.kubectl("get", "pv", "-o=name"))

    mounted(saving, "restored", FROM_SNAPSHOT)
    assert saving.exec(NAMESPACE, "restored", "cat", "/data/file") == "good\n"
    mounted(saving, "cloned", FROM_CLAIM)
    assert saving.exec(NAMESPACE, "cloned", "cat", "/data/file") == "good\n"

    saving.kubectl("delete", "volumesnapshot", "daily", NS)
    contents = ("get", "volumesnapshotcontents", "-o=name")
    until("the host has no snapshot any more", lambda: saving.host.kubectl(*contents) == "")


def is_ready(tenant: Tenant, name: str) -> bool:
    return bool(get(tenant, "volumesnapshot", name).get("status", {}).get("readyToUse"))


def test_snapshot_of_the_hosts_own_is_out_of_reach(saving: Tenant) -> None:
    """A tenant knows all names of the host's, and writes whatever the virtual API server accepts."""
    refused = SNAPSHOT.format(name="taken", of_class="folders", source="{volumeSnapshotContentName: of-the-host}")
    unlisted = SNAPSHOT.format(name="unlisted", of_class="of-the-host", source="{persistentVolumeClaimName: data}")
    apply(saving, refused, unlisted)
    until("the first is refused", lambda: "DataSourceRefused" in events(saving, "taken"))
    until("the second waits", lambda: "ClassNotListed" in events(saving, "unlisted"))
    assert saving.copies(NAMESPACE, "volumesnapshots") == []
    shown = saving.kubectl("get", "storageclasses,volumesnapshotclasses", "-o=name")
    assert "of-the-host" not in shown
