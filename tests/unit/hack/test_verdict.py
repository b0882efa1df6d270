"""The last lines of a run name the failures and their reasons: tried on a small checkout with stages of its own."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.gate import quarantine
from hack.gate.run import NICE
from hack.gate.stages import TOP, all_stages, is_real

pytestmark = pytest.mark.slow

STAGES = """
import os, sys, tempfile
from pathlib import Path
from hack.gate import run, stages
from hack.gate.__main__ import _run
from hack.gate.stages import Stage
from hack.gate.verdict import Verdict
stages.tool = lambda name: sys.prefix + "/bin/" + name
run.PATIENCE = 60.0

def tests(*arguments):
    return stages.pytest("-p", "no:cacheprovider", *arguments)

with tempfile.TemporaryDirectory() as made:
    folder = Path(made)
    verdict = Verdict(list(_run([{stages}], folder)), is_all=True)
    verdict.try_again(folder)
    print(verdict.text())
sys.exit(not verdict.is_green)
"""
#: Plugins that a run doesn't name stay out of it: they take most of a second of CPU each time.
ENVIRONMENT = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
GOOD = "def test_good():\n    pass\n"
BAD = "def test_bad():\n    assert 'apples' == 'pears', 'not the same fruit'\n"


@dataclass(frozen=True)
class Checkout:
    """A folder with a gate, and tests."""

    folder: Path

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def quarantine(self, *lines: str, limit: int = 5) -> None:
        self.write("tests/quarantine.txt", "\n".join([f"# at most {limit}", *lines, ""]))

    def run(self, *stages: str) -> tuple[int, list[str]]:
        """Run the stages; return the exit status and the lines from the verdict on."""
        listed = ", ".join(stages or ('Stage("units", tests("tests/unit"), tests=True)',))
        command = [sys.executable, "-c", STAGES.replace("{stages}", listed)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        lines = done.stdout.splitlines()
        assert lines[-1] == f"VERDICT {'red' if done.returncode else 'green'}", done.stdout
        return done.returncode, lines[lines.index("── stages") :]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    shutil.copytree(TOP / "hack" / "gate", tmp_path / "hack" / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    made = Checkout(tmp_path)
    made.write("hack/__init__.py", "")
    shutil.copy(TOP / "hack" / "endings.py", tmp_path / "hack")
    made.write("setup.cfg", "[tool:pytest]\n")
    made.write("tests/unit/test_it.py", GOOD)
    made.quarantine()
    return made


def test_passing_tests_are_counted(checkout: Checkout) -> None:
    status, lines = checkout.run()
    assert (status, lines[-2]) == (0, "1 passed, 0 failed")
    assert lines[1].endswith(" s  units: 1 passed")


BURNS = """
import time
def test_burns():
    end = time.process_time() + 1.6
    while time.process_time() < end:
        pass
"""


@pytest.mark.parametrize("workers", ["", "-n1"])
def test_cpu_seconds_of_stages_and_slow_files_are_shown(checkout: Checkout, workers: str) -> None:
    checkout.write("tests/unit/test_burns.py", BURNS)
    _, lines = checkout.run(f'Stage("units", tests("tests/unit", "-p", "xdist", "{workers}"[:3] or "-q"), tests=True)')
    stage = re.fullmatch(r" +\d+ s, CPU (\d+) s  units: 2 passed", lines[1])
    assert stage
    assert int(stage[1]) >= 2
    assert lines[2] == "── files that took longest"
    file = re.fullmatch(r" +\d+ s, CPU (\d+) s  tests/unit/test_burns.py", lines[3])
    assert file
    assert int(file[1]) >= 2


@pytest.mark.parametrize("workers", ["", "-n2"])
def test_failing_test_is_named_with_its_reason(checkout: Checkout, workers: str) -> None:
    checkout.write("tests/unit/test_bad.py", BAD)
    status, lines = checkout.run(
        f'Stage("units", tests("tests/unit", "-p", "xdist", "{workers}"[:3] or "-q"), tests=True)'
    )
    assert status == 1
    assert lines[-3:-1] == [
        "FAILED tests/unit/test_bad.py::test_bad - AssertionError: not the same fruit",
        "1 passed, 1 failed",
    ]


def test_failing_fixture_and_id_with_spaces_are_named(checkout: Checkout) -> None:
    broken = "import pytest\n@pytest.fixture\ndef it():\n    raise OSError('no room')\ndef test_it(it):\n    pass\n"
    spaces = (
        "import pytest\n@pytest.mark.parametrize('x', [1], ids=['one daemon'])\ndef test_it(x):\n    assert x == 2\n"
    )
    checkout.write("tests/unit/test_broken.py", broken)
    checkout.write("tests/unit/test_spaces.py", spaces)
    _, lines = checkout.run()
    assert "FAILED tests/unit/test_broken.py::test_it - OSError: no room" in lines
    assert "FAILED tests/unit/test_spaces.py::test_it[one daemon] - assert 1 == 2" in lines


def test_file_that_can_not_be_read_is_named(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_broken.py", "import nothing_like_it\n")
    status, lines = checkout.run()
    assert status == 1
    assert any(line.startswith("FAILED tests/unit/test_broken.py - ") and "nothing_like_it" in line for line in lines)


def test_step_that_fails_shows_its_own_last_lines(checkout: Checkout) -> None:
    status, lines = checkout.run('Stage("build", ("sh", "-c", "echo no compiler here; exit 3"))')
    assert status == 1
    assert lines[2:4] == ["── the end of: build (exit status 3)", "no compiler here"]
    assert "FAILED: build failed" in lines


def test_build_that_fails_once_is_tried_again(checkout: Checkout) -> None:
    once = '("sh", "-c", "test -e been || { touch been; exit 1; }")'
    assert checkout.run(f'Stage("build", {once}, tries=2)')[0] == 0


def test_stage_that_hangs_is_ended_and_red(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_slow.py", "import time\ndef test_slow():\n    time.sleep(300)\n")
    status, lines = checkout.run('(setattr(run, "PATIENCE", 3.0), Stage("units", tests("tests/unit"), tests=True))[1]')
    assert status == 1
    assert "FAILED: units failed" in lines


def test_process_that_exits_without_output_is_red(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_dies.py", "import os\ndef test_dies():\n    os._exit(0)\n")
    assert checkout.run()[0] == 1


def test_second_process_of_a_stage_that_fails_is_named(checkout: Checkout) -> None:
    checkout.write("tests/other/test_bad.py", BAD)
    program = f"{sys.prefix}/bin/pytest -q -p gate_recorder"
    both = f"{program} tests/unit && {program} tests/other"
    _, lines = checkout.run(f'Stage("both", ("sh", "-c", "{both}"), tests=True)')
    assert "FAILED tests/other/test_bad.py::test_bad - AssertionError: not the same fruit" in lines


def test_test_that_runs_pytest_writes_into_no_record(checkout: Checkout) -> None:
    runs = "subprocess.run([sys.executable, '-m', 'pytest', 'inner'], check=False)"
    inner = f"import subprocess, sys\ndef test_it():\n    {runs}\n"
    checkout.write("inner/test_bad.py", BAD)
    checkout.write("tests/unit/test_inner.py", inner)
    assert checkout.run()[1][-2] == "2 passed, 0 failed"


SOCKET = """
import gc, pytest, socket

@pytest.fixture
def given():
    yield socket.socket()

def test_leaks({fixture}):
    held = [socket.socket() if not "{fixture}" else None]
    held.append(held)
    {freeze}
"""


@pytest.mark.parametrize(
    ("freeze", "fixture", "workers"), [("", "", "-n2"), ("gc.freeze()", "", ""), ("", "given", "")]
)
def test_open_socket_fails_in_the_module_that_left_it(
    checkout: Checkout, freeze: str, fixture: str, workers: str
) -> None:
    checkout.write("setup.cfg", "[tool:pytest]\nfilterwarnings = error\n")
    checkout.write("tests/unit/test_it.py", SOCKET.format(freeze=freeze, fixture=fixture))
    checkout.write("tests/unit/test_later.py", "import gc\ndef test_later():\n    gc.unfreeze()\n    gc.collect()\n")
    status, lines = checkout.run(
        f'Stage("units", tests("tests/unit", "-p", "xdist", "{workers}"[:3] or "-q", "--dist=loadfile"), tests=True)'
    )
    assert status == 1
    [failed] = [line for line in lines if line.startswith("FAILED")]
    assert failed.startswith("FAILED tests/unit/test_it.py::test_leaks - ")
    assert "left to the garbage collector by a test of test_it.py: unclosed <socket.socket" in failed


LEFT = """
import os, socket

def pytest_sessionfinish():
    if "PYTEST_XDIST_WORKER" in os.environ or not "{workers}":
        held = [socket.socket()]
        held.append(held)
"""


@pytest.mark.parametrize("workers", ["", "-n1"])
def test_open_socket_at_the_end_of_a_run_is_named(checkout: Checkout, workers: str) -> None:
    checkout.write("setup.cfg", "[tool:pytest]\nfilterwarnings = error\n")
    checkout.write("conftest.py", LEFT.format(workers=workers))
    status, lines = checkout.run(
        f'Stage("units", tests("tests/unit", "-p", "xdist", "{workers}"[:3] or "-q"), tests=True)'
    )
    assert (status, lines[-2]) == (1, "1 passed, 1 failed")
    output = "left to the garbage collector at the end of the run: unclosed <socket.socket"
    assert f"FAILED tests/unit: the end of the run - {output}" in lines[-3]


KEPT = """
import socket

def test_keeps():
    global held
    held = [socket.socket()]
    held.append(held)
"""
FORGETS = """
import gc, test_it

def test_forgets():
    test_it.held = None
    gc.collect()
"""


def test_socket_that_outlives_its_module_is_named_at_the_end_of_the_run(checkout: Checkout) -> None:
    checkout.write("setup.cfg", "[tool:pytest]\nfilterwarnings = error\n")
    checkout.write("tests/unit/test_it.py", KEPT)
    checkout.write("tests/unit/test_later.py", FORGETS)
    status, lines = checkout.run()
    assert (status, lines[-2]) == (1, "2 passed, 1 failed")
    output = "left to the garbage collector at the end of the run: unclosed <socket.socket"
    assert f"FAILED tests/unit: the end of the run - {output}" in lines[-3]


DIES = """
import asyncio, gc

async def dies():
    raise OSError("no kubelet any more")

async def scene():
    task = asyncio.create_task(dies())
    await asyncio.wait({{task}})
    {awaited}
    {cycle}

def test_dies():
    gc.disable()
    asyncio.run(scene())
"""


@pytest.mark.parametrize("cycle", ["", "held = [task]; held.append(held)"])
def test_task_with_an_unretrieved_exception_fails_in_its_module(checkout: Checkout, cycle: str) -> None:
    checkout.write("tests/unit/test_it.py", DIES.format(cycle=cycle, awaited=""))
    checkout.write("tests/unit/test_later.py", "import gc\ndef test_later():\n    gc.enable()\n    gc.collect()\n")
    status, lines = checkout.run()
    assert status == 1
    [failed] = [line for line in lines if line.startswith("FAILED")]
    where = "in this test or in one before it, of test_it.py"
    assert failed.startswith("FAILED tests/unit/test_it.py::test_dies - ")
    assert f"DiedUnseen: OSError('no kubelet any more') {where}: Task exception was never retrieved" in failed


def test_task_with_a_retrieved_exception_fails_nothing(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_it.py", DIES.format(cycle="", awaited="assert task.exception()"))
    assert checkout.run()[0] == 0


LEAVES = """
import pathlib, tempfile
def test_leaves():
    descriptor, path = tempfile.mkstemp()
    pathlib.Path("left").write_text(path)
"""


def test_temporary_files_of_a_stage_go_with_it(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_leaves.py", LEAVES)
    assert checkout.run()[0] == 0
    assert not Path((checkout.folder / "left").read_text()).exists()


HANGS = """
import os, sys
from hack.gate import __main__, stages
begins = 'echo "$TMPDIR" >here; mv here begun; sleep 3600; echo never'
stages.check_stages = lambda fast=False: [stages.Stage("hangs", ("sh", "-c", begins))]
sys.exit(__main__.guarded(["check"]))
"""


@contextmanager
def begun(checkout: Checkout, script: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Yield a gate whose stage hangs."""
    with subprocess.Popen(
        # Without SIGINT, as in the background of a shell.
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", script, *arguments],
        cwd=checkout.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as gate:
        deadline = time.monotonic() + 120
        while not (checkout.folder / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield gate


def test_terminated_gate_leaves_nothing(checkout: Checkout) -> None:
    with begun(checkout, HANGS) as gate:
        gate.terminate()
        output = gate.communicate(timeout=120)[0]
    assert (gate.returncode, output.splitlines()[-1]) == (130, "VERDICT red")
    temporary = Path((checkout.folder / "begun").read_text().strip())
    assert temporary.parents[1].name.startswith("gate-")
    assert not temporary.parents[1].exists()


FLAKY = """
import pathlib
def test_{name}():
    been = pathlib.Path("been-{name}")
    if not been.exists():
        been.touch()
        raise ConnectionError("the server went away")
"""


def test_test_on_real_servers_runs_again_alone_and_the_second_result_decides(checkout: Checkout) -> None:
    checkout.write("tests/integration/test_flaky.py", FLAKY.format(name="once"))
    status, lines = checkout.run('Stage("real", tests("tests/integration"), tests=True)')
    assert (status, lines[-2]) == (0, "1 passed, 0 failed")
    assert "FLAKY tests/integration/test_flaky.py::test_once - ConnectionError: the server went away" in lines
    assert any("raise ConnectionError" in line for line in lines), "the first traceback"
    checkout.write("tests/integration/test_flaky.py", BAD)
    assert checkout.run('Stage("real", tests("tests/integration"), tests=True)')[0] == 1


def test_more_than_three_failing_tests_on_real_servers_are_red(checkout: Checkout) -> None:
    checkout.write("tests/integration/test_flaky.py", "".join(FLAKY.format(name=name) for name in "abcd"))
    status, lines = checkout.run('Stage("real", tests("tests/integration"), tests=True)')
    assert (status, lines[-2]) == (1, "0 passed, 4 failed")


def test_waiting_stages_run_beside_others_and_go_first(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_it.py", GOOD + "def test_waits():\n    open('waiting').read()\n")
    for fifo in ("waiting", "servers"):
        os.mkfifo(checkout.folder / fifo)
    shows = "ps -o ni= $$ >nice-{name}; cat /proc/self/autogroup >group-{name} || true"
    second = f"{shows.format(name='second')}; cat servers"
    first = f"{shows.format(name='first')}; echo >waiting; echo >servers"
    status, lines = checkout.run(
        'Stage("node", tests("tests/unit"), tests=True, before="later")',
        f'Stage("second", ("sh", "-c", "{second}"), before="later")',
        f'Stage("first", ("sh", "-c", "{first}"))',
        'Stage("later", ("sh", "-c", "ls tests/unit/__pycache__; exit 3"))',
    )
    assert (status, lines[-2]) == (1, "2 passed, 0 failed")
    shown = [line.partition(" s  ")[2] for line in lines[1:5]]
    assert shown == ["first", "node: 2 passed", "second", "later FAILED"]
    for number, name in enumerate(("second", "first"), start=1):
        assert int((checkout.folder / f"nice-{name}").read_text()) == min(os.nice(0) + number * NICE, 19)
        group = (checkout.folder / f"group-{name}").read_text()  # empty where the kernel has none
        assert not group or group.split()[-1] == str(number * NICE)


def test_stage_beside_others_is_waited_for_where_none_comes_after_it(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_bad.py", BAD)
    status, lines = checkout.run('Stage("node", tests("tests/unit"), tests=True, before="on real API servers")')
    assert (status, lines[-2]) == (1, "1 passed, 1 failed")


#: Another stage beside it, which has begun, too, when it has.
HANGS_BESIDE = HANGS.replace("begins = '", "begins = 'until [ -e pid ]; do sleep 0.1; done; ").replace(
    "[stages.Stage(", "[stages.Stage('node', ('sh', '-c', sys.argv[1]), before='later'), stages.Stage("
)


def test_stage_beside_others_ends_with_the_gate(checkout: Checkout) -> None:
    """The gate is terminated while both run."""
    with begun(checkout, HANGS_BESIDE, "echo $$ >new; mv new pid; sleep 3600; echo never") as gate:
        gate.terminate()
        gate.communicate(timeout=120)
    pid = int((checkout.folder / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_terminated_stage_may_clean_up(checkout: Checkout) -> None:
    # A shell runs a trap once its command has ended, and a command that begins late isn't interrupted.
    waits = "while :; do sleep 0.1; done"
    with begun(checkout, HANGS_BESIDE, f"trap 'echo yes >tidied; exit' INT; echo >pid; {waits}") as gate:
        gate.terminate()
        gate.communicate(timeout=120)
    assert (checkout.folder / "tidied").read_text() == "yes\n"


def test_stage_that_fails_beside_a_test_that_passes_when_it_runs_again_is_red(checkout: Checkout) -> None:
    checkout.write("tests/integration/test_flaky.py", FLAKY.format(name="once"))
    command = 'sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:]); sys.exit(2)"'
    status, lines = checkout.run(f'Stage("real", ({command}, *tests("tests/integration")), tests=True)')
    assert (status, lines[-1]) == (1, "VERDICT red")
    assert any(line.startswith("FLAKY") for line in lines)
    assert "FAILED: real failed" in lines


def test_test_in_one_process_gets_no_second_chance(checkout: Checkout) -> None:
    checkout.write("tests/unit/test_flaky.py", FLAKY.format(name="once"))
    assert checkout.run()[0] == 1


def test_test_in_quarantine_runs_is_shown_and_does_not_decide(checkout: Checkout) -> None:
    checkout.write("tests/flow/test_bad.py", BAD)
    checkout.write("tests/flow/test_good.py", GOOD)
    checkout.quarantine(
        "tests/flow/test_bad.py::test_bad 2026-11-24 the fruit differs on a busy machine",
        "tests/flow/test_good.py::test_good 2026-11-24 was late once",
    )
    status, lines = checkout.run('Stage("flow", tests("tests/flow"), tests=True)')
    assert status == 0
    since = "in quarantine since 2026-11-24"
    assert f"XFAIL tests/flow/test_bad.py::test_bad - {since}: the fruit differs on a busy machine" in lines
    assert f"XPASS tests/flow/test_good.py::test_good - {since}: was late once" in lines


def test_test_in_quarantine_that_may_hang_is_skipped(checkout: Checkout) -> None:
    checkout.write("tests/flow/test_hangs.py", "import time\ndef test_hangs():\n    time.sleep(300)\n")
    checkout.quarantine("tests/flow/test_hangs.py::test_hangs 2026-11-24 skip: hangs when the node is busy")
    status, lines = checkout.run('Stage("flow", tests("tests/flow"), tests=True)')
    assert status == 0
    assert lines[1].endswith("1 skipped")


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", "its first line must give the most tests"),
        (
            "# at most 1\ntests/flow/a.py::a 2026-11-24 x\ntests/flow/b.py::b 2026-11-24 x\n",
            "holds 2 tests, and may hold 1",
        ),
        ("# at most 1\ntests/flow/a.py::a because\n", "lacks a date or a reason"),
        ("# at most 1\ntests/flow/a.py::a 2026-11-24\n", "lacks a date or a reason"),
        ("# at most 1\ntests/flow/gone.py::a 2026-11-24 x\n", "no stage knows tests/flow/gone.py::a"),
        ("# at most 1\ntests/unit/a.py::a 2026-11-24 x\n", "tests/unit/a.py::a can't be put off"),
        ("# at most 1\ntests/hostile/a.py::a 2026-11-24 x\n", "tests/hostile/a.py::a can't be put off"),
    ],
)
def test_quarantine_that_is_not_in_order_is_red(text: str, output: str) -> None:
    known = {"tests/flow/a.py::a", "tests/flow/b.py::b", "tests/unit/a.py::a", "tests/hostile/a.py::a"}
    assert [fault for fault in quarantine.faults(text, known) if output in fault]


def test_quarantine_in_order_has_no_faults() -> None:
    text = "# at most 1\n# why they are here\n\ntests/flow/a.py::a[one daemon] 2026-11-24 x y\n"
    assert list(quarantine.faults(text, {"tests/flow/a.py::a[one daemon]"})) == []


def test_each_folder_of_tests_belongs_to_a_stage() -> None:
    words = [word for stage in all_stages() for word in stage.command]
    folders = [each for each in (TOP / "tests").iterdir() if any(each.rglob("test_*.py"))]
    assert folders
    assert [each.name for each in folders if f"tests/{each.name}" not in words] == []


def test_only_tests_on_real_servers_get_a_second_chance() -> None:
    assert is_real("tests/integration/test_life.py::test_x")
    assert is_real("plugins/envtest/tests/contract/test_contract_watch.py::test_x")
    assert is_real("tests/e2e/test_node.py::test_x")
    assert not is_real("tests/flow/test_life.py::test_x")
    assert not is_real("plugins/foo/tests/test_foos.py::test_x")


def test_tests_of_charts_that_start_servers_get_a_second_chance_and_the_others_do_not() -> None:
    files = {file: "mark.controlplane" in file.read_text() for file in (TOP / "tests" / "chart").glob("test_*.py")}
    assert {file.name for file, starts in files.items() if starts} == {
        file.name for file in files if is_real(f"tests/chart/{file.name}::test_x")
    }
