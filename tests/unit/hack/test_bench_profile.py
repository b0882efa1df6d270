"""A profile shows which functions of the daemon used the CPU time of a phase."""

import ctypes
import json
import signal
import time
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from hack.bench.profile import Profile, short, stacks_of, table
from hack.bench.sampler import Sampler

#: The number of signals that a function gets.
TIMES = 5
#: Seconds, after which a test gives up.
PATIENCE = 120.0


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no signal come but those that a test sends."""
    monkeypatch.setattr("hack.bench.sampler.INTERVAL", 3600.0)


def burn() -> None:
    """Get the signals in Python."""
    for _ in range(TIMES):
        signal.raise_signal(signal.SIGPROF)


class _InC:
    """Gets a signal when it is added: in C, which goes on without a look at signals."""

    __add__ = ctypes.CDLL(None)["raise"]


def burn_in_c() -> None:
    """Get the signals in code that is written in C, and then begin another function."""
    one, number = _InC(), int(signal.SIGPROF)
    for _ in range(TIMES):
        one + number
        begin()


def begin() -> None:
    """Do nothing."""


def sampled(tmp_path: Path, function: Any) -> Any:
    """Return what a sampler has written about a function."""
    sampler = Sampler()
    sampler.start()
    try:
        function()
    finally:
        sampler.stop()
    sampler.write(tmp_path / "found.json")
    return json.loads((tmp_path / "found.json").read_text())


def innermost(found: Any) -> list[str]:
    """Return the innermost function of each sample."""
    return [found["stacks"][number][-1].partition(" ")[0] for _, number in found["samples"]]


@pytest.mark.usefixtures("no_ticks")
def test_sampler_is_no_sample_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: CodeType) -> frozenset[int]:
        signal.raise_signal(signal.SIGPROF)
        return frozenset()

    monkeypatch.setattr("hack.bench.sampler._resumes", interrupted)
    found = sampled(tmp_path, lambda: signal.raise_signal(signal.SIGPROF))
    assert found["samples"]
    assert not any(frame.startswith("Sampler") for stack in found["stacks"] for frame in stack)


@pytest.mark.usefixtures("no_ticks")
def test_function_that_uses_cpu_is_sampled_below_its_callers(tmp_path: Path) -> None:
    found = sampled(tmp_path, burn)
    assert innermost(found) == ["burn"] * TIMES
    names = [frame.partition(" ")[0] for frame in found["stacks"][0]]
    assert names[-2:] == ["sampled", "burn"]


@pytest.mark.usefixtures("no_ticks")
def test_time_in_c_counts_for_its_caller(tmp_path: Path) -> None:
    assert innermost(sampled(tmp_path, burn_in_c)) == ["burn_in_c"] * TIMES


def test_cpu_time_is_sampled() -> None:
    sampler, end = Sampler(), time.monotonic() + PATIENCE
    sampler.start()
    try:
        while not sampler.samples:
            assert time.monotonic() < end
    finally:
        sampler.stop()


def test_waiting_is_not_sampled(tmp_path: Path) -> None:
    """A clock that went on meanwhile would give 200."""
    assert len(sampled(tmp_path, lambda: time.sleep(0.2))["samples"]) <= 10


def test_samples_are_those_of_the_phase() -> None:
    found = {
        "stacks": [["run (/a.py:1)"], ["run (/a.py:1)", "put (/b.py:2)"]],
        "samples": [[0.9, 1], [1.0, 0], [1.5, 1], [2.0, 1], [2.1, 0]],
    }
    assert stacks_of(found, 1.0, 2.0) == {("run (/a.py:1)",): 1, ("run (/a.py:1)", "put (/b.py:2)"): 2}


@pytest.mark.parametrize(
    ("frame", "shortened"),
    [
        ("A.put (/home/me/lib/python3.11/site-packages/syncer/s.py:1)", "A.put (syncer/s.py:1)"),
        ("put (/src/tree/syncer/cache/store.py:10)", "put (syncer/cache/store.py:10)"),
        ("run (/usr/lib/python3.11/asyncio/runners.py:7)", "run (asyncio/runners.py:7)"),
        ("__init__ (<string>:2)", "__init__ (<string>:2)"),
    ],
)
def test_path_of_a_frame_begins_at_its_package(frame: str, shortened: str) -> None:
    assert short(frame) == shortened


def rows(stacks: dict[tuple[str, ...], int]) -> list[list[str]]:
    """Return the rows of a table of 200 µs below the heading, split at spaces."""
    return [line.split() for line in list(table(stacks, 200.0))[2:]]


def test_own_time_is_the_innermost_functions() -> None:
    assert rows({("run", "step", "put"): 60, ("run", "step"): 30, ("run",): 10}) == [
        ["60.0", "120.0", "60.0", "120.0", "put"],
        ["30.0", "60.0", "90.0", "180.0", "step"],
        ["10.0", "20.0", "100.0", "200.0", "run"],
    ]


def test_recursion_counts_once_in_total() -> None:
    assert rows({("put", "put", "put"): 5}) == [["100.0", "200.0", "100.0", "200.0", "put"]]


def test_profile_without_samples_has_no_rows() -> None:
    assert rows({}) == []


def test_profile_writes_table_and_stacks_of_each_phase(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "new")
    command = profile.command(str(tmp_path / "bin" / "syncer"))
    assert command[0] == str(tmp_path / "bin" / "python")
    for pid in (1, 2):  # the daemon was restarted
        text = json.dumps({"stacks": [["run (/a.py:1)"]], "samples": [[pid, 0]]})
        (profile.folder / f"{pid}.json").write_text(text)
    profile.phases.append(({"phase": "create", "cpu_ms_per_object": 0.5}, 0.0, 3.0))
    profile.write()
    written = (profile.folder / "create.txt").read_text().splitlines()
    assert written[2] == "2 samples"
    assert written[-1].split() == ["100.0", "500.0", "100.0", "500.0", "run", "(/a.py:1)"]
    assert (profile.folder / "create.stacks").read_text() == "run (/a.py:1) 2\n"
