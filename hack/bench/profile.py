"""CPU profiles of the daemon: a table and the stacks of each phase."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.bench import sampler
from hack.bench.phases import Figures

#: Rows of a table.
TOP = 25
#: The part of a path that depends on the place of installation.
_INSTALLED_IN = re.compile(r"( \()/.*/(?:site-packages/|lib/python[\d.]+/|(?=syncer/))")

#: How often each stack was sampled; frames from the outermost to the innermost.
Stacks = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Profile:
    """Writes the profiles of phases to a folder, which is created."""

    folder: Path
    #: The figures of the phases so far, each with its beginning and end by `time.perf_counter`.
    phases: list[tuple[Figures, float, float]] = field(default_factory=list)

    def command(self, syncer: str) -> Sequence[str]:
        """Return a command that runs this `syncer` and samples it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("*.json"):
            old.unlink()
        return (str(Path(syncer).with_name("python")), "-I", sampler.__file__, str(self.folder))

    def write(self) -> None:
        """Write table and stacks of each phase; the daemon must have ended."""
        found = [json.loads(path.read_text()) for path in self.folder.glob("*.json")]
        for figures, begin, end in self.phases:
            stacks = Stacks()
            for samples in found:
                stacks += stacks_of(samples, begin, end)
            path = self.folder / figures["phase"]
            lines = table(stacks, figures["cpu_ms_per_object"] * 1000)
            path.with_suffix(".txt").write_text("\n".join([json.dumps(figures), "", *lines, ""]))
            folded = (f"{';'.join(stack)} {count}\n" for stack, count in stacks.items())
            path.with_suffix(".stacks").write_text("".join(folded))


def stacks_of(found: Any, begin: float, end: float) -> Stacks:
    """Return the stacks that a sampler recorded from `begin` to `end`."""
    counts = Counter(number for at, number in found["samples"] if begin <= at <= end)
    return Stacks({tuple(map(short, found["stacks"][one])): count for one, count in counts.items()})


def short(frame: str) -> str:
    """Return a frame with its path from the package on: `put (syncer/store.py:10)`."""
    return _INSTALLED_IN.sub(r"\1", frame)


def table(stacks: Mapping[tuple[str, ...], int], cpu_us: float) -> Iterator[str]:
    """Yield a table of functions by the time spent in themselves.

    `cpu_us` is the CPU time of an object in microseconds, which is shared out.
    """
    own = Counter[str]()
    total = Counter[str]()
    for stack, count in stacks.items():
        own[stack[-1]] += count
        for frame in set(stack):
            total[frame] += count
    samples = max(own.total(), 1)
    yield f"{samples} samples"
    yield f"{'own %':>6} {'own µs':>7} {'total %':>8} {'total µs':>8}  function"
    for frame, count in own.most_common(TOP):
        part = count / samples
        whole = total[frame] / samples
        figures = f"{100 * part:6.1f} {cpu_us * part:7.1f} {100 * whole:8.1f} {cpu_us * whole:8.1f}"
        yield f"{figures}  {frame}"
