"""The patroller finds what no watch showed, says what and who, and has it put right; it never deletes by mistake."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from harness import ALL, HOME, Daemon, Tenant, Two, between, configured, namespace, place, play, until, writes
from prometheus_client import generate_latest

from syncer.api import Key, Obj, Request, Side
from syncer.cli.patrol import is_left, lines
from syncer.flow.asking.shown import PATROL_METRICS
from syncer.flow.asking.status import degraded
from syncer.flow.patrolling.findings import Scan
from syncer.flow.patrolling.patrol import GRACE_SECONDS, Patroller
from syncer.flow.patrolling.patrollers import confirm, held, readings, report
from syncer.flow.seeing.store import Store
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.apiserver import Rule
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret, service


def patroller(daemon: Daemon) -> Patroller:
    [found] = daemon.engine.patrollers()
    return found


@contextlib.asynccontextmanager
async def patrolled(two: Two, kinds: Mapping[str, Any] = ALL, **patrol: Any) -> AsyncIterator[Daemon]:
    """A daemon with all built-in syncers and these options of its patroller, which scans only when told to."""
    config = configured(Tenant(two.virtual, options=kinds))
    options = type(config.patrol).model_validate({"interval": "10h", "fresh": "10h", **patrol})
    config = config.model_copy(update={"patrol": options})
    async with between(two.host, [(config, two.virtual)]) as daemon:
        yield daemon


async def scanned(daemon: Daemon, syncer: str = "configmaps", *, fresh: bool = True) -> Scan:
    [made] = daemon.engine.links.values()
    return await patroller(daemon).scan(made.parts[syncer], fresh=fresh)


def blind(two: Two) -> None:
    """Let no watch show anything any more."""
    for server in (two.virtual, two.host):
        server.faults.add(Rule(verb="watch", drop=True))


def told(scan: Scan) -> list[tuple[str, str, str]]:
    return [(one.drift.kind, str(one.drift.side), one.outcome.value) for one in scan.findings]


def there(two: Two, plural: str, name: str, *, original: bool = False) -> Obj:
    found = two.original(plural, name) if original else two.copy(plural, name)
    assert found
    return found


PAST = 70.0  # seconds after which a bookmark has told every watch that it is past all that was dropped


# -- finding and repairing ---------------------------------------------------------------------------------------------


def test_an_edit_that_no_watch_showed_is_found_from_fresh_lists_and_put_right(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        async with patrolled(two) as daemon:
            await daemon.settled()
            blind(two)
            two.host.put(merged(there(two, "configmaps", "x"), {"data": {"color": "red"}}))
            await asyncio.sleep(PAST)
            assert told(await scanned(daemon, fresh=False)) == [], "the store doesn't know"
            scan = await scanned(daemon)
            assert told(scan) == [("field", "host", "repaired")]
            assert scan.corrected == [f"host configmaps {place('x')}"]
            assert there(two, "configmaps", "x")["data"] == {"color": "blue"}
            assert told(await scanned(daemon)) == []

    play(scenario)


def test_it_says_which_field_from_what_to_what_and_who_it_was(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        two.virtual.put(secret("s", {"password": "old"}))
        async with patrolled(two) as daemon:
            await daemon.settled()
            blind(two)
            editor = two.host.transport()
            for plural, name, value in (("configmaps", "x", '"red"'), ("secrets", "s", '"bmV3ZXI="')):
                field = "color" if plural == "configmaps" else "password"
                path = f"/api/v1/namespaces/{place(name).replace('/', f'/{plural}/')}?fieldManager=kubectl-edit"
                body = f'{{"data":{{"{field}":{value}}}}}'.encode()
                reply = await editor.request("PATCH", path, body=body, content_type="application/merge-patch+json")
                assert reply.status == 200
            await asyncio.sleep(PAST)
            for syncer in ("configmaps", "secrets"):
                await scanned(daemon, syncer)
            [made] = daemon.engine.links.values()
            shown = report(made, patroller(daemon))
            text = "\n".join(lines(shown, diff=True))
            assert f"repaired: host configmaps {place('x')}, of shop/x: field: data.color" in text
            assert '    data.color: "blue" -> "red"  changed by kubectl-edit at 2026-' in text
            assert "    data.password: (4 bytes) -> (8 bytes)  changed by kubectl-edit at 2026-" in text
            assert "bmV3ZXI=" not in str(shown)
            assert text.endswith("2 drifted of 7 looked at: 2 repaired")
            assert not is_left(shown)

    play(scenario)


def test_a_scan_of_the_stores_passes_over_what_is_as_it_was(two: Two) -> None:
    async def scenario() -> None:
        for number in range(5):
            two.virtual.put(configmap(f"x{number}"))
        async with patrolled(two) as daemon:
            await daemon.settled()
            first, all_of_them = await scanned(daemon, fresh=False), len(two.virtual.objects("configmaps"))
            assert (first.verified, first.skipped) == (all_of_them, 0)
            seen = len(two.host.requests), len(two.virtual.requests)
            second = await scanned(daemon, fresh=False)
            assert (second.verified, second.skipped) == (0, all_of_them)
            assert (len(two.host.requests), len(two.virtual.requests)) == seen, "no API call"
            two.virtual.put(configmap("x3", {"new": "1"}))
            two.host.put(merged(there(two, "configmaps", "x4"), {"metadata": {"labels": {"theirs": "1"}}}))
            await daemon.settled()
            third = await scanned(daemon, fresh=False)
            assert (third.verified, third.skipped) == (2, all_of_them - 2)
            fourth = await scanned(daemon)
            assert (fourth.verified, fourth.skipped) == (all_of_them, 0)

    play(scenario)


def test_what_is_being_worked_on_or_fails_already_is_no_drift(two: Two) -> None:
    async def scenario() -> None:
        two.host.put(configmap(place("taken").partition("/")[2], namespace=HOME))
        two.virtual.put(configmap("taken"))
        async with patrolled(two) as daemon:
            await daemon.settled()
            refused = two.host.faults.add(Rule(verb="create", resource="configmaps", status=500))
            two.virtual.put(configmap("late"))
            await asyncio.sleep(1)
            scan = await scanned(daemon)
            assert told(scan) == []
            assert scan.busy == 2
            two.host.faults.remove(refused)
            await daemon.settled(patience=60)
            assert two.copy("configmaps", "late")

    play(scenario)


def test_what_has_just_changed_is_no_drift(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        async with patrolled(two) as daemon:
            await daemon.settled()
            two.host.faults.add(Rule(verb="watch", drop=True))
            two.host.put(merged(there(two, "configmaps", "x"), {"data": {"color": "red"}}))
            await asyncio.sleep(PAST)
            scanning = asyncio.create_task(scanned(daemon))
            await asyncio.sleep(GRACE_SECONDS / 2)
            daemon.engine.queue.add(Request("vc", "configmaps", Key("shop", "x")))
            assert told(await scanning) == []
            assert there(two, "configmaps", "x")["data"] == {"color": "blue"}

    play(scenario)


def test_what_is_paused_has_not_drifted(two: Two) -> None:
    async def scenario() -> None:
        original = two.virtual.put(configmap("x", {"color": "blue"}))
        async with patrolled(two) as daemon:
            await daemon.settled()
            two.virtual.put(merged(original, {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}}))
            await daemon.settled()
            blind(two)
            two.host.put(merged(there(two, "configmaps", "x"), {"data": {"color": "red"}}))
            await asyncio.sleep(PAST)
            assert told(await scanned(daemon)) == []
            assert there(two, "configmaps", "x")["data"] == {"color": "red"}

    play(scenario)


def test_repairs_come_after_everything_else(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        async with patrolled(two) as daemon:
            await daemon.settled()
            blind(two)
            two.host.put(merged(there(two, "configmaps", "x"), {"data": {"color": "red"}}))
            await asyncio.sleep(PAST)
            added, add = list[bool](), daemon.engine.queue.add

            def spy(request: Request, *, after: float = 0.0, low: bool = False) -> None:
                added.append(low)
                add(request, after=after, low=low)

            monkeypatch.setattr(daemon.engine.queue, "add", spy)
            assert told(await scanned(daemon)) == [("field", "host", "repaired")]
            assert added == [True]

    play(scenario)


def test_a_repair_that_fails_says_why_and_is_left(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        async with patrolled(two) as daemon:
            await daemon.settled()
            blind(two)
            two.host.put(merged(there(two, "configmaps", "x"), {"metadata": {"labels": {"vsyncer.dev/cluster": None}}}))
            await asyncio.sleep(PAST)
            scan = await scanned(daemon)
            assert told(scan) == [("missing", "host", "failed")]
            assert "not ours" in scan.findings[0].reason
            assert told(await scanned(daemon)) == [], "it is known to be in trouble now"

    play(scenario)


# -- policies ----------------------------------------------------------------------------------------------------------


def test_by_policy_an_edit_is_only_reported_and_no_event_takes_it_back(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        async with patrolled(two, drift={"field": "report", "metadata": "ignore"}) as daemon:
            await daemon.settled()
            edit = {"data": {"color": "red"}, "metadata": {"labels": {"vsyncer.dev/namespace": "other"}}}
            two.host.put(merged(there(two, "configmaps", "x"), edit))
            await daemon.settled()
            assert there(two, "configmaps", "x")["data"] == {"color": "red"}, "the event of the edit"
            scan = await scanned(daemon)
            assert sorted(told(scan)) == [("field", "host", "reported"), ("metadata", "host", "ignored")]
            assert told(await scanned(daemon, fresh=False)) == told(scan), "it stays, so it is told again"
            assert there(two, "configmaps", "x")["data"] == {"color": "red"}
        async with patrolled(two, drift={"field": "report", "metadata": "ignore"}) as daemon:
            await daemon.settled()
            assert there(two, "configmaps", "x")["data"] == {"color": "red"}, "a restart"
            two.virtual.put(configmap("x", {"color": "blue", "size": "3"}))
            await daemon.settled()
            assert there(two, "configmaps", "x")["data"] == {"color": "blue", "size": "3"}, "the tenant's change"
            assert told(await scanned(daemon)) == []

    play(scenario)


def test_a_kind_may_have_a_policy_of_its_own(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        two.virtual.put(secret("s", {"password": "old"}))
        options = {"configMaps": {"all": True, "drift": {"field": "repair"}}, "secrets": {"all": True}}
        async with patrolled(two, options, drift={"field": "report"}) as daemon:
            await daemon.settled()
            two.host.put(merged(there(two, "configmaps", "x"), {"data": {"color": "red"}}))
            two.host.put(merged(there(two, "secrets", "s"), {"data": {"password": "bmV3"}}))
            await daemon.settled()
            assert there(two, "configmaps", "x")["data"] == {"color": "blue"}
            assert there(two, "secrets", "s")["data"] == {"password": "bmV3"}

    play(scenario)


def test_a_status_that_somebody_overwrote_stays_by_policy_until_the_host_reports_anew(two: Two) -> None:
    def balanced(address: str) -> Obj:
        return {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}

    def address(two: Two) -> str:
        original = two.original("services", "web")
        assert original
        [found] = original["status"]["loadBalancer"]["ingress"]
        return str(found["ip"])

    async def scenario() -> None:
        two.virtual.put(service("web", spec={"type": "LoadBalancer"}))
        async with patrolled(two, drift={"status": "report"}) as daemon:
            await daemon.settled()
            two.host.put(merged(there(two, "services", "web"), balanced("192.0.2.1")))
            await daemon.settled()
            assert address(two) == "192.0.2.1"
            original = two.original("services", "web")
            assert original
            two.virtual.put(merged(original, balanced("192.0.2.9")))
            await daemon.settled()
            assert address(two) == "192.0.2.9"
            assert told(await scanned(daemon, "services")) == [("status", "virtual", "reported")]
            two.host.put(merged(there(two, "services", "web"), balanced("192.0.2.2")))
            await daemon.settled()
            assert address(two) == "192.0.2.2"

    play(scenario)


def test_an_orphan_that_is_only_reported_outlives_a_restart(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x"))
        async with patrolled(two) as daemon:
            await daemon.settled()
        two.virtual.delete("configmaps", "shop/x")
        async with patrolled(two, drift={"orphan": "report"}) as daemon:
            await daemon.settled()
            assert two.copy("configmaps", "x"), "nobody saw the virtual object go"
            assert told(await scanned(daemon)) == [("orphan", "host", "reported")]
            two.virtual.put(configmap("y"))
            await daemon.settled()
            two.virtual.delete("configmaps", "shop/y")
            await daemon.settled()
            assert two.copy("configmaps", "y") is None, "what a tenant is seen to delete is deleted"
            assert two.copy("configmaps", "x")

    play(scenario)


# -- never by mistake --------------------------------------------------------------------------------------------------


def many(two: Two, number: int) -> None:
    for each in range(number):
        two.virtual.put(configmap(f"c{each}"))


def deletions(two: Two, since: int = 0) -> list[str]:
    return [line for line in writes(two.host, since) if line.startswith("delete")]


def test_a_list_that_fails_or_expires_half_way_costs_nothing(two: Two) -> None:
    async def scenario() -> None:
        many(two, 1200)  # three pages
        async with patrolled(two) as daemon:
            await daemon.settled()
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
            assert told(await scanned(daemon)) == []

    play(scenario)


def test_while_a_cluster_does_not_answer_nothing_is_said_of_it(two: Two) -> None:
    async def scenario() -> None:
        many(two, 10)
        async with patrolled(two) as daemon:
            await daemon.settled()
            two.virtual.restart(down=30)
            await until(lambda: daemon.engine.silent(next(iter(daemon.engine.links.values()))))
            for fresh in (False, True):
                scan = await scanned(daemon, fresh=fresh)
                assert scan.problem == "the virtual cluster does not answer"
                assert (scan.verified, scan.findings) == (0, [])
            await asyncio.sleep(60)
            assert (await scanned(daemon)).problem == ""
            assert deletions(two) == []

    play(scenario)


# -- the breaker -------------------------------------------------------------------------------------------------------


def virtual_stores(daemon: Daemon) -> list[Store]:
    caches = daemon.engine.links["vc"].caches
    return [store for store in caches if (store.side, store.resource) == (Side.VIRTUAL, CONFIG_MAPS)]


def forget(two: Two, number: int) -> None:
    """Let virtual objects be gone, as from an API server whose etcd was restored from another day."""
    for each in range(number):
        two.virtual.delete("configmaps", f"shop/c{each}")


def copies(two: Two) -> int:
    return len([one for one in two.host.objects("configmaps", HOME) if "-x-shop-x-" in one["metadata"]["name"]])


@pytest.mark.parametrize("how", ["start", "relist", "scan"])
def test_too_many_deletions_are_held_until_a_person_confirms_them(two: Two, how: str) -> None:
    async def scenario() -> None:
        many(two, 200)
        async with contextlib.AsyncExitStack() as stack:
            daemon = await stack.enter_async_context(patrolled(two))
            await daemon.settled()
            match how:
                case "start":
                    await stack.aclose()
                    forget(two, 150)
                    daemon = await stack.enter_async_context(patrolled(two))
                case "relist":
                    two.virtual.restart(down=5)
                    forget(two, 150)
                    two.virtual.compact()
                    await asyncio.sleep(60)
                case "scan":
                    blind(two)
                    forget(two, 150)
                    await asyncio.sleep(PAST)
                    scan = await scanned(daemon)
                    assert set(told(scan)) == {("orphan", "host", "held")}
                    assert len(scan.findings) == 150
            await daemon.settled()
            assert copies(two) == 201 - (two.copy("configmaps", "kube-root-ca.crt") is None)
            standing = daemon.standing("c7")
            assert standing
            assert "held by the deletion breaker: 150 of 20" in standing.reason
            assert "syncer patrol --confirm" in degraded(daemon.engine)["configmaps"]
            assert shown(daemon)['syncer_deletions_held{side="host",syncer="configmaps"}'] == 150
            if how != "scan":  # where no watch shows anything
                two.virtual.put(configmap("another"))
                await until(lambda: two.copy("configmaps", "another"))

            [held] = confirm(daemon.engine, lambda syncer: syncer == "configmaps")
            assert len(held.objects) == 150
            breaker, [store] = daemon.engine.links["vc"].breaker, virtual_stores(daemon)
            breaker.listed(store)  # a list meanwhile, which shows the same to be missing
            await until(lambda: copies(two) <= 53)
            await daemon.settled()
            assert "configmaps" not in degraded(daemon.engine)
            assert told(await scanned(daemon)) == []

    play(scenario)


def shown(daemon: Daemon) -> dict[str, float]:
    """What a scrape shows of the patroller."""
    ask = daemon.engine.metrics.ask
    for name in PATROL_METRICS:
        ask(name, lambda name=name: readings(daemon.engine.patrollers()).get(name, {}))  # type: ignore[misc]
    ask("syncer_deletions_held", lambda: held(daemon.engine.links.values()))
    rows = generate_latest(daemon.engine.metrics.registry).decode().splitlines()
    return {name: float(value) for name, _, value in (row.rpartition(" ") for row in rows if row[0] != "#")}


def test_what_comes_back_before_anybody_confirms_is_held_no_longer(two: Two) -> None:
    async def scenario() -> None:
        many(two, 200)
        async with patrolled(two) as daemon:
            await daemon.settled()
        forget(two, 150)
        async with patrolled(two) as daemon:
            await daemon.settled()
            assert len(daemon.engine.links["vc"].breaker.held) == 1
            many(two, 150)
            for each in range(150):  # as if they had come back with the uids that they had
                uid = there(two, "configmaps", f"c{each}", original=True)["metadata"]["uid"]
                mark = {"metadata": {"annotations": {"vsyncer.dev/virtual-uid": uid}}}
                two.host.put(merged(there(two, "configmaps", f"c{each}"), mark))
            await daemon.settled()
            assert told(await scanned(daemon)) == []
            assert daemon.engine.links["vc"].breaker.held == {}
            assert copies(two) >= 200

    play(scenario)


def test_a_scan_that_has_looked_before_a_list_lets_nothing_go(two: Two) -> None:
    async def scenario() -> None:
        many(two, 200)
        async with patrolled(two) as daemon:
            await daemon.settled()
            [made] = daemon.engine.links.values()
            blind(two)
            two.host.put(merged(there(two, "configmaps", "c199"), {"data": {"color": "red"}}))
            await asyncio.sleep(PAST)
            scanning = asyncio.create_task(scanned(daemon))
            await asyncio.sleep(GRACE_SECONDS / 2)  # it has found the edit, and waits whether that is still there
            two.virtual.faults.clear()
            two.virtual.restart(down=0)
            forget(two, 150)
            two.virtual.compact()
            await scanning
            await asyncio.sleep(400)  # beyond the slow timer of what is parked
            assert deletions(two) == []
            assert "150 of 200 configmaps" in degraded(daemon.engine)["configmaps"]
            made.breaker.scanned(made.parts["configmaps"], [])
            assert "configmaps" in degraded(daemon.engine)

    play(scenario)


@pytest.mark.parametrize("half_way", [False, True], ids=["read to its end", "fails half way"])
def test_what_a_page_shows_is_not_deleted_before_the_list_is_complete(two: Two, half_way: bool) -> None:
    """All virtual objects are there with other uids, as after a restore from manifests; the list comes in pages."""

    async def scenario() -> None:
        many(two, 1200)
        two.virtual.put(configmap("first"))
        async with patrolled(two) as daemon:
            await daemon.settled()
        two.virtual.delete("configmaps", "shop/first")
        async with patrolled(two) as daemon:
            await until(lambda: two.copy("configmaps", "first") is None)  # so what the start listed has been counted
            await daemon.settled()
            seen = len(two.host.requests)
            two.virtual.restart(down=5)
            forget(two, 1200)
            many(two, 1200)
            two.virtual.compact()
            pages = two.virtual.faults.add(Rule(verb="list", resource="configmaps", latency=2.0))
            if half_way:
                await until(lambda: pages.hits >= 2)
                await asyncio.sleep(1)
                failing = two.virtual.faults.add(Rule(verb="list", resource="configmaps", status=500))
                await asyncio.sleep(60)
                assert deletions(two, seen) == []
                two.virtual.faults.remove(failing)
            await asyncio.sleep(100)
            assert deletions(two, seen) == []
            assert "1200 of 1200 configmaps" in degraded(daemon.engine)["configmaps"]

    play(scenario)


def test_a_pause_hides_nothing_from_the_breaker(two: Two) -> None:
    """What was listed while it was paused is counted when it no longer is, though other objects were counted before."""

    def pause(value: str | None) -> None:
        mark = {"metadata": {"annotations": {"vsyncer.dev/paused": value}}}
        home = two.virtual.get("namespaces", "shop")
        assert home
        two.virtual.put(merged(home, mark))

    async def scenario() -> None:
        two.virtual.put(namespace("other"))
        two.virtual.put(configmap("z", namespace="other"))
        many(two, 200)
        async with patrolled(two) as daemon:
            await daemon.settled()
        pause("true")
        forget(two, 200)
        two.virtual.delete("configmaps", "other/z")
        seen = len(two.host.requests)
        async with patrolled(two) as daemon:
            await daemon.settled()
            assert len(deletions(two, seen)) == 1, "of the other namespace"
            pause(None)
            await asyncio.sleep(60)
            assert len(deletions(two, seen)) == 1
            assert "200 of 200 configmaps" in degraded(daemon.engine)["configmaps"]

    play(scenario)


def test_what_a_tenant_is_seen_to_delete_is_never_held(two: Two) -> None:
    async def scenario() -> None:
        many(two, 200)
        async with patrolled(two) as daemon:
            await daemon.settled()
            forget(two, 200)
            await until(lambda: copies(two) <= 1)
            many(two, 200)
            await daemon.settled()
            assert told(await scanned(daemon)) == []  # everything has just been listed
            for each in range(200):  # deleted and made again at once
                two.virtual.delete("configmaps", f"shop/c{each}")
                two.virtual.put(configmap(f"c{each}", {"new": "1"}))
            await daemon.settled()
            assert daemon.engine.links["vc"].breaker.held == {}
            assert all(there(two, "configmaps", f"c{each}")["data"] == {"new": "1"} for each in range(200))

    play(scenario)


def test_few_of_many_and_many_of_few_are_not_held(two: Two) -> None:
    async def scenario() -> None:
        many(two, 200)
        async with patrolled(two) as daemon:
            await daemon.settled()
        forget(two, 99)
        async with patrolled(two) as daemon:
            await daemon.settled()
            assert copies(two) <= 102
        forget_others = range(99, 200)
        for each in forget_others:
            two.virtual.delete("configmaps", f"shop/c{each}")
        async with patrolled(two, breaker={"percent": 100, "count": 10}) as daemon:
            await daemon.settled()
            assert copies(two) <= 1, "no more than all can go"

    play(scenario)


def test_pods_that_run_are_not_deleted_because_a_host_comes_back_empty(two: Two) -> None:
    async def scenario() -> None:
        for each in range(12):
            two.virtual.put(pod(f"p{each}"))
        async with patrolled(two) as daemon:
            await until(lambda: two.copy("pods", "p11"))
            for each in range(12):
                running = {
                    "spec": {"nodeName": "n1"},
                    "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
                }
                two.host.put(merged(there(two, "pods", f"p{each}"), running))
            await daemon.settled()
        for each in range(12):
            two.host.delete("pods", place(f"p{each}"))
        async with patrolled(two, breaker={"count": 5}) as daemon:
            await daemon.settled()
            assert all(two.original("pods", f"p{each}") for each in range(12))
            assert ("pods", "virtual") in daemon.engine.links["vc"].breaker.held
            confirm(daemon.engine, lambda syncer: True)
            await until(lambda: not any(two.original("pods", f"p{each}") for each in range(12)))

    play(scenario)


# -- by itself ---------------------------------------------------------------------------------------------------------


def test_it_scans_by_itself_and_counts_what_it_finds(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {"color": "blue"}))
        two.virtual.put(configmap("y", {"color": "blue"}))
        async with patrolled(two, interval="60s", fresh="5m", drift={"orphan": "report"}) as daemon:
            await daemon.settled()
            blind(two)
            two.host.put(merged(there(two, "configmaps", "x"), {"data": {"color": "red"}}))
            two.virtual.delete("configmaps", "shop/y")
            await asyncio.sleep(400)
            assert there(two, "configmaps", "x")["data"] == {"color": "blue"}
            found = shown(daemon)
            assert found['syncer_drift_total{class="field",outcome="repaired",syncer="configmaps"}'] == 1
            assert found['syncer_drift_total{class="orphan",outcome="reported",syncer="configmaps"}'] >= 1
            assert found['syncer_drift_objects{class="orphan",syncer="configmaps"}'] == 1
            assert found['syncer_store_corrections_total{resource="configmaps",side="host"}'] == 1
            assert found['syncer_store_corrections_total{resource="configmaps",side="virtual"}'] == 1
            assert found['syncer_patrol_pairs_total{result="skipped",syncer="configmaps"}'] > 0
            assert found['syncer_patrol_pairs_total{result="verified",syncer="configmaps"}'] > 0
            two.virtual.faults.clear()
            two.virtual.put(configmap("y", {"color": "blue"}))
            await asyncio.sleep(700)
            assert 'syncer_drift_objects{class="orphan",syncer="configmaps"}' not in shown(daemon)

    play(scenario)


def test_it_rests_where_it_is_switched_off_and_stands_by_with_the_process(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x"))
        async with patrolled(two, enabled=False, interval="60s", fresh="60s") as daemon:
            await daemon.settled()
            await asyncio.sleep(300)
            assert patroller(daemon).reports == {}

    play(scenario)
