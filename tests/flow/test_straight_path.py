"""A tenant's creations, changes and deletions reach the host; the host's status flows back."""

import asyncio
from typing import Any

import pytest
from harness import HOME, Two, built_in, host_path, play, until, writes
from sampled import MADE, define, to_host

from kube_envtest import Rule
from syncer.api import Key, Obj, Side, SyncRequest, annotations_of, labels_of
from syncer.daemon.pages.status import states
from syncer.resources.kinds import ENDPOINT_SLICES, PRIORITY_CLASSES
from syncer.testing.merge import merged
from syncer.testing.objects import (
    NAMESPACE,
    build,
    configmap,
    endpointslice,
    event,
    ingress,
    pod,
    pod_mounting,
    secret,
    service,
    serviceaccount,
)

MAPS = built_in("configmaps")
#: All kinds are on.
EVERYTHING = to_host()

#: A kind, its syncer, an object of it, a change, and what the change must look like on the host.
KINDS: dict[str, tuple[str, Obj, Obj]] = {
    "pods": ("pods", pod("x"), {"metadata": {"labels": {"tier": "gold"}}}),
    **{sample.plural: (sample.name, sample.object("x"), sample.change) for sample in MADE.values()},
}


def covers(found: Any, wanted: Any) -> bool:
    """Return True if all that is wanted is there."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(covers(found.get(name), value) for name, value in wanted.items())
    return bool(found == wanted)


def test_writes_of_our_own_cause_no_further_reconcile(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation, a change and a deletion are three requests."""
    looked: list[str] = []

    async def scenario() -> None:
        async with two.daemon(MAPS) as daemon:
            await daemon.settled()
            handle = daemon.process.workers.handle

            async def noted(request: SyncRequest, changed: float) -> tuple[int, float]:
                looked.append(request.key.name)
                return await handle(request, changed)

            monkeypatch.setattr(daemon.process.workers, "handle", noted)
            pair = two.virtual.put(configmap("x"))
            await daemon.settled()
            two.virtual.put(merged(pair, {"data": {"color": "red"}}))
            await daemon.settled()
            two.virtual.delete("configmaps", "shop/x")
            await daemon.settled()
            assert not two.copy("configmaps", "x")

    play(scenario)
    assert looked == ["x"] * 3


@pytest.mark.parametrize("plural", KINDS)
async def test_create_update_and_delete_arrive(two: Two, plural: str) -> None:
    syncer, obj, change = KINDS[plural]
    define(two.virtual, two.host)
    async with two.daemon(options=EVERYTHING) as daemon:
        await daemon.settled()
        two.virtual.put(obj)
        assert await until(lambda: two.copy(plural, "x")) < 1
        await daemon.settled()
        original, copy = two.original(plural, "x"), two.copy(plural, "x")
        assert original
        assert copy
        marks = annotations_of(copy)
        assert marks["vsyncer.dev/virtual-name"] == "x"
        assert marks["vsyncer.dev/virtual-uid"] == original["metadata"]["uid"]
        assert labels_of(copy)["vsyncer.dev/cluster"] == "vc.vc-ns"

        two.virtual.put(merged(original, change))
        assert await until(lambda: covers(two.copy(plural, "x"), change)) < 1
        await daemon.settled()
        assert daemon.requests(syncer) == []

        two.virtual.delete(plural, "shop/x")
        assert await until(lambda: not two.copy(plural, "x")) < 1
        await daemon.settled()
        assert two.original(plural, "x") is None


async def test_change_costs_one_write_and_no_change_none(two: Two) -> None:
    async with two.daemon(built_in("configmaps")) as daemon:
        await daemon.settled()
        since = len(two.host.requests)
        two.virtual.put(configmap("x"))
        await daemon.settled()
        assert writes(two.host, since) == [f"create /api/v1/namespaces/{HOME}/configmaps"]

        since = len(two.host.requests)
        original = two.original("configmaps", "x")
        assert original
        two.virtual.put(merged(original, {"data": {"color": "red"}}))
        await daemon.settled()
        assert writes(two.host, since) == [f"patch /api/v1/namespaces/{host_path('x').replace('/', '/configmaps/')}"]

        since = len(two.host.requests)
        two.virtual.put(merged(original, {"data": {"color": "red"}, "metadata": {"finalizers": ["x.y/z"]}}))
        await daemon.settled()
        assert writes(two.host, since) == []

        since = len(two.host.requests)
        two.virtual.put(merged(original, {"metadata": {"finalizers": None}}))
        two.virtual.delete("configmaps", "shop/x")
        await daemon.settled()
        assert writes(two.host, since) == [f"delete /api/v1/namespaces/{host_path('x').replace('/', '/configmaps/')}"]
        assert [line for line in writes(two.virtual) if "configmaps" in line] == []


async def test_edit_of_a_copy_on_the_host_is_reverted(two: Two) -> None:
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon() as daemon:
        await daemon.settled()
        copy = two.copy("configmaps", "x")
        assert copy
        two.host.put(merged(copy, {"data": {"color": "red", "extra": "1"}, "metadata": {"labels": {"theirs": "1"}}}))
        await daemon.settled()
        mended = two.copy("configmaps", "x")
        assert mended
        assert mended["data"] == {"color": "blue"}
        assert labels_of(mended)["theirs"] == "1"

        two.host.delete("configmaps", host_path("x"))
        await until(lambda: two.copy("configmaps", "x"))


async def test_labels_that_the_tenant_takes_away_go_also_after_a_restart(two: Two) -> None:
    original = two.virtual.put(configmap("x", metadata={"labels": {"a": "1", "b": "1"}}))
    async with two.daemon() as daemon:
        await daemon.settled()
    two.virtual.put(merged(original, {"metadata": {"labels": {"a": None}}}))
    async with two.daemon() as daemon:
        await daemon.settled()
    copy = two.copy("configmaps", "x")
    assert copy
    assert {name for name in labels_of(copy) if not name.startswith("vsyncer.dev/")} == {"b"}


async def test_secret_follows_the_pods_that_use_it(two: Two) -> None:
    two.virtual.put(secret("db"))
    async with two.daemon(options={}) as daemon:
        await daemon.settled()
        assert two.copy("secrets", "db") is None
        two.virtual.put(pod_mounting("web", secret="db"))
        assert await until(lambda: two.copy("secrets", "db")) < 1
        await until(lambda: two.copy("pods", "web"))
        two.virtual.delete("pods", "shop/web")
        await until(lambda: not two.copy("secrets", "db"))
        assert two.original("secrets", "db")


async def test_endpointslice_follows_the_pods_behind_its_addresses(two: Two) -> None:
    def copied() -> list[str]:
        copy = two.copy("endpointslices.discovery.k8s.io", "db")
        return [address for endpoint in (copy or {}).get("endpoints") or () for address in endpoint["addresses"]]

    labels = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    two.virtual.put(endpointslice("db", "10.1.2.3", "10.1.2.4"))
    two.virtual.put(endpointslice("of-a-controller", "10.1.2.3", metadata={"labels": labels}))
    two.virtual.put(pod("db"))
    async with two.daemon() as daemon:
        await daemon.settled()
        assert copied() == []
        status = {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}
        two.host.put(merged(two.copy("pods", "db") or {}, {"spec": {"nodeName": "n1"}, "status": status}))
        assert await until(lambda: copied() == ["10.1.2.3"]) < 1
        two.host.put(merged(two.copy("pods", "db") or {}, {"status": {"phase": "Failed"}}))
        assert await until(lambda: copied() == []) < 1
        assert two.copy("endpointslices.discovery.k8s.io", "of-a-controller") is None
        cached = daemon.process.pairs["vc"].informers.keys(Side.VIRTUAL, ENDPOINT_SLICES)
        assert [key.name for key in cached] == ["db"], "the others change with each Pod, and cost a watch event"


async def test_endpointslice_that_a_controller_takes_over_loses_its_copy(two: Two) -> None:
    """Also while no daemon runs: the watch doesn't show it any more."""
    taken = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    two.virtual.put(endpointslice("a"))
    two.virtual.put(endpointslice("b"))
    async with two.daemon() as daemon:
        await daemon.settled()
        two.virtual.put(endpointslice("a", metadata={"labels": taken}))
        assert await until(lambda: two.copy("endpointslices.discovery.k8s.io", "a") is None) < 1
    two.virtual.put(endpointslice("b", metadata={"labels": taken}))
    async with two.daemon() as daemon:
        await until(lambda: two.copy("endpointslices.discovery.k8s.io", "b") is None)


async def test_object_recreated_under_its_name_gets_a_new_copy(two: Two) -> None:
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon() as daemon:
        await daemon.settled()
        first = two.copy("configmaps", "x")
        two.virtual.delete("configmaps", "shop/x")
        two.virtual.put(configmap("x", {"color": "green"}))
        await daemon.settled()
        second, original = two.copy("configmaps", "x"), two.original("configmaps", "x")
        assert first
        assert second
        assert original
        assert second["data"] == {"color": "green"}
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert annotations_of(second)["vsyncer.dev/virtual-uid"] == original["metadata"]["uid"]


# -- up --------------------------------------------------------------------------------------------


async def test_node_and_status_of_a_pod_flow_back(two: Two) -> None:
    two.virtual.put(pod("web"))
    async with two.daemon() as daemon:
        await until(lambda: two.copy("pods", "web"))
        copy = two.copy("pods", "web")
        assert copy
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
        status = {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [ready]}
        two.host.put(merged(copy, {"spec": {"nodeName": "n1"}, "status": status}))
        await daemon.settled()
        original = two.original("pods", "web")
        assert original
        assert original["spec"]["nodeName"] == "n1"
        assert original["status"]["phase"] == "Running"
        assert original["status"]["podIP"] == "10.1.2.3"
        assert any(covers(condition, ready) for condition in original["status"]["conditions"])
        node = two.virtual.get("nodes", "n1")
        assert node
        assert labels_of(node)["vsyncer.dev/cluster"] == "vc.vc-ns"
        assert [line for line in writes(two.host) if "/pods/" in line] == [], "the host's status is the kubelet's"

        two.virtual.delete("pods", "shop/web")
        await daemon.settled()
        copy = two.copy("pods", "web")
        assert copy is None or "deletionTimestamp" in copy["metadata"]
        two.host.delete("pods", host_path("web"))
        await until(lambda: not two.virtual.get("nodes", "n1"))


async def test_address_of_a_load_balancer_flows_back(two: Two) -> None:
    two.host.put(service("other", namespace="default", spec={"type": "NodePort"}))  # so that they allocate others
    two.virtual.put(service("web", spec={"type": "LoadBalancer"}))
    async with two.daemon() as daemon:
        await daemon.settled()
        copy = two.copy("services", "web")
        assert copy
        two.host.put(merged(copy, {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}))
        await daemon.settled()
        original = two.original("services", "web")
        assert original
        [published] = original["status"]["loadBalancer"]["ingress"]
        assert published["ip"] == "192.0.2.1"
        ports = [[port["nodePort"] for port in each["spec"]["ports"]] for each in (original, copy)]
        assert ports[0] == ports[1]


async def test_events_about_a_copy_reach_its_original(two: Two) -> None:
    two.virtual.put(pod("web"))
    async with two.daemon() as daemon:
        await until(lambda: two.copy("pods", "web"))
        copy = two.copy("pods", "web")
        assert copy
        name = copy["metadata"]["name"]
        two.host.put(event(f"{name}.17ab", about=copy, message=f"pod {name} is in trouble"))
        await daemon.settled()
        [found_event] = [one for one in two.virtual.objects("events", "shop") if one["reason"] == "BackOff"]
        assert found_event["message"] == "pod web is in trouble"
        assert found_event["involvedObject"]["name"] == "web"


# -- restart ---------------------------------------------------------------------------------------


async def test_restart_with_everything_in_step_writes_nothing(two: Two) -> None:
    for number in range(30):
        two.virtual.put(configmap(f"c{number}", metadata={"labels": {"n": str(number)}}))
        two.virtual.put(secret(f"s{number}"))
    for obj in (
        service("web"),
        service("lb", spec={"type": "LoadBalancer"}),
        ingress("web"),
        serviceaccount("acc"),
    ):
        two.virtual.put(obj)
    two.virtual.put(pod_mounting("web", secret="s1", configmap="c1"))
    async with two.daemon(options=EVERYTHING) as daemon:
        await daemon.settled()
        copy = two.copy("pods", "web")
        assert copy
        two.host.put(merged(copy, {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}))
        await daemon.settled()
    since = len(two.host.requests), len(two.virtual.requests)
    async with two.daemon(options=EVERYTHING) as daemon:
        await daemon.settled()
        assert writes(two.host, since[0], events=True) == []
        assert writes(two.virtual, since[1], events=True) == []
        assert daemon.wrote() == {}


async def test_changes_while_the_daemon_was_away_are_synced(two: Two) -> None:
    kept, gone = two.virtual.put(configmap("kept")), two.virtual.put(configmap("gone"))
    async with two.daemon() as daemon:
        await daemon.settled()
    two.virtual.put(merged(kept, {"data": {"color": "red"}}))
    two.virtual.delete("configmaps", f"shop/{gone['metadata']['name']}")
    two.virtual.put(configmap("new"))
    async with two.daemon() as daemon:
        await daemon.settled()
    changed = two.copy("configmaps", "kept")
    assert changed
    assert changed["data"] == {"color": "red"}
    assert two.copy("configmaps", "gone") is None
    assert two.copy("configmaps", "new")


async def test_deleted_object_takes_no_memory(two: Two) -> None:
    async with two.daemon() as daemon:
        await daemon.settled()
        before = dict(daemon.process.statuses.count())
        for number in range(20):
            two.virtual.put(configmap(f"c{number}"))
            two.virtual.put(pod(f"p{number}"))
        await daemon.settled()
        for number in range(20):
            two.virtual.delete("configmaps", f"shop/c{number}")
            two.virtual.delete("pods", f"shop/p{number}")
        await daemon.settled()
        assert dict(daemon.process.statuses.count()) == before
        assert daemon.process.queue.is_idle()
        assert not [request for request in daemon.process.queue.delayed() if request.key.name.startswith(("c", "p"))]


async def test_summary_counts_the_objects_in_step(two: Two) -> None:
    for number in range(5):
        two.virtual.put(configmap(f"c{number}"))
    two.virtual.put(configmap("alone"))
    two.host.put(configmap(host_path("alone").partition("/")[2], namespace=HOME))
    async with two.daemon(built_in("configmaps")) as daemon:
        await daemon.settled()
        unused = len(
            [one for one in two.virtual.objects("configmaps") if one["metadata"]["name"] == "kube-root-ca.crt"]
        )
        assert dict(states(daemon.process)) == {
            ("vc", "configmaps", "in_step"): 5,
            ("vc", "configmaps", "parked"): 1,
            ("vc", "configmaps", "skipped"): unused,
        }


async def test_requests_that_need_no_write_let_others_have_the_loop(two: Two) -> None:
    for number in range(1000):
        two.virtual.put(configmap(f"x{number}"))
    async with two.daemon(MAPS, options={"configMaps": {"all": True}}) as daemon:
        await daemon.settled()
        for number in range(1000):
            daemon.process.queue.add(SyncRequest("vc", "configmaps", Key(NAMESPACE, f"x{number}")))
        turns = 0
        while not daemon.process.queue.is_idle():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 5, "all were looked at in one go"


async def test_response_to_a_create_flows_back_without_any_event(two: Two) -> None:
    two.host.put(service("other", namespace="default", spec={"type": "NodePort"}))  # so that they allocate others
    two.host.faults.add(Rule(verb="watch", resource="services", drop=True))
    two.virtual.put(service("lb", spec={"type": "LoadBalancer"}))
    async with two.daemon(built_in("services")) as daemon:
        await until(lambda: two.copy("services", "lb"))
        await daemon.settled()
        ports = [
            [port["nodePort"] for port in (each or {})["spec"]["ports"]]
            for each in (two.original("services", "lb"), two.copy("services", "lb"))
        ]
        assert ports[0] == ports[1]


async def test_pod_waits_for_a_priority_class_of_its_tenant_and_for_its_copy(two: Two) -> None:
    """No order of watches may send it without one, as it can't be added later."""
    kinds = built_in("pods", "serviceaccounts", "tenant-priorityclasses")
    two.virtual.put(build(PRIORITY_CLASSES, "high", value=1000))
    two.virtual.put(pod("web", spec={"priorityClassName": "high"}))
    two.virtual.delete(str(PRIORITY_CLASSES), "high")
    two.virtual.put(pod("other"))
    async with two.daemon(kinds, options={"priorityClasses": {"enabled": True, "maxValue": 10}}):
        await until(lambda: two.copy("pods", "other"))
        assert two.copy("pods", "web") is None
        two.virtual.put(build(PRIORITY_CLASSES, "high", value=1000))
        assert await until(lambda: two.copy("pods", "web")) < 3, "sooner than by a timer"
        name = (two.copy("pods", "web") or {})["spec"]["priorityClassName"]
        assert (two.host.get(str(PRIORITY_CLASSES), name) or {})["value"] == 10
