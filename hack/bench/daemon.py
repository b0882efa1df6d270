"""The daemon in a process of its own, as a user starts it, and its CPU, memory and requests."""

import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.planes import find_programs
from hack.ports import free_port
from kube_envtest import ControlPlane, start_all
from kube_envtest.controlplane.processes import spawn
from syncer.api import Obj, Side
from syncer.config import load
from syncer.plugins import installed
from syncer.rights.rbac import Subject, manifests, needed

#: A process is idle if it used hardly any CPU for so many seconds.
STILL_SECONDS = 0.6
#: The CPU seconds that an idle process uses less than in that time.
STILL_CPU_SECONDS = 0.002
#: Seconds, after which a process that doesn't answer or end is given up.
PATIENCE = 120.0
#: With a process id, the number of that process's CPU clock: clock_getcpuclockid(3).
_CPU_CLOCK = 2
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.e+-]+)$")


#: The command installed beside the running Python.
SYNCER = str(Path(sys.executable).with_name("syncer"))
#: The name of the floor on the command line, and the command that runs it.
FLOOR = "floor"
FLOOR_COMMAND: tuple[str, ...] = (sys.executable, "-m", "hack.bench.floor")


@dataclass
class Daemon:
    """A `syncer` process with a configuration file."""

    config: dict[str, Any]
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None
    port: int = field(default_factory=free_port)
    health: int = field(default_factory=free_port)
    #: The command line.
    command: Sequence[str] = (SYNCER,)
    #: Where it serves its pages; the command may run it in another network.
    address: str = "127.0.0.1"

    @property
    def file(self) -> Path:
        """Its configuration file, written when it starts."""
        return self.folder / "syncer.yaml"

    @property
    def socket(self) -> Path:
        """Its control socket: in its folder, unless the path is too long (107 bytes)."""
        near = self.folder / "control.sock"
        if len(str(near)) < 100:
            return near
        return Path(tempfile.gettempdir()) / f"vsyncer-{self.port}.sock"

    @property
    def log(self) -> Path:
        """Its log, over all its lives."""
        return self.folder / "syncer.log"

    def write(self) -> None:
        """Write the configuration file."""
        addresses = {
            "metrics": {"address": f"{self.address}:{self.port}"},
            "health": {"address": f"{self.address}:{self.health}"},
            "control": {"socket": str(self.socket)},
        }
        self.file.write_text(yaml.safe_dump({**self.config, **addresses}, sort_keys=False))

    def rights(self, user: str) -> Mapping[Side, list[Obj]]:
        """Return the roles that it needs on each side, bound to a user,
        as printed by `syncer rbac`.
        """
        cluster = load(str(self.file), installed()).cluster
        return manifests(
            needed(cluster.all_syncers(), settings=cluster.settings()),
            cluster=cluster.name,
            home=cluster.host_namespace,
            host_namespaces=cluster.translator.host_namespaces(),
            subjects=dict.fromkeys(Side, Subject(user)),
        )

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.spawn()
        self.wait_ready()

    def spawn(self) -> None:
        """Start it without waiting."""
        self.write()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "--config", str(self.file)], stdout=log, stderr=log
            )

    def wait_ready(self) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.must_run()
            try:
                with urllib.request.urlopen(
                    f"http://{self.address}:{self.health}/readyz", timeout=2
                ):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)  # each probe costs the daemon half a millisecond
        raise SystemExit("the daemon did not become ready")

    def wait_still(self, most: float = STILL_CPU_SECONDS) -> float:
        """Wait until it uses at most so many CPU seconds in `STILL_SECONDS`.

        Return since when, in terms of `time.perf_counter`.

        It gets no requests meanwhile: a scrape of its metrics costs it 7 ms.
        """
        used = self.cpu()
        since = time.perf_counter()
        while time.perf_counter() - since < STILL_SECONDS:
            time.sleep(0.05)
            now = self.cpu()
            if now - used > most:
                used = now
                since = time.perf_counter()
        return since

    def must_run(self) -> None:
        """Make sure that its process is there.

        Raises:
            SystemExit: It has ended, with the end of its log.
        """
        assert self.process is not None
        if self.process.poll() is not None:
            raise SystemExit(f"the daemon ended:\n{self.log.read_text()[-4000:]}")

    def stop(self) -> None:
        """Stop it as Kubernetes does."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self.process is not None
        return self.process.pid

    def cpu(self) -> float:
        """Return the CPU seconds that it has used, user and system."""
        return time.clock_gettime((~self.pid << 3) | _CPU_CLOCK)

    def wakeups(self) -> int:
        """Return how often its event loop has begun to wait: the voluntary context switches of the
        main thread (proc(5)).
        """
        return int(self._status("voluntary_ctxt_switches"))

    def rss(self) -> float:
        """Return the resident memory, in MB."""
        return self._memory("VmRSS")

    def peak(self) -> float:
        """Return the peak of the resident memory since the start, or since :meth:`forget_peak`,
        in MB.
        """
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        """Reset the peak to the present memory (``5`` in ``clear_refs``, see proc(5))."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _memory(self, name: str) -> float:
        return int(self._status(name).split()[0]) / 1024

    def _status(self, name: str) -> str:
        """Return a value of the status of its main thread.

        Raises:
            KeyError: There is none of this name.
        """
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            found, _, value = line.partition(":")
            if found == name:
                return value.strip()
        raise KeyError(name)

    def samples(self) -> dict[tuple[str, str], float]:
        """Return all metrics by name and labels."""
        with urllib.request.urlopen(
            f"http://{self.address}:{self.port}/metrics", timeout=PATIENCE
        ) as page:
            found = (_SAMPLE.match(line) for line in page.read().decode().splitlines())
        return {(match[1], match[2] or ""): float(match[3]) for match in found if match}

    def calls(self) -> dict[str, float]:
        """Return the requests sent so far, by method."""
        calls: dict[str, float] = {}
        for (name, labels), value in self.samples().items():
            if name == "rest_client_requests_total":
                method = re.search(r'method="(\w+)"', labels)
                key = method[1] if method else "?"
                calls[key] = calls.get(key, 0) + value
        return calls

    def depth(self) -> float:
        """Return the number of requests that wait or are worked on."""
        samples = self.samples()
        waiting = sum(value for (name, _), value in samples.items() if name == "workqueue_depth")
        active = sum(
            value
            for (name, _), value in samples.items()
            if name == "controller_runtime_active_workers"
        )
        return waiting + active

    def total(self, name: str) -> float:
        """Return the sum of a metric over all labels."""
        return sum(value for (found, _), value in self.samples().items() if found == name)


class Process(Daemon):
    """The daemon in a process that ends with this one, however this ends,
    to be killed and asked things.
    """

    def spawn(self) -> None:
        """Start it without waiting."""
        self.write()
        self.process = spawn([*self.command, "--config", str(self.file)], self.log, self.folder)

    def send(self, number: int) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for its end; gives its exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def run(self, *arguments: str, seconds: float = PATIENCE) -> "subprocess.CompletedProcess[str]":
        """Run a command with its configuration, such as ``patrol --once``, to the end."""
        self.write()
        command = [*self.command, *arguments[:1], "--config", str(self.file), *arguments[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)

    def log_text(self) -> str:
        """Return the log."""
        return self.log.read_text()

    def readyz(self) -> tuple[int, str]:
        """Status and text of ``/readyz?verbose``; 0 without an answer."""
        try:
            with urllib.request.urlopen(
                f"http://{self.address}:{self.health}/readyz?verbose", timeout=PATIENCE
            ) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def requests(self, name: str = "rest_client_requests_total", **labels: str) -> float:
        """Return the sum of a counter over the samples with these labels; by default the requests
        to API servers.
        """
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = self.samples().items()
        return sum(
            value
            for (known, text), value in found
            if known == name and all(each in text for each in wanted)
        )


@contextmanager
def two_planes() -> Iterator[tuple[ControlPlane, ControlPlane, Path]]:
    """Yield a virtual and a host cluster, and a folder for the daemon; repeat the end of its log at
    the end.
    """
    found = find_programs()
    virtual = ControlPlane("virtual", programs=found)
    host = ControlPlane("host", programs=found)
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as folder:
        start_all(virtual, host)
        try:
            yield virtual, host, Path(folder)
        finally:
            log = Path(folder) / "syncer.log"
            print(log.read_text()[-3000:] if log.exists() else "", file=sys.stderr)
            virtual.stop()
            host.stop()
