"""What pods only read stays on the host until its original is gone, whatever finalizers hold that.

In any cluster an object that waits for its finalizers is still there for those that read it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from custom_scene import CERTIFICATES, cert_manager, certificate, example, issue, running, there
from harness import HOME, Daemon, Two, admin, built_in, host_path, until

from syncer.api import Key, Obj, Resource, Side, is_deleting, uid_of
from syncer.resources.kinds import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret, service, serviceaccount

HOLD = ["example.org/hold"]
#: All kinds, with what a Pod doesn't use.
EVERYTHING: Mapping[str, Any] = {
    "configMaps": {"all": True},
    "secrets": {"all": True},
    "podDisruptionBudgets": {"enabled": True},
    "networkPolicies": {"enabled": True},
}
CERTIFICATE = Resource("cert-manager.io/v1", "Certificate", "certificates")


def budget() -> Obj:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": spec,
    }


def policy() -> Obj:
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "x", "namespace": "shop"},
        "spec": spec,
    }


READ_ONLY = {
    "configmaps": (CONFIG_MAPS, configmap("x", {"color": "blue"})),
    "secrets": (SECRETS, secret("x", {"p": "w"})),
    "serviceaccounts": (SERVICE_ACCOUNTS, serviceaccount("x")),
    "networkpolicies": (NETWORK_POLICIES, policy()),
    "poddisruptionbudgets": (DISRUPTION_BUDGETS, budget()),
}


async def put_and_delete(two: Two, resource: Resource, obj: Obj) -> Obj:
    """Delete an object that a finalizer holds, once it has a copy. Return the copy."""
    two.virtual.put(merged(obj, {"metadata": {"finalizers": HOLD}}))
    await until(lambda: two.copy(str(resource), "x"))
    copy = two.copy(str(resource), "x")
    assert copy
    await admin(two.virtual, Side.VIRTUAL).delete(resource, Key("shop", "x"))
    marked = two.original(str(resource), "x")
    assert marked
    assert is_deleting(marked)
    return copy


async def released(two: Two, daemon: Daemon, resource: Resource) -> None:
    """Take the finalizer off; original and copy go."""
    free = {"metadata": {"finalizers": None}}
    await admin(two.virtual, Side.VIRTUAL).patch(resource, Key("shop", "x"), free, kind="merge")
    await daemon.settled()
    assert two.original(str(resource), "x") is None
    assert two.copy(str(resource), "x") is None


@pytest.mark.parametrize("name", READ_ONLY)
@pytest.mark.parametrize("is_away", [False, True], ids=["daemon runs", "daemon was away"])
async def test_copy_stays_until_its_original_is_gone(two: Two, name: str, is_away: bool) -> None:
    resource, obj = READ_ONLY[name]
    async with two.daemon(options=EVERYTHING) as daemon:
        if not is_away:
            copy = await put_and_delete(two, resource, obj)
            await daemon.settled()
        else:
            two.virtual.put(merged(obj, {"metadata": {"finalizers": HOLD}}))
            await until(lambda: two.copy(str(resource), "x"))
            copy = two.copy(str(resource), "x") or {}
    if is_away:
        await admin(two.virtual, Side.VIRTUAL).delete(resource, Key("shop", "x"))
    async with two.daemon(options=EVERYTHING) as daemon:
        await daemon.settled()
        await asyncio.sleep(30)
        assert uid_of(two.copy(str(resource), "x") or {}) == uid_of(copy)
        await released(two, daemon, resource)


async def test_copy_is_kept_in_step_while_its_original_is_being_deleted(two: Two) -> None:
    async with two.daemon(options=EVERYTHING) as daemon:
        await put_and_delete(two, SECRETS, secret("x", {"p": "w"}))
        change = {"data": {"p": "bmV3"}}
        await admin(two.virtual, Side.VIRTUAL).patch(SECRETS, Key("shop", "x"), change, kind="merge")
        await until(lambda: (two.copy("secrets", "x") or {})["data"] == {"p": "bmV3"})
        await released(two, daemon, SECRETS)


async def test_pod_made_meanwhile_finds_the_secret_it_reads(two: Two) -> None:
    """Its Secret was on the host for no Pod before: by default only those that a Pod names are."""
    reads = [{"name": "app", "image": "i:1", "envFrom": [{"secretRef": {"name": "x"}}]}]
    async with two.daemon(options={}) as daemon:
        two.virtual.put(serviceaccount("default"))
        two.virtual.put(secret("x", {"p": "w"}, metadata={"finalizers": HOLD}))
        await admin(two.virtual, Side.VIRTUAL).delete(SECRETS, Key("shop", "x"))
        await daemon.settled()
        assert two.copy("secrets", "x") is None
        two.virtual.put(pod("web", spec={"containers": reads}))
        await until(lambda: two.copy("pods", "web") and two.copy("secrets", "x"))
        await daemon.settled()
        assert (two.copy("secrets", "x") or {})["data"] == {"p": "dw=="}
        two.virtual.delete("pods", "shop/web")
        await until(lambda: two.copy("secrets", "x") is None)


async def test_older_state_in_which_nothing_reads_it_costs_no_copy(two: Two) -> None:
    """Its mark is no proof that the copy is to go, so what follows from a list waits, as without the mark."""
    reads = [{"name": "app", "image": "i:1", "envFrom": [{"configMapRef": {"name": "x"}}]}]
    two.virtual.put(serviceaccount("default"))
    two.virtual.put(configmap("x", metadata={"finalizers": HOLD}))
    await admin(two.virtual, Side.VIRTUAL).delete(CONFIG_MAPS, Key("shop", "x"))
    before = two.virtual.revision
    two.virtual.put(pod("web", spec={"containers": reads}))
    async with two.daemon(options={}) as daemon:
        await until(lambda: two.copy("pods", "web") and two.copy("configmaps", "x"))
        copy = two.copy("configmaps", "x") or {}
        await daemon.settled()
    lag = two.virtual.lag(before)
    async with two.daemon(built_in("configmaps", "pods", "serviceaccounts"), options={}) as daemon:
        await asyncio.sleep(2)
        lag.end()
        await daemon.settled(patience=30)
        assert uid_of(two.copy("configmaps", "x") or {}) == uid_of(copy)


async def test_original_that_can_not_be_read_while_it_is_being_deleted_costs_no_contents(two: Two) -> None:
    """Of such an object only the metadata is known, which is enough to delete a copy, and not to write one."""
    async with two.daemon(options=EVERYTHING) as daemon:
        await put_and_delete(two, CONFIG_MAPS, configmap("x", {"color": "blue"}))
        many = {f"example.org/k{number}": "" for number in range(5000)}
        two.virtual.put(merged(two.original("configmaps", "x") or {}, {"metadata": {"labels": many}}))
        await until(lambda: daemon.requests("configmaps"))
        await asyncio.sleep(30)
        assert (two.copy("configmaps", "x") or {})["data"] == {"color": "blue"}
        await released(two, daemon, CONFIG_MAPS)


async def test_service_goes_with_the_mark_as_before(two: Two) -> None:
    async with two.daemon(options=EVERYTHING) as daemon:
        await put_and_delete(two, SERVICES, service("x"))
        await until(lambda: two.copy("services", "x") is None)
        await daemon.settled()


# -- custom kinds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["whenMarked", "whenGone"])
async def test_option_decides_when_the_copy_of_a_custom_object_is_deleted(two: Two, when: str) -> None:
    before = example("cert-manager").model_dump(by_alias=True, exclude_unset=True)
    config = type(example("cert-manager")).model_validate(
        merged(before, {"sync": {"custom": {CERTIFICATES: {"deletion": when}}}})
    )
    cert_manager(two)
    async with running(two, config) as daemon:
        two.virtual.put(merged(certificate("x"), {"metadata": {"finalizers": HOLD}}))
        await until(lambda: two.copy(CERTIFICATES, "x"))
        await admin(two.virtual, Side.VIRTUAL).delete(CERTIFICATE, Key("shop", "x"))
        await daemon.settled()
        assert (two.copy(CERTIFICATES, "x") is None) is (when == "whenMarked")
        if when == "whenGone":
            issue(two, there(two.host, CERTIFICATES, host_path("x")))
            await until(lambda: "status" in there(two.virtual, CERTIFICATES, "shop/x"))
        await released(two, daemon, CERTIFICATE)


async def test_recreated_object_waits_with_an_event_until_its_former_copy_ended(two: Two) -> None:
    cert_manager(two)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate("x"))
        await until(lambda: two.copy(CERTIFICATES, "x"))
        copy = there(two.host, CERTIFICATES, host_path("x"))
        two.host.put(merged(copy, {"metadata": {"finalizers": ["example.com/operator"]}}))
        two.virtual.delete(CERTIFICATES, "shop/x")
        await until(lambda: is_deleting(there(two.host, CERTIFICATES, host_path("x"))))
        two.virtual.put(certificate("x", to="new"))
        await until(lambda: events(two))
        [event] = events(two)
        assert event["involvedObject"]["uid"] == uid_of(there(two.virtual, CERTIFICATES, "shop/x"))
        assert "the copy of an earlier Certificate of this name" in event["message"]
        assert HOME not in event["message"]
        ended = {"metadata": {"finalizers": None}}
        await admin(two.host, Side.HOST).patch(CERTIFICATE, Key.parse(host_path("x")), ended, kind="merge")
        await until(lambda: (two.copy(CERTIFICATES, "x") or {}).get("spec", {}).get("dnsNames"))
        await daemon.settled()
        assert not is_deleting(there(two.host, CERTIFICATES, host_path("x")))
        assert len(events(two)) == 1


def events(two: Two) -> list[Obj]:
    """Return the events about objects that wait for the end of an earlier copy."""
    return [event for event in two.virtual.objects("events", "shop") if event["reason"] == "EarlierCopyEnds"]
