"""A ClusterCache with many clusters over TLS: of some the server never answers, and one is frozen
by turns.

The API servers are in processes of their own. Consumers ask for clients, read from caches, and send
requests; each phase without the frozen cluster (its process runs) is followed by one with it (the
process is stopped). Then the token of each cluster is replaced at intervals while objects are made.
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
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import click
import uvloop
import yaml

from hack.endings import interrupt_on_sigterm
from hack.side_tasks import helped_by
from kube_envtest import ADMIN, ApiServer
from syncer.api import ClusterError, Key, NotConnected, Obj
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream
from syncer.multicluster import ClusterCache, ClusterCacheOptions, FieldIndex, FolderProvider, State
from syncer.observe.logs import configure
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap

KEY = Key("shop", "x")
FROZEN = "frozen"
#: The longest that a stamp may be old, in units of its interval.
AGE = 1.2
#: The largest p99 beside a frozen cluster, in units of the p99 without it.
SLOWER = 1.5
#: Phases of each sort; the first two are not counted.
TURNS = 4
#: Seconds between two rotations.
ROTATION = 2.0
#: The number of rotations.
ROTATIONS = 15
#: The clusters whose credentials rotate.
ROTATED = 10
#: The objects that are made in each cluster between two rotations.
MADE = 20


class Figures:
    """The events that consumers have got in a phase; times are in seconds."""

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


def token(number: int) -> str:
    """Return the token of a rotation; 0 is the first one."""
    return f"token-{number}."


# -- API servers -----------------------------------------------------------------------------------


async def serve(folder: Path, names: Sequence[str]) -> None:
    """Serve API servers until the process ends."""
    for name in names:
        server = ApiServer(
            seed=name, tokens={token(number): ADMIN for number in range(ROTATIONS + 1)}
        )
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


class Counting(HttpTransport):
    """Counts the lists and watches of each server, and the tokens that are sent to it."""

    def __init__(
        self, credentials: LoginCredentials, options: ClusterCacheOptions, counts: "Counts"
    ) -> None:
        super().__init__(credentials.login.endpoint, credentials, user_agent=options.user_agent)
        self._login = credentials
        self._counts = counts

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request."""
        self._counts.add(self._login, request)
        return await super().send(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Send a request and read its response in parts."""
        self._counts.add(self._login, request)
        return super().stream(request)


class Counts:
    """What is sent to all servers."""

    def __init__(self) -> None:
        self.collections = 0
        self.tokens: set[str] = set()

    def add(self, credentials: LoginCredentials, request: HttpRequest) -> None:
        """Count a request."""
        self.collections += request.method == "GET" and "configmaps?" in request.path
        self.tokens.add(credentials.login.token)


# -- consumers -------------------------------------------------------------------------------------


async def consume(
    cache: ClusterCache, good: Sequence[str], dead: Sequence[str], start: int, figures: Figures
) -> None:
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
    """Return the events that consumers have got, and the age of the oldest probe of a good cluster,
    in seconds.
    """
    figures = Figures()
    oldest = 0.0
    end = time.monotonic() + seconds
    async with helped_by(*(consume(cache, good, dead, each, figures) for each in range(number))):
        while time.monotonic() < end:
            await asyncio.sleep(0.5)
            for name in good:
                oldest = max(oldest, time.time() - (cache.get_last_probe_success(name) or 0.0))
    return figures, oldest


async def rotate(cache: ClusterCache, folder: Path, names: Sequence[str], counts: Counts) -> bool:
    """Replace all tokens at intervals while objects are made;
    return False if that cost a list or an event.
    """
    arrivals: dict[tuple[str, str], float] = {}

    def watch(name: str) -> None:
        def handle(key: Key, _: Obj) -> None:
            arrivals.setdefault((name, key.name), time.perf_counter())

        cache.watch(name, "made", CONFIG_MAPS, handle)

    for name in names:
        watch(name)
    texts = {name: (folder / f"{name}.kubeconfig").read_text() for name in names}
    before = counts.collections
    counts.tokens = set()
    made: dict[tuple[str, str], float] = {}
    for number in range(1, ROTATIONS + 1):
        for name, text in texts.items():
            new = folder / f"{name}.new"
            new.write_text(text.replace(token(0), token(number)))
            new.rename(folder / f"{name}.kubeconfig")
        for each in range(MADE):
            for name in names:
                obj = configmap(f"made-{number}-{each}")
                made[name, obj["metadata"]["name"]] = time.perf_counter()
                await cache.get_uncached_client(name).create(CONFIG_MAPS, obj)
            await asyncio.sleep(ROTATION / MADE)
    await asyncio.sleep(ROTATION)
    delays = [arrivals[key] - begun for key, begun in made.items() if key in arrivals]
    missed = len(made) - len(delays)
    lists = counts.collections - before
    figures = {
        "clusters": len(names),
        "rotations": ROTATIONS,
        "tokens_sent": len(counts.tokens),
        "made": len(made),
    }
    print(
        json.dumps(
            {
                **figures,
                "missed": missed,
                "lists_and_watches": lists,
                "p99_event_ms": round(p99(delays) * 1e3, 1),
            }
        )
    )
    return not missed and not lists and len(counts.tokens) >= ROTATIONS


async def measure(
    folder: Path, stopping: int, good: Sequence[str], dead: Sequence[str], n: int, seconds: float
) -> int:
    """Measure by turns; return the exit code."""
    index = FieldIndex(CONFIG_MAPS, "name", lambda obj: [obj["metadata"]["name"]])
    options = ClusterCacheOptions(user_agent="bench", indexes=[index])
    counts = Counts()
    provider = FolderProvider(folder, environ={}, interval=ROTATION / 4)
    cache = ClusterCache(
        [provider], options, environ={}, dial=lambda login, chosen: Counting(login, chosen, counts)
    )
    async with helped_by(cache.run()):
        begun = time.monotonic()
        while not all(cache.get_status(name).state is State.CONNECTED for name in [*good, FROZEN]):
            await asyncio.sleep(0.1)
            if time.monotonic() > begun + 120:
                raise SystemExit("the good clusters aren't connected within 120 s")
        print(
            json.dumps(
                {
                    "clusters": len(good) + len(dead),
                    "dead": len(dead),
                    "connected_s": time.monotonic() - begun,
                }
            )
        )
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
        is_kept = await rotate(cache, folder, good[:ROTATED], counts)
    without = totals["without"].p99()
    beside = totals["with"].p99()
    slower = {name: round(beside[name] / without[name], 2) for name in without}
    wrong = totals["without"].wrong + totals["with"].wrong
    print(json.dumps({"p99_ms_without_frozen": without, "asked": len(totals["without"].getters)}))
    print(
        json.dumps(
            {"p99_ms_with_frozen": beside, "asked": len(totals["with"].getters), "times": slower}
        )
    )
    limit = AGE * options.probe_interval
    print(
        json.dumps(
            {
                "wrong": len(wrong),
                "examples": wrong[:3],
                "oldest_probe_s": round(oldest, 2),
                "limit_s": limit,
            }
        )
    )
    return int(
        not is_kept
        or bool(wrong)
        or oldest > limit
        or max(slower["getter"], slower["cached_read"]) > SLOWER
    )


@click.command()
@click.option("--clusters", default=100, show_default=True, help="Clusters, with the dead ones.")
@click.option("--dead", default=20, show_default=True, help="Clusters whose server never answers.")
@click.option("--consumers", default=100, show_default=True, help="Consumers at the same time.")
@click.option("--seconds", default=60.0, show_default=True, help="Duration, of all phases.")
@click.option("--serve", "folder", default="", hidden=True)
@click.argument("names", nargs=-1)
def main(
    clusters: int, dead: int, consumers: int, seconds: float, folder: str, names: tuple[str, ...]
) -> None:
    """Print a JSON line for each figure; end with 1 if a cluster that answers was refused, a dead
    one wasn't, a probe is too old, the p99 of getters or cached reads is over 1.5 times that
    without the frozen cluster, or a rotation cost a list, a watch or an event.
    """
    if folder:
        asyncio.run(serve(Path(folder), names))
        return
    interrupt_on_sigterm()
    configure(level="error")
    good = [f"good{number}" for number in range(clusters - dead - 1)]
    holes = [f"dead{number}" for number in range(dead)]
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        run_folder = Path(temporary)
        stack.enter_context(serving(run_folder, *good))
        frozen = stack.enter_context(serving(run_folder, FROZEN))
        for name in holes:
            stack.enter_context(black_hole(run_folder, name))
        sys.exit(uvloop.run(measure(run_folder, frozen.pid, good, holes, consumers, seconds)))


if __name__ == "__main__":
    main()
