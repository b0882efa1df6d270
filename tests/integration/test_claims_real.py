"""PersistentVolumeClaims on real API servers: their classes, their sizes, and volumes that are lost.

These hosts have no controller that binds volumes, so each test does what it would do.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from api import eventually
from scene import Scene

from syncer.api import Invalid, Key, Obj, dig, uid_of
from syncer.resources.kinds import INGRESS_CLASSES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from syncer.testing.objects import build, ingress

pytestmark = pytest.mark.controlplane

KIND = PERSISTENT_VOLUME_CLAIMS.kind
SIZE = "spec.resources.requests.storage"
SHOWN = {"labels": {"tenants": "yes"}}
SELECTED = {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}}


@pytest.fixture
def selecting(scene: Scene) -> Iterator[Scene]:
    """A virtual cluster in which classes with a label appear: the default ones of the host have none."""
    default = "is-default-class"
    parts: Obj = {"provisioner": "disk.example.org", "allowVolumeExpansion": True}
    marked = {"annotations": {f"storageclass.kubernetes.io/{default}": "true"}}
    chosen = {"annotations": {f"ingressclass.kubernetes.io/{default}": "true"}}
    controller: Obj = {"spec": {"controller": "example.org/a"}}
    made = [
        build(STORAGE_CLASSES, f"shown-{scene.name}", metadata=SHOWN, **parts),
        build(STORAGE_CLASSES, f"default-{scene.name}", metadata=marked, **parts),
        build(INGRESS_CLASSES, f"shown-{scene.name}", metadata=SHOWN, **controller),
        build(INGRESS_CLASSES, f"default-{scene.name}", metadata=chosen, **controller),
    ]
    for each in made:
        scene.host.create(each)
    from_host = {"storageClasses": SELECTED, "volumeAttributesClasses": SELECTED, "ingressClasses": SELECTED}
    scene.start(scene.config(sync={"toHost": {"ingresses": {"enabled": True}}, "fromHost": from_host}))
    yield scene
    for each in made:
        scene.host.delete(each["kind"], Key("", each["metadata"]["name"]))


def claim(ns: str, **spec: Any) -> Obj:
    modes = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return build(PERSISTENT_VOLUME_CLAIMS, "data", namespace=ns, spec={**modes, **spec})


def event_reasons(scene: Scene, ns: str, name: str) -> list[str]:
    """Return the reasons of the events about an object."""
    events = scene.virtual.list("Event", namespace=ns)
    return sorted(each["reason"] for each in events if each["involvedObject"]["name"] == name)


def bound(scene: Scene, ns: str) -> Key:
    """Create a claim, and let the host bind its copy. Return the virtual key."""
    shown = Key("", f"shown-{scene.name}")
    eventually(lambda: scene.virtual.get("StorageClass", shown), "the class appears")
    scene.virtual.create(claim(ns, storageClassName=shown.name))
    key = Key(ns, "data")
    scene.copied(KIND, key)
    host_key = scene.host_key(KIND, key)
    done = {"annotations": {f"pv.kubernetes.io/{each}": "yes" for each in ("bind-completed", "bound-by-controller")}}
    scene.host.patch(KIND, host_key, {"metadata": done, "spec": {"volumeName": f"pv-{scene.name}"}})
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    scene.host.patch(KIND, host_key, {"status": status}, subresource="status")
    scene.reported(KIND, key, "status.phase", "Bound")
    return key


def ask(scene: Scene, key: Key, size: str) -> None:
    """Let the tenant ask for a size."""
    scene.virtual.patch(KIND, key, {"spec": {"resources": {"requests": {"storage": size}}}})


def test_request_that_the_volume_has_not_grown_to_is_taken_back(selecting: Scene) -> None:
    ns = selecting.namespace()
    key = bound(selecting, ns)
    ask(selecting, key, "20Gi")
    selecting.copied(KIND, key, SIZE, "20Gi")
    ask(selecting, key, "3Gi")
    selecting.copied(KIND, key, SIZE, "3Gi")
    with pytest.raises(Invalid, match="less than"):
        ask(selecting, key, "1Gi")
    assert event_reasons(selecting, ns, "data") == []


def test_claim_that_lost_its_volume_gets_an_event(selecting: Scene) -> None:
    ns = selecting.namespace()
    key = bound(selecting, ns)
    host_key = selecting.host_key(KIND, key)
    selecting.host.delete(KIND, host_key)
    selecting.host.patch(KIND, host_key, {"metadata": {"finalizers": None}})
    eventually(lambda: event_reasons(selecting, ns, "data") == ["HostCopyDeleted"], "the tenant reads it")


def test_volume_of_a_bound_claim_appears_and_goes_with_it(selecting: Scene) -> None:
    """The virtual control plane protects volumes: it holds a deleted one until that is released."""
    ns = selecting.namespace()
    key = bound(selecting, ns)
    volume = Key("", f"pv-{selecting.name}")

    def phase() -> str:
        return str(dig(selecting.virtual.get("PersistentVolume", volume) or {}, "status.phase"))

    eventually(lambda: phase() == "Bound", "the volume appears")
    found = selecting.virtual.get("PersistentVolume", volume)
    assert found
    assert found["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    assert dig(found, "spec.claimRef.uid") == uid_of(selecting.virtual.get(KIND, key) or {})
    changed = {"spec": {"persistentVolumeReclaimPolicy": "Retain", "capacity": {"storage": "9Gi"}}}
    selecting.virtual.patch("PersistentVolume", volume, changed)

    def is_as_before() -> bool:
        now = selecting.virtual.get("PersistentVolume", volume) or {}
        return (dig(now, "spec.persistentVolumeReclaimPolicy"), dig(now, "spec.capacity.storage")) == ("Delete", "1Gi")

    eventually(is_as_before, "the change is undone")
    selecting.virtual.delete(KIND, key)
    eventually(lambda: selecting.virtual.get("PersistentVolume", volume) is None, "it goes with the claim")


@pytest.mark.parametrize("named", [True, False])
def test_class_that_does_not_appear_is_no_claims_and_no_ingresses(selecting: Scene, named: bool) -> None:
    ns, hidden, shown = selecting.namespace(), f"default-{selecting.name}", f"shown-{selecting.name}"
    selecting.virtual.create(claim(ns, **({"storageClassName": hidden} if named else {})))
    selecting.virtual.create(ingress("web", namespace=ns, spec={"ingressClassName": hidden} if named else {}))
    eventually(lambda: event_reasons(selecting, ns, "data") == ["ClassNotListed"], "the claim waits")
    eventually(lambda: event_reasons(selecting, ns, "web") == ["ClassNotListed"], "the Ingress waits")
    assert selecting.copy(KIND, Key(ns, "data")) is None
    assert selecting.copy("Ingress", Key(ns, "web")) is None
    selecting.virtual.patch("Ingress", Key(ns, "web"), {"spec": {"ingressClassName": shown}})
    copy = selecting.copied("Ingress", Key(ns, "web"))
    assert dig(copy, "spec.ingressClassName") == shown
    selecting.virtual.patch("Ingress", Key(ns, "web"), {"spec": {"ingressClassName": "nowhere"}})
    eventually(lambda: event_reasons(selecting, ns, "web") == ["ClassNotListed"] * 2, "the change waits")
    assert dig(selecting.copied("Ingress", Key(ns, "web")), "spec.ingressClassName") == shown
