"""Scenes for the integration tests: a virtual cluster of its own for each, on the planes of the session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from api import Api, Loop
from scene import Scene

from syncer.api import Side
from syncer.testing.controlplane import ControlPlane

FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Show a line at the end of the run, whether or not the test passes."""

    def tell(line: str) -> None:
        request.config.stash.setdefault(FIGURES, []).append(f"{request.node.name}: {line}")

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what tests have measured."""
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """Where the clients of the tests run."""
    running = Loop()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def apis(loop: Loop, planes: tuple[ControlPlane, ControlPlane]) -> Iterator[tuple[Api, Api]]:
    """The two clusters of the session: virtual, host."""
    host, virtual = planes
    with _apis(loop, virtual, host) as both:
        yield both


@contextmanager
def _apis(loop: Loop, virtual: ControlPlane, host: ControlPlane) -> Iterator[tuple[Api, Api]]:
    both = Api(loop, virtual, Side.VIRTUAL), Api(loop, host, Side.HOST)
    yield both
    for api in both:
        api.close()


@pytest.fixture
def scene(apis: tuple[Api, Api], tmp_path: Path) -> Iterator[Scene]:
    """A virtual cluster of this test's own."""
    made = Scene(*apis, tmp_path)
    yield made
    made.close()
