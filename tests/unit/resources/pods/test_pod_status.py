"""Status up, conditions of readiness gates down."""

import pytest

from syncer.api import Obj, Pair
from syncer.resources.pods.record import created
from syncer.resources.pods.status import HOST_CLAIMS, gate_conditions, virtual_status
from syncer.testing import World
from syncer.testing.objects import pod, pod_mounting, secret, serviceaccount

GATES = {"readinessGates": [{"conditionType": "example.org/lb"}]}


def condition(kind: str, status: str = "True", **parts: object) -> Obj:
    return {"type": kind, "status": status, **parts}


def reported(virtual: Obj, host: Obj) -> Obj:
    return found(virtual, host) or {}


def found(virtual: Obj, host: Obj) -> Obj | None:
    return virtual_status(Pair(virtual, host), created(virtual))


def test_hosts_status_replaces_the_virtual_one() -> None:
    host = {"phase": "Running", "podIP": "10.0.0.3", "startTime": "2026-01-01T12:00:00Z"}
    virtual = {"phase": "Pending", "message": "an old one"}
    assert reported(pod("web", status=virtual), pod("web", status=host)) == host


def test_host_pod_without_status_changes_nothing() -> None:
    silent = pod("web")
    del silent["status"]
    assert found(pod("web"), silent) is None


def test_scheduled_condition_follows_from_the_binding_alone() -> None:
    placed = {"phase": "Pending", "conditions": [condition("PodScheduled")]}
    assert found(pod("web"), pod("web", status=placed)) is None
    refused = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", reason="Unschedulable")]}
    assert reported(pod("web"), pod("web", status=refused))["conditions"] == refused["conditions"]
    taken = {**placed, "startTime": "2026-01-01T12:00:00Z"}
    assert reported(pod("web"), pod("web", status=taken))["startTime"] == "2026-01-01T12:00:00Z"


def test_quality_of_service_stays_the_virtual_one() -> None:
    virtual, host = pod("web", status={"qosClass": "BestEffort"}), pod("web", status={"qosClass": "Burstable"})
    assert reported(virtual, host)["qosClass"] == "BestEffort"


def test_conditions_are_the_hosts_but_those_of_gates_and_the_tenants_own() -> None:
    virtual = [condition("Ready", "False"), condition("example.org/lb"), condition("example.org/own"), condition("Old")]
    host = [condition("Ready"), condition("example.org/lb", "False"), condition("example.org/own", "Unknown")]
    there = reported(pod("web", spec=GATES, status={"conditions": virtual}), pod("web", status={"conditions": host}))[
        "conditions"
    ]
    assert {one["type"]: one["status"] for one in there} == {
        "Ready": "True",
        "example.org/lb": "True",
        "example.org/own": "Unknown",
        "Old": "True",
    }


def test_condition_that_the_kubelet_has_taken_back_goes() -> None:
    virtual = pod("web", status={"conditions": [condition("PodResizePending"), condition("Ready")]})
    host = pod("web", status={"conditions": [condition("Ready")]})
    assert reported(virtual, host)["conditions"] == [condition("Ready")]


def test_kubernetes_condition_cannot_be_made_the_tenants_by_a_gate() -> None:
    gates = {"readinessGates": [{"conditionType": "Ready"}]}
    virtual = pod("web", spec=gates, status={"conditions": [condition("Ready", "True")]})
    pair = Pair(virtual, pod("web", status={"conditions": [condition("Ready", "False")]}))
    assert gate_conditions(pair) == []
    assert reported(pair.virtual, pair.host)["conditions"] == [condition("Ready", "False")]


def test_disruption_of_the_hosts_is_not_written_by_a_gate() -> None:
    """The host's disruption controller sets the condition; a virtual one of its own stays here."""
    gates = {"readinessGates": [{"conditionType": "DisruptionTarget"}]}
    evicted = condition("DisruptionTarget", "True", reason="EvictionByEvictionAPI")
    virtual = pod("web", spec=gates, status={"conditions": [evicted]})
    running = pod("web", status={"phase": "Running", "conditions": [condition("Ready")]})
    assert gate_conditions(Pair(virtual, running)) == []
    assert evicted in reported(virtual, running)["conditions"]
    ended = condition("DisruptionTarget", "False")
    elsewhere = pod("web", status={"phase": "Running", "conditions": [ended]})
    assert reported(virtual, elsewhere)["conditions"] == [ended]


def test_conditions_flow_down_only_for_gates() -> None:
    conditions = [condition("example.org/lb", observedGeneration=3), condition("Ready")]
    virtual = pod("web", spec=GATES, status={"conditions": conditions})
    assert gate_conditions(Pair(virtual, pod("web"))) == [condition("example.org/lb")]


def test_containers_that_the_host_added_are_not_shown() -> None:
    host = pod("web", status={"containerStatuses": [{"name": "app"}, {"name": "sidecar"}]})
    assert reported(pod("web"), host)["containerStatuses"] == [{"name": "app"}]


def test_generations_are_each_sides_own() -> None:
    ready = condition("Ready", observedGeneration=4)
    virtual = pod("web", metadata={"generation": 2})
    latest = pod("web", metadata={"generation": 4}, status={"observedGeneration": 4, "conditions": [ready]})
    found = reported(virtual, latest)
    assert (found["observedGeneration"], found["conditions"][0]["observedGeneration"]) == (2, 2)
    behind = pod("web", metadata={"generation": 5}, status={"observedGeneration": 4, "conditions": [ready]})
    found = reported(virtual, behind)
    assert "observedGeneration" not in found
    assert found["conditions"] == [condition("Ready")]


def test_messages_name_no_object_of_the_host() -> None:
    virtual = pod_mounting("web", secret="db")
    world = World().given(virtual=[virtual, serviceaccount("default"), secret("db")])
    for kind, key in (("serviceaccounts", "shop/default"), ("secrets", "shop/db"), ("pods", "shop/web")):
        world.settle(kind, key)
    copy = world.copy_of("pods", "shop/web")
    assert copy is not None
    missing = 'secret "db-x-shop-x-vc" not found for web-x-shop-x-vc in vc-ns/db-x-shop-x-vc, namespace vc-ns'
    own = 'exit: "db-x-shop-x-vc"'
    found = {
        "phase": "Pending",
        "startTime": "2026-01-01T12:00:00Z",
        "conditions": [condition("Ready", "False", message=missing)],
        "containerStatuses": [
            {
                "name": copy["spec"]["containers"][0]["name"],
                "state": {"waiting": {"reason": "CreateContainerConfigError", "message": missing}},
                "lastState": {"terminated": {"exitCode": 1, "message": own}},
            }
        ],
    }
    world.given(host=[copy | {"status": found}])
    world.settle("pods", "shop/web")
    there = world.virtual("Pod", "shop/web")
    assert there is not None
    [container] = there["status"]["containerStatuses"]
    expected = 'secret "db" not found for web in shop/db, namespace shop'
    assert there["status"]["conditions"][0]["message"] == expected
    assert container["state"]["waiting"]["message"] == expected
    assert container["lastState"]["terminated"]["message"] == own


@pytest.mark.parametrize("field", HOST_CLAIMS)
def test_claims_for_devices_that_only_the_host_has_are_not_shown_and_the_tenants_stay(field: str) -> None:
    of_host = {"resourceClaimName": "web-x-shop-x-vc-extended-resources-abc"}
    host = pod("web", status={"phase": "Running", field: of_host})
    assert field not in reported(pod("web"), host)
    mine = {"resourceClaimName": "mine"}
    assert reported(pod("web", status={field: mine}), host)[field] == mine
