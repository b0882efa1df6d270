"""Limits of a kind: concurrent requests, writes per second, the patroller's interval; other kinds
are unaffected.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from harness import CLUSTER, HOME, NAMESPACE, Tenant, Two, built_in, host_path, play, serving, until
from small_syncers import Maps, copies

from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.byte_budget import ByteBudget
from syncer.cache.parts import MOST_KEYS, MOST_PARTS
from syncer.cache.store import Store
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import MOST_NAMED, BoundSyncer
from syncer.engine.reconcile.policies.room import DECODED_OVERHEAD
from syncer.engine.stores.fan_out import FEW
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, service

MANY = 12


def tenant(two: Two, **options: Any) -> Tenant:
    return Tenant(two.virtual, options={"maps": options})


def copied(two: Two, plural: str = "configmaps") -> int:
    return len(copies(two, plural) - {"kube-root-ca.crt"})


def both(two: Two) -> None:
    for number in range(MANY):
        two.virtual.put(configmap(f"m{number}"))
        two.virtual.put(service(f"s{number}"))


@pytest.mark.parametrize(("limit", "seconds"), [(0, 1), (4, 3), (1, 12)])
async def test_concurrency_of_one_kind(two: Two, limit: int, seconds: float) -> None:
    tenants = [tenant(two, concurrency=limit)]
    async with serving(two.host, tenants, [Maps, *built_in("services")], workers=99) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="create", latency=1))
        begun = asyncio.get_running_loop().time()
        both(two)
        assert await until(lambda: copied(two, "services") == MANY) < 2
        await until(lambda: copied(two) == MANY)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(seconds, abs=0.5)


@pytest.mark.parametrize(("rate", "seconds"), [(0, 0), (4, 2), (1, 11)])
async def test_writes_a_second_of_one_kind(two: Two, rate: float, seconds: float) -> None:
    async with serving(two.host, [tenant(two, writesPerSecond=rate)], [Maps, *built_in("services")]) as daemon:
        await daemon.settled(patience=30)
        both(two)
        assert await until(lambda: copied(two, "services") == MANY) < 1
        assert await until(lambda: copied(two) == MANY) == pytest.approx(seconds, abs=1)


async def test_patrol_interval_of_one_kind(two: Two) -> None:
    async with serving(two.host, [tenant(two, patrolInterval="20s")], [Maps, *built_in("services")]) as daemon:
        await daemon.settled()
        [patroller] = daemon.process.patrollers()
        assert await until(lambda: patroller.reports.keys() == {"maps"}) == pytest.approx(20, abs=3)
        first = patroller.reports["maps"]
        assert await until(lambda: patroller.reports["maps"] is not first) == pytest.approx(20, abs=3)
        await until(lambda: "services" in patroller.reports, within=700)
        assert "maps" in patroller.reports


# -- the pace of one object's writes ---------------------------------------------------------------


def written(two: Two, since: int) -> list[str]:
    """Return the daemon's writes of ConfigMaps on the host, after so many requests."""
    requests = [one for one in list(two.host.requests)[since:] if one.resource == "configmaps"]
    return [one.verb for one in requests if one.verb in ("create", "patch", "delete")]


def shows(two: Two, turn: int) -> bool:
    return ((two.copy("configmaps", "x") or {}).get("data") or {}).get("turn") == str(turn)


async def test_object_that_is_changed_again_and_again_is_written_twice_a_second(two: Two) -> None:
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        since = len(two.host.requests)
        for turn in range(500):
            two.virtual.put(configmap("x", {"turn": str(turn)}))
            await asyncio.sleep(0.02)
        assert await until(lambda: shows(two, 499)) < 1.1, "the last state arrives"
        assert 15 <= len(written(two, since)) <= 2 * 11
        await daemon.settled()
        assert daemon.status("x", "maps") is None
        await asyncio.sleep(1)
        two.virtual.put(configmap("x", {"turn": "a"}))
        assert await until(lambda: (two.copy("configmaps", "x") or {})["data"] == {"turn": "a"}) < 0.2


async def test_object_that_is_deleted_and_made_again_and_again_is_written_twice_a_second(two: Two) -> None:
    async with two.daemon([Maps]) as daemon:
        await daemon.settled()
        since = len(two.host.requests)
        for turn in range(250):
            two.virtual.put(configmap("x", {"turn": str(turn)}))
            await asyncio.sleep(0.02)
            two.virtual.delete("configmaps", "shop/x")
            await asyncio.sleep(0.02)
        await until(lambda: two.copy("configmaps", "x") is None)
        assert len(written(two, since)) <= 2 * 12


async def test_status_of_a_pod_that_starts_comes_up_at_once(two: Two) -> None:
    """The kubelet's changes come in bursts, and none costs the host a write."""
    two.virtual.put(pod("x"))
    async with two.daemon() as daemon:
        await until(lambda: two.copy("pods", "x"))
        for number in range(20):
            copy = two.copy("pods", "x")
            assert copy
            two.host.put({**copy, "status": {"phase": "Running", "message": str(number)}})
            assert await until(lambda: _message(two) == str(number)) < 0.2  # noqa: B023
        await daemon.settled()


def _message(two: Two) -> Any:
    return ((two.original("pods", "x") or {}).get("status") or {}).get("message")


def test_marks_of_named_copies_are_read_in_steps(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pod may name hundreds of large copies, of which each takes a millisecond to read."""
    steps: list[int] = [0]

    def outline(store: Store, key: Key, outline: Callable[[Store, Key], Obj | None] = Store.outline) -> Obj | None:
        if "big" in key.name:
            steps[-1] += 1
            asyncio.get_running_loop().call_soon(steps.append, 0)
        return outline(store, key)

    async def scenario() -> None:
        async with serving(two.host, [Tenant(two.virtual)], built_in("configmaps", "pods")) as daemon:
            for number in range(MANY):
                two.virtual.put(configmap(f"big{number}", {"a": "x" * (MOST_NAMED // 2)}))
            volumes = [{"name": f"v{number}", "configMap": {"name": f"big{number}"}} for number in range(MANY)]
            two.virtual.put(pod("first", spec={"volumes": volumes}))
            await until(lambda: two.host.get("pods", host_path("first")))
            await daemon.settled()
            monkeypatch.setattr(Store, "outline", outline)
            two.virtual.put(pod("second", spec={"volumes": volumes}))
            await until(lambda: two.host.get("pods", host_path("second")))

    play(scenario)
    assert sum(steps) >= MANY
    assert max(steps) <= 3


async def test_copy_of_others_is_found_among_many_large_ones(two: Two) -> None:
    async with serving(two.host, [Tenant(two.virtual)], built_in("configmaps", "pods")) as daemon:
        two.host.put(configmap(host_path("big9").rpartition("/")[2], namespace=HOME))
        for number in range(MANY):
            two.virtual.put(configmap(f"big{number}", {"a": "x" * (MOST_NAMED // 2)}))
        volumes = [{"name": f"v{number}", "configMap": {"name": f"big{number}"}} for number in range(MANY)]
        two.virtual.put(pod("web", spec={"volumes": volumes}))
        await daemon.settled()
        status = daemon.status("web", "pods")
        assert status is not None
        assert "an object of others has that place" in status.reason
        assert two.host.get("pods", host_path("web")) is None


async def test_few_large_objects_of_a_cluster_are_worked_on_at_a_time(two: Two) -> None:
    async with serving(two.host, [Tenant(two.virtual)], built_in("configmaps", "pods", "services")) as daemon:
        await daemon.settled()
        two.host.faults.add(Rule(verb="create", latency=1))
        memory = ByteBudget(4 << 20, divided=True)
        daemon.process.queue.join(CLUSTER, weight=1.0, memory=memory.of("work"))
        for number in range(MANY):
            text = "x" * (memory.most // 6 // DECODED_OVERHEAD)
            two.virtual.put(configmap(f"big{number}", {"a": text}))
        volumes = [{"name": f"v{number}", "configMap": {"name": f"big{number}"}} for number in range(MANY)]
        two.virtual.put(pod("web", spec={"volumes": volumes}))
        await asyncio.sleep(0.5)
        two.virtual.put(service("small"))
        assert await until(lambda: copied(two, "services") == 1) < 2, "others of the cluster go on"
        most = 0
        while copied(two) < MANY:
            most = max(most, sum(each.key.name.startswith("big") for each in daemon.process.queue.running()))
            await asyncio.sleep(0.05)
        assert most == 2, "each counts with its copy, a little over a third of all"
        await daemon.settled()
        assert memory.used == 0


# -- sizes, and deletions --------------------------------------------------------------------------

TOO_LARGE: dict[str, dict[str, Any]] = {
    "annotations": {"metadata": {"annotations": {f"note-{number}": "" for number in range(MOST_KEYS + 1)}}},
    "parts": {"status": {"conditions": [{"type": f"t{number}"} for number in range(MOST_PARTS // 2)]}},
}
#: An API server fills in seven fields of each condition of a Pod, and none of a Service's.
OF_A_POD = {"status": {"conditions": TOO_LARGE["parts"]["status"]["conditions"][: MOST_PARTS // 10]}}


@pytest.mark.parametrize("grown", TOO_LARGE.values(), ids=TOO_LARGE)
@pytest.mark.parametrize("is_deleting", [False, True], ids=["gone", "deleting"])
async def test_deletion_of_an_object_that_has_become_too_large_ends_its_copy(
    two: Two, grown: dict[str, Any], is_deleting: bool
) -> None:
    """A Pod would run on for ever."""
    finalizers = {"metadata": {"finalizers": ["example.com/x"] if is_deleting else []}}
    for obj in (pod("x"), service("x")):
        two.virtual.put(merged(obj, finalizers))
    async with two.daemon(built_in("pods", "services")) as daemon:
        await until(lambda: two.copy("pods", "x") and two.copy("services", "x"))
        for plural in ("pods", "services"):
            larger = OF_A_POD if plural == "pods" and "status" in grown else grown
            two.virtual.put(merged(two.original(plural, "x") or {}, larger))
        await daemon.settled()
        for plural in ("pods", "services"):
            two.virtual.delete(plural, "shop/x")
            assert bool(two.original(plural, "x")) is is_deleting
            await until(lambda: two.copy(plural, "x") is None)  # noqa: B023


async def test_copy_of_an_object_with_as_many_annotations_as_may_be_follows_it(two: Two) -> None:
    """Its marks give it more than the original has."""
    most = {f"note-{number}": "" for number in range(MOST_KEYS)}
    two.virtual.put(service("x", metadata={"annotations": most}))
    async with two.daemon(built_in("services")) as daemon:
        await until(lambda: two.copy("services", "x"))
        await daemon.settled()
        two.virtual.put(merged(two.original("services", "x") or {}, {"metadata": {"labels": {"tier": "gold"}}}))
        await until(lambda: (two.copy("services", "x") or {})["metadata"]["labels"].get("tier") == "gold")


@pytest.mark.parametrize("count", [FEW // 2, FEW + 1])
async def test_orphans_are_found_by_their_metadata_and_many_in_steps(
    two: Two, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    asking: list[bool] = []
    ask_all = ClusterPair.ask_all

    def asking_all(pair: ClusterPair, controller: BoundSyncer) -> None:
        asking.append(True)
        ask_all(pair, controller)
        asking.clear()

    def outline(store: Store, key: Key, outline: Callable[[Store, Key], Obj | None] = Store.outline) -> Obj | None:
        asked.extend([key.name] if asking else ())
        return outline(store, key)

    def get(store: Store, key: Key, get: Callable[[Store, Key], Obj | None] = Store.get) -> Obj | None:
        assert not asking
        return get(store, key)

    async with serving(two.host, [Tenant(two.virtual)], built_in("services")) as daemon:
        for number in range(count):
            two.virtual.put(service(f"gone{number}"))
        await daemon.settled()
        assert copied(two, "services") == count
    for number in range(count):
        two.virtual.delete("services", f"{NAMESPACE}/gone{number}")
    for name, function in (("outline", outline), ("get", get)):
        monkeypatch.setattr(Store, name, function)
    monkeypatch.setattr(ClusterPair, "ask_all", asking_all)
    async with serving(two.host, [Tenant(two.virtual)], built_in("services")) as daemon:
        await daemon.settled()
        known = len(daemon.requests("services"))
        assert copied(two, "services") == known == (0 if count <= FEW else count), "so many deletions are confirmed"
    assert len(asked) == (count if count <= FEW else 0)
