"""The patroller finds unseen changes, reports them with their managers, and repairs them; it never
deletes by mistake.
"""

import asyncio

import pytest
from harness import HOME, Two, host_path, until
from patrol_scene import (
    BLUE,
    PAST,
    RED,
    blind,
    deletions,
    drifted,
    edit_unseen,
    in_step,
    outcomes,
    patroller,
    put_in_step,
    scanned,
    shown,
)
from rules_scene import edit
from shop_scene import copy_name, many, the_copy, the_original

from kube_envtest import Rule
from syncer.api import Key, Obj, SyncRequest
from syncer.cli.patrol import is_left, lines
from syncer.clusters.transport import HttpRequest
from syncer.engine.patrol.patroller import GRACE_SECONDS
from syncer.engine.patrol.patrollers import report
from syncer.testing.objects import configmap, secret, service

# -- finding and repairing -------------------------------------------------------------------------


async def test_edit_missed_by_the_watch_is_found_from_fresh_lists_and_repaired(two: Two) -> None:
    async with drifted(two) as daemon:
        assert outcomes(await scanned(daemon, fresh=False)) == [], "the store doesn't know"
        scan = await scanned(daemon)
        assert outcomes(scan) == [("field", "host", "repaired")]
        assert scan.corrected == [f"host configmaps {host_path('x')}"]
        assert the_copy(two, "configmaps", "x")["data"] == BLUE
        assert outcomes(await scanned(daemon)) == []


async def test_finding_names_the_field_its_values_and_the_manager(two: Two) -> None:
    two.virtual.put(configmap("x", BLUE))
    two.virtual.put(secret("s", {"password": "old"}))
    async with in_step(two) as daemon:
        blind(two)
        editor = two.host.transport()
        for plural, name, value in (("configmaps", "x", '"red"'), ("secrets", "s", '"bmV3ZXI="')):
            field = "color" if plural == "configmaps" else "password"
            path = f"/api/v1/namespaces/{host_path(name).replace('/', f'/{plural}/')}?fieldManager=kubectl-edit"
            body = f'{{"data":{{"{field}":{value}}}}}'.encode()
            reply = await editor.send(
                HttpRequest("PATCH", path, body=body, content_type="application/merge-patch+json")
            )
            assert reply.status == 200
        await asyncio.sleep(PAST)
        for syncer in ("configmaps", "secrets"):
            await scanned(daemon, syncer)
        [pair] = daemon.process.pairs.values()
        shown = report(pair, patroller(daemon))
        text = "\n".join(lines(shown, diff=True))
        assert f"repaired: host configmaps {host_path('x')}, of shop/x: field: data.color" in text
        assert '    data.color: "blue" -> "red"  changed by kubectl-edit at 2026-' in text
        assert "    data.password: (4 bytes) -> (8 bytes)  changed by kubectl-edit at 2026-" in text
        assert "bmV3ZXI=" not in str(shown)
        assert text.endswith("2 drifted of 7 looked at: 2 repaired")
        assert not is_left(shown)


async def test_scan_of_the_stores_skips_unchanged_objects(two: Two) -> None:
    many(two, 5)
    async with in_step(two) as daemon:
        first, all_of_them = await scanned(daemon, fresh=False), len(two.virtual.objects("configmaps"))
        assert (first.verified, first.skipped) == (all_of_them, 0)
        since = len(two.host.requests), len(two.virtual.requests)
        second = await scanned(daemon, fresh=False)
        assert (second.verified, second.skipped) == (0, all_of_them)
        assert (len(two.host.requests), len(two.virtual.requests)) == since, "no API call"
        two.virtual.put(configmap("c3", {"new": "1"}))
        edit(two, "host", "configmaps", {"metadata": {"labels": {"theirs": "1"}}}, "c4")
        await daemon.settled()
        third = await scanned(daemon, fresh=False)
        assert (third.verified, third.skipped) == (2, all_of_them - 2)
        fourth = await scanned(daemon)
        assert (fourth.verified, fourth.skipped) == (all_of_them, 0)


async def test_request_in_work_or_failing_is_no_drift(two: Two) -> None:
    two.host.put(configmap(copy_name("taken"), namespace=HOME))
    two.virtual.put(configmap("taken"))
    async with in_step(two) as daemon:
        refused = two.host.faults.add(Rule(verb="create", resource="configmaps", status=500))
        two.virtual.put(configmap("late"))
        await asyncio.sleep(1)
        scan = await scanned(daemon)
        assert outcomes(scan) == []
        assert scan.busy == 2
        two.host.faults.remove(refused)
        await daemon.settled(patience=60)
        assert two.copy("configmaps", "late")


@pytest.mark.parametrize("seconds", [0.0, 5 * GRACE_SECONDS])
async def test_recent_change_is_no_drift_however_long_its_write_takes(two: Two, seconds: float) -> None:
    two.virtual.put(configmap("x", BLUE))
    async with in_step(two) as daemon:
        two.host.faults.add(Rule(verb="watch", drop=True))
        edit(two, "host", "configmaps", {"data": RED})
        await asyncio.sleep(PAST)
        scanning = asyncio.create_task(scanned(daemon))
        await asyncio.sleep(GRACE_SECONDS / 2)
        two.host.faults.add(Rule(verb="patch", resource="configmaps", latency=seconds))
        daemon.process.queue.add(SyncRequest("vc", "configmaps", Key("shop", "x")))
        assert outcomes(await scanning) == []
        assert await until(lambda: the_copy(two, "configmaps", "x")["data"] == BLUE) <= seconds


async def test_paused_object_has_not_drifted(two: Two) -> None:
    two.virtual.put(configmap("x", BLUE))
    async with in_step(two) as daemon:
        edit(two, "virtual", "configmaps", {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}})
        await daemon.settled()
        await edit_unseen(two)
        assert outcomes(await scanned(daemon)) == []
        assert the_copy(two, "configmaps", "x")["data"] == RED


async def test_repairs_come_after_everything_else(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    async with drifted(two) as daemon:
        added, add = list[bool](), daemon.process.queue.add

        def spy(request: SyncRequest, *, after: float = 0.0, low: bool = False) -> None:
            added.append(low)
            add(request, after=after, low=low)

        monkeypatch.setattr(daemon.process.queue, "add", spy)
        assert outcomes(await scanned(daemon)) == [("field", "host", "repaired")]
        assert added == [True]


async def test_failed_repair_is_reported_with_its_reason_and_left(two: Two) -> None:
    async with drifted(two, {"metadata": {"labels": {"vsyncer.dev/cluster": None}}}) as daemon:
        scan = await scanned(daemon)
        assert outcomes(scan) == [("missing", "host", "failed")]
        assert "not ours" in scan.findings[0].reason
        assert outcomes(await scanned(daemon)) == [], "it is known to be in trouble now"


# -- policies --------------------------------------------------------------------------------------


async def test_edit_is_only_reported_by_policy_and_no_event_reverts_it(two: Two) -> None:
    lenient = {"field": "report", "metadata": "ignore"}
    two.virtual.put(configmap("x", BLUE))
    async with in_step(two, drift=lenient) as daemon:
        edited = {"data": RED, "metadata": {"labels": {"vsyncer.dev/namespace": "other"}}}
        edit(two, "host", "configmaps", edited)
        await daemon.settled()
        assert the_copy(two, "configmaps", "x")["data"] == RED, "the event of the edit"
        scan = await scanned(daemon)
        assert sorted(outcomes(scan)) == [("field", "host", "reported"), ("metadata", "host", "ignored")]
        assert outcomes(await scanned(daemon, fresh=False)) == outcomes(scan), "it stays, so it is reported again"
        assert the_copy(two, "configmaps", "x")["data"] == RED
    async with in_step(two, drift=lenient) as daemon:
        assert the_copy(two, "configmaps", "x")["data"] == RED, "a restart"
        two.virtual.put(configmap("x", {"color": "blue", "size": "3"}))
        await daemon.settled()
        assert the_copy(two, "configmaps", "x")["data"] == {"color": "blue", "size": "3"}, "the tenant's change"
        assert outcomes(await scanned(daemon)) == []


async def test_kind_may_have_its_own_policy(two: Two) -> None:
    two.virtual.put(configmap("x", BLUE))
    two.virtual.put(secret("s", {"password": "old"}))
    options = {"configMaps": {"all": True, "drift": {"field": "repair"}}, "secrets": {"all": True}}
    async with in_step(two, options, drift={"field": "report"}) as daemon:
        edit(two, "host", "configmaps", {"data": RED})
        edit(two, "host", "secrets", {"data": {"password": "bmV3"}}, "s")
        await daemon.settled()
        assert the_copy(two, "configmaps", "x")["data"] == BLUE
        assert the_copy(two, "secrets", "s")["data"] == {"password": "bmV3"}


async def test_overwritten_status_stays_by_policy_until_the_next_report_of_the_host(two: Two) -> None:
    def balanced(address: str) -> Obj:
        return {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}

    def address(two: Two) -> str:
        [found] = the_original(two, "services", "web")["status"]["loadBalancer"]["ingress"]
        return str(found["ip"])

    two.virtual.put(service("web", spec={"type": "LoadBalancer"}))
    async with in_step(two, drift={"status": "report"}) as daemon:
        edit(two, "host", "services", balanced("192.0.2.1"), "web")
        await daemon.settled()
        assert address(two) == "192.0.2.1"
        edit(two, "virtual", "services", balanced("192.0.2.9"), "web")
        await daemon.settled()
        assert address(two) == "192.0.2.9"
        assert outcomes(await scanned(daemon, "services")) == [("status", "virtual", "reported")]
        edit(two, "host", "services", balanced("192.0.2.2"), "web")
        await daemon.settled()
        assert address(two) == "192.0.2.2"


async def test_orphan_that_is_only_reported_outlives_a_restart(two: Two) -> None:
    two.virtual.put(configmap("x"))
    await put_in_step(two)
    two.virtual.delete("configmaps", "shop/x")
    async with in_step(two, drift={"orphan": "report"}) as daemon:
        assert two.copy("configmaps", "x"), "nobody saw the virtual object go"
        assert outcomes(await scanned(daemon)) == [("orphan", "host", "reported")]
        two.virtual.put(configmap("y"))
        await daemon.settled()
        two.virtual.delete("configmaps", "shop/y")
        await daemon.settled()
        assert two.copy("configmaps", "y") is None, "what a tenant is seen to delete is deleted"
        assert two.copy("configmaps", "x")


# -- never by mistake ------------------------------------------------------------------------------


async def test_list_that_fails_or_expires_half_way_costs_nothing(two: Two) -> None:
    many(two, 1200)  # three pages
    async with in_step(two) as daemon:
        for fault in (
            Rule(verb="list", status=500),
            Rule(verb="list", status=410),
            Rule(verb="list", reset="before"),
        ):
            for server in (two.virtual, two.host):
                passing = server.faults.add(Rule(verb="list", resource="configmaps", latency=0.01))
                scanning = asyncio.create_task(scanned(daemon))
                await until(lambda passing=passing: passing.hits)  # type: ignore[misc]
                broken = server.faults.add(fault)
                scan = await scanning
                server.faults.remove(broken)
                server.faults.remove(passing)
                assert "can't be listed" in scan.problem or "does not answer" in scan.problem
                assert scan.findings == []
        assert deletions(two) == []
        await daemon.settled()
        assert outcomes(await scanned(daemon)) == []


async def test_cluster_that_does_not_answer_has_no_findings(two: Two) -> None:
    many(two, 10)
    async with in_step(two) as daemon:
        two.virtual.restart(down=30)
        await until(lambda: daemon.process.served["vc"].silent())
        for fresh in (False, True):
            scan = await scanned(daemon, fresh=fresh)
            assert scan.problem == "the virtual cluster does not answer"
            assert (scan.verified, scan.findings) == (0, [])
        await asyncio.sleep(60)
        assert (await scanned(daemon)).problem == ""
        assert deletions(two) == []


# -- by itself -------------------------------------------------------------------------------------


async def test_patroller_scans_by_itself_and_counts_its_findings(two: Two) -> None:
    two.virtual.put(configmap("x", BLUE))
    two.virtual.put(configmap("y", BLUE))
    async with in_step(two, interval="60s", fresh="5m", drift={"orphan": "report"}) as daemon:
        blind(two)
        edit(two, "host", "configmaps", {"data": RED})
        two.virtual.delete("configmaps", "shop/y")
        await asyncio.sleep(400)
        assert the_copy(two, "configmaps", "x")["data"] == BLUE
        found = shown(daemon)
        assert found['syncer_drift_total{class="field",cluster="vc",outcome="repaired",syncer="configmaps"}'] == 1
        assert found['syncer_drift_total{class="orphan",cluster="vc",outcome="reported",syncer="configmaps"}'] >= 1
        assert found['syncer_drift_objects{class="orphan",cluster="vc",syncer="configmaps"}'] == 1
        assert found['syncer_store_corrections_total{cluster="vc",resource="configmaps",side="host"}'] == 1
        assert found['syncer_store_corrections_total{cluster="vc",resource="configmaps",side="virtual"}'] == 1
        assert found['syncer_patrol_pairs_total{cluster="vc",result="skipped",syncer="configmaps"}'] > 0
        assert found['syncer_patrol_pairs_total{cluster="vc",result="verified",syncer="configmaps"}'] > 0
        two.virtual.faults.clear()
        two.virtual.put(configmap("y", BLUE))
        await asyncio.sleep(700)
        assert 'syncer_drift_objects{class="orphan",cluster="vc",syncer="configmaps"}' not in shown(daemon)


async def test_patroller_rests_where_it_is_disabled_and_stands_by_with_the_process(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with in_step(two, enabled=False, interval="60s", fresh="60s") as daemon:
        await asyncio.sleep(300)
        assert patroller(daemon).reports == {}


async def test_corrections_of_caches_are_shown_as_0_before_there_are_any(two: Two) -> None:
    async with in_step(two, interval="60s", fresh="1h") as daemon:
        await asyncio.sleep(100)
        for side in ("host", "virtual"):
            labels = f'cluster="vc",resource="configmaps",side="{side}"'
            assert shown(daemon)[f"syncer_store_corrections_total{{{labels}}}"] == 0
