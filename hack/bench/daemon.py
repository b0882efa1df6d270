"""The daemon in a process of its own, as a user starts it, and its CPU, memory and requests."""

import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.planes import find_programs
from hack.ports import free_port
from kube_envtest import ControlPlane, start_all

#: A process is idle if it used less CPU than this for this long.
STILL_SECONDS, STILL_CPU_SECONDS = 0.6, 0.002
#: With a process id, the number of that process's CPU clock: clock_getcpuclockid(3).
_CPU_CLOCK = 2
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.e+-]+)$")


#: The command installed beside the running Python.
SYNCER = str(Path(sys.executable).with_name("syncer"))


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

    @property
    def file(self) -> Path:
        """Its configuration file, written when it starts."""
        return self.folder / "syncer.yaml"

    @property
    def socket(self) -> Path:
        """Its control socket: in its folder, unless the path is too long (107 bytes)."""
        near = self.folder / "control.sock"
        return near if len(str(near)) < 100 else Path(tempfile.gettempdir()) / f"vsyncer-{self.port}.sock"

    @property
    def log(self) -> Path:
        """Its log, over all its lives."""
        return self.folder / "syncer.log"

    def write(self) -> None:
        """Write the configuration file."""
        places = {
            "metrics": {"address": f"127.0.0.1:{self.port}"},
            "health": {"address": f"127.0.0.1:{self.health}"},
            "control": {"socket": str(self.socket)},
        }
        self.file.write_text(yaml.safe_dump({**self.config, **places}, sort_keys=False))

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.spawn()
        self.wait_ready()

    def spawn(self) -> None:
        """Start it without waiting."""
        self.write()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self.command, "--config", str(self.file)], stdout=log, stderr=log)

    def wait_ready(self) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                raise SystemExit(f"the daemon ended:\n{self.log.read_text()[-4000:]}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)  # each probe costs the daemon half a millisecond
        raise SystemExit("the daemon did not become ready")

    def wait_still(self) -> float:
        """Wait until it uses no CPU, and return since when, in terms of `time.perf_counter`.

        It gets no requests meanwhile: a scrape of its metrics costs it 7 ms.
        """
        used, since = self.cpu(), time.perf_counter()
        while time.perf_counter() - since < STILL_SECONDS:
            time.sleep(0.05)
            now = self.cpu()
            if now - used > STILL_CPU_SECONDS:
                used, since = now, time.perf_counter()
        return since

    def stop(self) -> None:
        """Stop it as Kubernetes does."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self.process is not None
        return self.process.pid

    def cpu(self) -> float:
        """Return the CPU seconds that it has used, user and system."""
        return time.clock_gettime((~self.pid << 3) | _CPU_CLOCK)

    def rss(self) -> float:
        """Return the resident memory, in MB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def samples(self) -> dict[tuple[str, str], float]:
        """Return all metrics by name and labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
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
        active = sum(value for (name, _), value in samples.items() if name == "controller_runtime_active_workers")
        return waiting + active

    def total(self, name: str) -> float:
        """Return the sum of a metric over all labels."""
        return sum(value for (found, _), value in self.samples().items() if found == name)


@contextmanager
def two_planes() -> Iterator[tuple[ControlPlane, ControlPlane, Path]]:
    """Yield a virtual and a host cluster, and a folder for the daemon; repeat the end of its log at
    the end.
    """
    found = find_programs()
    virtual, host = ControlPlane("virtual", programs=found), ControlPlane("host", programs=found)
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as folder:
        start_all(virtual, host)
        try:
            yield virtual, host, Path(folder)
        finally:
            log = Path(folder) / "syncer.log"
            print(log.read_text()[-3000:] if log.exists() else "", file=sys.stderr)
            virtual.stop()
            host.stop()
