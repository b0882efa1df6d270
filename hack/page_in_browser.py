"""Open the daemon's page in Chromium beside many objects, measure it, and take its pictures.

The daemon serves a virtual cluster of real API servers, with so many ConfigMaps in step and some
objects that are paused, parked, skipped, pending, drifted and fought over. Its CPU is compared
while nobody looks and while the page is open, and the steps of its event loop over 10 ms are
counted (`hack/loop_steps.py`). Prints JSON.
"""

import argparse
import asyncio
import json
import random
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import uvloop
import yaml

from hack import browser, loop_steps
from hack.bench.daemon import Process, two_planes
from hack.endings import interrupt_on_sigterm
from hack.ports import free_port
from kube_envtest import ControlPlane
from syncer.api import ClusterError, Key, Obj, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources.kinds import CONFIG_MAPS, SECRETS

NAMESPACE, HOME = "shop", "vc-shop"
#: Concurrent creations.
CONCURRENCY = 24
#: Seconds for each thousand objects, and at least, in which the daemon must have done its work.
PATIENCE, LEAST_PATIENCE = 12.0, 300.0
#: Seconds of changes before the pictures.
BUSY = 300.0
#: Seconds between two looks.
LOOK = 2.0
#: Most bytes of a picture of the docs.
MOST_BYTES = 150_000
#: The pictures: name, part of the address, size in pixels.
PICTURES: tuple[tuple[str, dict[str, str], tuple[int, int]], ...] = (
    ("page-overview", {}, (1000, 1300)),
    ("page-explain", {"kind": "pods", "key": f"{NAMESPACE}/web-0"}, (1000, 600)),
)


def config(virtual: ControlPlane, host: ControlPlane, address: str) -> dict[str, Any]:
    """Return the daemon's configuration: a manual change of a copy stays, and is reported."""
    kinds = {
        "configMaps": {"all": True, "selector": {"matchLabels": {"shown": "true"}}},
        "secrets": {"drift": {"field": "report"}, "all": True, "patrolInterval": "15s"},
    }
    served = yaml.safe_load(virtual.kubeconfig().read_text())["clusters"][0]["cluster"]["server"]
    reached = urlsplit(served)
    return {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": "shop",
        "virtual": {"kubeconfig": str(virtual.kubeconfig())},
        "host": {"kubeconfig": str(host.kubeconfig()), "namespace": HOME},
        "networking": {"apiServer": {"host": reached.hostname, "port": reached.port}},
        "sync": {"toHost": kinds},
        "page": {"address": address},
        "log": {"level": "warning"},
    }


def config_map(name: str, *, labels: bool = True, paused: bool = False) -> Obj:
    """Return a ConfigMap of the shop; without labels it isn't selected."""
    metadata: Obj = {"name": name, "namespace": NAMESPACE}
    if labels:
        metadata["labels"] = {"shown": "true"}
    if paused:
        metadata["annotations"] = {"vsyncer.dev/paused": "true"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"color": "blue"},
    }


def pod(number: int) -> Obj:
    """Return a Pod that waits for the copy of its ServiceAccount, which is paused."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{number}", "namespace": NAMESPACE},
        "spec": {
            "serviceAccountName": "web",
            "automountServiceAccountToken": False,
            "containers": [{"name": "web", "image": "registry.example.org/web:1"}],
        },
    }


class Shop:
    """The objects of the virtual cluster, and of the host."""

    def __init__(self, virtual: SideClient, host: SideClient) -> None:
        self.virtual = virtual
        self.host = host

    async def fill(self, number: int) -> None:
        """Create so many objects in step, and some of each other state."""
        for namespace in ("bank", "desk"):
            await self.virtual.create(*_namespace(namespace))
        account = Resource("v1", "ServiceAccount", "serviceaccounts")
        metadata = {"name": "web", "namespace": NAMESPACE}
        metadata_of_paused = {**metadata, "annotations": {"vsyncer.dev/paused": "true"}}
        head = {"apiVersion": "v1", "kind": "ServiceAccount"}
        await self.virtual.create(account, {**head, "metadata": metadata_of_paused})
        await self._all(CONFIG_MAPS, [config_map(f"settings-{each}") for each in range(number)])
        await self._all(
            CONFIG_MAPS, [config_map(f"hidden-{each}", labels=False) for each in range(40)]
        )
        await self._all(
            CONFIG_MAPS, [config_map(f"paused-{each}", paused=True) for each in range(2)]
        )
        for each in range(2):
            taken = config_map(f"taken-{each}-x-{NAMESPACE}-x-shop")
            taken["metadata"]["namespace"] = HOME
            await self.host.create(CONFIG_MAPS, taken)
        await self._all(CONFIG_MAPS, [config_map(f"taken-{each}") for each in range(2)])
        await self._all(SECRETS, [_secret(f"login-{each}") for each in range(25)])

    async def _all(self, resource: Resource, objects: Sequence[Obj]) -> None:
        rest = iter(objects)

        async def writer() -> None:
            for obj in rest:
                await self.virtual.create(resource, obj)

        await asyncio.gather(*(writer() for _ in range(CONCURRENCY)))


def _namespace(name: str) -> tuple[Resource, Obj]:
    resource = Resource("v1", "Namespace", "namespaces", namespaced=False)
    return resource, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _secret(name: str) -> Obj:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"user": "shop"},
    }


class Relay(socketserver.ThreadingTCPServer):
    """Passes connections on to a port of this machine, and counts them: a request each."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.target = port
        self.count = 0
        super().__init__(("127.0.0.1", 0), _Passing)

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Passing(socketserver.BaseRequestHandler):
    """A connection of the relay, on which a client sends one request."""

    def handle(self) -> None:
        """Pass the request on, and the answer back."""
        relay = self.server
        assert isinstance(relay, Relay)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = self.request.recv(65536)
            if not part:
                return  # a browser opens connections that it may need later
            head += part
        relay.count += 1
        with socket.create_connection(("127.0.0.1", relay.target)) as daemon:
            daemon.sendall(head)
            while part := daemon.recv(65536):
                self.request.sendall(part)


class Opened:
    """A browser with the page, and the daemon behind it."""

    def __init__(self, daemon: Process, program: str, url: str) -> None:
        self.daemon = daemon
        self.program = program
        self.url = url

    def ask(self, question: str, **given: str) -> Any:
        """Return an answer of the page."""
        address = f"{self.url}/api/{question}?{urlencode(given)}"
        with urllib.request.urlopen(address, timeout=60) as reply:
            return json.load(reply)

    def settle(self, number: int) -> None:
        """Wait until all objects are in a state that lasts."""
        deadline = time.monotonic() + max(LEAST_PATIENCE, number / 1000 * PATIENCE)
        while time.monotonic() < deadline:
            kinds = {each["syncer"]: each for each in self.ask("kinds")}
            maps = kinds.get("configmaps")
            if maps and maps["inStep"] >= number and self.daemon.depth() == 0:
                return
            time.sleep(LOOK)
        raise SystemExit("the daemon has not done its work in time")

    def share(self, seconds: float) -> float:
        """Return the share of a CPU that the daemon uses for so many seconds, in percent.

        It isn't still: it goes on looking at what is paused, parked and drifted.
        """
        used = self.daemon.cpu()
        began = time.perf_counter()
        time.sleep(seconds)
        return 100 * (self.daemon.cpu() - used) / (time.perf_counter() - began)

    @contextmanager
    def open(self) -> Iterator[Relay]:
        """Keep the page open in the browser while the block runs."""
        with self._relay() as relay, self._browser(relay.url):
            yield relay

    @contextmanager
    def _relay(self) -> Iterator[Relay]:
        port = int(self.url.rpartition(":")[2])
        with Relay(port) as relay:
            threading.Thread(target=relay.serve_forever, daemon=True).start()
            yield relay
            relay.shutdown()

    @contextmanager
    def _browser(self, url: str) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="vsyncer-browser-") as profile:
            command = [*browser.command(self.program, profile), "--remote-debugging-port=0"]
            process = subprocess.Popen(
                [*command, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)


def latency(opened: Opened, times: int = 20) -> dict[str, float]:
    """Return the milliseconds that answers take at most, by question."""
    questions: dict[str, dict[str, str]] = {
        "clusters": {},
        "kinds": {},
        "history": {},
        "drift": {},
        "frozen": {},
        "explain": {"kind": "configmaps", "key": f"{NAMESPACE}/settings-7"},
        "list": {"states": "pending,paused,frozen,failing,parked"},
    }
    found: dict[str, float] = {}
    for question, given in questions.items():
        taken: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            opened.ask(question, **given)
            taken.append(1000 * (time.perf_counter() - began))
        found[question] = round(sorted(taken)[len(taken) // 2], 1)
    began = time.perf_counter()
    opened.ask("list", states="in_step")
    found["list of those in step"] = round(1000 * (time.perf_counter() - began), 1)
    return found


def long_steps(records: Path, since: float) -> list[dict[str, Any]]:
    """Return the steps of the event loop over 10 ms of CPU after a time."""
    found = [json.loads(line) for line in records.read_text().splitlines()]
    return [each for each in found if each.get("at", 0.0) > since]


async def prepare(virtual: ControlPlane, host: ControlPlane, number: int) -> None:
    """Fill the virtual cluster."""
    sides = ((virtual, Side.VIRTUAL), (host, Side.HOST))
    clients = [
        connect(ConnectionSettings(str(plane.kubeconfig()), ""), side=side, environ={})
        for plane, side in sides
    ]
    try:
        await Shop(*clients).fill(number)
    finally:
        for client in clients:
            await client.close()
    for each in range(2):
        virtual.kubectl("create", "--filename=-", stdin=json.dumps(pod(each)))


async def drift(host: ControlPlane) -> None:
    """Edit copies by hand: the daemon reports it, as it is configured."""
    client = connect(ConnectionSettings(str(host.kubeconfig()), ""), side=Side.HOST, environ={})
    try:
        for number in range(3):
            key = Key(HOME, f"login-{number}-x-{NAMESPACE}-x-shop")
            try:
                copy = await client.get(SECRETS, key)
            except ClusterError:
                continue
            copy["data"]["user"] = "aGFuZA=="
            await client.replace(SECRETS, copy)
    finally:
        await client.close()


def main() -> None:
    """Start everything, measure, and take the pictures."""
    parser = argparse.ArgumentParser(prog="hack/page", description=__doc__)
    parser.add_argument("-n", type=int, default=100_000, help="objects in step")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each measurement")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="where pictures go")
    options = parser.parse_args()
    program = browser.found()
    if program is None:
        raise SystemExit("there is no Chromium: apt-get install chromium")

    with two_planes() as (virtual, host, folder):
        virtual.kubectl("create", "namespace", NAMESPACE)
        host.kubectl("create", "namespace", HOME)
        uvloop.run(prepare(virtual, host, options.n))
        address = f"127.0.0.1:{free_port()}"
        records = folder / "steps.jsonl"
        command = (sys.executable, "-P", loop_steps.__file__, str(records), "run")
        daemon = Process(config(virtual, host, address), folder, command=command)
        daemon.start()
        try:
            opened = Opened(daemon, program, f"http://{address}")
            opened.settle(options.n)
            uvloop.run(drift(host))
            print(json.dumps(measured(opened, virtual, records, options)))
        finally:
            daemon.stop()


async def busy(virtual: ControlPlane, seconds: float) -> None:
    """Change objects now and then, so that the charts have something to show."""
    client = connect(
        ConnectionSettings(str(virtual.kubeconfig()), ""), side=Side.VIRTUAL, environ={}
    )
    rng = random.Random(1)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            for _ in range(rng.randrange(1, 40)):
                patch = {"data": {"color": str(rng.random())}}
                await client.patch(
                    CONFIG_MAPS, Key(NAMESPACE, f"settings-{rng.randrange(100)}"), patch
                )
            await asyncio.sleep(rng.uniform(1, 15))
    finally:
        await client.close()


def measured(
    opened: Opened, virtual: ControlPlane, records: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure the daemon alone and with the page, and take the pictures."""
    found: dict[str, Any] = {"bench": "page", "objects": options.n}
    found["cpu_percent_alone"] = round(opened.share(options.seconds), 2)
    since = time.time()
    with opened.open() as relay:
        time.sleep(LOOK)
        before = relay.count
        found["cpu_percent_with_page"] = round(opened.share(options.seconds), 2)
        found["requests_of_the_page"] = relay.count - before
    found["long_steps_with_page"] = long_steps(records, since)
    since = time.time()
    found["milliseconds"] = latency(opened)
    found["long_steps_of_questions"] = long_steps(records, since)
    if options.pictures:
        uvloop.run(busy(virtual, BUSY))
        for name, asked, size in PICTURES:
            file = options.pictures / f"{name}.png"
            browser.picture(
                opened.program, f"{opened.url}/#{urlencode(asked)}", file.resolve(), size=size
            )
            if file.stat().st_size > MOST_BYTES:
                raise SystemExit(f"{file} has more than {MOST_BYTES} bytes")
    return found


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
