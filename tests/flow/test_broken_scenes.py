"""What is broken in a virtual cluster is found by the one command that the documentation gives for its symptom."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from broken_scene import (
    CLUSTER_MISSING,
    KIND_MISSING,
    NO_COPY,
    NO_START,
    NOT_AS_WRITTEN,
    NOT_SHOWN,
    PENDING,
    UNUSABLE,
    Broken,
    Refusal,
    claim,
    commands_of_page,
    find_causes,
    forbidding,
    refuse,
    storage_class,
    typed,
)
from commands_scene import DAEMON, Commands, commands
from harness import NAMESPACE, namespace

from hack.side_tasks import helped_by
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, ingress, pod, secret, service, serviceaccount

pytestmark = pytest.mark.real_time

OPTIONS: dict[str, Any] = {
    "networking": {"apiServer": {"host": "127.0.0.1", "port": 9}},
    "fights": {"times": 2},
    "sync": {
        "toHost": {
            "configMaps": {
                "all": True,
                "selector": {"matchExpressions": [{"key": "hidden", "operator": "DoesNotExist"}]},
            },
            "ingresses": {"enabled": True},
        },
        "fromHost": {
            "storageClasses": {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}},
        },
        "custom": {"widgets.example.org": {}},
    },
}


BROKEN = {
    # -- the ten of an operator's first day
    "a right is missing": Broken(NO_COPY, "services", "shop/shut", ("parked (Forbidden)", "verbs:", "create"), False),
    "a quota is full": Broken(NO_COPY, "configmaps", "shop/crowded", ("QuotaExceeded", "exceeded quota: small"), False),
    "a name is taken": Broken(NO_COPY, "configmaps", "shop/taken", ("NameCollision", "taken-x-shop-x-shop"), False),
    "a definition is missing": Broken(NO_COPY, "widgets", "shop/x", ("SyncerWaits", "widgets.example.org")),
    "an object is paused": Broken(NO_COPY, "configmaps", "shop/held", ("paused", "the virtual ConfigMap shop/held")),
    "a namespace is paused": Broken(NO_COPY, "configmaps", "still/x", ("paused", "the virtual Namespace still")),
    "a syncer is paused": Broken(NO_COPY, "ingresses", "shop/door", ("take ingresses out of", "kube-system/vsyncer")),
    "a selector leaves it out": Broken(NO_COPY, "configmaps", "shop/hidden", ("sync.toHost.configMaps.selector",)),
    "a claim's copy was deleted": Broken(PENDING, "persistentvolumeclaims", "shop/lost", ("HostCopyDeleted",)),
    "a Pod needs what isn't synced": Broken(PENDING, "pods", "shop/device", ("NotSynced", "ResourceClaim")),
    "a class is not shown": Broken(
        PENDING, "persistentvolumeclaims", "shop/gold", ("ClassNotListed", "no StorageClass gold")
    ),
    # -- others
    "a Pod names what is left out": Broken(
        UNUSABLE, "pods", "shop/reader", ("lacks:", "ConfigMap shop/hidden: skipped (NotSelected)")
    ),
    "a claim has data of another": Broken(
        PENDING, "persistentvolumeclaims", "shop/copy", ("DataSourceRefused", "spec.dataSource")
    ),
    "a gate holds a Pod": Broken(PENDING, "pods", "shop/gated", ("Gated", "remove spec.schedulingGates")),
    "nothing uses a Secret": Broken(NO_COPY, "secrets", "shop/lonely", ("Unused", "sync.toHost.secrets.all")),
    "another manager fights": Broken(NOT_AS_WRITTEN, "configmaps", "shop/fought", ("frozen", "rival writes it"), False),
    "a Service is only a name": Broken(NO_COPY, "services", "other/far", ("OnlyAName", "allow.externalNames")),
    "an account is gone": Broken(PENDING, "pods", "shop/robot", ("NoServiceAccount", "create the ServiceAccount")),
    "a Pod asks too much": Broken(PENDING, "pods", "shop/root", ("PodSecurity", "hostNetwork")),
    "a webhook refuses": Broken(NO_COPY, "configmaps", "shop/red", ("Denied", "not in this town"), False),
    "a class is left out": Broken(NOT_SHOWN, "storageclasses", "fast", ("sync.fromHost.storageClasses leaves it out",)),
    "a name is wrong": Broken(NO_COPY, "configmaps", "shop/seting", ("NoObject", "see that kind, namespace and name")),
}


def in_place(scene: Commands) -> None:
    """Put what is broken, and what is not, into both clusters."""
    virtual = scene.virtual["shop"]
    paused = {"annotations": {"vsyncer.dev/paused": "true"}}
    virtual.put(namespace(NAMESPACE))
    virtual.put(merged(namespace("still"), {"metadata": paused}))
    for name in ("crowded", "taken", "fought", "red"):
        virtual.put(configmap(name, {"color": "blue"}))
    virtual.put(merged(configmap("held"), {"metadata": paused}))
    virtual.put(configmap("x", namespace="still"))
    virtual.put(merged(configmap("hidden"), {"metadata": {"labels": {"hidden": "yes"}}}))
    virtual.put(secret("lonely"))
    virtual.put(service("shut"))
    virtual.put(ingress("door"))
    virtual.put(service("far", namespace="other", spec={"type": "ExternalName", "externalName": "a.example.org"}))
    virtual.put(claim("lost", storageClassName="slow"))
    virtual.put(claim("gold", storageClassName="gold"))
    snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    virtual.put(claim("copy", storageClassName="slow", dataSource=snapshot))
    virtual.put(serviceaccount("robot"))
    container = {"name": "a", "image": "a"}
    virtual.put(pod("reader", spec={"containers": [{**container, "envFrom": [{"configMapRef": {"name": "hidden"}}]}]}))
    virtual.put(pod("device", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}))
    virtual.put(pod("gated", spec={"schedulingGates": [{"name": "example.org/wait"}]}))
    virtual.put(pod("robot", spec={"serviceAccountName": "robot"}))
    virtual.put(pod("root", spec={"hostNetwork": True}))
    virtual.delete("serviceaccounts", f"{NAMESPACE}/robot")
    scene.host.put(configmap("taken-x-shop-x-shop", namespace=scene.home("shop")))
    scene.host.put(storage_class("fast"))
    scene.host.put(storage_class("slow", tenants="yes"))


def pause(scene: Commands, value: str) -> None:
    """Pause a virtual cluster whose daemon runs, or some of its syncers."""
    virtual = scene.virtual["shop"]
    identity = virtual.get("configmaps", "kube-system/vsyncer")
    assert identity
    virtual.put(merged(identity, {"metadata": {"annotations": {"vsyncer.dev/paused": value}}}))


def refused() -> dict[str, Refusal]:
    """Return the refusals of the host's admission: one copy for a quota, one by a webhook."""
    full = "exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1"
    by_webhook = 'admission webhook "colors.example.org" denied the request: not in this town'
    return {"crowded-x-shop-x-shop": forbidding(full), "red-x-shop-x-shop": forbidding(by_webhook)}


@contextlib.asynccontextmanager
async def rival(scene: Commands) -> AsyncIterator[None]:
    """Let another manager set back a copy, each time that it is synced."""
    path = f"/api/v1/namespaces/{scene.home('shop')}/configmaps/fought-x-shop-x-shop"
    client = scene.host.client("admin", agent="rival/1")

    async def fight() -> None:
        while True:
            await asyncio.sleep(0.05)
            copy = scene.host.get("configmaps", f"{scene.home('shop')}/fought-x-shop-x-shop")
            if copy and copy["data"] == {"color": "blue"}:
                body = json.dumps({"data": {"color": "red"}}).encode()
                await client.request("PATCH", path, body=body, content_type="application/merge-patch+json")

    async with helped_by(fight()):
        yield


def test_table_of_the_page_has_these_symptoms() -> None:
    named = {NO_COPY, PENDING, NOT_AS_WRITTEN, UNUSABLE, NOT_SHOWN, KIND_MISSING, CLUSTER_MISSING, NO_START}
    assert named <= commands_of_page().keys()


async def test_cause_of_each_broken_object_is_found_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, refused())
    async with commands(tmp_path, **OPTIONS) as scene:
        in_place(scene)
        scene.take_away("services", "create")
        async with scene.daemon(), rival(scene):
            await scene.until("explain", "persistentvolumeclaims", "shop/lost", says=["in step"])
            scene.host.delete("persistentvolumeclaims", f"{scene.home('shop')}/lost-x-shop-x-shop")
            pause(scene, "ingresses")
            await find_causes(scene, BROKEN.values())


async def test_kind_that_the_daemon_may_not_list_is_named_with_the_right(tmp_path: Path) -> None:
    async with commands(tmp_path, **OPTIONS) as scene:
        scene.virtual["shop"].put(namespace(NAMESPACE))
        scene.virtual["shop"].put(configmap("x"))
        scene.take_away("configmaps", "list")
        async with scene.daemon():
            cause = ["configmaps", "list", "forbidden"]
            await scene.until(*typed(KIND_MISSING), says=cause)
            await scene.until(*typed(NO_COPY, "configmaps", "shop/x"), says=["SyncerWaits", *cause])
            await scene.until("list", "configmaps", says=["not listed: shop/configmaps", *cause])


async def test_virtual_cluster_that_is_paused_names_the_annotation(tmp_path: Path) -> None:
    async with commands(tmp_path, **OPTIONS) as scene:
        scene.virtual["shop"].put(namespace(NAMESPACE))
        scene.virtual["shop"].put(configmap("x"))
        async with scene.daemon():
            await scene.until("status", says=["configmaps"])
            pause(scene, "true")
            cause = ["paused", "vsyncer.dev/paused", "kube-system/vsyncer"]
            await scene.until(*typed(NO_COPY, "configmaps", "shop/x"), says=cause)


async def test_host_that_does_not_accept_the_token_any_more_is_named(tmp_path: Path) -> None:
    async with commands(tmp_path, **OPTIONS) as scene:
        scene.virtual["shop"].put(namespace(NAMESPACE))
        async with scene.daemon():
            await scene.until("clusters", says=["served"])
            scene.host.replace_token(DAEMON, "another")
            scene.virtual["shop"].put(configmap("x"))
            await scene.until(*typed(CLUSTER_MISSING), says=["silent", "answers 401", "are not accepted"])


async def test_host_namespace_that_is_missing_is_named_before_a_start(tmp_path: Path) -> None:
    async with commands(tmp_path, **OPTIONS) as scene:
        scene.host.delete("namespaces", scene.home("shop"))
        ended = await scene.run(*typed(NO_START))
        assert f"the namespace {scene.home('shop')} of the host: it doesn't exist" in ended.output
