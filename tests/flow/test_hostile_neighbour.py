"""Ten virtual clusters of one daemon, one of them hostile: the other nine notice nothing."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from clusters_scene import World, clusters_named, states
from harness import until
from noise import noise
from odd_objects import JUNK, OldServer, paths, replaced

from kube_envtest import Rule
from kube_envtest.apiserver.request import Request
from syncer.daemon.process import Process
from syncer.daemon.start import connecting
from syncer.testing import ApiServer
from syncer.testing.objects import configmap

OTHERS = tuple(f"tenant{number}" for number in range(9))
HOSTILE = "hostile"
#: Rounds of objects of the others, a second apart, and the longest that one may take, in seconds.
ROUNDS, LONGEST = 20, 0.5
#: The most memory that the objects of each may take.
MEGABYTES = 8


@dataclass(slots=True)
class OfItsCopies(Rule):
    """A fault of the host's writes of the hostile cluster's copies."""

    def matches(self, verb: str, resource: str, request: Request) -> bool:
        """Return True if it applies to a request."""
        return Rule.matches(self, verb, resource, request) and b"-x-hostile" in request.body


def flood(server: OldServer, host: ApiServer) -> None:
    """Create as many objects as fit."""
    for number in range(900):
        server.put(configmap(f"flood{number}"))


def take_long(server: OldServer, host: ApiServer) -> None:
    """Let the host take two seconds for each object, as by a webhook that the tenant's objects keep busy."""
    host.faults.add(OfItsCopies(latency=2.0))
    flood(server, host)


def fail(server: OldServer, host: ApiServer) -> None:
    """Let the host refuse each object."""
    host.faults.add(OfItsCopies(status=500))
    flood(server, host)


def hang_up(server: OldServer, host: ApiServer) -> None:
    """Answer nothing."""
    server.faults.add(Rule(reset="before"))
    server.cut_watches()


def show_malformed(server: OldServer, host: ApiServer) -> None:
    """Show objects with something odd in each place."""
    whole = configmap("odd", {"key": "value"})
    for number, path in enumerate(paths(whole)):
        for name in ("null", "minus", "list", "map", "nulls", "text", "deep", "large text"):
            found = replaced(whole, path, JUNK[name])
            if isinstance(found.get("metadata"), dict) and path[:1] != ("metadata",):
                found["metadata"] = {**found["metadata"], "name": f"odd{number}-{name.replace(' ', '-')}"}
                server.plant(found)


def cut_watches(server: OldServer, host: ApiServer) -> None:
    """End each watch at once."""
    server.faults.add(Rule(verb="watch", cut=True))
    flood(server, host)


def grow(server: OldServer, host: ApiServer) -> None:
    """Have larger objects than the daemon has memory for."""
    for number in range(2 * MEGABYTES):
        server.put(configmap(f"large{number}", {"key": noise(900_000)}))


def multiply(server: OldServer, host: ApiServer) -> None:
    """Have more objects than the daemon has memory for, even without their contents."""
    for number in range(1000 * MEGABYTES):
        server.put(configmap(f"many{number}", {"key": "x"}))


ATTACKS: Mapping[str, Callable[[OldServer, ApiServer], None]] = {
    each.__name__: each for each in (flood, take_long, fail, hang_up, show_malformed, cut_watches, grow, multiply)
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(*OTHERS, servers={HOSTILE: OldServer(seed=HOSTILE)})
    monkeypatch.setattr(connecting, "_connect", made.connect)
    return made


async def latencies(world: World) -> list[float]:
    """Return the seconds that objects of the others take."""
    found = []
    for number in range(ROUNDS):
        for name in OTHERS:
            world.servers[name].put(configmap(f"later{number}"))
        found.append(await until(lambda number=number: all(world.has_copy(each, f"later{number}") for each in OTHERS)))  # type: ignore[misc]
        await asyncio.sleep(1.0)
    return found


def begun(world: World) -> int:
    """Return the number of lists and watches that the others have been asked for."""
    return sum(one.verb in ("list", "watch") for name in OTHERS for one in world.servers[name].requests)


def lists(server: ApiServer) -> int:
    """Return the number of lists of ConfigMaps that a server has been asked for."""
    return sum((one.verb, one.resource) == ("list", "configmaps") for one in server.requests)


def troubles(process: Process) -> list[str]:
    """Return the requests of the others that are not in step."""
    statuses = (*process.statuses.troubles(), *process.statuses.pending())
    return [f"{request}: {status.reason}" for request, status in statuses if request.cluster != HOSTILE]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_other_tenants_are_served_as_if_there_was_no_attack(world: World, attack: str) -> None:
    async with world.served(*clusters_named(*OTHERS, HOSTILE, every={"maxMegabytes": MEGABYTES})) as (process, _):
        await until(lambda: all(map(world.has_copy, world.servers)))
        await asyncio.sleep(5)
        hostile = world.servers[HOSTILE]
        before, on_host, own = begun(world), lists(world.host), lists(hostile)
        assert isinstance(hostile, OldServer)
        ATTACKS[attack](hostile, world.host)
        assert max(await latencies(world)) < LONGEST
        assert begun(world) == before
        assert lists(world.host) - on_host <= lists(hostile) - own, "the copies of others were listed again"
        assert troubles(process) == []
        assert (HOSTILE in process.unserved.clusters) == (attack == "multiply"), process.unserved.clusters
        assert {name: state for name, state in states(process).items() if name != HOSTILE} == dict.fromkeys(
            OTHERS, "served"
        )
