"""The files, the addresses and the control group of a node."""

import hashlib
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: This checkout; each has a node of its own.
ROOT = Path(__file__).parents[2]
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class NodeSite:
    """The place of a checkout's node. Nothing of a node is elsewhere, but for its processes."""

    name: str

    @classmethod
    def here(cls) -> "NodeSite":
        """Return that of this checkout."""
        return cls(hashlib.sha256(str(ROOT).encode()).hexdigest()[:8])

    @classmethod
    def beside(cls) -> "NodeSite":
        """Return a second one of this checkout, with other addresses."""
        return cls(f"{int(cls.here().name, 16) ^ 1:08x}")

    @property
    def folder(self) -> Path:
        """The folder of all files, on a disk that overlays can lie on."""
        return Path("/var/tmp") / f"vsyncer-node-{self.name}"

    @property
    def failed(self) -> Path:
        """The folder with the logs of the last start that failed."""
        return self.folder.with_name(f"{self.folder.name}.failed")

    @property
    def link(self) -> str:
        """The network interface on the machine's side of the cable to the node."""
        return f"vsn{self.name}"

    @property
    def addresses(self) -> tuple[str, str]:
        """The machine's and the node's address on the cable: a /30 of TEST-NET-1 (RFC 5737), which
        no network uses.
        """
        first = 4 * (int(self.name, 16) % 64)
        return f"192.0.2.{first + 1}", f"192.0.2.{first + 2}"

    @property
    def cgroup(self) -> str:
        """The control group of the kubelet and of all pods."""
        return f"/vsyncer-node-{self.name}"

    @property
    def state(self) -> Path:
        """The file that exists while the node is ready."""
        return self.folder / "state.json"

    def pid_file(self, program: str) -> Path:
        """Return the file with the process id of a program, such as ``kubelet``,
        as the node numbers it.
        """
        return self.folder / f"{program}.pid"

    def ready(self) -> dict[str, Any] | None:
        """Return the description that the node wrote when it was ready; None before."""
        try:
            found: dict[str, Any] = json.loads(self.state.read_text())
        except FileNotFoundError:
            return None
        return found

    def make_cgroups(self) -> None:
        """Make the control group, in each hierarchy of version 1 or in the only one
        of version 2.
        """
        for root in hierarchies():
            group = root / self.cgroup.lstrip("/")
            group.mkdir(exist_ok=True)
            for name in (
                "cpuset.cpus",
                "cpuset.mems",
            ):  # empty in a new group of version 1, so nothing could run in it
                if (
                    (root / name).exists()
                    and (group / name).exists()
                    and not (group / name).read_text().strip()
                ):
                    (group / name).write_text((root / name).read_text())

    def remove(self) -> None:
        """Remove files and control groups; the processes have ended.

        Raises:
            OSError: A control group is still in use after some seconds.
        """
        for root in hierarchies():
            remove_group(root / self.cgroup.lstrip("/"))
        if self.state.exists():
            shutil.rmtree(self.failed, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def hierarchies() -> list[Path]:
    """Return the roots of control groups: of version 2,
    or those of version 1 that the kubelet uses.
    """
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [path for path in _CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def remove_group(group: Path) -> None:
    """Remove a control group with those in it, if it is there.

    Raises:
        OSError: It is still in use after some seconds.
    """
    if not group.exists():
        return
    for below in sorted(group.rglob("*"), key=lambda path: -len(path.parts)):
        if below.is_dir():
            _rmdir(below)
    _rmdir(group)


def _rmdir(group: Path) -> None:
    """Remove a control group; the kernel may take a moment for its last process."""
    for attempt in range(50):
        try:
            group.rmdir()
        except OSError:
            if attempt == 49:
                raise
            time.sleep(0.1)
        else:
            return
