"""A program that hangs is ended, and named with its last lines."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from hack.commands import Hung, line_of, run
from hack.webshop.waiting import Failed, output_of


def test_output_of_a_program_is_returned_whether_it_fails_or_not() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_program_that_hangs_is_ended_and_named() -> None:
    with pytest.raises(Hung, match=r"^sleep 3600: not done after 0 s$"):
        run(["sleep", "3600"], seconds=0)


def test_program_that_hangs_is_named_with_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 60, output=b"first\nlast\n", stderr=b"a complaint\n")

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(Hung, match="its output ends with:\nfirst\nlast\na complaint"):
        run(["docker", "build"], seconds=60)


def test_program_that_writes_no_line_is_ended_and_named() -> None:
    with subprocess.Popen(["sleep", "3600"], stdout=subprocess.PIPE, text=True) as process:
        with pytest.raises(Hung, match=r"^sleep 3600: .* wrote none in 0 s"):
            line_of(process, process.stdout, seconds=0)
        assert process.wait(600) < 0


def test_line_of_a_running_program_is_returned() -> None:
    with subprocess.Popen(
        ["sh", "-c", "echo one; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        assert line_of(it, it.stdout) == "one\n"
        it.communicate()


def test_program_of_the_demo_that_hangs_is_ended_and_named_with_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over when it has said something, which the test hears by a pipe."""
    file = tmp_path / "output"
    os.mkfifo(file)
    script = f"echo one; echo two; echo >{file}; exec sleep 3600"

    async def scenario() -> None:
        time = asyncio.timeout(None)
        monkeypatch.setattr(asyncio, "timeout", lambda _: time)
        running = asyncio.create_task(output_of(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}))
        await asyncio.to_thread(file.read_text)
        for _ in range(5):  # until the loop has read it, too
            await asyncio.sleep(0.01)
        time.reschedule(0)
        with pytest.raises(Failed, match=r"(?s)^sh -c .*: not done after 600 s\nits output ends with:\none\ntwo$"):
            await running

    asyncio.run(scenario())
