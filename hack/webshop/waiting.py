"""Output of the demo, and blocking calls beside the event loop that its clusters may run in."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hack.commands import SECONDS, complaint

T = TypeVar("T")


class Failed(Exception):
    """The demo can't go on; the message gives the action that helps."""


def say(*lines: str) -> None:
    """Print lines at once, also through a pipe."""
    print("\n".join(lines), flush=True)


async def in_thread(function: Callable[[], T]) -> T:
    """Call a blocking function in a thread.

    If cancelled, it ends only after the thread, so that nothing goes on unseen.
    """
    running = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


async def output_of(command: Sequence[str | Path], environ: dict[str, str]) -> str:
    """Run a program and return its output.

    Raises:
        Failed: It fails, or takes more than ten minutes; the message has its output.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            assert process.stdout is not None
            while chunk := await process.stdout.read(1 << 16):
                output += chunk
            await process.wait()
    except TimeoutError as late:
        raise Failed(complaint(command, SECONDS, bytes(output))) from late
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = output.decode(errors="replace").strip()
    if process.returncode:
        raise Failed(f"{' '.join(map(str, command))} failed:\n{text}")
    return text
