"""Settings of all tests: the control planes that this checkout has built, the import of hack/, and virtual time."""

import asyncio
import inspect
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Tests use the kubelet simulation of hack/, which is no part of the distribution.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hack.gate.recorder.gate_recorder import load_profile, watch_for_deaths
from hack.planes import environment
from kube_envtest import virtual_time
from syncer.api.errors import Refused
from syncer.api.reasons import ReasonCode, StateReason
from syncer.observe import logs

os.environ.update(environment())

load_profile()
# For hack/check --fast; tests that name a number of examples keep it.
settings.register_profile("fast", settings.get_profile("gate"), max_examples=10)
# For hack/explore: other examples in each run.
settings.register_profile("explore", settings.get_profile("gate"), derandomize=False)

HERE = Path(__file__).parent
#: The folders whose files are given to workers as a whole.
WHOLE = ("flow", "sieve", "hostile", "integration")
#: Those that take longest, as the last lines of a run show: what begins late with one of them leaves the others idle.
LONGEST = (
    "sieve/test_sieve.py",
    "flow/test_new_kind.py",
    "hostile/test_chaos_hostile.py",
    "sieve/test_sieve_fleet.py",
    "flow/test_chaos.py",
    "flow/test_chaos_fleet.py",
    "hostile/test_memory.py",
    "integration/test_chaos_real.py",
    "integration/test_installed_chart.py",
    "integration/test_chart_guide.py",
    "integration/test_demo.py",
    "integration/test_outages.py",
    "integration/test_crashes.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, and go on with those of most tests; within a file nothing changes."""
    if missing := [file for file in LONGEST if not (HERE / file).is_file()]:
        raise pytest.UsageError(f"tests/conftest.py: LONGEST names files that aren't there: {', '.join(missing)}")
    counts = Counter(item.path for item in items)

    def rank(item: pytest.Item) -> tuple[int, int, str]:
        file = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        if file.partition("/")[0] not in WHOLE:
            return 0, 0, ""
        longest = LONGEST.index(file) if file in LONGEST else len(LONGEST)
        return longest, -counts[item.path], file

    items.sort(key=rank)


def pytest_configure(config: pytest.Config) -> None:
    """Look for tasks that die unseen, in a run without the gate, too."""
    watch_for_deaths(config)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test that is a coroutine: in virtual time, unless it is marked with `real_time`."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        run = asyncio.run if pyfuncitem.get_closest_marker("real_time") else virtual_time.run
        pyfuncitem.obj = lambda **fixtures: run(test(**fixtures))
    return (yield)


@pytest.fixture(autouse=True)
def _logging_restored() -> Iterator[None]:
    """Configure logging by default again: commands configure it for their process."""
    yield
    logs.configure()


@pytest.fixture(autouse=True)
def _given_reasons(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that a test gives the reasons that it is marked with."""
    marker = request.node.get_closest_marker("reason")
    if marker is None:
        yield
        return
    given: set[str] = set()

    def noted(cls: type[StateReason], code: ReasonCode, *args: object) -> StateReason:
        given.add(code.name)
        return made(cls, code, *args)

    def noted_refusal(self: Refused, *args: Any, **named: Any) -> None:
        refused(self, *args, **named)
        given.add(self.reason)

    made = StateReason.__new__
    refused = Refused.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StateReason, "__new__", noted)
        patch.setattr(Refused, "__init__", noted_refusal)
        yield
    assert set(marker.args) <= given, "the test is marked with a reason that it doesn't give"
