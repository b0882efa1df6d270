"""Simulate replicas that share many virtual clusters, in virtual time, with the real Leases,
members and ranks.

The host is an in-process API server. A virtual cluster is a name: its caches are filled after the
seconds of CPU that `hack/bench/fleet` has measured for its start, one after another, and work on it
takes no time. A JSON line for each event: for how long a shard had no leader, how many virtual
clusters are led by another replica than before, and the cost of the Leases for the host's API
server. Ends with 1 if one was led by two.
"""

import asyncio
import json
import logging
import random
import statistics
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import click

from kube_envtest import virtual_time
from syncer.api import Key, Side
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse
from syncer.leaderelection.rendezvous import shard_of
from syncer.leaderelection.shards import Shards
from syncer.testing import ApiServer
from syncer.testing.in_process import MemoryTransport
from syncer.testing.objects import namespace

HOME = "vsyncer"
FLEET = "fleet"
#: CPU seconds of the start of a virtual cluster (`hack/bench/fleet`).
START_SECONDS = 0.046
#: Seconds of rest in which requests are counted.
REST_SECONDS = 60.0


@dataclass
class World:
    """The host, the replicas, and who leads what."""

    shards: int
    clusters: list[str]
    host: ApiServer = field(default_factory=lambda: ApiServer(seed="host"))
    replicas: dict[str, "Replica"] = field(default_factory=dict)
    leader: dict[int, str] = field(default_factory=dict)
    #: Since when a shard has no leader.
    free: dict[int, float] = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    twice: int = 0

    def __post_init__(self) -> None:
        self.host.put(namespace(HOME))
        self.free = dict.fromkeys(range(self.shards), 0.0)
        self.sizes = Counter(shard_of(name, self.shards) for name in self.clusters)

    def begun(self, shard: int, name: str) -> None:
        """Note that a replica leads a shard."""
        self.twice += shard in self.leader
        self.leader[shard] = name
        self.gaps.append(now() - self.free.pop(shard, now()))

    def ended(self, shard: int, name: str) -> None:
        """Note that a replica leads a shard no longer."""
        if self.leader.get(shard) == name:
            del self.leader[shard]
            self.free[shard] = now()

    def led(self) -> dict[str, str]:
        """Return the leader of each virtual cluster."""
        return {name: self.leader.get(shard_of(name, self.shards), "") for name in self.clusters}

    async def settled(self) -> None:
        """Wait until nothing has changed hands for a minute."""
        before = dict(self.leader)
        since = now()
        while now() < since + 60 or len(self.leader) < self.shards:
            await asyncio.sleep(1)
            if self.leader != before:
                before = dict(self.leader)
                since = now()


def now() -> float:
    """Return virtual time."""
    return asyncio.get_running_loop().time()


class Wire(MemoryTransport):
    """Counts requests; answers none of a replica that has been killed."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.host, name)
        self._world = world
        self._name = name

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request."""
        if self._name not in self._world.replicas:
            await asyncio.Future()
        self._world.requests["list" if request.method == "GET" else "write"] += 1
        return await super().send(request)


class Replica:
    """The part of a replica in the shards, and the state of its caches."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self.name = name
        world.replicas[name] = self
        client = SideClient("host", Side.HOST, Wire(world, name))
        rng = random.Random(name)
        self.shards = Shards(
            client,
            fleet=Key(HOME, FLEET),
            number=world.shards,
            identity=f"{name}_{name}",
            random=rng.random,
            utcnow=lambda: datetime.now(UTC),
        )
        #: When the caches of a shard that is kept are filled.
        self._filled: dict[int, float] = {}
        self._task = asyncio.create_task(self.shards.run(self))

    def may_serve(self, cluster: str) -> bool:
        """Return True: none leaves."""
        return True

    def begin(self, shard: int) -> None:
        """Lead a shard."""
        self._world.begun(shard, self.name)

    async def end(self, shard: int) -> None:
        """Lead a shard no longer."""
        self._world.ended(shard, self.name)

    def assigned(self) -> None:
        """Fill the caches of the shards that are kept, one after another."""
        names = {
            number: name
            for name in self._world.clusters
            if (number := self.shards.shard(name)) >= 0
        }
        kept = {shard for shard, name in names.items() if self.shards.keeps(name)}
        self._filled = {shard: at for shard, at in self._filled.items() if shard in kept}
        at = max([now(), *self._filled.values()])
        for shard in sorted(kept - self._filled.keys()):
            at += START_SECONDS * self._world.sizes[shard]
            self._filled[shard] = at

    def is_warm(self, shard: int) -> bool:
        """Return True if the caches of a shard are filled."""
        return now() >= self._filled.get(shard, float("inf"))

    def kept(self) -> int:
        """Return the number of virtual clusters whose caches it keeps."""
        return sum(self._world.sizes[shard] for shard in self._filled)

    async def kill(self) -> None:
        """End at once, as by SIGKILL: nothing is given up."""
        del self._world.replicas[self.name]
        for shard in [shard for shard, name in self._world.leader.items() if name == self.name]:
            self._world.ended(shard, self.name)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=60)

    async def leave(self) -> None:
        """End as after SIGTERM."""
        self._task.cancel()
        await asyncio.wait({self._task})
        del self._world.replicas[self.name]


class Report:
    """Prints what an event has changed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._led = world.led()

    async def after(self, event: str, **more: Any) -> None:
        """Wait until an event has had its effects, and print them."""
        await self._world.settled()
        led = self._world.led()
        moved = sum(bool(before) and led[name] != before for name, before in self._led.items())
        gaps = sorted(self._world.gaps)
        self._led = led
        self._world.gaps.clear()
        kept = [replica.kept() for replica in self._world.replicas.values()]
        by_replica = Counter(led.values())
        print(
            json.dumps(
                {
                    "event": event,
                    "moved": moved,
                    "longest_gap_s": round(gaps[-1], 2) if gaps else 0,
                    "median_gap_s": round(statistics.median(gaps), 2) if gaps else 0,
                    "led_by_one": [min(by_replica.values()), max(by_replica.values())],
                    "kept_by_one": [min(kept), max(kept)],
                    **more,
                }
            ),
            flush=True,
        )


async def simulate(clusters: int, shards: int, replicas: int) -> bool:
    """Play all events; return True if no virtual cluster was led by two."""
    world = World(shards, [f"tenant-{number}" for number in range(clusters)])
    names = iter(f"replica-{number}" for number in range(10 * replicas))
    report = Report(world)
    for _ in range(replicas):
        Replica(world, next(names))
    await report.after("all start")
    world.requests.clear()
    await asyncio.sleep(REST_SECONDS)
    rates = {
        f"{verb}s_a_second": round(number / REST_SECONDS, 1)
        for verb, number in sorted(world.requests.items())
    }
    await report.after("rest", **rates)
    await next(iter(world.replicas.values())).kill()
    await report.after("one is killed")
    Replica(world, next(names))
    await report.after("one joins")
    await next(iter(world.replicas.values())).leave()
    await report.after("one leaves")
    Replica(world, next(names))
    await report.after("one joins")
    for old in list(world.replicas.values()):
        Replica(world, next(names))
        await asyncio.sleep(30)
        await old.leave()
    await report.after("all are replaced, one every 30 s")
    for replica in list(world.replicas.values()):
        await replica.leave()
    print(json.dumps({"led_by_two": world.twice}))
    return not world.twice


@click.command(help=__doc__)
@click.option("--clusters", default=1000, show_default=True, help="virtual clusters")
@click.option("--shards", default=64, show_default=True, help="shards")
@click.option("--replicas", default=10, show_default=True, help="replicas")
def main(clusters: int, shards: int, replicas: int) -> None:
    """Simulate, and end with 1 if a virtual cluster was led by two."""
    logging.disable(logging.WARNING)
    raise SystemExit(not virtual_time.run(simulate(clusters, shards, replicas)))


if __name__ == "__main__":
    main()
