"""The interface of a place where the programs of a control plane run: processes, or containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files, ports and options of a control plane."""

    folder: Path
    port: int
    etcd_port: int
    service_range: str
    controllers: str
    apiserver_flags: tuple[str, ...]
    #: Where kubelets and pods reach the API server; empty if there are none.
    node_address: str = ""

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://{self.node_address or '127.0.0.1'}:{self.port}"

    @property
    def etcd_url(self) -> str:
        """The address of etcd, for its clients."""
        return f"http://127.0.0.1:{self.etcd_port}"


class Program(Protocol):
    """A running program."""

    name: str

    @property
    def pid(self) -> int:
        """The process id on this machine."""

    def alive(self) -> bool:
        """Return True if it runs or is frozen."""

    def freeze(self) -> None:
        """Freeze it without its notice, and wait until it no longer runs."""

    def thaw(self) -> None:
        """Thaw it."""

    def kill(self) -> None:
        """Kill it, frozen or not, and wait until it is gone."""

    def last_lines(self) -> str:
        """Return the end of its log."""


class Programs(Protocol):
    """A set of programs that can be started."""

    source: str
    """Their origin, for people."""
    kubectl: tuple[str, ...]
    """The command line of kubectl; empty if there is none."""

    def has(self, name: str) -> bool:
        """Return True if the program exists. A missing etcd is a part of the API server."""

    def tool(self, name: str) -> tuple[str, ...]:
        """Return the command line of `etcdctl` or `etcdutl` on this machine; empty if there is none."""

    def start(self, name: str, layout: Layout) -> Program | None:
        """Start it, without waiting until it is ready. None if it is a part of a running one."""

    def clean(self, layout: Layout) -> None:
        """Remove the leftovers of a plane's programs outside its folder."""
