"""One daemon with many virtual clusters, and the same with a single one of as many pods, by turns.

The API servers are in-process ones behind TLS, in processes of their own. All virtual clusters
share a host namespace.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import uvloop

from hack.bench.daemon import SYNCER, Process
from hack.bench.profile import Profile
from hack.endings import interrupt_on_sigterm
from hack.kubelet import Kubelet, is_ready
from hack.side_tasks import helped_by
from kube_envtest import User
from syncer.api import Side
from syncer.clusters.client import SideClient
from syncer.observe.logs import configure
from syncer.resources.kinds import PODS
from syncer.testing import ApiServer
from syncer.testing.objects import namespace, pod, serviceaccount

HOME = "fleet"
NAMESPACE = "shop"
HOST = "host"
#: Processes of virtual API servers.
PROCESSES = 2
#: CPU milliseconds a pod of the paper's syncer (VirtualCluster, ICDCS 2021).
PAPER_MS = 13.8
#: The memory of the paper's syncer, in MB.
PAPER_MB = 1200.0
#: The most CPU that many clusters may cost, in units of a single one.
CPU = 1.15
#: The most CPU that the start of many clusters may cost, in units of a single one.
START = 1.3
#: The most memory that many clusters may cost, in MB.
MEMORY = 400.0
#: Streams to the host, for each kind that is watched there.
STREAMS = 2
#: Seconds that arriving may take.
PATIENCE = 900.0
#: Seconds of rest.
REST = 20.0
#: CPU seconds in 0.6 s below which the daemon counts as at rest: 100 virtual clusters take 0.006.
STILL = 0.03


# -- API servers -----------------------------------------------------------------------------------


async def serve(folder: Path, names: Sequence[str], *, events: bool) -> None:
    """Serve API servers, and answer commands on standard input, until it ends.

    With ``events``, the host's kubelet records some about each pod.
    """
    tokens = {"daemon-token": User("daemon", ("system:masters",))}
    servers = {name: ApiServer(seed=name, tokens=tokens) for name in names}
    playing = []
    for name, server in servers.items():
        server.put(namespace(HOME if name == HOST else NAMESPACE))
        await server.start(tls=True)
        server.kubeconfig(folder / f"{name}.kubeconfig", "daemon")
    if HOST in servers:
        client = SideClient(HOST, Side.HOST, servers[HOST].transport())
        kubelet = Kubelet(client, HOME, events=events)
        playing.append(kubelet.run())
    else:
        for server in servers.values():
            server.put(serviceaccount("default", namespace=NAMESPACE))
    async with helped_by(*playing):
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        print("ready", flush=True)
        while line := (await reader.readline()).decode():
            command, _, value = line.strip().partition(" ")
            if command == "create":
                for number in range(int(value)):
                    for server in servers.values():
                        server.put(pod(f"p{number}", namespace=NAMESPACE))
                    await asyncio.sleep(0)
            print(
                json.dumps(
                    {"running": sum(map(_running, servers.values())), "streams": _streams(servers)}
                ),
                flush=True,
            )


def _running(server: ApiServer) -> int:
    return sum(is_ready(each) for each in server.objects(PODS.plural))


def _streams(servers: dict[str, ApiServer]) -> int:
    """Count the streams to the host that aren't the simulated kubelet's."""
    return servers[HOST].open_watches - 1 if HOST in servers else 0


class Servers:
    """A process that serves API servers."""

    def __init__(self, folder: Path, names: Sequence[str], *, events: bool) -> None:
        command = [sys.executable, "-m", "hack.bench.fleet", "--serve", str(folder), *names]
        if events:
            command.append("--events")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin = self.process.stdin
        self._stdout = self.process.stdout
        if self._stdout.readline() != "ready\n":
            raise SystemExit("the API servers haven't started")

    def ask(self, command: str) -> dict[str, int]:
        """Send a command, and return the answer."""
        self.send(command)
        return self.answer()

    def send(self, command: str) -> None:
        """Send a command."""
        self._stdin.write(f"{command}\n")
        self._stdin.flush()

    def answer(self) -> dict[str, int]:
        """Return the answer to the last command."""
        found: dict[str, int] = json.loads(self._stdout.readline())
        return found


# -- a run -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A daemon with so many virtual clusters, and so many pods in all."""

    clusters: int
    pods: int
    folder: Path
    events: bool = False
    profile: Profile | None = None

    def measure(self) -> dict[str, Any]:
        """Return the figures."""
        names = [f"t{number}" for number in range(self.clusters)]
        processes = min(PROCESSES, self.clusters)
        with contextlib.ExitStack() as stack:
            host = Servers(self.folder, [HOST], events=self.events)
            stack.callback(host.process.kill)
            virtual = [
                Servers(self.folder, names[number::processes], events=False)
                for number in range(processes)
            ]
            for each in virtual:
                stack.callback(each.process.kill)
            daemon = Process(self._config(names), self.folder)
            if self.profile is not None:
                daemon.command = self.profile.command(SYNCER)
            stack.callback(daemon.kill)
            daemon.start()
            daemon.wait_still(STILL)
            empty = daemon.rss()
            before = daemon.cpu()
            begun = time.perf_counter()
            for each in virtual:
                each.send(f"create {self.pods // self.clusters}")
            for each in virtual:
                each.answer()
            self._wait(lambda: sum(each.ask("count")["running"] for each in virtual))
            seconds = time.perf_counter() - begun
            daemon.wait_still(STILL)
            self._note("pods", begun, daemon.cpu() - before)
            figures = {
                "empty_mb": round(empty, 1),
                "cpu_ms_a_pod": round((daemon.cpu() - before) * 1000 / self.pods, 3),
                "seconds": round(seconds, 1),
                "rss_mb": round(daemon.rss(), 1),
                "peak_mb": round(daemon.peak(), 1),
                "host_streams": host.ask("count")["streams"],
                "host_kinds": self._kinds(daemon),
            }
            before = daemon.cpu()
            time.sleep(REST)
            figures["idle_cpu_percent"] = round((daemon.cpu() - before) / REST * 100, 2)
            daemon.stop()
            begun = time.perf_counter()
            daemon.start()
            while daemon.total("syncer_objects") < self.pods or daemon.depth():
                time.sleep(0.2)
            daemon.wait_still(STILL)
            self._note("start", begun, daemon.cpu())
            figures["start_seconds"] = round(time.perf_counter() - begun, 1)
            figures["start_cpu_seconds"] = round(daemon.cpu(), 2)
            figures["start_rss_mb"] = round(daemon.rss(), 1)
            daemon.stop()
        if self.profile is not None:
            self.profile.write()
        return figures

    def _note(self, what: str, begun: float, cpu: float) -> None:
        """Note a phase of the profile that ends now, with its CPU seconds."""
        if self.profile is None:
            return
        figures = {
            "phase": f"{what}-of-{self.clusters}",
            "cpu_ms_per_object": cpu * 1000 / self.pods,
        }
        self.profile.phases.append((figures, begun, time.perf_counter()))

    def _wait(self, count: Callable[[], int]) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := count()) < self.pods:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {found} of {self.pods} pods run")
            time.sleep(1)

    def _kinds(self, daemon: Process) -> int:
        """Count the kinds that the daemon watches on the host."""
        labels = [
            label
            for name, label in daemon.samples()
            if name == "syncer_watch_up" and 'side="host"' in label
        ]
        return len({label.partition("resource=")[2] for label in labels})

    def _config(self, names: Sequence[str]) -> dict[str, Any]:
        return {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "virtualClusters": [
                {
                    "name": name,
                    "kubeconfig": str(self.folder / f"{name}.kubeconfig"),
                    "hostNamespace": HOME,
                }
                for name in names
            ],
            "host": {"kubeconfig": str(self.folder / f"{HOST}.kubeconfig")},
            "networking": {"apiServer": {"host": "10.96.0.1"}, "dns": {"service": ""}},
            "log": {"level": "warning", "format": "json"},
        }


def verdict(many: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios of many clusters to a single one, and the ratios over their limits."""
    ratios = {
        name: round(many[name] / one[name], 3)
        for name in ("cpu_ms_a_pod", "rss_mb", "start_cpu_seconds", "start_seconds")
    }
    over = []
    if ratios["cpu_ms_a_pod"] > CPU:
        over.append(f"CPU a pod is over {CPU} times")
    if ratios["start_cpu_seconds"] > START:
        over.append(f"a start is over {START} times")
    if many["rss_mb"] > MEMORY:
        over.append(f"memory is over {MEMORY:.0f} MB")
    if many["host_streams"] > STREAMS * many["host_kinds"]:
        over.append(f"streams to the host are over {STREAMS} a kind")
    return {"ratios": ratios, "paper": {"cpu_ms_a_pod": PAPER_MS, "rss_mb": PAPER_MB}, "over": over}


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        yield Path(folder)


@click.command(help=__doc__)
@click.option("--clusters", default=100, show_default=True, help="Virtual clusters of the many.")
@click.option("--pods", default=10_000, show_default=True, help="Pods in all.")
@click.option("--rounds", default=1, show_default=True, help="Rounds of both, by turns.")
@click.option(
    "--profile",
    "profiles",
    type=click.Path(path_type=Path),
    help="Sample what the daemon does, and write the tables to this folder.",
)
@click.option("--events", is_flag=True, help="The kubelet records two Events about each pod.")
@click.option("--serve", "folder", hidden=True)
@click.argument("names", nargs=-1)
def main(
    clusters: int,
    pods: int,
    rounds: int,
    profiles: Path | None,
    events: bool,
    folder: str | None,
    names: Sequence[str],
) -> None:
    """Measure, or serve."""
    if folder:
        uvloop.run(serve(Path(folder), names, events=events))
        return
    interrupt_on_sigterm()
    configure(level="error")
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    over: list[str] = []
    for number in range(rounds):
        found: dict[int, dict[str, Any]] = {}
        for count in (clusters, 1) if number % 2 == 0 else (1, clusters):
            profile = None
            if profiles is not None:
                profile = Profile(profiles / f"{number}-{count}")
            with _folder() as run_folder:
                found[count] = Run(count, pods, run_folder, events, profile).measure()
            print(json.dumps({"clusters": count, "pods": pods, **found[count]}), flush=True)
        judgement = verdict(found[clusters], found[1])
        over += judgement["over"]
        print(json.dumps(judgement), flush=True)
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
