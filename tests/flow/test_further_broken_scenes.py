"""What breaks outside of the daemon is found by the one command that the documentation gives for its symptom."""

from pathlib import Path
from typing import Any

import pytest
from broken_scene import (
    CLUSTER_MISSING,
    NO_COPY,
    NOT_AS_WRITTEN,
    NOT_DELETED,
    NOT_SHOWN,
    PENDING,
    Broken,
    Refusal,
    claim,
    failing,
    find_causes,
    forbidding,
    refuse,
    storage_class,
    typed,
)
from commands_scene import DAEMON, Commands, commands
from harness import NAMESPACE, namespace

from kube_envtest.apiserver.errors import ApiError
from syncer.api import Obj
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd, crd_version, event, ingress, pod, secret, service

pytestmark = pytest.mark.real_time

OPTIONS: dict[str, Any] = {
    "networking": {"apiServer": {"host": "127.0.0.1", "port": 9}},
    "sync": {
        "toHost": {
            "configMaps": {"all": True},
            "secrets": {"all": True},
            "ingresses": {"enabled": True, "allowedClasses": ["tenants"]},
            "networkPolicies": {"enabled": True, "most": 0},
        },
        "fromHost": {
            "storageClasses": {"enabled": True},
            "customResourceDefinitions": {"enabled": True},
        },
        "custom": {"gears.example.org": {}},
    },
}
BROKEN = {
    "no node has room": Broken(PENDING, "pods", "shop/big", ("in step", "FailedScheduling", "0/3 nodes are available")),
    "a claim waits for a Pod": Broken(
        PENDING, "pvc", "shop/later", ("in step", "WaitForFirstConsumer", "first consumer")
    ),
    "a quota wants limits": Broken(PENDING, "pods", "shop/tiny", ("Denied", "must specify limits.cpu"), False),
    "a webhook gives no answer": Broken(
        NO_COPY, "configmaps", "shop/mute", ("WebhookFailed", "colors.example.org", "repair that webhook"), False
    ),
    "an object is too large": Broken(
        NO_COPY, "configmaps", "shop/huge", ("parked (Invalid)", "Make it smaller"), False
    ),
    "a finalizer holds an earlier copy": Broken(
        NO_COPY, "configmaps", "shop/again", ("EarlierCopyEnds", "held by the finalizers example.org/hold")
    ),
    "a finalizer holds an original": Broken(
        NOT_DELETED, "configmaps", "shop/kept", ("the virtual ConfigMap shop/kept is being deleted", "example.org/keep")
    ),
    "a right to delete is missing": Broken(
        NOT_DELETED, "services", "shop/gone", ("parked (Forbidden)", 'verbs: ["delete"]'), False
    ),
    "a class of Ingresses is not allowed": Broken(
        NO_COPY, "ingresses", "shop/door", ("NotAllowed", "spec.ingressClassName", "use tenants")
    ),
    "there are too many policies": Broken(NO_COPY, "netpol", "shop/wall", ("TooManyPolicies", "delete others")),
    "a definition has no label": Broken(
        NOT_SHOWN, "crd", "gadgets.example.org", ("HostUnlabelled", "tenancy.x-k8s.io/super.public=true")
    ),
    "the host has an older kind": Broken(
        NOT_AS_WRITTEN, "gears", "shop/first", ("not kept:", "spec.color of the host Gear"), False
    ),
    "a kind is off": Broken(NO_COPY, "priorityclasses", "high", ("it is off", "sync.toHost.priorityClasses.enabled")),
    "a kind stays in the virtual cluster": Broken(NO_COPY, "deploy", "shop/web", ("make Pods of them",)),
    "a Secret is the control plane's": Broken(
        NO_COPY, "secrets", "shop/join", ("Unused", "to copy it all the same, annotate")
    ),
}


def too_large(call: Any, name: str) -> ApiError:
    """Return the refusal of a request over an API server's limit."""
    return ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")


def refused() -> dict[str, Refusal]:
    """Return the answers of the host's admission, by the name of the copy."""
    reached = 'failed to call webhook: Post "https://colors.example.svc:443/": dial tcp 10.0.0.9:443: connect: refused'
    return {
        "tiny-x-shop-x-shop": forbidding("failed quota: compute: must specify limits.cpu for: app"),
        "mute-x-shop-x-shop": failing(f'failed calling webhook "colors.example.org": {reached}'),
        "huge-x-shop-x-shop": too_large,
    }


def gears(*fields: str) -> Obj:
    """Return a definition of gears that have these fields."""
    of_spec = {
        "properties": {field: {"type": "string"} for field in fields},
        "x-kubernetes-preserve-unknown-fields": None,
    }
    schema = {"openAPIV3Schema": {"properties": {"spec": of_spec}}}
    return crd("gears.example.org", [crd_version("v1", storage=True, schema=schema)])


def in_place(scene: Commands) -> None:
    """Put the objects that break into both clusters."""
    virtual = scene.virtual["shop"]
    virtual.put(namespace(NAMESPACE))
    for name in ("mute", "huge", "again"):
        virtual.put(configmap(name))
    virtual.put(merged(configmap("kept"), {"metadata": {"finalizers": ["example.org/keep"]}}))
    virtual.put(merged(secret("join"), {"type": "bootstrap.kubernetes.io/token"}))
    virtual.put(service("gone"))
    virtual.put(merged(ingress("door"), {"spec": {"ingressClassName": "theirs"}}))
    wall = {"podSelector": {}, "policyTypes": ["Ingress"]}
    virtual.put(build(NETWORK_POLICIES, "wall", spec=wall))
    virtual.put(claim("later", storageClassName="slow"))
    for name in ("big", "tiny"):
        virtual.put(pod(name, spec={"containers": [{"name": "app", "image": "a"}]}))
    virtual.put(gears("size", "color"))
    gear = {"apiVersion": "example.org/v1", "kind": "Gear", "metadata": {"name": "first", "namespace": NAMESPACE}}
    virtual.put({**gear, "spec": {"size": "large", "color": "red"}})
    scene.host.put(gears("size"))
    scene.host.put(storage_class("slow"))
    scene.host.put(crd("gadgets.example.org"))


async def happen(scene: Commands) -> None:
    """Break further objects while a daemon runs."""
    virtual = scene.virtual["shop"]
    home = scene.home("shop")
    for plural, name in (("configmaps", "again"), ("configmaps", "kept"), ("services", "gone")):
        await scene.until("explain", plural, f"{NAMESPACE}/{name}", says=["in step"])
    held = scene.host.get("configmaps", f"{home}/again-x-shop-x-shop")
    assert held
    scene.host.put(merged(held, {"metadata": {"finalizers": ["example.org/hold"]}}))
    virtual.delete("configmaps", f"{NAMESPACE}/again")
    virtual.put(configmap("again"))
    virtual.delete("configmaps", f"{NAMESPACE}/kept")
    virtual.delete("services", f"{NAMESPACE}/gone")
    no_room: Obj = {"reason": "FailedScheduling", "message": "0/3 nodes are available: 3 Insufficient cpu."}
    no_user: Obj = {
        "reason": "WaitForFirstConsumer",
        "message": "waiting for first consumer to be created",
        "type": "Normal",
    }
    for plural, name, why in (("pods", "big", no_room), ("persistentvolumeclaims", "later", no_user)):
        await scene.until("explain", plural, f"{NAMESPACE}/{name}", says=["in step"])
        copy = scene.host.get(plural, f"{home}/{name}-x-shop-x-shop")
        assert copy
        scene.host.put(event(f"{name}.1", about=copy, **why))


async def test_cause_of_each_broken_object_is_found_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, refused())
    async with commands(tmp_path, **OPTIONS) as scene:
        in_place(scene)
        scene.take_away("services", "delete")
        async with scene.daemon():
            await happen(scene)
            await find_causes(scene, BROKEN.values())


async def test_right_that_went_with_the_host_namespace_leads_to_its_deletion(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        home = scene.home("shop")
        scene.virtual["shop"].put(namespace(NAMESPACE))
        leftover = merged(configmap("leftover", namespace=home), {"metadata": {"finalizers": ["example.org/hold"]}})
        scene.host.put(leftover)
        async with scene.daemon():
            await scene.until("clusters", says=["served"])
            scene.host.delete("namespaces", home)
            scene.virtual["shop"].put(configmap("x"))
            cause = ["parked (Forbidden)", "a host namespace that is being deleted loses its Roles first"]
            await scene.until(*typed(NO_COPY, "configmaps", "shop/x"), says=cause)


@pytest.mark.reason("NotSeen")
async def test_virtual_cluster_that_does_not_accept_the_token_any_more_is_named(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        virtual = scene.virtual["shop"]
        virtual.put(namespace(NAMESPACE))
        virtual.put(configmap("known"))
        virtual.put(claim("data"))
        async with scene.daemon():
            await scene.until("explain", "configmaps", "shop/known", says=["in step"])
            await scene.until("explain", "pvc", "shop/data", says=["in step"])
            virtual.replace_token(DAEMON, "another")
            copy = scene.host.get("persistentvolumeclaims", f"{scene.home('shop')}/data-x-shop-x-shop")
            assert copy
            scene.host.put(merged(copy, {"status": {"phase": "Bound"}}))  # which the daemon writes up
            await scene.until(*typed(CLUSTER_MISSING), says=["answers 401", "shop.kubeconfig"])
            virtual.put(configmap("new"))
            cause = ["pending (NotSeen)", "answers 401", "shop.kubeconfig", "Renew them"]
            for name in ("new", "known"):
                await scene.until(*typed(NO_COPY, "configmaps", f"shop/{name}"), says=cause)
            await scene.until("list", says=["not listed: shop: its present state isn't known", "answers 401"])
        ended = await scene.run(*typed(NO_COPY, "configmaps", "shop/new"), "--once")
        assert ended.status == 1
        assert "answers 401" in ended.error
        assert "shop.kubeconfig" in ended.error


@pytest.mark.reason("ClusterUnserved")
async def test_virtual_cluster_that_is_not_served_is_named_for_an_object_that_may_be_in_it(tmp_path: Path) -> None:
    async with commands(tmp_path, "bank", "shop") as scene:
        kubeconfig = tmp_path / "shop.kubeconfig"
        kubeconfig.write_text(kubeconfig.read_text().replace("daemon-token", "another-token"))
        async with scene.daemon():
            await scene.until("clusters", says=["served", "failing"])
            cause = ["ClusterUnserved", "virtual cluster shop can't be served", "syncer clusters --cluster shop"]
            await scene.until(*typed(NO_COPY, "configmaps", "till/x"), says=cause)


async def test_kind_of_a_virtual_cluster_that_is_not_served_is_not_called_off(tmp_path: Path) -> None:
    async with commands(tmp_path, "bank", "shop") as scene:
        for name in ("bank", "shop"):
            kubeconfig = tmp_path / f"{name}.kubeconfig"
            kubeconfig.write_text(kubeconfig.read_text().replace("daemon-token", "another-token"))
        async with scene.daemon():
            await scene.until("clusters", says=["failing"])
            ended = await scene.until(*typed(NO_COPY, "configmaps", "till/x"), says=["ClusterUnserved"])
            assert "it is off" not in ended.output + ended.error
