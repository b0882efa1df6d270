"""What a tenant reads about classes of the host and lost volumes, and when an object goes on, with minimal rights."""

from typing import Any

import pytest
from harness import NAMESPACE, Two, until
from rules_scene import Guarded, configured, edit, running

from syncer.api import Obj, dig
from syncer.config import SyncerConfig
from syncer.resources.kinds import INGRESS_CLASSES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from syncer.testing.objects import build, ingress

SHOWN = {"labels": {"tenants": "yes"}}
SELECTED = {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}}
PAUSED = "vsyncer.dev/paused"
INGRESS_PATH = "ingresses.networking.k8s.io"
SYNCERS = ("persistentvolumeclaims", "ingresses", "storageclasses", "volumeattributesclasses", "ingressclasses")


def config() -> SyncerConfig:
    kinds = ("storageClasses", "volumeAttributesClasses", "ingressClasses")
    from_host = dict.fromkeys(kinds, SELECTED)
    return configured({"toHost": {"ingresses": {"enabled": True}}, "fromHost": from_host}, *SYNCERS)


def claim(name: str, **spec: Any) -> Obj:
    return build(
        PERSISTENT_VOLUME_CLAIMS,
        name,
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    )


def storage(name: str, **metadata: Any) -> Obj:
    return build(STORAGE_CLASSES, name, provisioner="disk.example.org", metadata=metadata)


def events_about(two: Two, name: str) -> list[tuple[str, str]]:
    """Return the reasons and messages of the events about an object."""
    found = two.virtual.objects("events", NAMESPACE)
    return [(each["reason"], each["message"]) for each in found if each["involvedObject"]["name"] == name]


async def test_object_waits_for_its_class_and_its_owner_reads_why() -> None:
    two = Guarded()
    two.host.put(storage("gold"))
    two.host.put(build(INGRESS_CLASSES, "public", spec={"controller": "example.org/a"}))
    two.virtual.put(claim("db", storageClassName="gold"))
    two.virtual.put(ingress("web", spec={"ingressClassName": "public"}))
    async with running(two, config()) as daemon:
        await until(lambda: events_about(two, "db") and events_about(two, "web"))
        await daemon.settled()
        named = {"db": "StorageClass gold", "web": "IngressClass public"}
        for name, kind in named.items():
            [(reason, message)] = events_about(two, name)
            assert reason == "ClassNotListed"
            assert message == f"the host has no {kind} for this virtual cluster: name one that is listed"
        assert two.copy("persistentvolumeclaims", "db") is None
        assert two.copy(INGRESS_PATH, "web") is None
        two.host.put(storage("gold", **SHOWN))
        two.host.put(build(INGRESS_CLASSES, "public", metadata=SHOWN, spec={"controller": "example.org/a"}))
        await until(lambda: two.copy("persistentvolumeclaims", "db") and two.copy(INGRESS_PATH, "web"))


async def test_class_that_becomes_the_default_wakes_waiting_claims() -> None:
    two = Guarded()
    two.virtual.put(claim("db"))
    async with running(two, config()) as daemon:
        await until(lambda: events_about(two, "db"))
        await daemon.settled()
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        two.host.put(storage("basic", annotations=default, **SHOWN))
        assert await until(lambda: two.copy("persistentvolumeclaims", "db")) <= 61
        copy = two.copy("persistentvolumeclaims", "db")
        assert copy
        assert dig(copy, "spec.storageClassName") == "basic"


@pytest.mark.parametrize("bound", [True, False])
async def test_event_of_a_claim_explains_that_its_copy_was_deleted(bound: bool) -> None:
    two = Guarded()
    two.host.put(storage("gold", **SHOWN))
    two.virtual.put(claim("x", storageClassName="gold"))
    async with running(two, config()) as daemon:
        await until(lambda: two.copy("persistentvolumeclaims", "x"))
        if bound:
            annotations = {f"pv.kubernetes.io/{each}": "yes" for each in ("bind-completed", "bound-by-controller")}
            edit(
                two,
                "host",
                "persistentvolumeclaims",
                {
                    "metadata": {"annotations": annotations},
                    "spec": {"volumeName": "pv-1"},
                    "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
                },
            )
        await daemon.settled()
        assert events_about(two, "x") == []
        copy = two.copy("persistentvolumeclaims", "x")
        assert copy
        two.host.delete("persistentvolumeclaims", f"{copy['metadata']['namespace']}/{copy['metadata']['name']}")
        await until(lambda: events_about(two, "x"))
        [(reason, message)] = events_about(two, "x")
        assert reason == "HostCopyDeleted"
        assert ("delete this claim and create it again" in message) is bound
        assert ("take the annotation vsyncer.dev/copied off" in message) is not bound


async def test_copy_of_a_paused_ingress_goes_once_its_class_is_not_selected() -> None:
    two = Guarded()
    two.host.put(build(INGRESS_CLASSES, "public", spec={"controller": "example.org/a"}, metadata=SHOWN))
    two.virtual.put(ingress("web", spec={"ingressClassName": "public"}))
    async with running(two, config()) as daemon:
        await until(lambda: two.copy(INGRESS_PATH, "web"))
        edit(two, "virtual", INGRESS_PATH, {"metadata": {"annotations": {PAUSED: "true"}}}, "web")
        await daemon.settled()
        two.host.put(build(INGRESS_CLASSES, "public", spec={"controller": "example.org/a"}))
        assert await until(lambda: two.copy(INGRESS_PATH, "web") is None) < 1
        await daemon.settled()
        assert "GrantRevoked" in [reason for reason, _ in events_about(two, "web")]
