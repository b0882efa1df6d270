"""`syncer explain` and `syncer list` give the state and the reason of each object."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest
from harness import (
    ALL,
    CLUSTER,
    HOME,
    NAMESPACE,
    Daemon,
    Tenant,
    Two,
    add,
    built_in,
    configured,
    host_path,
    until,
    utcnow,
    writes,
)
from shop_scene import settled, the_copy
from small_syncers import Widgets

from syncer.api import Key, Obj, Refused, Side
from syncer.clusters.client import SideClient
from syncer.clusters.dry_run import DryRun
from syncer.daemon.answer_once import explain_here, list_here
from syncer.daemon.pages.control import explain, listed, selection
from syncer.daemon.pages.explain import row, status_of
from syncer.daemon.pages.listing import STATES, ObjectFilter, page
from syncer.daemon.pages.live_objects import MOST_EVENTS
from syncer.daemon.process import Process
from syncer.observe.metrics import Metrics
from syncer.testing.objects import configmap, event, pod, secret

PAUSED = "vsyncer.dev/paused"


async def one(daemon: Daemon, kind: str, key: str) -> dict[str, Any]:
    """Return the only explanation of an object."""
    found = await explain(daemon.process, cluster="vc", kind=kind, key=key)
    assert len(found) == 1
    return found[0]


async def states(daemon: Daemon, **query: str) -> dict[str, str]:
    """Return the codes of the listed objects by name; of those in step the state."""
    page = await listed(daemon.process, query)
    assert not page.next
    return {each["key"]: each["code"] or each["state"] for each in page.items}


async def without_daemon(two: Two, options: Mapping[str, Any]) -> Process:
    """Return the process of a command that has no daemon to ask."""
    process = Process(
        host=SideClient("host", Side.HOST, DryRun(two.host.transport())),
        metrics=Metrics(version="test"),
        utcnow=utcnow,
        rng=random.Random(1),
    )
    add(process, configured(Tenant(two.virtual, options=options)), two.virtual)
    await process.prepare()
    return process


async def offline(two: Two, kind: str, key: str, options: Mapping[str, Any] = ALL) -> dict[str, Any]:
    """Return the only explanation of an object by a command, without a daemon."""
    process = await without_daemon(two, options)
    [found] = await explain_here(process, process.pairs[CLUSTER], kind=kind, key=key)
    return found


def labelled(obj: Obj, **labels: str) -> Obj:
    obj["metadata"]["labels"] = labels
    return obj


def annotated(obj: Obj, **annotations: str) -> Obj:
    obj["metadata"]["annotations"] = {PAUSED: annotations["paused"]}
    return obj


async def test_object_in_step_is_explained_from_either_name(two: Two) -> None:
    two.virtual.put(configmap("x", {"a": "b"}))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        here = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert (here["state"], here["code"], here["hostKey"]) == ("in_step", "", host_path("x"))
        assert here["steps"] == [{"policy": "Sync.sync", "what": "is asked"}]
        assert here["drift"] == []
        assert here["owners"]["virtual"]
        assert {each["side"] for each in here["managers"] if each["ours"]} == {"host"}
        there = await one(daemon, "ConfigMap", host_path("x"))
        assert there == here


async def test_object_without_a_match_is_skipped_by_its_selector(two: Two) -> None:
    two.virtual.put(configmap("hidden"))
    two.virtual.put(labelled(configmap("shown"), team="a"))
    options = {"configMaps": {"all": True, "selector": {"matchLabels": {"team": "a"}}}}
    async with settled(two.daemon(built_in("configmaps"), options=options)) as daemon:
        found = await one(daemon, "configmaps", f"{NAMESPACE}/hidden")
        assert (found["state"], found["code"]) == ("skipped", "NotSelected")
        assert "sync.toHost.configMaps.selector" in found["wayOut"]
        assert {"policy": "selection", "what": f"decides: {found['reason']}"} in found["steps"]
        listed_names = await states(daemon, states="skipped", namespace=NAMESPACE)
        assert listed_names[f"{NAMESPACE}/hidden"] == "NotSelected"
        assert f"{NAMESPACE}/shown" not in listed_names


async def test_paused_object_names_the_annotation(two: Two) -> None:
    two.virtual.put(annotated(configmap("x"), paused="true"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert (found["state"], found["code"]) == ("paused", "Paused")
        assert found["wayOut"] == (f"remove the annotation {PAUSED} from the virtual ConfigMap {NAMESPACE}/x")
        assert daemon.process.statuses.count()["vc", "configmaps", "paused"] == 1


async def test_waiting_object_names_the_object_it_waits_for(two: Two) -> None:
    account: Obj = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account["metadata"] = {"name": "own", "namespace": NAMESPACE}
    two.virtual.put(annotated(account, paused="true"))
    two.virtual.put(pod("web", spec={"serviceAccountName": "own", "containers": [{"name": "a", "image": "a"}]}))
    async with settled(two.daemon(built_in("pods", "serviceaccounts"))) as daemon:
        found = await one(daemon, "pods", f"{NAMESPACE}/web")
        assert (found["state"], found["code"]) == ("pending", "AccountNotOnHost")
        assert any("ServiceAccount" in wake for wake in found["wakes"])
        assert (found["onVirtual"], found["onHost"]) == (True, False)


async def test_pod_in_step_names_what_its_copy_lacks(two: Two) -> None:
    sources: list[Obj] = [{"secretRef": {"name": "there"}}, {"configMapRef": {"name": "hidden"}}]
    sources += [{"secretRef": {"name": "none"}}, {"secretRef": {"name": "perhaps", "optional": True}}]
    two.virtual.put(secret("there"))
    two.virtual.put(labelled(configmap("hidden"), team="b"))
    two.virtual.put(pod("web", spec={"containers": [{"name": "a", "image": "a", "envFrom": sources}]}))
    options = {"configMaps": {"selector": {"matchLabels": {"team": "a"}}}}
    async with settled(two.daemon(options=options)) as daemon:
        both = await explain(daemon.process, cluster="vc", kind="Pod", key=f"{NAMESPACE}/web")
        [found] = [each for each in both if each["syncer"] == "pods"]
        assert found["onHost"]
        lacks = {each["object"]: each["code"] for each in found["lacks"]}
        assert lacks == {
            f"ConfigMap {NAMESPACE}/hidden": "NotSelected",
            f"ConfigMap {NAMESPACE}/kube-root-ca.crt": "NotSelected",
            f"Secret {NAMESPACE}/none": "NoObject",
        }


async def test_object_with_a_taken_name_is_parked(two: Two) -> None:
    name = host_path("x").partition("/")[2]
    two.host.put(configmap(name, namespace=HOME))
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert (found["state"], found["code"]) == ("parked", "NameCollision")
        assert found["tried"] >= 1


async def test_object_in_step_again_still_has_its_last_error_and_its_last_write(two: Two) -> None:
    name = host_path("x").partition("/")[2]
    two.host.put(configmap(name, namespace=HOME))
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        parked = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert (parked["lastError"]["message"], parked["lastWrite"]) == (parked["reason"], None)
        two.host.delete("configmaps", host_path("x"))
        await until(lambda: daemon.status("x") is None)
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert found["state"] == "in_step"
        assert found["lastError"]["message"] == parked["reason"]
        [wrote] = [each["time"] for each in found["managers"] if each["ours"]]
        assert found["lastWrite"] == {"side": "host", "time": wrote}


async def test_unused_object_is_skipped_with_the_option(two: Two) -> None:
    two.virtual.put(secret("x"))
    async with settled(two.daemon(built_in("secrets", "pods"), options={})) as daemon:
        found = await one(daemon, "secrets", f"{NAMESPACE}/x")
        assert (found["state"], found["code"]) == ("skipped", "Unused")


async def test_absent_object_is_explained_as_absent(two: Two) -> None:
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        found = await one(daemon, "configmaps", f"{NAMESPACE}/nothing")
        assert (found["state"], found["code"]) == ("skipped", "NoObject")


async def test_command_without_a_daemon_gives_the_same_reasons(two: Two) -> None:
    two.virtual.put(configmap("there"))
    two.virtual.put(annotated(configmap("paused"), paused="true"))
    two.virtual.put(labelled(configmap("hidden"), team="b"))
    options = {
        "configMaps": {"all": True, "selector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}
    }
    async with settled(two.daemon(options=options)) as daemon:
        names = ("there", "paused", "hidden", "nothing")
        before = [await one(daemon, "configmaps", f"{NAMESPACE}/{name}") for name in names]
    since = len(two.host.requests)
    after = [await offline(two, "configmaps", f"{NAMESPACE}/{name}", options) for name in names]
    for name in ("state", "code", "reason", "wayOut", "steps", "hostKey", "onHost"):
        assert [each[name] for each in after] == [each[name] for each in before]
    assert writes(two.host, since, events=True) == []


@pytest.mark.reason("Unwritten")
async def test_command_without_a_daemon_counts_pending_writes(two: Two) -> None:
    two.virtual.put(configmap("x"))
    found = await offline(two, "configmaps", f"{NAMESPACE}/x")
    assert (found["state"], found["code"]) == ("pending", "Unwritten")
    assert [each["class"] for each in found["drift"]] == ["missing"]


async def test_explanation_changes_nothing(two: Two) -> None:
    two.virtual.put(annotated(configmap("x"), paused="true"))
    two.virtual.put(configmap("y"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        before = (dict(daemon.process.statuses.count()), dict(daemon.wrote()))
        for name in ("x", "y", "z"):
            await one(daemon, "configmaps", f"{NAMESPACE}/{name}")
        assert (dict(daemon.process.statuses.count()), dict(daemon.wrote())) == before


async def test_list_comes_in_pages_without_a_gap(two: Two) -> None:
    for number in range(25):
        two.virtual.put(configmap(f"c{number}"))
    async with settled(two.daemon(built_in("configmaps", "secrets"))) as daemon:
        chosen = selection(daemon.process)
        wanted = ObjectFilter(STATES, namespace=NAMESPACE)
        names: list[str] = []
        begin = ""
        while True:
            part = await page(daemon.process, chosen.pairs, chosen.syncers, wanted, begin=begin, most=4)
            names += [each["key"] for each in part.items]
            begin = part.next
            if not begin:
                break
        assert sorted(names) == sorted({*names})
        assert {f"{NAMESPACE}/c{number}" for number in range(25)} <= set(names)


@pytest.mark.parametrize("together", [1, 4, 500])
async def test_list_is_whole_however_many_are_sorted_together(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr("syncer.daemon.pages.listing.SORTED", together)
    two = Two()
    for number in range(25):
        two.virtual.put(labelled(configmap(f"c{number:02}"), parity="odd" if number % 2 else "even"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        found = await states(daemon, states="in_step", selector="parity=odd")
        assert list(found) == [f"{NAMESPACE}/c{number:02}" for number in range(1, 25, 2)]


async def test_syncer_that_stops_while_it_is_listed_ends_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.daemon.pages.listing.STEP", 5)
    two = Two()
    for number in range(25):
        two.virtual.put(configmap(f"c{number}"))
    async with settled(two.daemon(built_in("configmaps", "secrets"))) as daemon:
        pair = daemon.process.pairs[CLUSTER]
        controllers = dict(pair.controllers)
        listing = asyncio.create_task(listed(daemon.process, {}))
        for _ in range(2):  # it sorts the objects, and has shown some
            await asyncio.sleep(0)
        pair.controllers.clear()
        try:
            found = await listing
        finally:
            pair.controllers.update(controllers)
        assert 0 < len(found.items) < 25


@pytest.mark.parametrize("states", ["in_step,pending,skipped,failing,parked,paused,frozen", "paused,skipped"])
async def test_list_without_a_daemon_has_the_same_objects(two: Two, states: str) -> None:
    for number in range(5):
        two.virtual.put(configmap(f"c{number}"))
    two.virtual.put(annotated(configmap("paused"), paused="true"))
    two.virtual.put(labelled(configmap("hidden"), team="b"))
    options = {
        "configMaps": {"all": True, "selector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}
    }
    query = {"states": states, "namespace": NAMESPACE}
    async with settled(two.daemon(options=options)) as daemon:
        before = await listed(daemon.process, query)
    since = len(two.host.requests)
    process = await without_daemon(two, options)
    after = await list_here(process, process.pairs[CLUSTER], query)
    for name in ("syncer", "key", "hostKey", "state", "code", "reason", "onHost"):
        assert [each[name] for each in after.items] == [each[name] for each in before.items]
    assert {f"{NAMESPACE}/paused", f"{NAMESPACE}/hidden"} < {each["key"] for each in after.items}
    assert writes(two.host, since, events=True) == []


async def test_list_without_a_daemon_has_copies_without_an_original(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))):
        pass
    two.virtual.delete("configmaps", f"{NAMESPACE}/x")
    process = await without_daemon(two, ALL)
    query = {"kind": "configmaps", "namespace": NAMESPACE, "states": "pending"}
    found = await list_here(process, process.pairs[CLUSTER], query)
    assert [(each["key"], each["code"]) for each in found.items] == [(f"{NAMESPACE}/x", "Unwritten")]


async def test_wrong_words_without_a_daemon_are_named(two: Two) -> None:
    process = await without_daemon(two, ALL)
    with pytest.raises(Refused, match="nothing that is synced is called 'cows'"):
        await explain_here(process, process.pairs[CLUSTER], kind="cows", key="shop/x")
    process = await without_daemon(two, ALL)
    with pytest.raises(Refused, match="there is no state 'lost'"):
        await list_here(process, process.pairs[CLUSTER], {"states": "lost"})


async def test_kind_without_its_definition_is_not_listed_and_says_why() -> None:
    async with settled(Two().daemon([Widgets, *built_in("configmaps")])) as daemon:
        for query in ({}, {"kind": "widgets"}):
            found = await listed(daemon.process, query)
            assert list(found.unlisted) == [f"{CLUSTER}/widgets"]
            assert "widgets" in found.unlisted[f"{CLUSTER}/widgets"]
        assert (await listed(daemon.process, {"kind": "configmaps"})).unlisted == {}


async def test_list_takes_labels_and_states(two: Two) -> None:
    two.virtual.put(labelled(configmap("a"), app="web"))
    two.virtual.put(labelled(configmap("b"), app="db"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        found = await states(daemon, states="in_step", selector="app in (web, api)")
        assert found == {f"{NAMESPACE}/a": "in_step"}
        assert f"{NAMESPACE}/b" in await states(daemon, states="in_step", selector="app!=web")


async def test_latest_events_of_the_host_about_a_copy_are_shown(two: Two) -> None:
    two.virtual.put(configmap("x"))
    two.virtual.put(configmap("y"))
    async with settled(two.daemon(built_in("configmaps", "events"))) as daemon:
        copies = {name: the_copy(two, "configmaps", name) for name in "xy"}
        for number in range(MOST_EVENTS + 2):
            seen = f"2026-01-01T12:00:{number:02}Z"
            two.host.put(event(f"e{number}", about=copies["x"], message=f"number {number}", lastTimestamp=seen))
        two.host.put(event("other", about=copies["y"]))
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        latest = [f"number {number}" for number in range(MOST_EVENTS + 1, 1, -1)]
        assert [each["message"] for each in found["hostEvents"]] == latest
        assert found["hostEvents"][0] == {
            "type": "Warning",
            "reason": "BackOff",
            "message": f"number {MOST_EVENTS + 1}",
            "count": 1,
            "time": f"2026-01-01T12:00:{MOST_EVENTS + 1:02}Z",
        }


@pytest.mark.reason("NamespaceTerminating")
async def test_host_namespace_that_is_being_deleted_is_named_with_its_finalizers(two: Two) -> None:
    leftover = configmap("leftover", namespace=HOME)
    leftover["metadata"]["finalizers"] = ["example.org/hold"]
    two.host.put(leftover)
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        two.host.delete("namespaces", HOME)
        two.virtual.put(configmap("x"))
        await until(lambda: daemon.status("x"))
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert (found["state"], found["code"]) == ("failing", "NamespaceTerminating")
        assert "kubectl get namespace" in found["wayOut"]
        await asyncio.sleep(30)  # its controller says what it waits for
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        [ending] = found["ending"]
        assert ending["object"] == f"the host Namespace {HOME}"
        assert "resources are remaining" in "; ".join(ending["conditions"])


async def test_events_of_the_host_are_not_read_where_they_are_not_synced(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        since = len(two.host.requests)
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert found["hostEvents"] == []
        assert [each.path for each in list(two.host.requests)[since:] if "events" in each.path] == []


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("ingress", "it is off; set sync.toHost.ingresses.enabled"),
        ("ing", "it is off; set sync.toHost.ingresses.enabled"),
        (
            "deployments.apps",
            "Deployment is a kind of the virtual cluster alone",
        ),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy is a kind of the virtual cluster alone"),
        ("endpoints", "Endpoints is a kind of the virtual cluster alone"),
        ("cows", "there are secrets; a kind of a CRD is synced by an entry of sync.custom"),
    ],
)
async def test_kind_that_is_not_synced_is_answered_with_why(kind: str, says: str) -> None:
    async with settled(Two().daemon(built_in("secrets"))) as daemon:
        with pytest.raises(Refused) as refused:
            await explain(daemon.process, cluster="", kind=kind, key=f"{NAMESPACE}/x")
        assert says in str(refused.value)


async def test_kind_is_found_by_its_short_name(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        assert (await one(daemon, "cm", f"{NAMESPACE}/x"))["syncer"] == "configmaps"


async def test_retry_of_a_kind_that_waits_for_its_definition_says_so() -> None:
    async with settled(Two().daemon([Widgets, *built_in("configmaps")])) as daemon:
        with pytest.raises(Refused, match="the syncer widgets waits: "):
            selection(daemon.process, kinds=("widgets",))


@pytest.mark.reason("SyncerWaits")
async def test_object_waits_for_the_definition_of_its_kind() -> None:
    async with settled(Two().daemon([Widgets])) as daemon:
        found = await one(daemon, "widgets", f"{NAMESPACE}/x")
        assert (found["state"], found["code"]) == ("pending", "SyncerWaits")


async def test_cluster_that_waits_hides_no_explanation_of_another(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        process = daemon.process
        waits = {"cluster": "other", "state": "pending"}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("syncer.daemon.pages.control.waiting_syncers", lambda *_: iter([waits]))
            found = await explain(process, cluster="", kind="configmaps", key=f"{NAMESPACE}/x")
        assert [each["cluster"] for each in found] == [CLUSTER, "other"]
        assert found[0]["state"] == "in_step"


@pytest.mark.reason("Queued")
async def test_object_in_the_queue_is_pending(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        process = daemon.process
        controller = process.pairs[CLUSTER].controllers["configmaps"]
        request = controller.request(Key(NAMESPACE, "x"))
        process.queue.add(request)
        status = status_of(process, process.pairs[CLUSTER], controller, request)
        found = row(process, controller, request, status)
        assert (found["state"], found["code"]) == ("pending", "Queued")


@pytest.mark.reason("SyncerStarts")
async def test_object_of_a_syncer_that_starts_is_pending(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        controller = daemon.process.pairs[CLUSTER].controllers["configmaps"]
        controller.ready = False
        found = await one(daemon, "configmaps", f"{NAMESPACE}/x")
        assert (found["state"], found["code"]) == ("pending", "SyncerStarts")
        assert "steps" not in found
