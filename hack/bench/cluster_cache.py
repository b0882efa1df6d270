"""A ClusterCache with many clusters over TLS: of some the server never answers, and one is frozen by turns.

The API servers are in processes of their own. Consumers ask for clients, read from caches, and send requests; each
phase without the frozen cluster (its process runs) is followed by one with it (the process is stopped).
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import uvloop
import yaml

from hack.endings import interrupt_on_sigterm
from kube_envtest import ApiServer
from syncer.api import ClusterError, Key, NotConnected
from syncer.multicluster import ClusterCache, ClusterCacheOptions, FolderProvider, Index, State
from syncer.observe.logs import configure
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap

KEY, FROZEN = Key("shop", "x"), "frozen"
#: The longest that a stamp may be old, in units of its interval, and the p99 beside a frozen cluster, in units of the
#: p99 without it.
AGE, SLOWER = 1.2, 1.5
#: Phases of each sort; the first two are not counted.
TURNS = 4


class Figures:
    """What consumers have seen in a phase; times are in seconds."""

    def __init__(self) -> None:
        self.getters: list[float] = []
        self.reads: list[float] = []
        self.requests: list[float] = []
        self.wrong: list[str] = []

    def p99(self) -> dict[str, float]:
        """Return the 99th percentiles, in milliseconds."""
        named = {"getter": self.getters, "cached_read": self.reads, "request": self.requests}
        return {name: round(p99(values) * 1000, 4) for name, values in named.items()}


def p99(values: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return sorted(values)[int(len(values) * 0.99)]


# -- API servers ---------------------------------------------------------------------------------------------------


async def serve(folder: Path, names: Sequence[str]) -> None:
    """Serve API servers until the process ends."""
    for name in names:
        server = ApiServer(seed=name)
        server.put(configmap(KEY.name))
        await server.start(tls=True)
        server.kubeconfig(folder / f"{name}.kubeconfig")
    print("ready", flush=True)
    await asyncio.Event().wait()


@contextlib.contextmanager
def serving(folder: Path, *names: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a process that serves API servers."""
    command = [sys.executable, "-m", "hack.bench.cluster_cache", "--serve", str(folder), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise SystemExit("the API servers haven't started")
            yield process
        finally:
            os.kill(process.pid, signal.SIGCONT)
            process.kill()


def black_hole(folder: Path, name: str) -> socket.socket:
    """Return a socket that takes connections and never answers, and write its kubeconfig."""
    made = socket.create_server(("127.0.0.1", 0))
    config = yaml.safe_load(next(folder.glob("*.kubeconfig")).read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{made.getsockname()[1]}"
    (folder / f"{name}.kubeconfig").write_text(yaml.safe_dump(config))
    return made


# -- consumers -----------------------------------------------------------------------------------------------------


async def consume(cache: ClusterCache, good: Sequence[str], dead: Sequence[str], start: int, figures: Figures) -> None:
    """Ask for clusters by turns, until cancelled."""
    names = [*good, *dead]
    await asyncio.sleep(start % 100 / 1000)
    for turn in itertools.count(start * 7):
        name = names[turn * 13 % len(names)]
        begun = time.perf_counter()
        try:
            client = cache.get_client(name)
        except NotConnected:
            figures.getters.append(time.perf_counter() - begun)
            if name in good:
                figures.wrong.append(f"{name} is not connected: {cache.get_status(name)}")
        else:
            figures.getters.append(time.perf_counter() - begun)
            if name in dead:
                figures.wrong.append(f"{name} is connected")
            try:
                begun = time.perf_counter()
                await client.get(CONFIG_MAPS, KEY)
                read = time.perf_counter()
                figures.reads.append(read - begun)
                if turn % 5 == 0:
                    await cache.get_uncached_client(name).get(CONFIG_MAPS, KEY)
                    figures.requests.append(time.perf_counter() - read)
            except ClusterError as error:
                figures.wrong.append(str(error))
        await asyncio.sleep(0.1)


async def phase(
    cache: ClusterCache, good: Sequence[str], dead: Sequence[str], number: int, seconds: float
) -> tuple[Figures, float]:
    """Return what consumers have seen, and the age of the oldest probe of a good cluster, in seconds."""
    figures, oldest = Figures(), 0.0
    consumers = [asyncio.create_task(consume(cache, good, dead, each, figures)) for each in range(number)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.5)
        for name in good:
            oldest = max(oldest, time.time() - (cache.get_last_probe_success(name) or 0.0))
    for each in consumers:
        each.cancel()
    await asyncio.gather(*consumers, return_exceptions=True)
    return figures, oldest


async def measure(folder: Path, stopping: int, good: Sequence[str], dead: Sequence[str], n: int, seconds: float) -> int:
    """Measure by turns; return the exit code."""
    index = Index(CONFIG_MAPS, "name", lambda obj: [obj["metadata"]["name"]])
    options = ClusterCacheOptions(user_agent="bench", indexes=[index])
    cache = ClusterCache([FolderProvider(folder, environ={})], options, environ={})
    running = asyncio.create_task(cache.run())
    begun = time.monotonic()
    while not all(cache.get_status(name).state is State.CONNECTED for name in [*good, FROZEN]):
        await asyncio.sleep(0.1)
        if time.monotonic() > begun + 120:
            raise SystemExit("the good clusters aren't connected within 120 s")
    print(json.dumps({"clusters": len(good) + len(dead), "dead": len(dead), "connected_s": time.monotonic() - begun}))
    totals = {"without": Figures(), "with": Figures()}
    oldest = 0.0
    for turn in range(TURNS * 2):
        sort = "with" if turn % 2 else "without"
        os.kill(stopping, signal.SIGSTOP if sort == "with" else signal.SIGCONT)
        figures, age = await phase(cache, good, dead, n, seconds / (TURNS * 2))
        oldest = max(oldest, age)
        total = totals[sort]
        total.wrong += figures.wrong
        if turn > 1:
            total.getters += figures.getters
            total.reads += figures.reads
            total.requests += figures.requests
    os.kill(stopping, signal.SIGCONT)
    running.cancel()
    await asyncio.wait({running})
    without, beside = totals["without"].p99(), totals["with"].p99()
    slower = {name: round(beside[name] / without[name], 2) for name in without}
    wrong = totals["without"].wrong + totals["with"].wrong
    print(json.dumps({"p99_ms_without_frozen": without, "asked": len(totals["without"].getters)}))
    print(json.dumps({"p99_ms_with_frozen": beside, "asked": len(totals["with"].getters), "times": slower}))
    limit = AGE * options.probe_interval
    print(
        json.dumps({"wrong": len(wrong), "examples": wrong[:3], "oldest_probe_s": round(oldest, 2), "limit_s": limit})
    )
    return int(bool(wrong) or oldest > limit or max(slower["getter"], slower["cached_read"]) > SLOWER)


@click.command()
@click.option("--clusters", default=100, show_default=True, help="Clusters, with the dead ones.")
@click.option("--dead", default=20, show_default=True, help="Clusters whose server never answers.")
@click.option("--consumers", default=100, show_default=True, help="Consumers at the same time.")
@click.option("--seconds", default=60.0, show_default=True, help="Duration, of all phases.")
@click.option("--serve", "folder", default="", hidden=True)
@click.argument("names", nargs=-1)
def main(clusters: int, dead: int, consumers: int, seconds: float, folder: str, names: tuple[str, ...]) -> None:
    """Print a JSON line for each figure; end with 1 if a cluster that answers was refused, a dead one wasn't, a
    probe is too old, or the p99 of getters or cached reads is over 1.5 times that without the frozen cluster.
    """
    if folder:
        asyncio.run(serve(Path(folder), names))
        return
    interrupt_on_sigterm()
    configure(level="error")
    good = [f"good{number}" for number in range(clusters - dead - 1)]
    holes = [f"dead{number}" for number in range(dead)]
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        place = Path(temporary)
        stack.enter_context(serving(place, *good))
        frozen = stack.enter_context(serving(place, FROZEN))
        for name in holes:
            stack.enter_context(black_hole(place, name))
        sys.exit(uvloop.run(measure(place, frozen.pid, good, holes, consumers, seconds)))


if __name__ == "__main__":
    main()
