"""etcd is restored from a snapshot while a daemon is at work: objects and versions go back, and all ends in step."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from harness import Daemon, Two, host_path, until
from patrol_scene import outcomes, patrolled, scanned

from hack.side_tasks import helped_by
from syncer.api import Obj, Side
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret

NAMES = [f"c{number}" for number in range(12)]
#: Seconds between two changes of a load.
PACE = 0.03
#: Nothing that is missing is held, since this is not about the deletion breaker.
NO_BREAKER = {"breaker": {"percent": 100, "count": 10_000}}


class Load:
    """Tenants and a user of the host who change ConfigMaps and Secrets all the time."""

    def __init__(self, two: Two, seed: int) -> None:
        self.two, self._chance = two, random.Random(seed)
        #: What strangers have done to each copy: more would be taken for a fight.
        self._strange: Counter[tuple[str, str]] = Counter()

    async def run(self) -> None:
        while True:
            self._change()
            await asyncio.sleep(self._chance.uniform(0, 2 * PACE))

    def _change(self) -> None:
        name, text = self._chance.choice(NAMES), str(self._chance.random())
        plural, made = self._chance.choice(
            [("configmaps", configmap(name, {"text": text})), ("secrets", secret(name, data={"text": "eA=="}))]
        )
        match self._chance.randrange(10):
            case 0 | 1 if self.two.original(plural, name):
                self.two.virtual.delete(plural, f"shop/{name}")
            case 2 | 3 as which if (copy := self.two.copy(plural, name)) and self._strange[plural, name] < 2:
                self._strange[plural, name] += 1
                if which == 2:
                    self.two.host.put(merged(copy, {"data": {"stranger": "eA=="}}))
                else:
                    self.two.host.delete(plural, host_path(name))
            case _:
                self.two.virtual.put(made)


@contextlib.asynccontextmanager
async def under_load(two: Two, seed: int) -> AsyncIterator[None]:
    """Change things while the block runs."""
    async with helped_by(Load(two, seed).run()):
        yield


def server(two: Two, side: Side) -> ApiServer:
    return two.virtual if side is Side.VIRTUAL else two.host


def data(objects: list[Obj]) -> dict[str, Obj]:
    return {obj["metadata"]["name"]: obj.get("data", {}) for obj in objects}


def wanted(two: Two, plural: str) -> dict[str, Obj]:
    """Return the data that the copies must have."""
    shop = data(two.virtual.objects(plural, "shop"))
    return {host_path(name).partition("/")[2]: content for name, content in shop.items() if name != "kube-root-ca.crt"}


def copied(two: Two, plural: str) -> dict[str, Obj]:
    ours = [obj for obj in two.host.objects(plural, "vc-ns") if "-x-shop-x-" in obj["metadata"]["name"]]
    return data(ours)


async def in_step(two: Two, daemon: Daemon) -> None:
    """Both sides are as they should be, and the stores are as the API servers are."""
    for plural in ("configmaps", "secrets"):
        await until(lambda plural=plural: copied(two, plural) == wanted(two, plural), within=90)  # type: ignore[misc]
    await daemon.settled()
    for syncer in ("configmaps", "secrets"):
        scan = await scanned(daemon, syncer)
        assert outcomes(scan) == []
        assert scan.corrected == []


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("side", list(Side))
async def test_restore_under_load_ends_in_step(two: Two, side: Side, seed: int) -> None:
    async with patrolled(two, **NO_BREAKER) as daemon:
        async with under_load(two, seed):
            await asyncio.sleep(5)
            snapshot = server(two, side).snapshot()
            await asyncio.sleep(10)
            lost = server(two, side).revision
            server(two, side).restore(snapshot, down=2)
            await asyncio.sleep(5)
            assert server(two, side).revision < lost, "what is written now has versions that were seen before"
        await in_step(two, daemon)
        two.virtual.put(configmap("afterwards"))
        assert await until(lambda: two.copy("configmaps", "afterwards")) < 1


@pytest.mark.parametrize("side", list(Side))
async def test_restore_in_silence_is_found(two: Two, side: Side) -> None:
    """Nothing changes after it, so that no watch has anything to show."""
    for name in NAMES:
        two.virtual.put(configmap(name, {"text": "old"}))
    async with patrolled(two, **NO_BREAKER) as daemon:
        await daemon.settled()
        snapshot = server(two, side).snapshot()
        for name in NAMES[:6]:
            two.virtual.put(configmap(name, {"text": "new"}))
        two.virtual.delete("configmaps", "shop/c11")
        await daemon.settled()
        server(two, side).restore(snapshot)
        await in_step(two, daemon)
        expected = "new" if side is Side.HOST else "old"
        assert [(two.copy("configmaps", name) or {})["data"]["text"] for name in NAMES[:6]] == [expected] * 6
        assert (two.copy("configmaps", "c11") is None) is (side is Side.HOST)


async def test_pod_that_was_bound_in_the_lost_history_is_bound_again(two: Two) -> None:
    metadata = {"name": "n1"}
    two.host.put({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": {}})
    two.virtual.put(pod("web"))
    async with patrolled(two, **NO_BREAKER) as daemon:
        await until(lambda: two.copy("pods", "web"))
        await daemon.settled()
        snapshot = two.virtual.snapshot()
        two.host.put(merged(two.copy("pods", "web") or {}, {"spec": {"nodeName": "n1"}}))
        await until(lambda: (two.original("pods", "web") or {})["spec"].get("nodeName"))
        await daemon.settled()
        two.virtual.restore(snapshot)
        assert not (two.original("pods", "web") or {})["spec"].get("nodeName")
        await until(lambda: (two.original("pods", "web") or {})["spec"].get("nodeName"), within=90)
