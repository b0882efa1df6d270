"""Claims, their volumes and their snapshots, with a host that provides all three."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from harness import HOME, NAMESPACE, Two, built_in, host_path, until, writes
from sampled import SAMPLES, define
from uninstall_scene import only, uninstalled, worked

from hack.side_tasks import helped_by
from syncer.api import Obj, dig, is_deleting
from syncer.api.reasons import RequestState
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, VOLUME_SNAPSHOTS
from syncer.testing.merge import merged
from syncer.testing.objects import build

CLAIMS, VOLUMES, SNAPSHOTS = "persistentvolumeclaims", "persistentvolumes", str(VOLUME_SNAPSHOTS)
SYNCERS = (CLAIMS, VOLUMES, "volumesnapshots")
OPTIONS: Mapping[str, Any] = {"volumeSnapshots": {"enabled": True}}
PROTECTION = "kubernetes.io/pv-protection"
SIZE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def claim(name: str, **spec: Any) -> Obj:
    return build(PERSISTENT_VOLUME_CLAIMS, name, spec={**SIZE, **spec})


def snapshot(name: str, of: str) -> Obj:
    return build(VOLUME_SNAPSHOTS, name, spec={"source": {"persistentVolumeClaimName": of}})


def source(name: str) -> Obj:
    """Return the source of a claim's data as an API server stores it."""
    named = {"apiGroup": VOLUME_SNAPSHOTS.group, "kind": VOLUME_SNAPSHOTS.kind, "name": name}
    return {"dataSource": named, "dataSourceRef": named}


def serve_snapshots(two: Two) -> None:
    """Let both sides have the CRDs."""
    define(two.virtual, two.host, SAMPLES["volumesnapshots"])


def provide(two: Two) -> None:
    """Bind the host's claims, and take its snapshots."""
    for each in two.host.objects(CLAIMS, HOME):
        if not dig(each, "spec.volumeName"):
            status = {"phase": "Bound", "accessModes": SIZE["accessModes"], "capacity": {"storage": "1Gi"}}
            volume = f"pvc-{each['metadata']['uid']}"
            two.host.put(merged(each, {"spec": {"volumeName": volume}, "status": status}))


def take(two: Two, name: str) -> None:
    """Take a snapshot on the host."""
    copy = two.copy(SNAPSHOTS, name)
    assert copy
    status = {"boundVolumeSnapshotContentName": "snapcontent-1", "readyToUse": True, "restoreSize": "1Gi"}
    two.host.put(merged(copy, {"status": status}))


def volume_of(two: Two, name: str) -> Obj | None:
    """Return the stand-in of a virtual claim's volume."""
    found = dig(two.original(CLAIMS, name) or {}, "spec.volumeName")
    return two.virtual.get(VOLUMES, found) if found else None


async def protect(two: Two) -> None:
    """Protect the virtual cluster's volumes, as its controller manager does."""
    while True:
        for each in two.virtual.objects(VOLUMES):
            is_bound = dig(each, "status.phase") == "Bound"
            finalizers = each["metadata"].get("finalizers") or []
            if not is_deleting(each) and PROTECTION not in finalizers:
                two.virtual.put(merged(each, {"metadata": {"finalizers": [PROTECTION]}}))
            elif is_deleting(each) and finalizers and not is_bound:
                two.virtual.put(merged(each, {"metadata": {"finalizers": None}}))
        await asyncio.sleep(0.5)


async def test_data_of_a_snapshot_come_back_in_another_claim(two: Two) -> None:
    serve_snapshots(two)
    two.virtual.put(claim("data"))
    two.virtual.put(snapshot("daily", of="data"))
    async with two.daemon(built_in(*SYNCERS), options=OPTIONS) as daemon:
        await until(lambda: two.copy(SNAPSHOTS, "daily"))
        copy = two.copy(SNAPSHOTS, "daily")
        assert dig(copy or {}, "spec.source") == {"persistentVolumeClaimName": host_path("data").partition("/")[2]}
        take(two, "daily")
        await until(lambda: dig(two.original(SNAPSHOTS, "daily") or {}, "status.readyToUse"))

        two.virtual.delete(CLAIMS, f"{NAMESPACE}/data")
        two.virtual.put(claim("again", **source("daily")))
        await until(lambda: two.copy(CLAIMS, "again"))
        again = two.copy(CLAIMS, "again")
        assert again
        named = source(host_path("daily").partition("/")[2])
        assert {field: again["spec"][field] for field in named} == named
        await daemon.settled()
        assert two.copy(CLAIMS, "data") is None
        assert two.copy(SNAPSHOTS, "daily"), "a snapshot outlives its claim"

        two.virtual.delete(SNAPSHOTS, f"{NAMESPACE}/daily")
        await until(lambda: two.copy(SNAPSHOTS, "daily") is None)


@pytest.mark.parametrize("taken_meanwhile", [False, True], ids=["taken before", "taken meanwhile"])
async def test_restart_between_a_snapshot_and_a_claim_from_it_makes_none_twice(two: Two, taken_meanwhile: bool) -> None:
    serve_snapshots(two)
    two.virtual.put(claim("data"))
    two.virtual.put(snapshot("daily", of="data"))
    async with two.daemon(built_in(*SYNCERS), options=OPTIONS) as daemon:
        await until(lambda: two.copy(SNAPSHOTS, "daily"))
        if not taken_meanwhile:
            take(two, "daily")
        await daemon.settled()
    if taken_meanwhile:
        take(two, "daily")
    copy = two.copy(SNAPSHOTS, "daily")
    two.virtual.delete(CLAIMS, f"{NAMESPACE}/data")
    two.virtual.put(claim("again", **source("daily")))
    async with two.daemon(built_in(*SYNCERS), options=OPTIONS) as daemon:
        await until(lambda: two.copy(CLAIMS, "again"))
        await until(lambda: two.copy(CLAIMS, "data") is None)
        await daemon.settled()
    assert copy is not None
    assert two.copy(SNAPSHOTS, "daily") == copy
    assert dig(two.original(SNAPSHOTS, "daily") or {}, "status") == copy["status"]
    again = two.copy(CLAIMS, "again")
    assert again is not None
    assert dig(again, "spec.dataSource.name") == copy["metadata"]["name"]
    made = [line.rpartition("/")[2] for line in writes(two.host) if line.startswith("create ")]
    assert sorted(made) == [CLAIMS, CLAIMS, "volumesnapshots"]


async def test_snapshots_and_claims_made_from_them_wait_until_both_sides_serve_the_kind(two: Two) -> None:
    two.virtual.put(claim("data"))
    two.virtual.put(claim("again", **source("daily")))
    async with two.daemon(built_in(*SYNCERS), options=OPTIONS) as daemon:
        await until(lambda: two.copy(CLAIMS, "data"))
        await daemon.settled()
        found = daemon.status("again", CLAIMS)
        assert found is not None
        assert (found.state, found.reason.code.name) == (RequestState.PARKED, "DataSourceRefused")

        serve_snapshots(two)
        two.virtual.put(snapshot("daily", of="data"))
        await until(lambda: two.copy(SNAPSHOTS, "daily"))
        await until(lambda: two.copy(CLAIMS, "again"))


async def test_volume_follows_its_claim_and_goes_with_it_although_it_is_protected(two: Two) -> None:
    two.virtual.put(claim("data"))
    async with two.daemon(built_in(*SYNCERS), options=OPTIONS) as daemon, helped_by(protect(two)):
        await until(lambda: two.copy(CLAIMS, "data"))
        provide(two)
        await until(lambda: dig(volume_of(two, "data") or {}, "status.phase") == "Bound")
        volume = volume_of(two, "data")
        assert volume
        assert volume["spec"]["claimRef"]["uid"] == (two.original(CLAIMS, "data") or {})["metadata"]["uid"]
        name = volume["metadata"]["name"]

        copy = two.copy(CLAIMS, "data")
        assert copy
        two.host.put(merged(copy, {"status": {"capacity": {"storage": "2Gi"}}}))
        await until(lambda: dig(volume_of(two, "data") or {}, "spec.capacity.storage") == "2Gi")
        two.virtual.put(merged(volume, {"spec": {"claimRef": {"name": "other"}}}))
        await until(lambda: dig(volume_of(two, "data") or {}, "spec.claimRef.name") == "data")

        await daemon.settled()
        two.virtual.delete(CLAIMS, f"{NAMESPACE}/data")
        await until(lambda: two.virtual.get(VOLUMES, name) is None)


async def test_volume_that_its_tenant_deletes_stays_while_it_is_protected(two: Two) -> None:
    two.virtual.put(claim("data"))
    async with two.daemon(built_in(*SYNCERS), options=OPTIONS) as daemon, helped_by(protect(two)):
        await until(lambda: two.copy(CLAIMS, "data"))
        provide(two)
        await until(lambda: dig(volume_of(two, "data") or {}, "metadata.finalizers"))
        name = (volume_of(two, "data") or {})["metadata"]["name"]
        two.virtual.delete(VOLUMES, name)
        await asyncio.sleep(60)
        await daemon.settled()
        assert dig(two.virtual.get(VOLUMES, name) or {}, "status.phase") == "Bound"
        two.virtual.delete(CLAIMS, f"{NAMESPACE}/data")
        await until(lambda: two.virtual.get(VOLUMES, name) is None)


@pytest.mark.parametrize("keep", [False, True])
async def test_uninstall_removes_protected_volumes(two: Two, keep: bool) -> None:
    given = only(two, CLAIMS, VOLUMES)
    two.virtual.put(claim("data"))
    async with helped_by(protect(two)):

        def is_bound() -> bool:
            provide(two)
            return dig(volume_of(two, "data") or {}, "metadata.finalizers") is not None

        await worked(two, given, is_bound)
        report = await uninstalled(two, given, keep=keep)
    assert report.problems == []
    assert bool(two.virtual.objects(VOLUMES)) == keep
    assert bool(two.original(CLAIMS, "data"))
