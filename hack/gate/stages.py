"""The stages: each is a command, and most of them are runs of pytest."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
#: Seconds after which a stage that does nothing special is ended; none takes a quarter of it on a
#: quiet machine.
PATIENCE = 3600.0
_TWO = ("--numprocesses=2", "--dist=worksteal")
#: A module's servers and daemon belong to its tests. They come in the order of tests/conftest.py,
#: the long ones first.
_MODULES = ("--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder")
_RECORDER = TOP / "hack" / "gate" / "recorder"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the gate."""

    name: str
    command: tuple[str, ...]
    #: True if pytest runs in it: the verdict follows from pytest's record.
    tests: bool = False
    #: How often it is tried: what fetches from a network may fail once.
    tries: int = 1
    #: The stage that it ends before, if it mostly waits: it runs beside those until there, which
    #: let it go first.
    before: str = ""


def tool(name: str) -> str:
    """Return the path of a program of the virtual environment."""
    return str(TOP / ".venv" / "bin" / name)


def pytest(*arguments: str) -> tuple[str, ...]:
    """Return the command of a run of pytest with the recorder."""
    return (tool("pytest"), "-q", "-p", "gate_recorder", *arguments)


def environment() -> dict[str, str]:
    """Return the environment of all stages: nothing in it is left to chance,
    and no real part may be missing.
    """
    found = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        "PATH": f"{TOP / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": f"{_RECORDER}{os.pathsep}{found}" if found else str(_RECORDER),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
    }


def _scripts() -> list[str]:
    """Return the Python files without .py, which ruff does not find by itself."""
    found = subprocess.run(
        ["grep", "-rlI", "--exclude=*.py", "--exclude-dir=bin", "^#!.*python", "hack"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return sorted(found.stdout.split())


def check_stages(*, fast: bool = False) -> list[Stage]:
    """Return those that need no real API server;
    ``fast`` leaves out what takes more than a minute together.
    """
    quick = ("--hypothesis-profile=fast", "-m", "not slow") if fast else ()
    stages = [
        Stage("format", (tool("ruff"), "format", "--check", "--quiet", ".", *_scripts())),
        Stage("lint", (tool("ruff"), "check", "--quiet", ".", *_scripts())),
        Stage("types", (tool("mypy"),)),
        Stage("layers", (tool("lint-imports"), "--no-logo")),
        Stage("generated files", ("hack/generate", "--check")),
        Stage("tests", pytest(*_TWO, *quick, "tests/unit", "tests/cases"), tests=True),
    ]
    if fast:
        return stages
    return [
        *stages,
        Stage("the documentation's site", ("hack/docs",)),
        Stage("charts", pytest(*_TWO, "tests/chart"), tests=True),
        Stage("laws", pytest(*_TWO, "tests/laws"), tests=True),
        Stage(
            "the API server for tests", pytest(*_TWO, "plugins/envtest/tests/apiserver"), tests=True
        ),
    ]


def all_stages() -> list[Stage]:
    """Return all; the builds first.

    A node and real API servers mostly wait, and what runs beside them works.
    """
    image = "the container image"
    return [
        *_builds(),
        Stage("a real node", pytest("tests/e2e"), tests=True, before=image),
        Stage(
            "on real API servers", pytest(*_MODULES, "tests/integration"), tests=True, before=image
        ),
        *check_stages(),
        Stage(
            "the whole daemon",
            pytest(*_MODULES, "tests/flow", "tests/sieve", "tests/hostile"),
            tests=True,
        ),
        Stage("the packages under plugins/", ("hack/plugins",), tests=True),
        *_release(),
        # The last one: it waits for those that run beside others.
        Stage(image, pytest("tests/container"), tests=True),
    ]


def _release() -> list[Stage]:
    """Return the build of a release without its images; its charts take Helm, which Go builds."""
    if not shutil.which("go"):
        return []
    return [Stage("a release but its images", (sys.executable, "-m", "hack.release", "--dry-run"))]


def _builds() -> list[Stage]:
    """Return the builds from Go modules; without Go a control plane may come from elsewhere,
    see hack/controlplane.
    """
    if not shutil.which("go"):
        return []
    tools = Stage("tools for charts", (sys.executable, "-m", "hack.realnode.builds"), tries=3)
    if os.environ.get("KUBEBUILDER_ASSETS") or os.environ.get("ENVTEST_DOCKER"):
        return [tools]
    return [Stage("the control plane", ("hack/controlplane/build",), tries=3), tools]


#: Tests on real servers or a real node, which get a second chance: never those in one process.
_REAL = re.compile(
    r"tests/(integration|container|e2e)/"
    r"|tests/chart/(test_control_plane_runs|test_running_release)\.py"
    r"|plugins/envtest/tests/(contract|controlplane)/"
)


def is_real(test: str) -> bool:
    """Return True if a test runs on real servers."""
    return bool(_REAL.match(test))


def again(test: str) -> tuple[Sequence[str], Path]:
    """Return the command that runs one test alone, and its working directory."""
    package, _, rest = test.removeprefix("plugins/").partition("/")
    if not test.startswith("plugins/"):
        return pytest(test), TOP
    program = TOP / ".venv" / "plugins" / package / "bin" / "pytest"
    hangs = ("-o", "faulthandler_timeout=900", "-o", "faulthandler_exit_on_timeout=true")
    return (str(program), "-q", "-p", "gate_recorder", *hangs, rest), TOP / "plugins" / package
