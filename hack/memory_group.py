"""A control group with a limit of memory, as a container has one: the kernel ends what is over."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.realnode.node_site import hierarchies, remove_group


class NoGroups(Exception):
    """This process may make no control group with a limit of memory."""


@dataclass(frozen=True)
class MemoryGroup:
    """A control group, of version 1 or 2."""

    folder: Path
    #: The file with its limit.
    limit: Path

    def command(self, *command: str) -> tuple[str, ...]:
        """Return a command that runs another one in the group."""
        return ("sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *command)

    def killed(self) -> int:
        """Return how many processes the kernel has ended for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            file = self.folder / name
            if file.exists():
                counts = dict(line.split() for line in file.read_text().splitlines())
                return int(counts["oom_kill"])
        raise NoGroups(f"{self.folder} counts no killed processes")


@contextmanager
def memory_group(most: int) -> Iterator[MemoryGroup]:
    """Have a control group with so many bytes of memory during the block.

    Raises:
        NoGroups: This process may make none.
    """
    for root in hierarchies():
        folder = root / f"vsyncer-limits-{os.getpid()}"
        names = ("memory.max",) if root.name == "cgroup" else ("memory.limit_in_bytes",)
        if root.name not in ("cgroup", "memory"):
            continue
        try:
            folder.mkdir()
            limit = folder / names[0]
            limit.write_text(str(most))
        except OSError as error:
            remove_group(folder)
            raise NoGroups(f"a control group with a limit of memory needs root: {error}") from error
        try:
            yield MemoryGroup(folder, limit)
        finally:
            remove_group(folder)
        return
    raise NoGroups("there are no control groups for memory")
