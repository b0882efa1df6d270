"""What a control plane asks of the place where its programs run: processes here, or containers."""

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
    """Where one control plane keeps its files and listens, and what its programs are told beyond that."""

    folder: Path
    port: int
    etcd_port: int
    service_range: str
    controllers: str
    apiserver_flags: tuple[str, ...]

    @property
    def url(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def etcd_url(self) -> str:
        """Address of etcd, for its clients."""
        return f"http://127.0.0.1:{self.etcd_port}"


class Program(Protocol):
    """One running program."""

    name: str

    @property
    def pid(self) -> int:
        """Process id on this machine."""

    def alive(self) -> bool:
        """Whether it runs (or is frozen)."""

    def freeze(self) -> None:
        """Stop it from running, without its knowing; returns when it no longer runs."""

    def thaw(self) -> None:
        """Let it run again."""

    def kill(self) -> None:
        """End it at once, frozen or not; returns when it is gone."""

    def last_lines(self) -> str:
        """The end of its log."""


class Programs(Protocol):
    """A set of programs that can be started."""

    source: str
    """Where they come from, for people."""
    kubectl: tuple[str, ...]
    """How kubectl is called; empty where there is none."""

    def has(self, name: str) -> bool:
        """Whether the program is there; an etcd that isn't is a part of the API server."""

    def start(self, name: str, layout: Layout) -> Program | None:
        """Start it, without waiting until it is ready; None where it is a part of one that runs already."""

    def clean(self, layout: Layout) -> None:
        """Remove what ended programs of the plane left beyond its folder."""
