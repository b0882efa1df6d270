"""Temporary folders and loopback ports for control planes."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import random
import shutil
import socket
import tempfile
from pathlib import Path

PREFIX = "kube-envtest-"
#: The first port for a control plane, and the one after the last.
PORTS = 20000, 30000

#: The UDP ports that this process holds.
_reserved_ports = contextlib.ExitStack()
atexit.register(_reserved_ports.close)


class Folder:
    """A temporary folder, locked while this process lives, so that a later process can remove those
    of killed ones.
    """

    def __init__(self) -> None:
        remove_orphans()
        hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
        self._lock = _lock(hidden)
        # Renamed only when locked, so that a folder in use is never visible without its lock.
        self.path = hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))

    def remove(self) -> None:
        """Remove the folder with its contents, and the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_orphans() -> None:
    """Remove folders whose process is gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if is_orphan(path):
            shutil.rmtree(path, ignore_errors=True)


def is_orphan(path: Path) -> bool:
    """Return True if the process that made a control plane's folder is gone, or the folder itself is."""
    try:
        lock = _lock(path)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    if lock is None:
        return False
    os.close(lock)
    return True


def _lock(path: Path) -> int | None:
    """Lock a folder; return None if another process has locked it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def free_ports(count: int) -> list[int]:
    """Return unused loopback ports, which no other caller gets while this process lives.

    A port that isn't listened to yet looks free to others, and who draws by chance sooner or later draws
    it. So the UDP port of the same number is held, which nothing else here uses.

    They are below the range from which the kernel takes ports for outgoing connections: otherwise a
    client could get the port of an API server that is being restarted, or even connect to itself
    through it.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(*PORTS)
        if _is_free(port) and _hold(port):
            ports.append(port)
    return ports


def _hold(port: int) -> bool:
    """Hold the UDP port of this number; return False if another process does."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        holder.bind(("127.0.0.1", port))
    except OSError:
        holder.close()
        return False
    _reserved_ports.enter_context(holder)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
