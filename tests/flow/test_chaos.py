"""Everything at once, in many random orders: in the end both sides are in step, nothing is doubled and nothing lost."""

import asyncio
import random
from collections.abc import Callable

import pytest
from harness import HOME, NAMESPACE, Two, built_in, place, play, until, writes

from syncer.api import Obj, annotations_of
from syncer.testing.apiserver import ApiServer, Rule
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, pod_mounting, secret, service

NAMES = [f"n{number}" for number in range(8)]
COLORS = ("red", "green", "blue")

#: What may go wrong with requests; each for some time.
FAULTS: list[Callable[[random.Random], Rule]] = [
    lambda chance: Rule(status=chance.choice([409, 429, 500, 503]), probability=0.3),
    lambda chance: Rule(verb="create", reset="after", probability=0.5),
    lambda chance: Rule(verb="patch", reset="after", probability=0.5),
    lambda chance: Rule(verb="delete", reset="after", probability=0.5),
    lambda chance: Rule(reset="before", probability=0.2),
    lambda chance: Rule(latency=chance.choice([0.05, 0.5, 3.0]), probability=0.5),
    lambda chance: Rule(verb="watch", latency=2.0),
    lambda chance: Rule(verb="watch", duplicate=True, probability=0.5),
    lambda chance: Rule(verb="watch", cut=True, probability=0.2),
    lambda chance: Rule(verb="list", status=410, probability=0.5),
]


class Chaos:
    """A tenant, a host user and an evil network, all from one seed."""

    def __init__(self, two: Two, seed: int) -> None:
        self.two, self.chance = two, random.Random(seed)

    async def rage(self, steps: int) -> None:
        """Do so many random things, some seconds apart at most."""
        actions = [self.tenant] * 6 + [self.host_user, self.fault, self.calm, self.cut, self.expire]
        for _ in range(steps):
            self.chance.choice(actions)()
            await asyncio.sleep(self.chance.choice([0, 0, 0.001, 0.05, 1.0]))

    def server(self) -> ApiServer:
        return self.chance.choice([self.two.virtual, self.two.host])

    def tenant(self) -> None:
        name, color = self.chance.choice(NAMES), self.chance.choice(COLORS)
        plural = self.chance.choice(["configmaps", "secrets", "services", "pods"])
        before = self.two.original(plural, name)
        if before is not None and self.chance.random() < 0.4:
            self.two.virtual.delete(plural, f"{NAMESPACE}/{name}")
            return
        labels = {"labels": {"color": color}}
        match plural:
            case "configmaps":
                obj = configmap(name, {"color": color}, metadata=labels)
            case "secrets":
                obj = secret(name, {"color": color})
            case "services":
                obj = service(name, metadata=labels)
            case _:
                obj = self.chance.choice([pod(name), pod_mounting(name, secret=name)])
        self.two.virtual.put(merged(before, labels_only(obj)) if before and plural in ("pods", "services") else obj)

    def host_user(self) -> None:
        copies = [
            copy
            for plural in ("configmaps", "secrets")
            for copy in self.two.host.objects(plural, HOME)
            if "vsyncer.dev/virtual-uid" in annotations_of(copy)
        ]
        if not copies:
            return
        copy = self.chance.choice(copies)
        plural = copy["kind"].lower() + "s"
        if self.chance.random() < 0.5:
            self.two.host.delete(plural, f"{HOME}/{copy['metadata']['name']}")
        else:
            self.two.host.put(merged(copy, {"data": {"color": "bGVhZA=="}}))

    def fault(self) -> None:
        self.server().faults.add(self.chance.choice(FAULTS)(self.chance))

    def calm(self) -> None:
        self.server().faults.clear()

    def cut(self) -> None:
        if self.chance.random() < 0.5:
            self.server().cut_watches()
        else:
            self.server().restart(down=3)

    def expire(self) -> None:
        self.server().expire_watches()


def labels_only(obj: Obj) -> Obj:
    return {"metadata": {"labels": obj["metadata"].get("labels") or {"touched": "yes"}}}


def problems(two: Two) -> list[str]:
    """What is not in step."""
    found = []
    for plural in ("configmaps", "secrets", "services", "pods"):
        originals = {one["metadata"]["name"]: one for one in two.virtual.objects(plural, NAMESPACE)}
        originals.pop("kube-root-ca.crt", None)
        for name, original in originals.items():
            copy = two.copy(plural, name)
            if copy is None:
                found.append(f"{plural} {name} has no copy")
            elif annotations_of(copy)["vsyncer.dev/virtual-uid"] != original["metadata"]["uid"]:
                found.append(f"{plural} {name} has the copy of another object")
            elif copy.get("data") != original.get("data"):
                found.append(f"{plural} {name} has other contents")
        for copy in two.host.objects(plural, HOME):
            name = annotations_of(copy).get("vsyncer.dev/virtual-name")
            if not name or name == "kube-root-ca.crt" or annotations_of(copy)["vsyncer.dev/virtual-kind"] == "Pod":
                continue
            if name not in originals:
                found.append(f"{plural} {name} is gone but has a copy")
            if f"{HOME}/{copy['metadata']['name']}" != place(name):
                found.append(f"{plural} {name} has a second copy")
    return found


@pytest.mark.parametrize("seed", range(20))
def test_in_the_end_both_sides_are_in_step(two: Two, seed: int) -> None:
    async def scenario() -> None:
        chaos = Chaos(two, seed)
        for server in (two.virtual, two.host):
            server.faults._chance.seed(seed)
        async with two.daemon(built_in()) as daemon:
            await chaos.rage(150)
            for server in (two.virtual, two.host):
                server.faults.clear()
            await asyncio.sleep(100)  # the longest wait before a retry
            await daemon.settled(patience=60)
            assert problems(two) == []
            assert not list(daemon.engine.ledger.troubles())
            seen = len(two.host.requests), len(two.virtual.requests)
            await asyncio.sleep(60)
            assert writes(two.host, seen[0]) == []
            assert writes(two.virtual, seen[1]) == []

    play(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_any_moment_the_next_one_makes_up_for_it(two: Two, seed: int) -> None:
    async def scenario() -> None:
        chaos = Chaos(two, 1000 + seed)
        for _ in range(4):
            async with two.daemon(built_in()) as daemon:
                await chaos.rage(chaos.chance.randrange(40))
                await daemon.kill()
            for server in (two.virtual, two.host):
                server.faults.clear()
            await asyncio.sleep(3)  # a server may be down
        async with two.daemon(built_in()) as daemon:
            await until(lambda: not problems(two), within=120)
            await daemon.settled(patience=60)
            assert not list(daemon.engine.ledger.troubles())

    play(scenario)
