"""Control-plane programs as processes of this machine, none of which outlives this process."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue

from kube_envtest.controlplane import flags
from kube_envtest.controlplane.programs import Layout, Program

LAUNCHER = Path(__file__).with_name("launch.py")
LOG_LINES = 12

Start = Callable[[], "subprocess.Popen[bytes]"]
Order = tuple[Start, "Future[subprocess.Popen[bytes]]"]


class Process:
    """A running program."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Return True if it runs or is frozen."""
        return self._process.poll() is None

    def freeze(self) -> None:
        """Send SIGSTOP, and wait until the kernel reports the process stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Send SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL, which a stopped process obeys, too."""
        self._process.kill()
        self._process.wait()

    def last_lines(self) -> str:
        """Return the end of its log."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])


class Processes:
    """Programs that are files on this machine."""

    def __init__(self, source: str, commands: Mapping[str, tuple[str, ...]]) -> None:
        self.source = source
        self.kubectl = commands.get("kubectl", ())
        self._commands = dict(commands)

    def has(self, name: str) -> bool:
        """Return True if the program exists."""
        return name in self._commands

    def tool(self, name: str) -> tuple[str, ...]:
        """Return the command line of `etcdctl` or `etcdutl`; empty if there is none."""
        return self._commands.get(name, ())

    def start(self, name: str, layout: Layout) -> Program:
        """Start the program with its log in the layout's folder."""
        log = layout.folder / f"{name}.log"
        command = [*self._commands[name], *flags.ARGUMENTS[name](layout)]
        return Process(name, spawn(command, log, layout.folder), log)

    def clean(self, layout: Layout) -> None:
        """Do nothing: a process leaves nothing behind."""


def spawn(command: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that ends with this one; its output is appended to the log.

    The kernel ends it when the *thread* that started it ends, so a thread that never ends starts
    them all.
    """
    future: Future[subprocess.Popen[bytes]] = Future()
    _spawner(os.getpid()).put((lambda: _open(command, log, folder), future))
    return future.result()


def _open(command: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    bound, tell = os.pipe()
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(tell)]
    with log.open("ab") as output, os.fdopen(bound, "rb") as waiting:
        try:
            process = subprocess.Popen(
                [*launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                pass_fds=[tell],
                start_new_session=True,  # Ctrl-C is for the test, which then stops its clusters in order
            )
        finally:
            os.close(tell)
        waiting.read()  # until the launcher closes its end: a process frozen earlier would outlive us
    return process


@functools.cache
def _spawner(_pid: int) -> SimpleQueue[Order]:
    """Return the queue to this process's starter thread; a forked child gets a thread of its own."""
    orders: SimpleQueue[Order] = SimpleQueue()
    threading.Thread(target=_serve, args=(orders,), name="controlplane-spawner", daemon=True).start()
    return orders


def _serve(orders: SimpleQueue[Order]) -> None:
    while True:
        start, future = orders.get()
        try:
            future.set_result(start())
        except OSError as error:
            future.set_exception(error)
