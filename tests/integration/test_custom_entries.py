"""Each way in which an entry of `sync.custom` can say how a kind is synced, on real API servers."""

from collections.abc import Iterator
from typing import Any

import pytest
from api import Api, Loop, eventually
from definitions import named, resource
from scene import MARKS, Scene, untouched

from syncer.api import Key, Obj, annotations_of, dig, key_of, uid_of
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, crd, crd_version

pytestmark = pytest.mark.controlplane

GROUP = "entries.example.com"


def kind(plural: str, **parts: Any) -> Obj:
    return crd(f"{plural}.{GROUP}", **parts)


CHECKED = {"type": "object", "properties": {"color": {"type": "string", "enum": ["red", "blue"]}}}
STRICT = crd_version("v1", storage=True, schema={"openAPIV3Schema": {"properties": {"spec": CHECKED}}})


def whole(**fields: Obj) -> list[Obj]:
    """Return the versions of a kind with these top-level fields, and no `spec`."""
    made = crd_version("v1", storage=True)
    made["schema"] = {"openAPIV3Schema": {"type": "object", "properties": fields}}
    return [made]


ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Obj = {"type": "string"}

KEPT = kind("kepts")
NAMED = kind("nameds")
OWNERS = kind("owners")
STRICTS = kind("stricts", versions=[STRICT])
CATALOGS = kind("catalogs", scope="Cluster")
OFFERS = kind("offers")
TEMPLATES = kind(
    "templates", versions=whole(parts={"type": "array", "items": ANYTHING}, values=ANYTHING, status=ANYTHING)
)
#: As the CRD of the project, whose group ends as those of Kubernetes do.
CLASSES = crd(
    "volumesnapshotclasses.snapshot.storage.k8s.io",
    whole(driver=TEXT, deletionPolicy=TEXT, parameters=ANYTHING),
    scope="Cluster",
    metadata={"annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
    spec={
        "names": {
            "kind": "VolumeSnapshotClass",
            "listKind": "VolumeSnapshotClassList",
            "singular": "volumesnapshotclass",
        }
    },
)
ALL = (KEPT, NAMED, OWNERS, STRICTS, CATALOGS, OFFERS, TEMPLATES, CLASSES)


def entries(scene: Scene) -> Obj:
    by_owner = {"resource": "configmaps", "origin": "host", "by": {"owner": True}}
    by_label = {"resource": "configmaps", "by": {"selector": {"matchLabels": {"owner": "{name}"}}}}
    wanted = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}
    return {
        f"kepts.{GROUP}": {"onDelete": "retain"},
        f"nameds.{GROUP}": {"name": "{name}.{namespace}", "selector": wanted},
        f"owners.{GROUP}": {"related": [by_owner, by_label]},
        f"stricts.{GROUP}": {
            "patches": {"down": [{"path": "spec.color", "cel": "value == 'red' ? 'dark red' : value"}]}
        },
        f"catalogs.{GROUP}": {"direction": "fromHost", "selector": {"matchLabels": {"for": "tenants"}}},
        f"templates.{GROUP}": {},
        named(CLASSES).name: {"direction": "fromHost"},
        f"offers.{GROUP}": {"direction": "fromHost", "namespaces": {f"{scene.name}-market": f"{scene.name}-0"}},
    }


@pytest.fixture(scope="module")
def platform(apis: tuple[Api, Api], loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Kinds that both sides have, and a daemon without a right too many."""
    made = Scene(*apis, tmp_path_factory.mktemp("entries"))
    made.definitions += [named(each).name for each in ALL]
    made.host.make_namespace(f"{made.name}-market")
    made.namespace()
    try:
        for each in ALL:
            for api in made.sides:
                api.define(each)
        running = made.daemon(made.config(user="daemon", sync={"custom": entries(made)}))
        made.grant(running, "daemon")
        running.start()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def content(platform: Scene) -> Iterator[None]:
    """The test fails where the daemon was refused something, or wrote what changed nothing."""
    yield
    platform.must_be_content()


def test_a_retained_copy_is_taken_over_by_the_next_of_its_name(platform: Scene) -> None:
    key = Key(platform.namespace(), "db")
    first = platform.virtual.create(resource(KEPT, *reversed(key), spec={"size": 1}))
    copy = platform.copied("Kept", key)
    with untouched(platform.host, [copy]):
        platform.virtual.delete("Kept", key)
        eventually(lambda: platform.virtual.get("Kept", key) is None, "the virtual one is gone")
        platform.virtual.create(resource(NAMED, "marker", key.namespace, metadata={"labels": {"tier": "gold"}}))
        eventually(lambda: platform.host.get("Named", _named(platform, "marker", key)), "the marker is there")
    second = platform.virtual.create(resource(KEPT, *reversed(key), spec={"size": 2}))
    after = platform.copied("Kept", key, "spec.size", 2)
    assert uid_of(after) == uid_of(copy)
    assert annotations_of(copy)[MARKS.uid] == uid_of(first)
    assert annotations_of(after)[MARKS.uid] == uid_of(second)


def _named(platform: Scene, name: str, key: Key) -> Key:
    return Key(platform.host_namespace, f"{name}.{key.namespace}")


def test_selected_objects_get_names_from_the_template(platform: Scene) -> None:
    key = Key(platform.namespace(), "a")
    platform.virtual.create(resource(NAMED, *reversed(key), metadata={"labels": {"tier": "iron"}}))
    platform.virtual.create(resource(NAMED, "b", key.namespace, metadata={"labels": {"tier": "gold"}}))
    eventually(lambda: platform.host.get("Named", _named(platform, "b", key)), "what is selected is there")
    assert platform.host.get("Named", _named(platform, "a", key)) is None
    platform.virtual.patch("Named", key, {"metadata": {"labels": {"tier": "gold"}}})
    eventually(lambda: platform.host.get("Named", _named(platform, "a", key)), "it is there, too")
    platform.virtual.patch("Named", key, {"metadata": {"labels": {"tier": "iron"}}})
    eventually(lambda: not platform.host.get("Named", _named(platform, "a", key)), "it is gone again")


def test_objects_related_by_labels_or_owner_go_along(platform: Scene) -> None:
    key = Key(platform.namespace(), "db")
    platform.virtual.create(resource(OWNERS, *reversed(key)))
    copy = platform.copied("Owner", key)
    labels = {"labels": {"owner": "db"}}
    platform.virtual.create(configmap("own", namespace=key.namespace, metadata=labels))
    platform.copied("ConfigMap", Key(key.namespace, "own"))
    owner = {"apiVersion": copy["apiVersion"], "kind": "Owner", "name": copy["metadata"]["name"], "uid": uid_of(copy)}
    made = configmap(f"{platform.name}-made", namespace=platform.host_namespace)
    platform.host.create(merged(made, {"metadata": {"ownerReferences": [owner]}}))
    platform.host.create(configmap(f"{platform.name}-other", namespace=platform.host_namespace))
    shown = Key(key.namespace, f"{platform.name}-made")
    found = eventually(lambda: platform.virtual.get("ConfigMap", shown), "what the host made is there")
    assert found["data"] == made["data"]
    assert platform.virtual.get("ConfigMap", Key(key.namespace, f"{platform.name}-other")) is None
    platform.virtual.delete("Owner", key)
    platform.gone("ConfigMap", Key(key.namespace, "own"))
    eventually(lambda: platform.virtual.get("ConfigMap", shown) is None, "what the host made is gone")


def test_an_object_that_a_patch_makes_invalid_is_parked_and_no_other(platform: Scene) -> None:
    namespace = platform.namespace()
    wrong = platform.virtual.create(resource(STRICTS, "wrong", namespace, spec={"color": "red"}))
    platform.virtual.create(resource(STRICTS, "right", namespace, spec={"color": "blue"}))
    platform.copied("Strict", Key(namespace, "right"))
    events = eventually(lambda: platform.virtual.list("Event", namespace=namespace), "there is an Event")
    about = [each for each in events if each["involvedObject"]["uid"] == uid_of(wrong)]
    assert [each["reason"] for each in about] == ["SyncFailed"]
    assert "spec.color" in about[0]["message"]
    platform.virtual.patch("Strict", Key(namespace, "wrong"), {"spec": {"color": "blue"}})
    platform.copied("Strict", Key(namespace, "wrong"), "spec.color", "blue")


def test_offers_of_the_host_appear_and_cannot_be_changed(platform: Scene) -> None:
    market, shop = f"{platform.name}-market", f"{platform.name}-0"
    offer = resource(OFFERS, "small", market, spec={"price": 1}, status={"left": 3})
    host_key = key_of(platform.host.create(offer))
    platform.host.patch("Offer", host_key, {"status": {"left": 3}}, subresource="status")
    key = Key(shop, "small")
    eventually(lambda: dig(platform.virtual.get("Offer", key) or {}, "status.left") == 3, "it is there with its status")
    platform.virtual.patch("Offer", key, {"spec": {"price": 0}})
    platform.reported("Offer", key, "spec.price", 1)
    platform.host.create(resource(CATALOGS, f"{platform.name}-hidden"))
    platform.host.create(resource(CATALOGS, f"{platform.name}-shown", metadata={"labels": {"for": "tenants"}}))
    shown = Key("", f"{platform.name}-shown")
    eventually(lambda: platform.virtual.get("Catalog", shown), "what has the label is there")
    assert platform.virtual.get("Catalog", Key("", f"{platform.name}-hidden")) is None
    platform.host.delete("Offer", host_key)
    eventually(lambda: platform.virtual.get("Offer", key) is None, "it is gone with that of the host")
    platform.host.patch("Catalog", shown, {"metadata": {"labels": {"for": None}}})
    eventually(lambda: platform.virtual.get("Catalog", shown) is None, "it is gone with its label")


def test_all_top_level_fields_of_a_kind_without_spec_go_down(platform: Scene) -> None:
    key = Key(platform.namespace(), "t")
    contents: Obj = {"parts": [{"kind": "ConfigMap", "data": {"a": "b"}}], "values": {"a": 1}}
    platform.virtual.create(resource(TEMPLATES, *reversed(key), **contents))
    copy = platform.copied("Template", key)
    assert {name: copy.get(name) for name in contents} == contents
    platform.host.patch("Template", key_of(copy), {"status": {"phase": "Ready"}}, subresource="status")
    platform.reported("Template", key, "status.phase", "Ready")
    platform.virtual.patch("Template", key, {"values": None, "parts": [{"kind": "Secret"}]})
    copy = platform.copied("Template", key, "parts", [{"kind": "Secret"}])
    assert "values" not in copy


def test_class_without_spec_appears_with_its_fields_and_cannot_be_changed(platform: Scene) -> None:
    fields: Obj = {"driver": "d.example.org", "deletionPolicy": "Delete", "parameters": {"size": "1"}}
    key = key_of(platform.host.create(resource(CLASSES, f"{platform.name}-fast", **fields)))
    eventually(lambda: platform.virtual.get("VolumeSnapshotClass", key), "it is there")
    platform.virtual.patch("VolumeSnapshotClass", key, {"driver": "mine", "parameters": {"more": "2"}})
    platform.reported("VolumeSnapshotClass", key, "driver", "d.example.org")
    found = platform.virtual.get("VolumeSnapshotClass", key) or {}
    assert {name: found.get(name) for name in fields} == fields
    platform.host.patch("VolumeSnapshotClass", key, {"parameters": None, "deletionPolicy": "Retain"})
    platform.reported("VolumeSnapshotClass", key, "deletionPolicy", "Retain")
    assert "parameters" not in (platform.virtual.get("VolumeSnapshotClass", key) or {})
    platform.host.delete("VolumeSnapshotClass", key)
    eventually(lambda: platform.virtual.get("VolumeSnapshotClass", key) is None, "it is gone with that of the host")
