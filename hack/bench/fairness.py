"""Latency of regular virtual clusters, alone and beside greedy, slow and failing ones of the same
daemon, by turns.

Process and API servers are in this process. The objects of the others are all known to the daemon
when those of the regular ones are created, all at once; a latency is from there until the host has
stored the copy. Ends with 1 if the ratio of a round is over the limit.
"""

import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import click
import uvloop

from hack.endings import interrupt_on_sigterm
from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import Side
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream
from syncer.config import config_with
from syncer.daemon.pages.status import settle
from syncer.daemon.process import Process
from syncer.daemon.start import startup
from syncer.names import SingleNamespace
from syncer.observe.logs import configure
from syncer.observe.metrics import Metrics
from syncer.plugins import installed
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing import ApiServer
from syncer.testing.objects import configmap, namespace

REGULAR = [f"regular-{number}" for number in range(40)]
REGULAR_OBJECTS = 10
OBJECTS = 900
#: Seconds of a write on the host.
WRITE = 0.005
#: Seconds of a write for a slow cluster.
SLOW = 2.0
#: The most that others may cost the regular ones in a round: the ratio of the mean latencies.
LIMIT = 1.5
#: Seconds until the regular ones must be in step.
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Case:
    """Clusters beside the regular ones, and what is wrong with the host's writes for them."""

    others: tuple[str, ...] = ()
    fault: Rule | None = None


CASES = {
    "alone": Case(),
    "greedy": Case(tuple(f"greedy-{number}" for number in range(10))),
    "slow": Case(("other",), Rule(verb="create", path="*/vc-other/configmaps*", latency=SLOW)),
    "failing": Case(("other",), Rule(verb="create", path="*/vc-other/configmaps*", status=500)),
}


@dataclass(slots=True)
class Clocked:
    """A transport that notes when the objects of regular clusters were stored."""

    inner: Any
    stored: list[float] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request; note the time of its response."""
        response: HttpResponse = await self.inner.send(request)
        if (
            request.method == "POST"
            and "/namespaces/vc-regular-" in request.path
            and "/configmaps" in request.path
        ):
            self.stored.append(time.perf_counter())
            if len(self.stored) == len(REGULAR) * REGULAR_OBJECTS:
                self.done.set()
        return response

    def stream(self, request: HttpRequest) -> contextlib.AbstractAsyncContextManager[Stream]:
        """Open a stream."""
        stream: contextlib.AbstractAsyncContextManager[Stream] = self.inner.stream(request)
        return stream

    async def close(self) -> None:
        """Close the transport."""
        await self.inner.close()


@contextlib.asynccontextmanager
async def serving(
    host: Clocked, servers: dict[str, ApiServer], workers: int
) -> AsyncIterator[Process]:
    """Yield a process at work on virtual clusters."""
    here = SideClient("host", Side.HOST, host)
    process = Process(host=here, metrics=Metrics(version="bench"), workers=workers)
    given = {
        "virtualClusters": [{"name": name, "hostNamespace": f"vc-{name}"} for name in servers],
        "sync": {"toHost": {"configMaps": {"all": True}}},
        "patrol": {"enabled": False},
    }
    kinds = [syncer for syncer in installed().syncers() if syncer.name == CONFIG_MAPS.plural]
    for each in config_with(kinds, translator=SingleNamespace).model_validate(given).clusters():
        startup.add(
            process, each, SideClient(each.name, Side.VIRTUAL, servers[each.name].transport())
        )
    await process.prepare()
    async with process.running(), helped_by(process.work()):
        try:
            await settle(process)
            yield process
        finally:
            process.queue.close()


async def latency(case: Case, workers: int) -> tuple[float, int]:
    """Return the mean latency of the regular clusters' objects in seconds, and the requests of
    others that waited when they were created.
    """
    names = (*case.others, *REGULAR)
    server = ApiServer(seed="host")
    servers = {name: ApiServer(seed=name) for name in names}
    for name in names:
        server.put(namespace(f"vc-{name}"))
        servers[name].put(namespace("shop"))
    server.faults.add(Rule(verb="create", resource="configmaps", latency=WRITE))
    if case.fault is not None:
        server.faults.add(case.fault)
    host = Clocked(server.transport())
    async with serving(host, servers, workers) as process:
        fill(servers, case.others, OBJECTS)
        informers = [process.pairs[name].informers for name in case.others]
        while any(len(one.keys(Side.VIRTUAL, CONFIG_MAPS)) < OBJECTS for one in informers):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        waiting = process.queue.depth() + len(process.queue.delayed())
        fill(servers, REGULAR, REGULAR_OBJECTS)
        begun = time.perf_counter()
        async with asyncio.timeout(PATIENCE):
            await host.done.wait()
        return statistics.fmean(host.stored) - begun, waiting


def fill(servers: dict[str, ApiServer], names: Iterable[str], count: int) -> None:
    """Create so many ConfigMaps in each of these clusters."""
    for number in range(count):
        for name in names:
            servers[name].put(configmap(f"c{number}", {"text": "x" * 1000}))


async def measure(rounds: int, workers: int) -> dict[str, Any]:
    """Return the figures: milliseconds and ratios of each case, the median of the rounds,
    and all ratios.
    """
    found: dict[str, list[float]] = {name: [] for name in CASES}
    waiting: dict[str, list[int]] = {name: [] for name in CASES}
    await latency(CASES["alone"], workers)  # loads code
    for turn in range(rounds):
        for name in CASES if turn % 2 else reversed(CASES):
            seconds, requests = await latency(CASES[name], workers)
            found[name].append(seconds)
            waiting[name].append(requests)
    figures: dict[str, Any] = {"bench": "fairness", "workers": workers, "rounds": rounds}
    for name, each in found.items():
        ratios = [one / alone for one, alone in zip(each, found["alone"], strict=True)]
        figures[name] = {
            "waiting": statistics.median(waiting[name]),
            "mean_ms": round(statistics.median(each) * 1000, 1),
            "ratio": round(statistics.median(ratios), 2),
            "least": round(min(ratios), 2),
            "greatest": round(max(ratios), 2),
        }
    return figures


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Measurements of each case.")
@click.option("--workers", default=32, show_default=True, help="Workers of the daemon.")
def main(rounds: int, workers: int) -> None:
    """Measure regular virtual clusters beside greedy, slow and failing ones, and print JSON."""
    configure(level="error")
    figures = uvloop.run(measure(rounds, workers))
    print(json.dumps(figures))
    sys.exit(any(figures[name]["greatest"] > LIMIT for name in CASES))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
