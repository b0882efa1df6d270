"""Public CRDs of the host with the whole process: when they appear, what they follow, and what never
happens.
"""

import asyncio

import pytest
from crd_scene import CRDS, NAME, ON, WEBHOOK, copy, daemon, public, status, there, widget
from harness import Two, until, writes

from syncer.api import labels_of
from syncer.api.reasons import RequestState
from syncer.testing.merge import merged
from syncer.testing.objects import crd, crd_version

# -- coming ----------------------------------------------------------------------------------------


async def test_virtual_cluster_has_the_public_crds_as_soon_as_it_connects(two: Two) -> None:
    for number in range(50):
        two.host.put(public(f"public{number}s.example.com"))
        two.host.put(crd(f"private{number}s.example.com"))
    async with daemon(two, ON):
        assert await until(lambda: len(two.virtual.objects(CRDS)) == 50) <= 2
        assert all(labels_of(one)["vsyncer.dev/cluster"] == "vc.vc-ns" for one in two.virtual.objects(CRDS))
    asked = [one for one in two.host.requests if one.resource == "customresourcedefinitions"]
    assert {one.verb for one in asked} == {"list", "watch"}
    assert writes(two.host) == []


async def test_crd_comes_when_it_is_labelled_and_follows_the_host(two: Two) -> None:
    two.host.put(crd(NAME))
    async with daemon(two, ON) as running:
        await running.settled()
        assert copy(two) is None
        two.host.put(public())
        assert await until(lambda: copy(two)) <= 2
        host = public(spec={"names": {"shortNames": ["w"]}}, metadata={"annotations": {"note": "x"}})
        two.host.put(host)
        await until(lambda: (copy(two) or {})["spec"]["names"].get("shortNames") == ["w"])
        assert there(two.virtual)["metadata"]["annotations"]["note"] == "x"
        await running.settled()
        since = len(two.virtual.requests)
        two.host.put(merged(there(two.host), {"status": {"storedVersions": ["v1", "v0"]}}))
        await running.settled()
        assert writes(two.virtual, since) == []


async def test_crd_sync_is_off_by_default(two: Two) -> None:
    two.host.put(public())
    two.virtual.put(crd(NAME))
    async with daemon(two) as running:
        await running.settled()
    assert not any(one.resource == "customresourcedefinitions" for one in two.host.requests)


async def test_crds_come_only_if_they_are_allowed(two: Two) -> None:
    for name in ("a.example.com", "b.example.com", "c.example.org"):
        two.host.put(public(name))
    async with daemon(two, {**ON, "allow": ["*.example.com"], "deny": ["b.*"]}) as running:
        await running.settled()
        assert [one["metadata"]["name"] for one in two.virtual.objects(CRDS)] == ["a.example.com"]


async def test_twenty_edits_in_a_second_end_in_one_state_with_few_writes(two: Two) -> None:
    two.host.put(public())
    async with daemon(two, ON) as running:
        await running.settled()
        since = len(two.virtual.requests)
        for number in range(20):
            two.host.put(public(spec={"names": {"shortNames": [f"w{number}"]}}))
            await asyncio.sleep(0.05)
        await running.settled()
        assert there(two.virtual)["spec"]["names"]["shortNames"] == ["w19"]
        made = writes(two.virtual, since)
        assert 1 <= len(made) <= 20
        await asyncio.sleep(900)
        assert writes(two.virtual, since) == made


# -- what the virtual side does --------------------------------------------------------------------


async def test_crd_of_the_tenants_own_parks_ours_until_it_is_gone(two: Two) -> None:
    own = two.virtual.put(crd(NAME, [crd_version("v7", storage=True)]))
    two.host.put(public())
    async with daemon(two, {**ON, "onRemoval": "delete"}) as running:
        await running.settled()
        found = status(running)
        assert found
        assert found.state is RequestState.PARKED
        assert "not ours" in found.reason
        assert [event["involvedObject"]["name"] for event in two.virtual.objects("events")] == [NAME]
        two.host.delete(CRDS, NAME)
        await running.settled()
        assert there(two.virtual)["metadata"]["uid"] == own["metadata"]["uid"]
        two.host.put(public())
        await running.settled()
        two.virtual.delete(CRDS, NAME)
        await until(lambda: (copy(two) or own)["spec"] != own["spec"], within=400)


async def test_crd_of_ours_is_restored_after_a_tenants_change(two: Two) -> None:
    two.host.put(public())
    async with daemon(two, ON) as running:
        await running.settled()
        before = there(two.virtual)
        two.virtual.put(merged(before, {"spec": {"names": {"shortNames": ["mine"]}}}))
        await until(lambda: there(two.virtual)["spec"] == before["spec"])
        two.virtual.delete(CRDS, NAME)
        await until(lambda: (copy(two) or before)["metadata"]["uid"] != before["metadata"]["uid"])


async def test_version_that_the_tenant_stores_does_not_go_before_it_is_migrated(two: Two) -> None:
    two.host.put(public())
    async with daemon(two, ON) as running:
        await running.settled()
        two.host.put(public(spec={"versions": [crd_version("v1"), crd_version("v2", storage=True)]}))
        await running.settled()
        assert there(two.virtual)["status"]["storedVersions"] == ["v1", "v2"]
        two.host.put(public(spec={"versions": [crd_version("v2", storage=True)]}))
        await running.settled()
        found = status(running)
        assert found
        assert found.state is RequestState.PARKED
        assert "take v1 out of status.storedVersions" in found.reason
        assert len(there(two.virtual)["spec"]["versions"]) == 2
        two.virtual.put(merged(there(two.virtual), {"status": {"storedVersions": ["v2"]}}))
        await until(lambda: len(there(two.virtual)["spec"]["versions"]) == 1)
        assert status(running) is None


async def test_conversion_webhook_of_the_host_is_never_called(two: Two) -> None:
    versions = [
        crd_version("v1"),
        crd_version("v2", storage=True, schema={"openAPIV3Schema": {"description": "x"}}),
    ]
    two.host.put(public(spec={"versions": versions, "conversion": WEBHOOK}))
    two.host.put(public("old.example.com", spec={"preserveUnknownFields": True}))
    async with daemon(two, ON) as running:
        await running.settled()
        assert there(two.virtual)["spec"]["conversion"] == {"strategy": "None"}
        assert [one["served"] for one in there(two.virtual)["spec"]["versions"]] == [True, True]
        assert "preserveUnknownFields" not in there(two.virtual, "old.example.com")["spec"]
        since = len(two.virtual.requests)
        await asyncio.sleep(900)
        assert writes(two.virtual, since) == []


# -- going -----------------------------------------------------------------------------------------


async def test_crd_that_is_no_longer_public_stays_and_is_adopted_again(two: Two) -> None:
    two.host.put(public())
    async with daemon(two, ON) as running:
        await running.settled()
        before = there(two.virtual)
        two.virtual.put(widget("w"))
        for end in (lambda: two.host.put(crd(NAME)), lambda: two.host.delete(CRDS, NAME)):
            end()
            await running.settled()
            assert there(two.virtual) == before
        two.host.put(public(spec={"names": {"shortNames": ["w"]}}))
        await until(lambda: there(two.virtual)["spec"]["names"].get("shortNames"))
        assert there(two.virtual)["metadata"]["uid"] == before["metadata"]["uid"]
        assert two.virtual.get("widgets.example.com", "shop/w")


async def test_crd_is_deleted_with_its_label_if_so_configured(two: Two) -> None:
    two.host.put(public())
    async with daemon(two, {**ON, "onRemoval": "delete"}) as running:
        await running.settled()
        two.host.put(crd(NAME))
        await until(lambda: copy(two) is None)
        two.host.put(public())
        await until(lambda: copy(two))
        two.host.delete(CRDS, NAME)
        await until(lambda: copy(two) is None)
        await running.settled()


async def test_changes_between_two_runs_are_noticed_at_the_next_start(two: Two) -> None:
    own = two.virtual.put(crd("gadgets.example.com"))
    two.host.put(public())
    async with daemon(two, ON) as running:
        await running.settled()
    two.host.put(crd(NAME))
    async with daemon(two, {**ON, "onRemoval": "delete"}) as running:
        await until(lambda: copy(two) is None)
        await running.settled()
        assert there(two.virtual, "gadgets.example.com")["metadata"]["uid"] == own["metadata"]["uid"]


@pytest.mark.reason("InUse")
async def test_crd_in_use_goes_when_its_last_object_has_gone(two: Two) -> None:
    two.host.put(public())
    async with daemon(two, {**ON, "onRemoval": "delete-if-unused"}) as running:
        await running.settled()
        two.virtual.put(widget("w"))
        two.host.delete(CRDS, NAME)
        await running.settled()
        found = status(running)
        assert found
        assert found.state is RequestState.PARKED
        assert two.virtual.get("widgets.example.com", "shop/w")
        two.virtual.delete("widgets.example.com", "shop/w")
        await until(lambda: copy(two) is None, within=400)
