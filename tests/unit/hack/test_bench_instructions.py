"""Instructions of two installations are read from callgrind's profiles, and their figures become ratios."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hack.bench.instructions import COUNTS, WITHOUT_BOUNDS, counts, parse, ratios
from hack.bench.phases import Bench, Load
from syncer.api import Obj
from syncer.testing.objects import pod

PROFILE = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
desc: Trigger: dump
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim

fl=(1) ???
fn=(1) 0x0000000000019b10
0 3 1 1 1

summary: 415 120 68 10 4 1 75 282 254 592 47 113 50
totals: 416 121 69 11 5 2 76 283 255 593 48 114 51
"""


def test_counts_add_up_the_events_of_a_profile() -> None:
    assert counts(PROFILE) == {"instructions": 415, "l1_misses": 15, "mispredicted_branches": 97}


def test_ratios_are_of_each_phase_and_of_all_together() -> None:
    def figures(phase: str, count: int) -> dict[str, object]:
        return {"phase": phase, **{f"{name}_per_object": count for name in COUNTS}}

    found = ratios(
        this=[figures("create", 1), figures("delete", 3)],
        other=[figures("create", 2), figures("delete", 2)],
    )
    assert [found[phase]["instructions"] for phase in ("create", "delete", "all")] == [0.5, 1.5, 1.0]
    assert found["all"].keys() == COUNTS.keys()


def test_counted_daemon_has_no_bounds_that_a_slow_one_exceeds(tmp_path: Path) -> None:
    lines = (
        "import sys",
        "from syncer.clusters import pool",
        "from syncer.workqueue import fair",
        "print(fair.TURN_SECONDS, pool.SPARE_SECONDS, pool.IDLE_SECONDS, sys.argv[1:])",
    )
    program = tmp_path / "syncer"
    program.write_text("\n".join(lines))
    command = [sys.executable, "-I", str(WITHOUT_BOUNDS), str(program), "run", "--config"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "inf inf inf ['run', '--config']\n"


def test_life_is_that_of_pods(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    assert (parse([]).kind, parse(["--life"]).kind, parse(["--life", "--kind", "pods"]).kind) == (
        "configmaps",
        "pods",
        "pods",
    )
    with pytest.raises(SystemExit):
        parse(["--life", "--kind", "secrets"])
    assert "--life is of pods, not of secrets" in capsys.readouterr().err


def test_floor_is_compared_for_the_kinds_that_it_copies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    assert parse(["--against", "floor"]).against == "floor"
    with pytest.raises(SystemExit):
        parse(["--against", "floor", "--kind", "secrets"])
    assert "copies configmaps and pods, not secrets" in capsys.readouterr().err


def test_pod_arrives_by_its_status_then_by_its_copy_and_at_last_as_it_has_gone() -> None:
    nobody: Any = None
    bench = Bench(Load(kind="pods", life=True, n=1), nobody, nobody, nobody)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}

    def copy(revision: str) -> Obj:
        annotations = {"vsyncer.dev/virtual-name": "a", "revision": revision}
        return pod("copy", metadata={"annotations": annotations}, status=ready)

    original = pod("a", metadata={"annotations": {"revision": "1"}}, status=ready)
    assert bench._is_ready("MODIFIED", pod("a", status={})) is None
    assert bench._is_ready("MODIFIED", copy("0")) is None, "the virtual one has its status later"
    assert bench._is_ready("MODIFIED", original) == "a"
    updated = bench._is_written("MODIFIED", 1)
    assert [updated("MODIFIED", each) for each in (original, copy("0"), copy("1"))] == [None, None, "a"]
    assert bench._is_gone("DELETED", copy("1")) is None
    assert bench._is_gone("DELETED", original) == "a"


def test_update_of_a_pod_touches_only_its_metadata() -> None:
    assert Load(kind="pods").change("a").keys() == {"metadata"}
    assert Load().change("a")["data"]["revision"] == "1"
