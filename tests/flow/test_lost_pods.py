"""A Pod that the host has lost ends as failed before it is deleted, so that whoever waits for its end goes on.

A Job's Pods bear a finalizer until their controller has counted how they ended; with ``podFailurePolicy``, or
``podReplacementPolicy: Failed``, it counts only a Pod in a terminal phase.
"""

import asyncio
from typing import Any

import pytest
from harness import ALL, HOME, Daemon, Two, admin, built_in, host_path, until, writes
from patrol_scene import patrolled

from syncer.api import Key, Obj, Side
from syncer.resources.kinds import PODS
from syncer.testing.merge import merged
from syncer.testing.objects import node, pod, serviceaccount

TRACKED = "batch.kubernetes.io/job-tracking"
STARTED = "2026-01-01T00:00:05Z"
RUNNING = {
    "phase": "Running",
    "startTime": STARTED,
    "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "ContainersReady", "Ready")],
    "containerStatuses": [
        {
            "name": "app",
            "image": "i:1",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": STARTED}},
        }
    ],
}
EVICTED = {
    "phase": "Failed",
    "reason": "Evicted",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
}


async def running(two: Two, **metadata: Any) -> None:
    """Let the Pod x run on the host, with this status on both sides."""
    two.host.put(node("n1"))
    two.virtual.put(serviceaccount("default"))
    two.virtual.put(pod("x", metadata=metadata))
    await until(lambda: two.copy("pods", "x"))
    two.host.put(merged(two.copy("pods", "x") or {}, {"spec": {"nodeName": "n1"}, "status": RUNNING}))
    await until(lambda: original(two).get("status", {}).get("phase") == "Running")


def original(two: Two) -> Obj:
    return two.original("pods", "x") or {}


def condition(obj: Obj, kind: str) -> Obj:
    found = [one for one in obj["status"]["conditions"] if one["type"] == kind]
    return found[0] if found else {}


def failures(two: Two) -> list[str]:
    """Return the writes of statuses of virtual Pods, and their deletions, in order."""
    return [line for line in writes(two.virtual) if line.endswith("/pods/x/status") or line == deletion()]


def deletion() -> str:
    return "delete /api/v1/namespaces/shop/pods/x"


def causes(two: Two) -> list[Obj]:
    return [event for event in two.virtual.objects("events", "shop") if event["reason"] == "HostCopyDeleted"]


async def end(two: Two, daemon: Daemon) -> None:
    """Take the finalizer off, as the Job's controller does; the Pod goes."""
    client = admin(two.virtual, Side.VIRTUAL)
    await client.patch(PODS, Key("shop", "x"), {"metadata": {"finalizers": None}}, kind="merge")
    await daemon.settled()
    assert not original(two)


def must_have_failed(pod: Obj) -> None:
    assert pod["metadata"]["deletionTimestamp"]
    assert pod["status"]["phase"] == "Failed"
    for kind in ("Ready", "ContainersReady"):
        assert (condition(pod, kind)["status"], condition(pod, kind)["reason"]) == ("False", "PodFailed")
    [container] = pod["status"]["containerStatuses"]
    ended = container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")


@pytest.mark.parametrize("step", ["marked", "finalizers"])
async def test_pod_forced_off_the_host_fails_once_its_copy_is_gone(two: Two, step: str) -> None:
    """An API server marks a pod that it deletes without grace, and then removes it; watches may show both."""
    async with two.daemon(options=ALL) as daemon:
        await running(two, finalizers=[TRACKED])
        await daemon.settled()
        marked: Obj = {"deletionTimestamp": "2026-01-01T00:10:00Z", "deletionGracePeriodSeconds": 0}
        if step == "finalizers":
            marked["finalizers"] = ["example.org/hold"]
        two.host.put(merged(two.copy("pods", "x") or {}, {"metadata": marked}))
        await asyncio.sleep(30)
        assert original(two)["status"]["phase"] == "Running"
        assert "deletionTimestamp" not in original(two)["metadata"]
        two.host.put(merged(two.copy("pods", "x") or {}, {"metadata": {"finalizers": None}}))
        two.host.delete("pods", host_path("x"))
        await until(lambda: original(two)["metadata"].get("deletionTimestamp"))
        await daemon.settled()
        must_have_failed(original(two))
        assert condition(original(two), "DisruptionTarget")["reason"] == "DeletionByPodGC"
        await until(lambda: causes(two))
        await end(two, daemon)


@pytest.mark.parametrize("is_away", [False, True], ids=["daemon runs", "daemon is away"])
async def test_pod_that_is_forced_off_the_host_fails_and_goes(two: Two, is_away: bool) -> None:
    async with two.daemon(options=ALL) as daemon:
        await running(two, finalizers=[TRACKED])
        await daemon.settled()
        if not is_away:
            two.host.delete("pods", host_path("x"))
            await until(lambda: original(two)["metadata"].get("deletionTimestamp"))
    if is_away:
        two.host.delete("pods", host_path("x"))
    async with two.daemon(options=ALL) as daemon:
        await until(lambda: original(two)["metadata"].get("deletionTimestamp"))
        await daemon.settled()
        lost = original(two)
        must_have_failed(lost)
        disrupted = condition(lost, "DisruptionTarget")
        assert (disrupted["status"], disrupted["reason"]) == ("True", "DeletionByPodGC")
        await until(lambda: causes(two))
        [event] = causes(two)
        assert event["involvedObject"]["uid"] == lost["metadata"]["uid"]
        assert HOME not in event["message"]
        assert failures(two).count(deletion()) == 1
        assert not two.copy("pods", "x")
        await end(two, daemon)


async def test_pod_without_a_finalizer_fails_before_it_goes(two: Two) -> None:
    async with two.daemon(options=ALL) as daemon:
        await running(two)
        await daemon.settled()
        before = len(failures(two))
        two.host.delete("pods", host_path("x"))
        await until(lambda: not original(two))
        assert failures(two)[before:] == ["patch /api/v1/namespaces/shop/pods/x/status", deletion()]
        await until(lambda: causes(two))
        await daemon.settled()


async def test_terminal_status_from_while_the_daemon_was_away_is_taken_up(two: Two) -> None:
    async with two.daemon(options=ALL) as daemon:
        await running(two, finalizers=[TRACKED])
        await daemon.settled()
    ending = {"deletionTimestamp": "2026-01-01T00:10:00Z", "deletionGracePeriodSeconds": 30}
    two.host.put(merged(two.copy("pods", "x") or {}, {"metadata": ending, "status": EVICTED}))
    async with two.daemon(options=ALL) as daemon:
        await until(lambda: original(two)["status"]["phase"] == "Failed")
        two.host.delete("pods", host_path("x"))
        await daemon.settled()
        assert original(two)["status"]["reason"] == "Evicted"
        assert condition(original(two), "DisruptionTarget")["reason"] == "TerminationByKubelet"
        await until(lambda: len(causes(two)) == 1)
        await end(two, daemon)


async def test_observed_terminal_status_is_kept(two: Two) -> None:
    async with two.daemon(options=ALL) as daemon:
        await running(two, finalizers=[TRACKED])
        two.host.put(merged(two.copy("pods", "x") or {}, {"status": EVICTED}))
        await until(lambda: original(two)["status"]["phase"] == "Failed")
        ended = original(two)["status"]
        two.host.delete("pods", host_path("x"))
        await until(lambda: original(two)["metadata"].get("deletionTimestamp"))
        await daemon.settled()
        assert original(two)["status"] == ended
        await end(two, daemon)


@pytest.mark.parametrize("is_away", [False, True], ids=["daemon runs", "daemon is away"])
async def test_pod_that_the_tenant_deletes_and_the_host_loses_fails_without_a_disruption(
    two: Two, is_away: bool
) -> None:
    async with two.daemon(options=ALL) as daemon:
        await running(two, finalizers=[TRACKED])
        await daemon.settled()
        await admin(two.virtual, Side.VIRTUAL).delete(PODS, Key("shop", "x"), grace=30)
        await until(lambda: (two.copy("pods", "x") or {})["metadata"].get("deletionTimestamp"))
        await daemon.settled()
        if not is_away:
            two.host.delete("pods", host_path("x"))
            await until(lambda: original(two)["status"]["phase"] == "Failed")
    two.host.delete("pods", host_path("x"))
    async with two.daemon(options=ALL) as daemon:
        await until(lambda: original(two)["status"]["phase"] == "Failed")
        await daemon.settled()
        must_have_failed(original(two))
        assert condition(original(two), "DisruptionTarget") == {}
        assert causes(two) == []
        await end(two, daemon)


async def test_daemon_that_ends_between_status_and_deletion_goes_on_with_the_deletion(two: Two) -> None:
    async with two.daemon(options=ALL) as daemon:
        await running(two)
        await daemon.settled()
    failed = {"status": {**RUNNING, "phase": "Failed"}}
    two.virtual.put(merged(original(two), failed))
    two.host.delete("pods", host_path("x"))
    async with two.daemon(options=ALL) as daemon:
        await until(lambda: not original(two))
        await daemon.settled()


@pytest.mark.parametrize("is_deleted", [False, True], ids=["alive", "deleted"])
async def test_host_that_shows_an_older_state_makes_no_pod_fail(two: Two, is_deleted: bool) -> None:
    before = two.host.revision
    async with two.daemon(built_in("pods", "serviceaccounts", "nodes")) as daemon:
        await running(two, finalizers=[TRACKED])
        await daemon.settled()
    if is_deleted:
        await admin(two.virtual, Side.VIRTUAL).delete(PODS, Key("shop", "x"), grace=30)
    lag = two.host.lag(before)
    async with two.daemon(built_in("pods", "serviceaccounts", "nodes")) as daemon:
        await asyncio.sleep(700)
        assert original(two)["status"]["phase"] == "Running"
        lag.end()
        await daemon.settled(patience=30)
        assert original(two)["status"]["phase"] == "Running"
        assert two.copy("pods", "x")


async def test_pods_with_a_stopped_deletion_do_not_fail_either(two: Two) -> None:
    """A host that comes back empty costs neither Pods nor their phases, until a person confirms it."""
    names = [f"p{number}" for number in range(9)]
    two.host.put(node("n1"))
    two.virtual.put(serviceaccount("default"))
    for name in names:
        two.virtual.put(pod(name))
    async with patrolled(two) as daemon:
        await until(lambda: all(two.copy("pods", name) for name in names))
        for name in names:
            copy = two.copy("pods", name) or {}
            two.host.put(merged(copy, {"spec": {"nodeName": "n1"}, "status": RUNNING}))
        await until(lambda: phases(two, names) == {"Running"})
        await daemon.settled()
    for name in names:
        two.host.delete("pods", host_path(name))
    async with patrolled(two, breaker={"count": 5}) as daemon:
        await asyncio.sleep(60)
        assert phases(two, names) == {"Running"}
        assert len(daemon.requests("pods")) == len(names)


@pytest.mark.parametrize("how", ["report", "ignore"])
async def test_pods_that_are_left_alone_do_not_fail_either(two: Two, how: str) -> None:
    async with two.daemon() as daemon:
        await running(two)
        await daemon.settled()
    two.host.delete("pods", host_path("x"))
    async with patrolled(two, drift={"orphan": how}):
        await asyncio.sleep(60)
        assert original(two)["status"]["phase"] == "Running"


def phases(two: Two, names: list[str]) -> set[str]:
    """Return the phases that these Pods have in the virtual cluster."""
    return {(two.original("pods", name) or {}).get("status", {}).get("phase", "") for name in names}
