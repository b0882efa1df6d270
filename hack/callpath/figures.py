"""Turn recorded steps into figures, and into a readable tree."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from statistics import median
from typing import Any

from hack.callpath.probe import Step

#: The column of the tree in which the place of a step begins.
LOCATION_COLUMN = 72


def calls(steps: Iterable[Step]) -> int:
    """Return the number of calls, without resumptions."""
    return sum(not step.resumed for step in steps)


def shortest(paths: Sequence[Sequence[Step]]) -> Sequence[Step]:
    """Return the path with the fewest calls, without occasional other work of the daemon."""
    return min(paths, key=calls)


def figures(paths: Sequence[Sequence[Step]]) -> dict[str, Any]:
    """Return the figures of the shortest path, and the number of calls of the others."""
    call_path = shortest(paths)
    counts = sorted(calls(one) for one in paths)
    return {
        "calls": calls(call_path),
        "files": len({step.file for step in call_path}),
        "resumptions": sum(step.resumed for step in call_path),
        "spread": {
            "objects": len(counts),
            "min": counts[0],
            "median": median(counts),
            "max": counts[-1],
        },
        "layers": _by(call_path, depth=1),
        "folders": _by(call_path, depth=2),
    }


def _by(call_path: Iterable[Step], *, depth: int) -> dict[str, dict[str, int]]:
    """Return calls and files by folder, named by at most ``depth`` parts of its path."""
    files: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for step in call_path:
        folder = "/".join(PurePath(step.file).parent.parts[:depth]) or "."
        files.setdefault(folder, set()).add(step.file)
        counts[folder] += not step.resumed
    return {name: {"calls": counts[name], "files": len(files[name])} for name in sorted(files)}


def ratios(this: dict[str, Any], other: dict[str, Any]) -> dict[str, float | None]:
    """Return the figures of this checkout divided by those of the other;
    None for a division by zero.
    """
    names = ("calls", "files", "resumptions")
    return {name: round(this[name] / other[name], 3) if other[name] else None for name in names}


def tree(call_path: Iterable[Step]) -> Iterator[str]:
    """Yield a line for each step, indented below its caller, with the places of definition and
    call.

    A resumption begins with ``~``; functions called by asyncio have no caller.
    """
    for step in call_path:
        name = f"{'  ' * step.depth}{'~ ' if step.resumed else ''}{step.function}"
        caller = f"  from syncer/{step.caller}:{step.caller_line}" if step.caller else ""
        yield f"{name:<{LOCATION_COLUMN}}  syncer/{step.file}:{step.line}{caller}"
