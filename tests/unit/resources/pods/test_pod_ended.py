"""The status of a Pod that the host runs no more: what a kubelet and PodGC would have set."""

from datetime import UTC, datetime
from typing import Any

import pytest

from syncer.api import Obj
from syncer.resources.pods.ended import LOST, failed_status
from syncer.testing.merge import merged
from syncer.testing.objects import pod

NOW, TIME = datetime(2026, 1, 1, 13, tzinfo=UTC), "2026-01-01T13:00:00Z"
BEFORE = "2026-01-01T12:00:00Z"
RUNNING = {"running": {"startedAt": BEFORE}}
WAITING = {"waiting": {"reason": "PodInitializing"}}
SUCCEEDED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
UNKNOWN = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }
}


def true(kind: str, **parts: Any) -> Obj:
    return {"type": kind, "status": "True", "lastTransitionTime": BEFORE, **parts}


def container(state: Obj, **parts: Any) -> Obj:
    return {"name": "c", "image": "i", "ready": "running" in state, "restartCount": 0, "state": state, **parts}


def failed(status: Obj, *, is_disrupted: bool = True, **spec: Any) -> Obj:
    return failed_status(pod("web", status=status, spec=spec), NOW, is_disrupted=is_disrupted)


def conditions(status: Obj) -> dict[str, Obj]:
    return {one["type"]: {name: value for name, value in one.items() if name != "type"} for one in status["conditions"]}


def test_running_pod_has_failed_by_disruption_and_is_ready_no_more() -> None:
    kinds = ("PodScheduled", "Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready")
    before = {
        "phase": "Running",
        "startTime": BEFORE,
        "podIP": "10.0.0.3",
        "conditions": [true(kind) for kind in kinds],
        "containerStatuses": [container(RUNNING, started=True)],
    }
    status = failed(before)
    assert status["phase"] == "Failed"
    assert (status["startTime"], status["podIP"]) == (BEFORE, "10.0.0.3")
    ended = {"status": "False", "reason": "PodFailed", "lastTransitionTime": TIME}
    assert conditions(status) == {
        "PodScheduled": {"status": "True", "lastTransitionTime": BEFORE},
        "Initialized": {"status": "True", "lastTransitionTime": BEFORE},
        "PodReadyToStartContainers": {"status": "False", "lastTransitionTime": TIME},
        "ContainersReady": ended,
        "Ready": ended,
        "DisruptionTarget": {
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": LOST,
            "lastTransitionTime": TIME,
        },
    }
    assert status["containerStatuses"] == [container(UNKNOWN, started=False)]


def test_pod_that_is_deleted_in_the_virtual_cluster_has_failed_without_a_disruption() -> None:
    assert failed({"phase": "Pending"}, is_disrupted=False) == {"phase": "Failed", "conditions": []}


def test_pod_without_a_status_has_failed() -> None:
    bare = pod("web")
    bare.pop("status", None)
    assert failed_status(bare, NOW, is_disrupted=False) == {"phase": "Failed", "conditions": []}


def test_earlier_disruption_keeps_its_cause() -> None:
    evicted = true("DisruptionTarget", reason="EvictionByEvictionAPI", message="Eviction API: evicting")
    assert failed({"phase": "Running", "conditions": [evicted]})["conditions"] == [evicted]


def test_condition_of_the_tenant_stays() -> None:
    gate = true("example.org/gate")
    assert gate in failed({"phase": "Running", "conditions": [gate, true("Ready")]})["conditions"]


def test_readiness_that_was_lost_before_keeps_its_reason() -> None:
    unready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
    assert unready in failed({"phase": "Running", "conditions": [unready]})["conditions"]


def test_resize_of_an_ended_pod_goes_on_no_more() -> None:
    resizing = [true("PodResizePending"), true("PodResizeInProgress")]
    assert failed({"phase": "Running", "conditions": resizing}, is_disrupted=False)["conditions"] == []


def test_generation_is_the_latest_where_it_was_noted() -> None:
    before_end = pod(
        "web",
        metadata={"generation": 4},
        status={"phase": "Running", "observedGeneration": 3, "conditions": [true("Ready", observedGeneration=3)]},
    )
    status = failed_status(before_end, NOW, is_disrupted=False)
    assert status["observedGeneration"] == 4
    assert conditions(status)["Ready"]["observedGeneration"] == 4


def test_end_state_of_a_container_is_kept() -> None:
    ended = container(SUCCEEDED)
    assert failed({"phase": "Running", "containerStatuses": [ended]})["containerStatuses"] == [ended]


def test_pod_is_not_changed() -> None:
    before_end = pod(
        "web", status={"phase": "Running", "conditions": [true("Ready")], "containerStatuses": [container(RUNNING)]}
    )
    before = merged(before_end, {})
    failed_status(before_end, NOW, is_disrupted=True)
    assert before_end == before


@pytest.mark.parametrize(
    ("inits", "containers", "expected"),
    [
        pytest.param([WAITING], [WAITING], ([UNKNOWN], [WAITING]), id="nothing has begun: the first init container"),
        pytest.param([RUNNING, WAITING], [WAITING], ([UNKNOWN, WAITING], [WAITING]), id="while the first initializes"),
        pytest.param([SUCCEEDED, RUNNING], [WAITING], ([SUCCEEDED, UNKNOWN], [WAITING]), id="while the last does"),
        pytest.param([SUCCEEDED, SUCCEEDED], [WAITING], ([SUCCEEDED, SUCCEEDED], [UNKNOWN]), id="initialized"),
        pytest.param([SUCCEEDED, SUCCEEDED], [RUNNING], ([SUCCEEDED, SUCCEEDED], [UNKNOWN]), id="running"),
    ],
)
def test_containers_that_have_begun_ended_in_an_unknown_way(
    inits: list[Obj], containers: list[Obj], expected: tuple[list[Obj], list[Obj]]
) -> None:
    status = failed(
        {
            "phase": "Pending",
            "initContainerStatuses": [container(state) for state in inits],
            "containerStatuses": [container(state) for state in containers],
        },
        initContainers=[{"name": f"i{number}", "image": "i"} for number, _ in enumerate(inits)],
    )
    parts = ("initContainerStatuses", "containerStatuses")
    assert tuple([one["state"] for one in status[part]] for part in parts) == expected
    assert not any(one["ready"] for part in parts for one in status[part])


@pytest.mark.parametrize(("started", "state"), [(True, UNKNOWN), (False, WAITING)])
def test_sidecar_that_has_started_has_initialized_the_pod(started: bool, state: Obj) -> None:
    status = failed(
        {
            "phase": "Pending",
            "initContainerStatuses": [container(RUNNING, started=started)],
            "containerStatuses": [container(WAITING)],
        },
        initContainers=[{"name": "proxy", "image": "i", "restartPolicy": "Always"}],
    )
    assert [one["state"] for one in status["containerStatuses"]] == [state]


def test_container_that_waits_for_its_next_start_has_begun() -> None:
    again = container(WAITING, lastState={"terminated": {"exitCode": 1}})
    status = failed(
        {"phase": "Running", "initContainerStatuses": [again], "containerStatuses": [container(WAITING)]},
        initContainers=[{"name": "i", "image": "i"}],
    )
    assert [one["state"] for one in status["initContainerStatuses"]] == [UNKNOWN]
    assert [one["state"] for one in status["containerStatuses"]] == [WAITING]


def test_debug_container_that_runs_has_ended_too() -> None:
    debugs = [container(RUNNING), container(WAITING)]
    status = failed({"phase": "Running", "ephemeralContainerStatuses": debugs})
    assert [one["state"] for one in status["ephemeralContainerStatuses"]] == [UNKNOWN, WAITING]
