"""Two daemons with one leader: the other writes nothing, and a stopped daemon finishes its requests."""

import asyncio
import contextlib

from harness import (
    CLUSTER,
    HOME,
    NAMESPACE,
    WRITES,
    Tenant,
    Two,
    add,
    admin,
    built_in,
    configured,
    until,
    writes,
)

from kube_envtest import Rule
from syncer.api import Side
from syncer.clusters.fenced import Fenced
from syncer.daemon.process import Process
from syncer.observe.metrics import Metrics
from syncer.testing.merge import merged
from syncer.testing.objects import configmap

MAPS = built_in("configmaps")


def writers(two: Two, since: float = 0.0) -> set[str]:
    """Return the users that have written ConfigMaps to the host since a time."""
    return {
        one.user
        for one in two.host.requests
        if one.verb in WRITES and one.resource == "configmaps" and one.at >= since and one.status
    } - {"system:apiserver"}


def server_time(two: Two) -> float:
    return max((one.at for one in two.host.requests), default=0.0) + 0.001


async def test_daemons_of_one_cluster_write_one_at_a_time(two: Two) -> None:
    async with two.candidate(MAPS, "ann"):
        await until(lambda: two.leader() == "ann")
        async with two.candidate(MAPS, "bob"):
            for number in range(20):
                two.virtual.put(configmap(f"c{number}"))
            await until(lambda: two.copy("configmaps", "c19"))
            await asyncio.sleep(30)
            assert writers(two) == {"ann"}
            assert two.leader() == "ann"


async def test_clients_are_fenced_where_another_daemon_may_lead(two: Two) -> None:
    host = admin(two.host, Side.HOST)
    alone = Process(host=host, metrics=Metrics(version="test"))
    one_of_two = Process(host=host, metrics=Metrics(version="test"), until=lambda cluster: 30.0)
    for process, is_fenced in ((alone, False), (one_of_two, True)):
        add(process, configured(Tenant(two.virtual), MAPS), two.virtual)
        pair = process.pairs[CLUSTER]
        assert isinstance(pair.virtual.transport, Fenced) is is_fenced
        assert isinstance(pair.host.transport, Fenced) is is_fenced


async def test_leader_that_stops_hands_over_at_once(two: Two) -> None:
    async with contextlib.AsyncExitStack() as first:
        await first.enter_async_context(two.candidate(MAPS, "ann"))
        await until(lambda: two.leader() == "ann")
        async with two.candidate(MAPS, "bob"):
            await asyncio.sleep(10)
            await first.aclose()
            assert await until(lambda: two.leader() == "bob") < 5
            two.virtual.put(configmap("x"))
            assert await until(lambda: two.copy("configmaps", "x")) < 1


async def test_leader_that_loses_the_host_is_followed_by_the_other_and_writes_no_more(two: Two) -> None:
    async with two.candidate(MAPS, "ann") as ann, two.candidate(MAPS, "bob"):
        await until(lambda: two.leader() in ("ann", "bob"))
        old = two.leader()
        new = {"ann": "bob", "bob": "ann"}[old]
        two.virtual.put(configmap("before"))
        await until(lambda: two.copy("configmaps", "before"))
        two.host.faults.add(Rule(user=old, reset="before"))
        two.virtual.put(configmap("meanwhile"))
        assert await until(lambda: two.leader() == new) < 25
        await until(lambda: two.copy("configmaps", "meanwhile"))
        since = server_time(two)
        await asyncio.sleep(0.01)  # later than that
        two.host.faults.clear()
        two.virtual.put(configmap("after"))
        await until(lambda: two.copy("configmaps", "after"))
        await asyncio.sleep(60)
        assert two.leader() == new
        assert writers(two, since) == {new}
        assert not ann.working.done()


async def test_returning_leader_catches_up_on_missed_changes(two: Two) -> None:
    """Alone, it loses the Lease and gets it again: everything is queried again."""
    original = two.virtual.put(configmap("x", {"color": "blue"}))
    async with two.candidate(MAPS, "ann") as ann:
        await until(lambda: two.copy("configmaps", "x"))
        two.host.restart(down=40)
        await asyncio.sleep(1)
        two.virtual.put(merged(original, {"data": {"color": "red"}}))
        two.virtual.put(configmap("y"))
        await until(lambda: two.copy("configmaps", "y"), within=90)
        await until(lambda: (two.copy("configmaps", "x") or {})["data"] == {"color": "red"})
        assert not ann.working.done()


async def test_daemon_that_stops_finishes_begun_requests_and_begins_none(two: Two) -> None:
    async with two.daemon(MAPS, workers=4) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="create", resource="configmaps", latency=3))
        sent_before = len(two.host.requests)
        for number in range(20):
            two.virtual.put(configmap(f"c{number}"))
        await asyncio.sleep(1)
        daemon.process.queue.close()
        two.virtual.delete("configmaps", f"{NAMESPACE}/c19")
        await asyncio.wait({daemon.working}, timeout=10)
        assert daemon.working.done()
        assert daemon.working.exception() is None
        assert writes(two.host, sent_before) == [f"create /api/v1/namespaces/{HOME}/configmaps"] * 4
        assert not daemon.process.queue.running()
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        assert all(two.copy("configmaps", f"c{number}") for number in range(19))
