"""How the demo speaks, and does what blocks beside the event loop that its clusters may live in."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class Failed(Exception):
    """The demo can't go on; the message says what to do."""


def say(*lines: str) -> None:
    """Tell the user at once, also through a pipe."""
    print("\n".join(lines), flush=True)


async def in_thread(function: Callable[[], T]) -> T:
    """Call what blocks, in a thread; cancelled, it ends only after the thread has, so nothing goes on behind it."""
    running = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


async def output_of(command: Sequence[str | Path], environ: dict[str, str]) -> str:
    """Run a program and return what it says; :class:`Failed` with that where it fails."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = said.decode(errors="replace").strip()
    if process.returncode:
        raise Failed(f"{' '.join(map(str, command))} failed:\n{text}")
    return text
