"""Each kind from end to end on real API servers, by a daemon that may do exactly what `syncer rbac` prints."""

from collections.abc import Callable

import pytest
from api import eventually
from scene import MARKS, Scene, untouched

from syncer.api import Key, Obj, annotations_of, dig, key_of, labels_of, uid_of
from syncer.testing.objects import configmap, event, pod, secret, service, serviceaccount

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


def test_one_made_again_under_its_name_has_a_copy_of_its_own(world: Scene, ns: str) -> None:
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


def test_what_is_changed_or_deleted_on_the_host_is_put_right(world: Scene, ns: str) -> None:
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


def test_a_foreign_object_in_the_way_is_left_alone_and_the_tenant_is_told(world: Scene, ns: str) -> None:
    place = world.host_key("ConfigMap", Key(ns, "taken"))
    foreign = world.host.create(configmap(place.name, {"mine": "yes"}, namespace=place.namespace))
    with untouched(world.host, [foreign]):
        virtual = world.virtual.create(configmap("taken", namespace=ns, metadata=FORCED))
        told = eventually(lambda: world.virtual.list("Event", namespace=ns), "there is an Event")
        assert told[0]["involvedObject"]["uid"] == uid_of(virtual)
        assert (told[0]["type"], told[0]["reason"]) == ("Warning", "NameCollision")
        world.virtual.patch("ConfigMap", key_of(virtual), {"data": {"color": "red"}})
        world.virtual.delete("ConfigMap", key_of(virtual))
        marker = world.virtual.create(configmap("marker", namespace=ns, metadata=FORCED))
        world.copied("ConfigMap", key_of(marker))
    world.host.delete("ConfigMap", place)


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


def test_events_about_a_copy_are_told_in_the_virtual_cluster_in_its_own_words(world: Scene, ns: str) -> None:
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
