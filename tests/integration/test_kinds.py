"""Each kind from end to end on real API servers, by a daemon that may do exactly what `syncer rbac` prints."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from api import eventually
from scene import MARKS, Scene, untouched

from syncer.api import Key, Obj, annotations_of, dig, key_of, labels_of, uid_of
from syncer.resources.budgets import NOTHING
from syncer.resources.kinds import DISRUPTION_BUDGETS, NETWORK_POLICIES
from syncer.testing.objects import build, configmap, endpointslice, event, pod, secret, service, serviceaccount

pytestmark = pytest.mark.controlplane

#: Copied though no pod uses it.
FORCED = {"annotations": {f"{MARKS.prefix}/force-sync": "true"}}

# -- ConfigMaps and Secrets ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [configmap, secret], ids=["ConfigMap", "Secret"])
def test_contents_labels_and_annotations_follow_and_go_again(world: Scene, ns: str, make: Callable[..., Obj]) -> None:
    metadata = {"labels": {"tier": "gold", "old": "1"}, "annotations": {**FORCED["annotations"], "note": "x"}}
    virtual = world.virtual.create(make("a", {"one": "1", "two": "2"}, namespace=ns, metadata=metadata))
    kind, key = virtual["kind"], Key(ns, "a")
    host = world.copied(kind, key)
    assert host["data"] == virtual["data"]
    change = {"labels": {"tier": "iron", "old": None, "new": "1"}, "annotations": {"note": None}}
    changed = world.virtual.patch(kind, key, {"metadata": change, "data": {"one": virtual["data"]["two"], "two": None}})
    host = world.copied(kind, key, "data", {"one": virtual["data"]["two"]})
    eventually(lambda: world.disagreements([kind], ns) == [], f"the {kind} is as it should be")
    labels = labels_of(world.copied(kind, key))
    assert {name: value for name, value in labels.items() if not MARKS.is_mark(name)} == labels_of(changed)
    world.virtual.delete(kind, key)
    world.gone(kind, key)


def test_object_recreated_under_its_name_gets_a_new_copy(world: Scene, ns: str) -> None:
    key = Key(ns, "a")
    world.virtual.create(configmap("a", namespace=ns, metadata=FORCED))
    first = world.copied("ConfigMap", key)
    world.virtual.delete("ConfigMap", key)
    second = world.virtual.create(configmap("a", {"color": "red"}, namespace=ns, metadata=FORCED))
    host = world.copied("ConfigMap", key, "data.color", "red")
    eventually(
        lambda: annotations_of(world.copied("ConfigMap", key))[MARKS.uid] == uid_of(second),
        "the copy names the new one",
    )
    assert uid_of(host) != uid_of(first)


def test_changes_and_deletions_on_the_host_are_reverted(world: Scene, ns: str) -> None:
    key = Key(ns, "a")
    world.virtual.create(configmap("a", namespace=ns, metadata=FORCED))
    host = key_of(world.copied("ConfigMap", key))
    world.host.patch(
        "ConfigMap", host, {"data": {"color": "red", "more": "x"}, "metadata": {"labels": {"theirs": "1"}}}
    )
    after = world.copied("ConfigMap", key, "data", {"color": "blue"})
    assert labels_of(after)["theirs"] == "1"
    world.host.delete("ConfigMap", host)
    again = world.copied("ConfigMap", key)
    assert uid_of(again) != uid_of(after)


def test_a_foreign_object_in_the_way_is_left_alone_with_an_event(world: Scene, ns: str) -> None:
    host_key = world.host_key("ConfigMap", Key(ns, "taken"))
    foreign = world.host.create(configmap(host_key.name, {"mine": "yes"}, namespace=host_key.namespace))
    with untouched(world.host, [foreign]):
        virtual = world.virtual.create(configmap("taken", namespace=ns, metadata=FORCED))
        events = eventually(lambda: world.virtual.list("Event", namespace=ns), "there is an Event")
        assert events[0]["involvedObject"]["uid"] == uid_of(virtual)
        assert (events[0]["type"], events[0]["reason"]) == ("Warning", "NameCollision")
        world.virtual.patch("ConfigMap", key_of(virtual), {"data": {"color": "red"}})
        world.virtual.delete("ConfigMap", key_of(virtual))
        marker = world.virtual.create(configmap("marker", namespace=ns, metadata=FORCED))
        world.copied("ConfigMap", key_of(marker))
    world.host.delete("ConfigMap", host_key)


def test_a_copy_is_made_soon_after_the_foreign_object_in_its_way_is_gone(world: Scene, ns: str) -> None:
    host_key = world.host_key("ConfigMap", Key(ns, "taken"))
    world.host.create(configmap(host_key.name, {"mine": "yes"}, namespace=host_key.namespace))
    virtual = world.virtual.create(configmap("taken", namespace=ns, metadata=FORCED))
    [events] = eventually(lambda: world.virtual.list("Event", namespace=ns), "there is an Event")
    assert events["message"].startswith("another ConfigMap on the host has the name that this object's copy would get")
    world.host.delete("ConfigMap", host_key)
    world.copied("ConfigMap", key_of(virtual))


# -- Services --------------------------------------------------------------------------------------


def test_a_service_selects_the_pods_of_its_namespace_only(world: Scene, ns: str) -> None:
    world.virtual.create(service("web", (80,), namespace=ns))
    host = world.copied("Service", Key(ns, "web"))
    assert host["spec"]["selector"] == {"app": "web", **MARKS.labels(world.identity, Key(ns, "web"))}
    ports = [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": 80}]
    world.virtual.patch("Service", Key(ns, "web"), {"spec": {"ports": ports, "selector": {"app": None, "tier": "web"}}})
    world.copied("Service", Key(ns, "web"), "spec.ports", ports)
    eventually(lambda: world.disagreements(["Service"], ns) == [], "the Services are as they should be")
    world.virtual.delete("Service", Key(ns, "web"))
    world.gone("Service", Key(ns, "web"))


def test_node_ports_and_addresses_come_back_from_the_host(world: Scene, ns: str) -> None:
    key = Key(ns, "public")
    world.virtual.create(service("public", namespace=ns, spec={"type": "LoadBalancer"}))
    number = world.copied("Service", key)["spec"]["ports"][0]["nodePort"]
    eventually(
        lambda: dig(world.virtual.get("Service", key) or {}, "spec.ports")[0]["nodePort"] == number,
        "the virtual Service has the node port of the host",
    )
    ingress = [{"ip": "192.0.2.7", "ipMode": "VIP"}]
    world.host.patch(
        "Service",
        world.host_key("Service", key),
        {"status": {"loadBalancer": {"ingress": ingress}}},
        subresource="status",
    )
    world.reported("Service", key, "status.loadBalancer.ingress", ingress)
    assert world.copied("Service", key)["spec"]["ports"][0]["nodePort"] == number


def test_endpoints_of_a_service_without_selector_are_the_tenants_running_pods(world: Scene, ns: str) -> None:
    """Written as EndpointSlices, and as Endpoints, of which the virtual controller manager makes slices."""
    world.virtual.create(pod("db", namespace=ns))
    mine = world.ready(Key(ns, "db"))
    address = mine["status"]["podIP"]
    metadata = {"labels": {"endpointslice.kubernetes.io/managed-by": "staff"}}
    for name in ("sliced", "mirrored"):
        world.virtual.create(service(name, namespace=ns, spec={"selector": None}))
    virtual = world.virtual.create(
        endpointslice("sliced", address, "198.51.100.1", service="sliced", namespace=ns, metadata=metadata)
    )
    named = {"kind": "Pod", "namespace": ns, "name": "db"}
    both = [{"ip": address, "targetRef": named}, {"ip": "198.51.100.1"}]
    subsets = [{"addresses": both, "ports": [{"name": "p80", "port": 5432}]}]
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "mirrored"}, "subsets": subsets}
    world.virtual.plane.kubectl("apply", "--namespace", ns, "-f", "-", stdin=json.dumps(endpoints))

    def copied(name: str) -> list[Obj]:
        label = "kubernetes.io/service-name"
        host_key = world.host_key("Service", Key(ns, name))
        slices = world.host.list("EndpointSlice", namespace=host_key.namespace)
        own = (each for each in slices if labels_of(each)[label] == host_key.name)
        return [one for each in own for one in each["endpoints"] or ()]

    def leads_to(name: str, wanted: list[list[str]]) -> bool:
        return [one["addresses"] for one in copied(name)] == wanted

    for name in ("sliced", "mirrored"):
        eventually(partial(leads_to, name, [[address]]), f"{name} leads to it")
    pod_there = world.host_key("Pod", Key(ns, "db"))
    assert copied("mirrored")[0]["targetRef"] == {**named, "namespace": pod_there.namespace, "name": pod_there.name}
    assert (
        labels_of(world.copied("EndpointSlice", key_of(virtual)))["endpointslice.kubernetes.io/managed-by"]
        == "vsyncer.dev"
    )
    events = eventually(
        lambda: [one for one in world.virtual.list("Event", namespace=ns) if one["reason"] == "AddressesLeftOut"],
        "there is an Event about the other address",
    )
    assert "nothing reaches 198.51.100.1 through the Service" in events[0]["message"]
    world.virtual.delete("Pod", key_of(mine))
    for name in ("sliced", "mirrored"):
        eventually(partial(leads_to, name, []), f"{name} leads nowhere")
    # It would stay, and each later daemon would tell the tenant of its addresses.
    world.virtual.delete("EndpointSlice", key_of(virtual))
    [daemon] = world.daemons
    assert daemon.requests(code="403") == 0, daemon.log_text()


def test_a_budgets_copy_has_an_absolute_number_and_changes_by_others_are_reverted(world: Scene, ns: str) -> None:
    """The virtual controller manager works the number out, of the replicas of a Deployment."""
    kind, key, kubectl = "PodDisruptionBudget", Key(ns, "web"), world.virtual.plane.kubectl
    spec = {"maxUnavailable": 1, "selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    world.virtual.create(build(DISRUPTION_BUDGETS, "web", namespace=ns, spec=spec))
    world.copied(kind, key, "spec.minAvailable", NOTHING)
    kubectl("create", "deployment", "web", "--namespace", ns, "--image=registry.example.org/web", "--replicas=3")
    selected = {"matchLabels": {MARKS.cluster: world.identity, MARKS.namespace_label: ns}}
    wanted = {"minAvailable": 2, "selector": selected, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    host = key_of(world.copied(kind, key, "spec", wanted))
    world.host.patch(kind, host, {"spec": {"minAvailable": None, "maxUnavailable": 3}})
    world.copied(kind, key, "spec", wanted)
    kubectl("scale", "deployment", "web", "--namespace", ns, "--replicas=2")
    world.copied(kind, key, "spec", {**wanted, "minAvailable": 1})
    world.virtual.patch(kind, key, {"spec": {"minAvailable": 2, "maxUnavailable": None, "selector": None}})
    world.copied(kind, key, "spec", {"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"})
    world.virtual.delete(kind, key)
    world.gone(kind, key)
    kubectl("delete", "deployment", "web", "--namespace", ns)


def test_a_network_policys_copy_is_for_this_tenants_pods_and_follows_labels_of_namespaces(
    world: Scene, ns: str
) -> None:
    kind, key, plane = "NetworkPolicy", Key(ns, "web"), world.virtual.plane
    team = {"namespaceSelector": {"matchLabels": {"of": ns}}, "podSelector": {"matchLabels": {"app": "front"}}}
    egress = [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [team]}], "egress": egress}
    world.virtual.create(build(NETWORK_POLICIES, "web", namespace=ns, spec=spec))
    cut = [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]}]
    host = world.copied(kind, key, "spec.egress", cut)
    marks = {MARKS.cluster: world.identity}
    assert host["spec"]["podSelector"] == {"matchLabels": {**marks, MARKS.namespace_label: ns}}
    assert not host["spec"].get("ingress"), "no namespace has the label"
    events = eventually(
        lambda: [each for each in world.virtual.list("Event", namespace=ns) if each["reason"] == "NetworkPolicyCut"],
        "there is an Event about the cut rules",
    )
    assert "spec.egress[0].to[0].ipBlock" in events[0]["message"]
    plane.kubectl("label", "namespace", ns, f"of={ns}")
    expressions = [{"key": MARKS.namespace_label, "operator": "In", "values": [ns]}]
    peer = {"podSelector": {"matchLabels": {"app": "front", **marks}, "matchExpressions": expressions}}
    world.copied(kind, key, "spec.ingress", [{"from": [peer]}])
    world.host.patch(kind, key_of(host), {"spec": {"ingress": [{}]}})
    world.copied(kind, key, "spec.ingress", [{"from": [peer]}])
    plane.kubectl("label", "namespace", ns, "of-")
    eventually(lambda: not world.copied(kind, key)["spec"].get("ingress"), "no namespace has the label any more")
    world.virtual.delete(kind, key)
    world.gone(kind, key)


def test_a_service_can_change_its_type_and_become_headless(world: Scene, ns: str) -> None:
    key = Key(ns, "web")
    world.virtual.create(service("web", namespace=ns))
    first = world.copied("Service", key)
    world.virtual.patch("Service", key, {"spec": {"type": "NodePort"}})
    assert uid_of(world.copied("Service", key, "spec.type", "NodePort")) == uid_of(first)
    world.virtual.delete("Service", key)
    world.virtual.create(service("web", namespace=ns, spec={"clusterIP": "None"}))
    again = world.copied("Service", key, "spec.clusterIP", "None")
    assert uid_of(again) != uid_of(first)


# -- ServiceAccounts -------------------------------------------------------------------------------


def test_service_accounts_are_copied_without_rights(world: Scene, ns: str) -> None:
    key = Key(ns, "robot")
    world.virtual.create(serviceaccount("robot", namespace=ns, metadata={"labels": {"team": "a"}}))
    host = world.copied("ServiceAccount", key, "metadata.labels.team", "a")
    assert host["automountServiceAccountToken"] is False
    world.virtual.patch("ServiceAccount", key, {"metadata": {"labels": {"team": "b"}}})
    world.copied("ServiceAccount", key, "metadata.labels.team", "b")
    world.virtual.delete("ServiceAccount", key)
    world.gone("ServiceAccount", key)


# -- Events ----------------------------------------------------------------------------------------


def test_events_about_a_copy_come_up_with_virtual_names(world: Scene, ns: str) -> None:
    virtual = world.virtual.create(pod("web", namespace=ns))
    world.ready(key_of(virtual))
    host = world.copied("Pod", key_of(virtual))
    name = host["metadata"]["name"]
    made = world.host.create(event(f"{name}.1", about=host, message=f"Back-off restarting {name}"))
    key = Key(ns, "web.1")
    found = eventually(lambda: world.virtual.get("Event", key), "the virtual Event is there")
    assert found["message"] == "Back-off restarting web"
    assert found["involvedObject"]["uid"] == uid_of(virtual)
    world.host.patch("Event", key_of(made), {"count": 5})
    world.reported("Event", key, "count", 5)
