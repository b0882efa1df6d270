"""The meaning of a copy's deletion on the host, by policy, whether or not a daemon saw it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from harness import HOME, Two, crd, host_path, until, widget, writes
from rules_scene import WIDGETS, Guarded, configured, edit, events, grant, running

from kube_envtest import Rule
from kube_envtest.apiserver.faults import AFTER, BEFORE
from syncer.api import Obj, annotations_of, uid_of
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, service

COPIED = "vsyncer.dev/copied"

#: The kinds: plural, the section below ``sync`` with a policy, an object.
KINDS: dict[str, tuple[str, Callable[[str], Any], Obj]] = {
    "configmaps": (
        "configmaps",
        lambda policy: {"toHost": {"configMaps": {"all": True, "onHostDeletion": policy}}},
        configmap("x"),
    ),
    "services": ("services", lambda policy: {"toHost": {"services": {"onHostDeletion": policy}}}, service("x")),
    "custom": (
        WIDGETS,
        lambda policy: {"custom": {WIDGETS: {"onHostDeletion": policy}}},
        widget("x", spec={"size": 1}),
    ),
}


def marked(two: Two, plural: str) -> bool:
    """Return True if the mark names the copy that is there."""
    original, copy = two.original(plural, "x"), two.copy(plural, "x")
    return bool(original and copy and annotations_of(original).get(COPIED, "").startswith(uid_of(copy)))


def started(kind: str, policy: str) -> tuple[Guarded, Any, str]:
    two = Guarded()
    plural, sync, obj = KINDS[kind]
    two.virtual.put(obj)
    return two, configured(sync(policy), "configmaps", "services"), plural


@pytest.mark.parametrize("stopped", [False, True], ids=["seen", "unseen"])
@pytest.mark.parametrize("policy", ["recreate", "propagate", "report"])
@pytest.mark.parametrize("kind", KINDS)
async def test_deletion_on_the_host_follows_the_policy(kind: str, policy: str, stopped: bool) -> None:
    two, config, plural = started(kind, policy)
    async with running(two, config) as daemon:
        await until(lambda: two.copy(plural, "x") if policy == "recreate" else marked(two, plural))
        await daemon.settled()
        if not stopped:
            two.host.delete(plural, host_path("x"))
            await expected(two, plural, policy)
    if stopped:
        two.host.delete(plural, host_path("x"))
        async with running(two, config):
            await expected(two, plural, policy)


async def expected(two: Two, plural: str, policy: str) -> None:
    """Wait for the end that a policy makes, and that nothing comes after it."""
    if policy == "propagate":
        await until(lambda: two.original(plural, "x") is None)
    elif policy == "report":
        await until(lambda: events(two, "HostCopyDeleted"))
    else:
        await until(lambda: two.copy(plural, "x"))
    await asyncio.sleep(20)
    since = len(two.host.requests)
    await asyncio.sleep(100)
    assert writes(two.host, since) == []
    assert (two.copy(plural, "x") is None) == (policy != "recreate")
    assert (two.original(plural, "x") is None) == (policy == "propagate")


async def test_reported_copy_is_created_again_when_its_annotation_is_removed() -> None:
    two, config, plural = started("configmaps", "report")
    async with running(two, config):
        await until(lambda: marked(two, plural))
        two.host.delete(plural, host_path("x"))
        [event] = await copy_deleted_events(two)
        assert "take the annotation vsyncer.dev/copied off this object" in event["message"]
        assert HOME not in event["message"]
        edit(two, "virtual", plural, {"metadata": {"annotations": {COPIED: None}}})
        await until(lambda: marked(two, plural))


async def copy_deleted_events(two: Two) -> list[Obj]:
    await until(lambda: events(two, "HostCopyDeleted"))
    return events(two, "HostCopyDeleted")


@pytest.mark.parametrize("again", [False, True], ids=["gone", "replaced"])
@pytest.mark.parametrize("stopped", [False, True], ids=["seen", "unseen"])
async def test_tenants_objects_are_not_deleted_with_a_host_namespace(again: bool, stopped: bool) -> None:
    two, config, plural = started("configmaps", "propagate")

    async def lose() -> None:
        await asyncio.sleep(5)
        home = two.host.get("namespaces", HOME)
        two.host.delete(plural, host_path("x"))
        two.host.delete("namespaces", HOME)
        if again:
            assert home
            two.host.put({**home, "metadata": {"name": HOME}})
            grant(two, config)

    async with running(two, config):
        await until(lambda: marked(two, plural))
        if not stopped:
            await lose()
            await asyncio.sleep(700)
    if stopped:
        await lose()
        async with running(two, config):
            await asyncio.sleep(700)
    assert two.original(plural, "x")
    assert two.copy(plural, "x") is None


@pytest.mark.parametrize("sees", [False, True], ids=["without the right", "with the right"])
@pytest.mark.parametrize("how", ["gone", "going", "replaced"])
async def test_tenants_objects_are_not_deleted_with_a_crd_on_the_host(how: str, sees: bool) -> None:
    """Whoever uninstalls an operator on the host deletes all copies of its kinds, and means none of the originals."""
    crds = "customresourcedefinitions.apiextensions.k8s.io"
    two, config, plural = started("custom", "propagate")
    async with running(two, config) as daemon:
        await until(lambda: marked(two, plural))
        await daemon.settled()
        if not sees:
            blinded(two, crds)
        definition = two.host.get(crds, WIDGETS)
        assert definition
        await asyncio.sleep(5)
        if how == "going":
            two.host.put(merged(definition, {"metadata": {"finalizers": ["example.org/wait"]}}))
            two.host.delete(crds, WIDGETS)
            two.host.delete(plural, host_path("x"))
        else:
            two.host.delete(crds, WIDGETS)
        if how == "replaced":
            two.host.put(crd("widgets"))
        await asyncio.sleep(700)
        if sees or how == "gone":
            assert two.original(plural, "x")


def blinded(two: Guarded, plural: str) -> None:
    """Take the right away to see a kind on the host."""
    for kind in ("roles", "clusterroles"):
        for role in two.host.objects(f"{kind}.rbac.authorization.k8s.io"):
            rules = [rule for rule in role["rules"] if plural.partition(".")[0] not in rule.get("resources", ())]
            if rules != role["rules"]:
                two.host.put({**role, "rules": rules})


@pytest.mark.parametrize("policy", ["propagate", "report"])
@pytest.mark.parametrize("verb", ["patch", "delete", "create"])
@pytest.mark.parametrize("when", [BEFORE, AFTER])
async def test_our_own_deletions_trigger_no_policy_wherever_killed(policy: str, verb: str, when: str) -> None:
    """The copy is deleted because it is no longer wanted, then it is wanted again; we die at one of the writes."""
    two = Guarded()
    two.virtual.put(merged(widget("x", spec={"size": 1}), {"metadata": {"labels": {"on": "yes"}}}))
    entry = {"selector": {"matchLabels": {"on": "yes"}}, "onHostDeletion": policy}
    config = configured({"custom": {WIDGETS: entry}}, "configmaps")
    async with running(two, config) as daemon:
        await until(lambda: marked(two, WIDGETS))
        server = two.virtual if verb == "patch" else two.host
        rule = server.faults.add(Rule(verb=verb, resource="widgets", reset=when, count=1))
        edit(two, "virtual", WIDGETS, {"metadata": {"labels": {"on": None}}})
        if verb == "create":
            await until(lambda: two.copy(WIDGETS, "x") is None)
            edit(two, "virtual", WIDGETS, {"metadata": {"labels": {"on": "yes"}}})
        await until(lambda: rule.hits)
        await daemon.kill()
    server.faults.clear()
    edit(two, "virtual", WIDGETS, {"metadata": {"labels": {"on": "yes"}}})
    async with running(two, config) as daemon:
        await until(lambda: marked(two, WIDGETS))
        await daemon.settled()
    assert two.original(WIDGETS, "x")
    assert events(two, "HostCopyDeleted") == []


async def test_object_restored_from_a_backup_is_not_taken_for_a_deleted_one() -> None:
    two, config, plural = started("configmaps", "propagate")
    async with running(two, config):
        await until(lambda: marked(two, plural))
    backup = two.original(plural, "x")
    assert backup
    two.virtual.delete(plural, "shop/x")
    two.host.delete(plural, host_path("x"))
    two.virtual.put(merged(backup, {"metadata": {"uid": None, "resourceVersion": None}}))
    async with running(two, config):
        await until(lambda: marked(two, plural))


async def test_host_that_comes_back_empty_costs_no_originals() -> None:
    """The deletion breaker holds what a list shows to be missing, until a person confirms it."""
    two, config, plural = started("configmaps", "propagate")
    for number in range(120):
        two.virtual.put(configmap(f"y{number}"))

    def noted() -> int:
        return sum(COPIED in annotations_of(one) for one in two.virtual.objects(plural, "shop"))

    async with running(two, config) as daemon:
        await until(lambda: noted() == 121)
        await daemon.settled()
    for copy in two.host.objects(plural, HOME):
        two.host.delete(plural, f"{HOME}/{copy['metadata']['name']}")
    async with running(two, config):
        await asyncio.sleep(700)
        assert noted() == 121
