"""Measure the patroller: CPU of a scan of the cache and from fresh lists, and memory over many
scans; JSON lines.

The API servers are in a separate process, so CPU and memory are the daemon's alone.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from hack.endings import interrupt_on_sigterm
from hack.side_tasks import helped_by
from kube_envtest import ApiServer
from syncer.config import SyncerConfig, config_with
from syncer.daemon.pages.status import settle
from syncer.daemon.process import Process
from syncer.daemon.runner import prepared
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.findings import Scan
from syncer.names import SingleNamespace
from syncer.observe.logs import configure
from syncer.plugins import installed
from syncer.testing.objects import configmap, namespace

#: The contents of each object.
TEXT = "x" * 1000
CLUSTER = "vc"
HOME = "vc-ns"
KIND = "configmaps"


# -- the API servers -------------------------------------------------------------------------------


async def serve(folder: Path, count: int) -> None:
    """Serve a virtual cluster with this number of ConfigMaps, and a host,
    until standard input ends.
    """
    virtual = ApiServer(seed="virtual")
    host = ApiServer(seed="host")
    host.put(namespace(HOME))
    for number in range(count):
        virtual.put(configmap(f"object-{number:06d}", {"text": TEXT}))
    for server, name in ((virtual, "virtual"), (host, "host")):
        await server.start()
        server.kubeconfig(folder / name)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextlib.contextmanager
def served(count: int) -> Iterator[Path]:
    """Run the API servers in another process; yield the folder with their kubeconfigs."""
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as folder:
        command = [sys.executable, "-m", "hack.bench.patrol", "--serve", folder, "-n", str(count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", "the API servers did not start"
            try:
                yield Path(folder)
            finally:
                process.stdin.close()


# -- the daemon ------------------------------------------------------------------------------------


def configured(folder: Path) -> SyncerConfig:
    """Return a configuration that copies all ConfigMaps."""
    syncers = [syncer for syncer in installed().syncers() if syncer.name == KIND]
    given = {
        "cluster": CLUSTER,
        "virtual": {"kubeconfig": str(folder / "virtual")},
        "host": {"kubeconfig": str(folder / "host"), "namespace": HOME},
        "sync": {"toHost": {"configMaps": {"all": True}}},
        "patrol": {"enabled": False},
    }
    return config_with(syncers, translator=SingleNamespace).model_validate(given)


@contextlib.asynccontextmanager
async def in_step(folder: Path) -> AsyncIterator[tuple[Process, ClusterPair]]:
    """Yield a process and its pair once both sides are in step."""
    config = configured(folder)
    async with (
        prepared(config, config.cluster()) as (process, pair),
        process.running(),
        helped_by(process.work()),
    ):
        try:
            await settle(process, quiet=2.0)
            yield process, pair
        finally:
            process.queue.close()


def rss() -> float:
    """Return the resident memory, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def requests(process: Process) -> int:
    """Return the number of requests sent."""
    return int(
        sum(
            sample.value
            for family in process.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "rest_client_requests_total"
        )
    )


async def scanned(process: Process, pair: ClusterPair, *, fresh: bool) -> tuple[float, Scan]:
    """Scan once; return the CPU seconds that it took, and the scan."""
    [patroller] = process.patrollers()
    start = time.process_time()
    scan = await patroller.scan(pair.controllers[KIND], fresh=fresh)
    taken = time.process_time() - start
    assert not scan.problem, scan.problem
    assert not scan.findings, "something has drifted"
    return taken, scan


def show(what: str, **figures: Any) -> None:
    """Print a line."""
    rounded = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in figures.items()
    }
    print(json.dumps({"bench": "patrol", "what": what, **rounded}), flush=True)


async def measure(folder: Path, scans: int) -> None:
    """Print all figures."""
    async with in_step(folder) as (process, pair):
        cpu, scan = await scanned(process, pair, fresh=False)
        show("first scan", pairs=scan.verified, cpu_s=cpu)
        for fresh, number in ((False, 10), (True, 5)):
            before = requests(process)
            times = list[float]()
            for _ in range(number):
                cpu, scan = await scanned(process, pair, fresh=fresh)
                times.append(cpu)
            figures = {
                "pairs": scan.verified + scan.skipped,
                "cpu_s": median(times),
                "cpu_s_max": max(times),
            }
            what = "scan from fresh lists" if fresh else "scan of the stores, unchanged"
            show(
                what,
                **figures,
                requests=(requests(process) - before) / number,
                skipped=scan.skipped,
            )
        await steady(process, pair, scans)


async def steady(process: Process, pair: ClusterPair, scans: int) -> None:
    """Print the memory over many scans, every tenth from fresh lists."""
    gc.collect()
    before = rss()
    highest = 0.0
    for number in range(scans):
        await scanned(process, pair, fresh=number % 10 == 9)
        highest = max(highest, rss())
    gc.collect()
    show("memory", scans=scans, rss_mb_before=before, rss_mb_after=rss(), rss_mb_highest=highest)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=10_000, help="pairs")
    parser.add_argument("--scans", type=int, default=100, help="scans over which memory is watched")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve, given.n))
        return
    configure("warning", "console")
    with served(given.n) as folder:
        asyncio.run(measure(folder, given.scans))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
