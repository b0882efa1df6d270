"""A large object of a tenant costs the daemon neither its memory nor the others their time.

What bounds both is tested here; `hack/bench/hostile` measures what it comes to.
"""

import pytest
from hostile_scene import NAMESPACE, HostileScene, eventually, longest_step

from syncer.api import Obj
from syncer.testing.objects import configmap, namespace, pod, service

#: How many times as much CPU a step of the event loop may take as the longest one until the daemon is quiet, which the
#: attack's don't reach: that tells a daemon that is stopped from a machine that is slow or busy.
LONGER = 10
#: Terms of the affinity of a Pod, which has nearly as many parts as are accepted.
TERMS = 2000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _service(name: str, ports: int) -> Obj:
    return service(name, spec={"ports": [{"name": f"p{port}", "port": port} for port in range(1, ports + 1)]})


def _events(hostile: HostileScene, name: str, reason: str) -> list[Obj]:
    """Return the events about an object of the tenant, with a reason."""
    found = [each for each in hostile.tenant.objects("events") if each["reason"] == reason]
    return [each for each in found if each["involvedObject"]["name"] == name]


def test_variables_of_services_in_many_containers_take_little_memory(hostile: HostileScene) -> None:
    for number in range(6):
        hostile.tenant.put(_service(f"large-{number}", 500))
    hostile.tenant.put(_service("a", 1))
    hostile.start()
    web = pod("web", spec={"containers": [{"name": f"c{number}", "image": "i"} for number in range(500)]})
    hostile.tenant.put(web)
    # 0aeb964 has no copy: it takes 1.1 GB for a body that the host refuses.
    copy = hostile.copied(web)
    hostile.serves_others()
    variables = [each["name"] for each in copy["spec"]["containers"][499].get("env", ())]
    assert [name for name in variables if name.startswith("A_")]
    assert not [name for name in variables if name.startswith("LARGE_")]
    [event] = eventually(lambda: _events(hostile, "web", "ServiceLinksLeftOut"), "there is an Event")
    assert "variables of 6 Services" in event["message"]


def _term(number: int) -> Obj:
    """Return an affinity term whose selector finds all namespaces, and is no other term's."""
    selector = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": [f"x{number}"]}]}
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "namespaceSelector": selector}


def test_selectors_in_many_affinity_terms_stop_no_other_namespace(hostile: HostileScene) -> None:
    more = {f"l{each}": "" for each in range(20)}  # so many that they aren't indexed
    for number in range(300):
        labels = {"team": f"t{number}", **(more if number % 2 else {})}
        hostile.tenant.put(namespace(f"n{number}", metadata={"labels": labels}))
    steps = hostile.folder / "steps.jsonl"
    hostile.start(command=hostile.measured(steps))
    hostile.quiet(seconds=60)
    usual = longest_step(steps)
    terms = [_term(each) for each in range(TERMS)]
    hostile.tenant.put(pod("web", spec={"affinity": {"podAntiAffinity": {REQUIRED: terms}}}))
    hostile.serves_others()
    # 0aeb964 says nothing of this, and takes seconds, in which it serves nobody.
    [event] = eventually(lambda: _events(hostile, "web", "TooLarge"), "there is an Event")
    assert f"spec.affinity: has {TERMS} terms" in event["message"]
    hostile.tenant.patch("namespaces", "n1", metadata={"labels": {"team": "x"}})
    hostile.serves_others()
    hostile.quiet()
    # Without the limits, it takes 24 times as long.
    assert longest_step(steps) < LONGER * usual
    assert hostile.parked()


@pytest.mark.translators("single-namespace", reason="no translator sees the size of a body")
def test_object_that_no_host_accepts_is_not_sent_again_and_again(hostile: HostileScene) -> None:
    hostile.start()
    much = configmap("much", {"a": "\x01" * 700_000}, metadata={"annotations": {"vsyncer.dev/force-sync": "true"}})
    hostile.tenant.put(much)
    # 0aeb964 sends it, every 5 minutes.
    [event] = eventually(lambda: _events(hostile, "much", "TooLarge"), "there is an Event")
    assert "data.a: it would be sent as 4102 KiB" in event["message"]
    assert not [each for each in hostile.asked if each.verb == "create" and each.resource == "configmaps"]
    [parked] = hostile.parked()
    assert parked["key"] == f"{NAMESPACE}/much"
    hostile.tenant.patch("configmaps", f"{NAMESPACE}/much", data={"a": "little"})
    assert hostile.copied(much)["data"] == {"a": "little"}


@pytest.mark.translators("single-namespace", reason="no translator sees lists")
def test_lists_of_large_objects_are_read_in_small_pages(hostile: HostileScene) -> None:
    for number in range(64):
        hostile.tenant.put(configmap(f"a{number}", {"a": "x" * 1_000_000}))
    hostile.start()
    # 0aeb964 reads all of it at once, and takes 237 MB.
    lists = [each for each in hostile.tenant.requests() if each.verb == "list" and each.resource == "configmaps"]
    assert len(lists) >= 8
