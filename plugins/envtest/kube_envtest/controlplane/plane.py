"""A real cluster for tests: etcd, kube-apiserver and, optionally, kube-controller-manager and
kube-scheduler.
"""

from __future__ import annotations

import atexit
import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kube_envtest.controlplane import http
from kube_envtest.controlplane.access import Access
from kube_envtest.controlplane.errors import NotAvailable, StartFailed
from kube_envtest.controlplane.flags import runs
from kube_envtest.controlplane.folder import Folder, free_ports
from kube_envtest.controlplane.programs import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    SCHEDULER,
    Layout,
    Program,
    Programs,
)
from kube_envtest.controlplane.sources import find

POLL_SECONDS = 0.05
START_SECONDS = 120.0
BASICS = ("/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system")
"""/readyz can be ok before the first namespaces exist."""


class ControlPlane(Access):
    """One cluster on free loopback ports, with certificates, tokens, RBAC and data of its own.

    ::

        with ControlPlane("host") as host:
            host.kubectl("create", "namespace", "shop")

    Users besides `admin` (system:masters) are `daemon`, `alice` and `nobody`; they have only the rights of their roles
    them. It ends with `stop()`, at the end of the `with`, at exit, and when this process is killed.
    """

    def __init__(
        self,
        name: str = "cluster",
        *,
        programs: Programs | None = None,
        controllers: str = "",
        scheduler: bool = False,
        apiserver_flags: Sequence[str] = (),
        service_range: str = "10.96.0.0/16",
        node_address: str = "",
        names: Sequence[str] = (),
    ) -> None:
        """Create a cluster; `start` starts it.

        Args:
            name: The name in messages.
            programs: Where to run the programs; by default `find()` decides.
            controllers: The `--controllers` list of a kube-controller-manager, such as "*" for all;
                empty for none. Without the serviceaccount controller, the ServiceAccount admission
                plugin is off: pods need no ServiceAccount and get no token volume.
            scheduler: True to run a kube-scheduler.
            apiserver_flags: Further flags of the kube-apiserver; they win over ours.
            service_range: The range of ClusterIPs, as a CIDR; two with a comma, one of each family,
                for dual-stack Services.
            node_address: An address of this machine at which kubelets and pods reach the API
                server, which then authorizes nodes, reaches kubelets and proxies aggregated APIs;
                empty: only this machine reaches it.
            names: Further DNS names and IP addresses in the API server's certificate, such as those of
                a load balancer in front of it.

        Raises:
            NotAvailable: There is no real API server here; the message says how to get one.
        """
        super().__init__(name, programs or find())
        self._options = (service_range, controllers, tuple(apiserver_flags), node_address)
        self._names = tuple(names)
        self._later = [CONTROLLER_MANAGER] * bool(controllers) + [SCHEDULER] * scheduler
        self._folder: Folder | None = None
        self._running: dict[str, Program] = {}
        if node_address and not self._programs.has(ETCD):
            raise NotAvailable(f"{self.source} can't take nodes: the multi-call binary can (see find)")
        if missing := [component for component in self._later if not self._programs.has(component)]:
            raise NotAvailable(f"no {', '.join(missing)} in {self.source}: the multi-call binary has it (see find)")

    @property
    def controllers(self) -> str:
        """The `--controllers` list of its kube-controller-manager; empty if there is none."""
        return self._options[1]

    def launch(self) -> None:
        """Start etcd and the API server without waiting for them; `wait_ready` does the rest."""
        self._check_stopped()
        self._folder = Folder()
        atexit.register(self.stop)
        port, etcd_port = free_ports(2)
        self._running_layout = Layout(self._folder.path, port, etcd_port, *self._options)
        self._write_identity()
        for name in (ETCD, APISERVER):
            if self._programs.has(name):
                self._start(name)

    def start(self) -> None:
        """Start the cluster, and wait until it is ready.

        Raises:
            StartFailed: A program ended or wasn't ready in time. Nothing is left running.
        """
        start_all(self)

    def wait_ready(self, timeout: float = START_SECONDS) -> None:
        """Wait until the cluster is ready, and start the programs that need a ready API server.

        Args:
            timeout: The maximum time, in seconds.

        Raises:
            StartFailed: A program ended or wasn't ready in time.
        """
        deadline = time.monotonic() + timeout
        for path in BASICS:
            self._wait_for(path, deadline)
        self.kubeconfig()
        for name in self._later:
            if name not in self._running:
                self._start(name)
        if runs(self._layout.controllers, "serviceaccount-controller"):
            self._wait_for("/api/v1/namespaces/default/serviceaccounts/default", deadline)

    def stop(self) -> None:
        """Stop all programs, etcd last, and remove all files. Does nothing if nothing runs."""
        for name in (SCHEDULER, CONTROLLER_MANAGER, APISERVER, ETCD):
            if program := self._running.pop(name, None):
                program.kill()
        if self._running_layout is not None:
            self._programs.clean(self._running_layout)
        if self._folder is not None:
            self._folder.remove()
        self._folder = self._running_layout = None
        atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def apiserver_pid(self) -> int:
        """The process id of the API server."""
        return self._apiserver.pid

    @property
    def pids(self) -> dict[str, int]:
        """Return the process ids of all running programs, by name."""
        return {name: program.pid for name, program in self._running.items()}

    def kill_apiserver(self) -> None:
        """Kill the API server (SIGKILL); etcd and the data stay."""
        self._apiserver.kill()
        del self._running[APISERVER]

    def restart_apiserver(self) -> None:
        """Kill the API server if it runs, start it again on the same port, and wait until it is ready.

        It starts with an empty watch cache: a watch from a resourceVersion older than the newest
        one of that resource gets an in-stream ERROR 410. Lists at an old resourceVersion and
        `continue` tokens still work, as etcd has them.
        """
        if APISERVER in self._running:
            self.kill_apiserver()
        self._start(APISERVER)
        self.wait_ready()

    def freeze(self) -> None:
        """Freeze the API server (SIGSTOP): connections stay open and nothing is answered."""
        self._apiserver.freeze()

    def thaw(self) -> None:
        """Thaw a frozen API server."""
        self._apiserver.thaw()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the API server while the block runs."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def compact_etcd(self) -> int:
        """Compact etcd, and return its latest revision, the only one left.

        A running API server doesn't show it: it answers watches and lists of the past from its
        memory. After `restart_apiserver`, watches from an old resourceVersion (in the stream),
        lists at an old one and `continue` tokens (as HTTP status) all get 410.

        Raises:
            NotAvailable: The cluster has no etcd (k3s).
        """
        self._check_etcd()
        return http.compact(self._layout.etcd_url)

    def kill_etcd(self) -> None:
        """Kill etcd (SIGKILL); the API server keeps running, and soon reports that it isn't ready.

        Raises:
            NotAvailable: The cluster has no etcd (k3s).
        """
        self._check_etcd()
        self._running.pop(ETCD).kill()

    def restart_etcd(self) -> None:
        """Kill etcd if it runs, start it again with its data, and wait until the API server is
        ready again.
        """
        if ETCD in self._running:
            self.kill_etcd()
        self._start(ETCD)
        self.wait_ready()

    def save_etcd(self, file: Path) -> None:
        """Save a snapshot of etcd in a file, as `etcdctl snapshot save` does.

        Raises:
            NotAvailable: There is no etcdctl.
        """
        self._tool("etcdctl", f"--endpoints={self._layout.etcd_url}", "snapshot", "save", str(file))

    def replace_etcd(self, snapshot: Path | None) -> None:
        """Kill all programs, and start them with the data of a snapshot; None for an empty etcd, as after
        the loss of a disk.

        The revision is raised, and the past is compacted, as etcd's guide says for Kubernetes: no watch
        resumes in a history that is gone.
        https://etcd.io/docs/v3.6/op-guide/recovery/#restoring-with-revision-bump

        Raises:
            NotAvailable: There is no etcdutl, or no etcd of its own (k3s).
        """
        self._check_etcd()
        for name in (SCHEDULER, CONTROLLER_MANAGER, APISERVER, ETCD):
            if program := self._running.pop(name, None):
                program.kill()
        data = self.folder / "etcd"
        shutil.rmtree(data)
        if snapshot is not None:
            options = [f"--data-dir={data}", "--bump-revision=1000000000", "--mark-compacted"]
            self._tool("etcdutl", "snapshot", "restore", str(snapshot), *options)
        for name in (ETCD, APISERVER):
            self._start(name)
        self.wait_ready()

    def _tool(self, name: str, *arguments: str) -> None:
        command = self._programs.tool(name)
        if not command:
            raise NotAvailable(f"no {name} in {self.source}")
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise AssertionError(f"{self.name}: {name} {' '.join(arguments)}: {done.stderr.strip()}")

    def fill_disk(self) -> None:
        """Make etcd behave as if its quota was exceeded, until `free_disk`.

        Reads work, and deletions of objects without finalizers; creations and changes get HTTP
        status 500.

        Raises:
            NotAvailable: The cluster has no etcd (k3s).
        """
        self._check_etcd()
        http.no_space(self._layout.etcd_url, alarm=True)

    def free_disk(self) -> None:
        """End the effect of `fill_disk`."""
        http.no_space(self._layout.etcd_url, alarm=False)

    @property
    def _apiserver(self) -> Program:
        if APISERVER not in self._running:
            raise RuntimeError(f"{self.name}: the API server is not running")
        return self._running[APISERVER]

    def _check_etcd(self) -> None:
        if not self._programs.has(ETCD):
            raise NotAvailable(f"{self.source} has no etcd of its own, which this needs")

    def _check_stopped(self) -> None:
        if self._folder is not None:
            raise RuntimeError(f"{self.name} is already running")

    def _start(self, name: str) -> None:
        if program := self._programs.start(name, self._layout):
            self._running[name] = program

    def _wait_for(self, path: str, deadline: float) -> None:
        """Poll the path until it returns 200."""
        while (answer := self._answer(path)) != "200":
            self._check_alive()
            if time.monotonic() > deadline:
                raise StartFailed(f"{self.name}: {path} isn't ready: {answer}{self._log_of(APISERVER)}")
            time.sleep(POLL_SECONDS)

    def _answer(self, path: str) -> str:
        try:
            return str(self.request("GET", path, timeout=5.0)[0])
        except OSError as error:
            return str(error)

    def _check_alive(self) -> None:
        for name, program in self._running.items():
            if not program.alive():
                raise StartFailed(f"{self.name}: {name} ended{self._log_of(name)}")

    def _log_of(self, name: str) -> str:
        return f"; its log ends with:\n{self._running[name].last_lines()}" if name in self._running else ""


def start_all(*planes: ControlPlane) -> None:
    """Start several clusters at the same time, and wait until all are ready.

    Raises:
        StartFailed: One of them failed; none is left running.
    """
    for plane in planes:
        plane._check_stopped()
    try:
        for plane in planes:
            plane.launch()
        for plane in planes:
            plane.wait_ready()
    except BaseException:
        for plane in planes:
            plane.stop()
        raise
