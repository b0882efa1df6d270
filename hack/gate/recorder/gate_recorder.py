"""A pytest plugin that each stage of the gate loads with ``-p``: it writes down how each test
ended, and quarantines.

It also lets what a test leaves to the garbage collector, such as an open socket, fail in the module
of that test, and a test fail in which a task died and no code retrieved its exception.

``VSYNCER_GATE`` is the folder for its files. It is taken out of the environment, so that what a
test starts writes none. This file needs nothing but pytest and hypothesis: it also runs where only
a package and its tests are installed.
"""

import gc
import json
import logging
import os
import re
import traceback
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.unraisableexception import collect_unraisable
from hypothesis import HealthCheck, settings

TOP = Path(__file__).resolve().parents[3]
QUARANTINE = TOP / "tests" / "quarantine.txt"
#: Begins the reason of a test that is skipped, as it may hang or crash.
SKIP = "skip:"

_LINE = re.compile(r"(?P<test>\S.*?)\s+(?P<date>\d{4}-\d\d-\d\d)\s+(?P<symptom>\S.*)")


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A test that does not decide: its id from the top of the checkout, since when,
    and the observation.
    """

    test: str
    date: str
    symptom: str

    @classmethod
    def parse(cls, line: str) -> "Quarantined | None":
        """Read a line, ``ID DATE WHAT WAS SEEN``; None if it is something else."""
        found = _LINE.fullmatch(line.strip())
        return cls(**found.groupdict()) if found else None


def quarantined(text: str) -> Iterator[Quarantined]:
    """Yield the tests of a quarantine file that can be read; the verdict reports the others."""
    for line in text.splitlines():
        if not line.startswith("#") and (one := Quarantined.parse(line)):
            yield one


def load_profile() -> None:
    """Let Hypothesis try the same examples in each run; how long one takes is no finding,
    as machines are busy.
    """
    settings.register_profile(
        "gate",
        derandomize=True,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("gate")


class Recorder:
    """Writes a line of JSON for each report of a test, and one for the end of the run."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._prefix = prefix
        self._file = (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8")

    def _write(self, **fields: object) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()

    def _report(
        self, report: pytest.TestReport | pytest.CollectReport, when: str, outcome: str
    ) -> None:
        failed = outcome == "failed"
        self._write(
            test=self._prefix + report.nodeid,
            when=when,
            outcome=outcome,
            reason=_reason(report) if failed or hasattr(report, "wasxfail") else "",
            text=report.longreprtext if failed else "",
            seconds=getattr(report, "duration", 0.0),
            cpu=getattr(report, "cpu", 0.0),
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down how a phase of a test ended."""
        outcome: str = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xpassed" if report.passed else "xfailed"
        self._report(report, report.when, outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write down a file that could not be read."""
        if report.failed:
            self._report(report, "collect", "failed")

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Write down that the run came to its end."""
        yield
        self._write(exit=int(session.exitstatus))
        self._file.close()


class Meter:
    """Adds to each report the CPU seconds of its phase, in the process that runs the test.

    They include those of programs that it has started and that have ended meanwhile.
    """

    def __init__(self) -> None:
        self._before = _cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add those since the report before, to which pytest-xdist passes all attributes."""
        report = yield
        now = _cpu_seconds()
        report.cpu = round(now - self._before, 3)  # type: ignore[attr-defined]
        self._before = now
        return report


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class DiedUnseen(Exception):
    """A task that died without code that retrieved its exception."""


class UnseenDeaths(logging.Handler):
    """Fails the test after which asyncio logs an exception, as it does for a task that died and
    that was not awaited.

    That is when the task is freed: mostly at the end of its test, and otherwise at the end of its
    module.
    """

    #: The name of this plugin, of which one is enough.
    NAME = "unseen-deaths"

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._logged: list[logging.LogRecord] = []
        logging.getLogger("asyncio").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep contexts with an exception; asyncio logs other things, too, and a cancelled task has
        not died.

        Nor has a server whose client has gone away, which a test may see or not.
        """
        error = record.exc_info[1] if record.exc_info else None
        is_of_client = (
            isinstance(error, ConnectionError) and "client_connected_cb" in record.getMessage()
        )
        if isinstance(error, Exception) and not is_of_client:
            self._logged.append(record)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Fail the test, once its fixtures have ended."""
        yield
        self._complain(f"in this test or in one before it, of {item.path.name}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        """Fail the run for resources that are only freed at its end."""
        yield
        logging.getLogger("asyncio").removeHandler(self)
        self._complain("in one of the last tests")

    def _complain(self, where: str) -> None:
        """Raise an error about the first logged fault."""
        if self._logged:
            first = self._logged[0]
            self._logged = []
            error = first.exc_info[1] if first.exc_info else None
            raise DiedUnseen(f"{error!r} {where}: {first.getMessage()}") from error


class LeftBehind(Exception):
    """Garbage that complains when it is freed, such as a socket that was not closed."""


class Garbage:
    """Collects garbage at the end of each module and of the run, where what complains has a name to
    fail under.

    What is there before the first test, and what outlives a module, is frozen, so that this costs
    little; it is looked at again at the end of the run. Nothing else is frozen: what an engine
    freezes would hide here, as a test ends while the process goes on.
    """

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._freeze = gc.freeze
        #: What was found at the end of the run, here or in a worker of pytest-xdist.
        self._left: list[str] = []

    def pytest_collection_finish(self) -> None:
        """Freeze what the collection of tests has made; no test freezes anything from now on."""
        gc.collect()
        self._freeze()
        for name in ("freeze", "unfreeze"):
            self._patch.setattr(gc, name, lambda: None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None]:
        """Collect the garbage of a module after its last test."""
        yield
        if nextitem is not None and nextitem.path == item.path:
            return
        if isinstance(item, pytest.Function):
            item.funcargs.clear()  # the values of fixtures that have ended
        gc.collect()
        _complain(item.config, f"left to the garbage collector by a test of {item.path.name}")
        self._freeze()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Collect the garbage of the run, and report it as a failure of its own."""
        self._patch.undo()
        gc.unfreeze()
        gc.collect()
        try:
            _complain(session.config, "left to the garbage collector at the end of the run")
        except LeftBehind as found:
            self._left.append(f"{''.join(traceback.format_exception(found.__cause__))}\n{found}")
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left"] = self._left
        elif self._left:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            session.config.hook.pytest_runtest_logreport(
                report=_of_run(session.config, "\n\n".join(self._left))
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the findings of a worker."""
        self._left += getattr(node, "workeroutput", {}).get("left", ())


def _complain(config: pytest.Config, where: str) -> None:
    """Raise an error if an object that was freed meanwhile has complained."""
    try:
        collect_unraisable(config)
    except Exception as error:
        raise LeftBehind(f"{where}: {_innermost(error)}") from error


def _innermost(error: BaseException) -> BaseException:
    """Return the complaint itself, the first of several."""
    while True:
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__
        if inner is None:
            return error
        error = inner


def _of_run(config: pytest.Config, text: str) -> pytest.TestReport:
    """Return the report about the end of a run, which is no test; its id names the stage."""
    where = " ".join(config.args)
    name = f"{where}: the end of the run"
    return pytest.TestReport(name, (where, None, name), {}, "failed", text, "teardown")


def _reason(report: Any) -> str:
    """Return the first line of the reason."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail).partition("\n")[0]
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    found: str = lines[0 if crash else -1] if lines else "no reason given"
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Begin to write, in the process that sees all reports:
    workers of pytest-xdist have no folder.
    """
    if not config.getoption("hypothesis_profile", None):
        load_profile()
    watch_for_deaths(config)
    config.pluginmanager.register(Garbage())
    config.pluginmanager.register(Meter())
    if folder := os.environ.pop("VSYNCER_GATE", ""):
        config.pluginmanager.register(Recorder(Path(folder), _prefix(config)))


def watch_for_deaths(config: pytest.Config) -> None:
    """Let a test fail in which a task died unseen."""
    if not config.pluginmanager.has_plugin(UnseenDeaths.NAME):
        config.pluginmanager.register(UnseenDeaths(), UnseenDeaths.NAME)


def _prefix(config: pytest.Config) -> str:
    """Return what stands before an id, so that it counts from the top of the checkout."""
    root = config.rootpath.resolve()
    return f"{root.relative_to(TOP).as_posix()}/" if TOP in root.parents else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests in quarantine run without deciding."""
    text = QUARANTINE.read_text() if QUARANTINE.exists() else ""
    known: Mapping[str, Quarantined] = {one.test: one for one in quarantined(text)}
    prefix = _prefix(config)
    for item in items:
        if one := known.get(prefix + item.nodeid):
            reason = f"in quarantine since {one.date}: {one.symptom}"
            if one.symptom.startswith(SKIP):
                item.add_marker(pytest.mark.skip(reason))
            else:
                item.add_marker(pytest.mark.xfail(reason=reason))
