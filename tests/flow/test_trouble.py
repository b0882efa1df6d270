"""Whatever fails between the daemon and the API servers, it converges without a restart and without
a storm.
"""

import asyncio
from collections import Counter

import pytest
from harness import ALL, HOME, NAMESPACE, Two, built_in, host_path, until, verbs, writes

from kube_envtest import Rule
from syncer.api import Side
from syncer.api.reasons import RequestState
from syncer.daemon.pages.status import degraded
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret, service

MAPS = built_in("configmaps")


def in_step(two: Two, count: int, color: str) -> bool:
    """Return True if so many ConfigMaps have copies that say this."""
    copies = two.host.objects("configmaps", HOME)
    return len([copy for copy in copies if copy.get("data") == {"color": color}]) == count


def paint(two: Two, count: int, color: str) -> None:
    for number in range(count):
        two.virtual.put(configmap(f"c{number}", {"color": color}))


# -- writes that fail ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        Rule(verb="create", resource="configmaps", status=500, count=10),
        Rule(verb="create", resource="configmaps", status=503, count=10),
        Rule(verb="create", resource="configmaps", status=409, count=10),
        Rule(verb="create", resource="configmaps", reset="before", count=10),
        Rule(verb="create", resource="configmaps", reset="after", count=10),
        Rule(verb="*", resource="configmaps", latency=2.0),
        Rule(verb="create", resource="configmaps", probability=0.5, status=500),
    ],
    ids=["500", "503", "409", "lost before", "lost after", "slow", "half of them fail"],
)
async def test_failed_creations_are_repeated(two: Two, rule: Rule) -> None:
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        two.host.faults.add(rule)
        paint(two, 20, "blue")
        await until(lambda: in_step(two, 20, "blue"))
        assert verbs(two.host)["create"] <= 60
        await daemon.settled(patience=60)
        assert daemon.requests("configmaps") == []


@pytest.mark.parametrize("reset", ["before", "after"])
async def test_changes_and_deletions_with_lost_replies_are_repeated(two: Two, reset: str) -> None:
    paint(two, 10, "blue")
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="patch", resource="configmaps", reset=reset, count=5))
        paint(two, 10, "red")
        await until(lambda: in_step(two, 10, "red"))
        two.host.faults.add(Rule(verb="delete", resource="configmaps", reset=reset, count=5))
        for number in range(10):
            two.virtual.delete("configmaps", f"{NAMESPACE}/c{number}")
        await until(lambda: in_step(two, 0, "red"))
        await daemon.settled(patience=60)
        assert daemon.requests("configmaps") == []


async def test_server_is_left_alone_for_as_long_as_it_asks(two: Two) -> None:
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        rule = two.host.faults.add(Rule(verb="create", resource="configmaps", status=429, retry_after=20, count=1))
        two.virtual.put(configmap("x"))
        assert await until(lambda: two.copy("configmaps", "x")) == pytest.approx(20, abs=0.5)
        assert rule.hits == 1


async def test_copy_replaced_during_a_write_is_decided_again(two: Two) -> None:
    """A user replaces the copy by another object of the name, and the watch is too slow to report it."""
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        copy = two.copy("configmaps", "x")
        assert copy
        two.host.faults.add(Rule(verb="watch", resource="configmaps", drop=True))
        two.host.delete("configmaps", host_path("x"))
        two.host.put(merged(copy, {"metadata": {"uid": None, "resourceVersion": None}, "data": {"color": "green"}}))
        two.virtual.put(configmap("x", {"color": "red"}))
        await until(lambda: in_step(two, 1, "red"))


async def test_object_that_the_other_server_refuses_is_parked_with_an_event(two: Two) -> None:
    two.virtual.put(pod("web"))
    # Only this server has a rule against it.
    two.host.put(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": HOME}, "spec": {}}
    )
    async with two.daemon() as daemon:
        await daemon.settled()
        original = two.virtual.put(configmap("big", {"x": "y" * 100}))
        await daemon.settled()
        rule = two.host.faults.add(Rule(verb="patch", resource="configmaps", status=422))
        two.virtual.put(merged(original, {"data": {"x": "z"}}))
        await daemon.settled()
        status = daemon.status("big")
        assert status
        assert (status.state, status.error) == (RequestState.PARKED, "Invalid")
        [event_reasons] = [one for one in two.virtual.objects("events", NAMESPACE) if one["reason"] == "SyncFailed"]
        assert event_reasons["involvedObject"]["name"] == "big"
        assert rule.hits == 1
        await asyncio.sleep(100)
        assert rule.hits == 1
        two.host.faults.clear()
        two.virtual.put(merged(original, {"data": {"x": "w"}}))
        await daemon.settled()
        assert daemon.status("big") is None


async def test_tenant_gets_one_event_about_repeated_failures(two: Two) -> None:
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="create", resource="configmaps", status=500))
        two.virtual.put(configmap("x"))

        def event_reasons() -> list[str]:
            return [one["reason"] for one in two.virtual.objects("events", NAMESPACE)]

        await until(event_reasons, within=10)
        assert event_reasons() == ["SyncFailed"]


# -- watches that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        Rule(verb="watch", duplicate=True),
        Rule(verb="watch", resource="configmaps", cut=True, probability=0.3),
        Rule(verb="watch", status=500, count=20),
        Rule(verb="watch", status=410, count=10),
        Rule(verb="list", status=500, count=10),
        Rule(verb="list", status=503, count=10),
        Rule(verb="list", status=410, count=10),
        Rule(verb="watch", reset="before", count=20),
        Rule(verb="watch", status=429, retry_after=3, count=10),
        Rule(verb="watch", latency=5.0),
    ],
    ids=["doubled", "cut", "500", "410", "list 500", "list 503", "list 410", "reset", "429", "slow"],
)
@pytest.mark.parametrize("side", Side)
async def test_failed_watches_are_repeated(two: Two, side: Side, rule: Rule) -> None:
    paint(two, 10, "blue")
    server = two.virtual if side is Side.VIRTUAL else two.host
    rule.hits = 0
    server.faults.add(rule)
    async with two.daemon() as daemon:
        await until(lambda: in_step(two, 10, "blue"))
        server.cut_watches()
        paint(two, 10, "red")
        await until(lambda: in_step(two, 10, "red"))
        for number in range(10):
            two.virtual.delete("configmaps", f"{NAMESPACE}/c{number}")
        await until(lambda: in_step(two, 0, "red"))
        await asyncio.sleep(60)
        await daemon.settled()
        assert dict(degraded(daemon.process)) == {}


@pytest.mark.parametrize("side", Side)
async def test_expired_watch_lists_again_and_misses_nothing(two: Two, side: Side) -> None:
    paint(two, 10, "blue")
    server = two.virtual if side is Side.VIRTUAL else two.host
    async with two.daemon() as daemon:
        await daemon.settled()
        rule = server.faults.add(Rule(verb="watch", resource="configmaps", drop=True))
        paint(two, 10, "red")
        two.virtual.delete("configmaps", f"{NAMESPACE}/c0")
        await asyncio.sleep(1)
        server.faults.remove(rule)
        server.expire_watches()
        await until(lambda: in_step(two, 9, "red"), within=5)
        await daemon.settled()
        assert daemon.requests("configmaps") == []


async def test_copy_changed_or_gone_while_the_watch_was_expired_is_mended(two: Two) -> None:
    paint(two, 3, "blue")
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="watch", resource="configmaps", drop=True))
        copy = two.copy("configmaps", "c0")
        assert copy
        two.host.put(merged(copy, {"data": {"color": "green"}}))
        two.host.delete("configmaps", host_path("c1"))
        await asyncio.sleep(1)
        assert not in_step(two, 3, "blue")
        two.host.faults.clear()
        two.host.expire_watches()
        await until(lambda: in_step(two, 3, "blue"), within=5)


async def test_server_that_ends_every_watch_at_once_is_watched_with_a_delay(two: Two) -> None:
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()

        def end() -> None:
            for watch in list(two.host._watches):
                watch.end()

        sent_before = len(two.host.requests)
        for _ in range(6000):
            end()
            await asyncio.sleep(0.01)
        assert verbs(two.host, sent_before)["watch"] < 30


# -- an API server that is away --------------------------------------------------------------------


def busiest_second(server: ApiServer, since: int) -> int:
    """Return the most requests that the server was sent within one second."""
    return max(Counter(int(one.at) for one in list(server.requests)[since:]).values(), default=0)


@pytest.mark.parametrize("side", Side)
async def test_api_server_away_for_a_minute_costs_nothing(two: Two, side: Side) -> None:
    paint(two, 50, "blue")
    two.virtual.put(service("web"))
    server = two.virtual if side is Side.VIRTUAL else two.host
    async with two.daemon() as daemon:
        await daemon.settled()
        sent_before = len(server.requests)
        tried = _count_attempts(server)
        server.restart(down=60)
        await asyncio.sleep(1)
        if side is Side.HOST:
            paint(two, 50, "red")
        await asyncio.sleep(58)
        assert sum(tried) < 300, "attempts while it was away"
        assert not daemon.process.queue.running()
        paint(two, 50, "red")
        await until(lambda: in_step(two, 50, "red"), within=20)
        await daemon.settled(patience=60)
        assert daemon.requests("configmaps") == []
        assert verbs(server, sent_before)["watch"] <= 3 * 25
        assert busiest_second(server, sent_before) < 400


def _count_attempts(server: ApiServer) -> list[int]:
    """Counts also what is refused before the server sees it."""
    tried: list[int] = []
    serve = server.serve

    async def counted(request: object) -> object:
        tried.append(1)
        return await serve(request)  # type: ignore[arg-type]

    server.serve = counted  # type: ignore[method-assign, assignment]
    return tried


@pytest.mark.parametrize("side", Side)
async def test_api_server_frozen_for_half_a_minute_costs_nothing(two: Two, side: Side) -> None:
    paint(two, 20, "blue")
    server = two.virtual if side is Side.VIRTUAL else two.host
    async with two.daemon() as daemon:
        await daemon.settled()
        tried = _count_attempts(server)
        server.freeze()
        paint(two, 20, "red")
        await asyncio.sleep(30)
        assert sum(tried) < 100
        server.thaw()
        await until(lambda: in_step(two, 20, "red"), within=40)
        await daemon.settled(patience=60)
        assert daemon.requests("configmaps") == []


async def test_history_compacted_while_the_daemon_was_cut_off_costs_nothing(two: Two) -> None:
    paint(two, 20, "blue")
    async with two.daemon() as daemon:
        await daemon.settled()
        for server in (two.virtual, two.host):
            server.restart(down=20)
        await asyncio.sleep(1)
        paint(two, 20, "red")
        two.virtual.delete("configmaps", f"{NAMESPACE}/c0")
        two.host.delete("configmaps", host_path("c1"))
        for server in (two.virtual, two.host):
            server.compact()
        await until(lambda: in_step(two, 19, "red"), within=60)
        await daemon.settled()


async def test_server_that_answers_only_errors_for_a_minute_is_asked_less_and_less(two: Two) -> None:
    paint(two, 20, "blue")
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        sent_before = len(two.host.requests)
        two.host.faults.add(Rule(status=500))
        paint(two, 20, "red")
        await asyncio.sleep(60)
        assert verbs(two.host, sent_before).total() < 20 * 15
        two.host.faults.clear()
        await until(lambda: in_step(two, 20, "red"), within=90)
        await daemon.settled(patience=60)


#: The paths by which a daemon asks every ten seconds whether a cluster answers and accepts its credentials.
PROBES = {"/readyz", "/api", "/api/v1"}


async def test_idle_daemon_sends_only_watches_and_probes(two: Two) -> None:
    paint(two, 100, "blue")
    two.virtual.put(secret("s"))
    two.virtual.put(pod("web"))
    async with two.daemon(options=ALL) as daemon:
        await daemon.settled()
        sent_before = len(two.host.requests), len(two.virtual.requests)
        await asyncio.sleep(60)
        assert {each.path for each in list(two.host.requests)[sent_before[0] :]} <= PROBES
        assert {each.path for each in list(two.virtual.requests)[sent_before[1] :]} <= PROBES
        await asyncio.sleep(3000)  # all is listed again after 54 minutes at the earliest
        later = [each for each in list(two.host.requests)[sent_before[0] :] if each.path not in PROBES]
        assert {each.verb for each in later} == {"watch"}
        assert writes(two.virtual, sent_before[1], events=True) == []
