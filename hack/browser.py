"""A headless Chromium, for the page: what it builds, and pictures of it."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hack.commands import run

#: Names of the program; BROWSER names another one.
NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Milliseconds of the page's own time, which passes as soon as nothing is awaited.
BUDGET = 20_000
#: Seconds, after which a browser that hangs is ended.
SECONDS = 180.0


def found() -> str | None:
    """Return the program; None if there is none (Debian: ``apt-get install chromium``)."""
    for name in (os.environ.get("BROWSER", ""), *NAMES):
        if name and (path := shutil.which(name)):
            return path
    return None


def dumped(program: str, url: str, *, budget: int = BUDGET) -> str:
    """Return the HTML of what a page has built after so many milliseconds of its time."""
    flag = f"--virtual-time-budget={budget}"
    return _run(program, [flag, "--dump-dom", url])


def picture(
    program: str, url: str, file: Path, *, size: tuple[int, int], budget: int = BUDGET
) -> None:
    """Write a picture of a page as PNG, so many pixels wide and high."""
    width, height = size
    flags = [
        f"--virtual-time-budget={budget}",
        f"--window-size={width},{height}",
        "--hide-scrollbars",
        f"--screenshot={file}",
    ]
    _run(program, [*flags, url])


def command(program: str, profile: str) -> list[str]:
    """Return the command of a browser with a profile of its own, without an address."""
    flags = ["--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # which root can't have; only our own page is opened
    return [program, *flags, f"--user-data-dir={profile}"]


def _run(program: str, arguments: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="vsyncer-browser-") as profile:
        end = run([*command(program, profile), *arguments], seconds=SECONDS)
    if end.returncode:
        raise RuntimeError(f"{program} failed:\n{end.stderr[-2000:]}")
    return str(end.stdout)
