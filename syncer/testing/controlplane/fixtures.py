"""Fixtures for pytest: two running clusters a session, and tests marked `real` skipped loudly where none can be had.

In a top-level `conftest.py`::

    pytest_plugins = ["syncer.testing.controlplane.fixtures"]

With `SYNCER_REQUIRE_REAL=1` in the environment pytest refuses to run instead of skipping.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from syncer.testing.controlplane.errors import NotAvailable
from syncer.testing.controlplane.flags import HOST_CONTROLLERS, VIRTUAL_CONTROLLERS
from syncer.testing.controlplane.plane import ControlPlane, start_all
from syncer.testing.controlplane.programs import CONTROLLER_MANAGER, Programs
from syncer.testing.controlplane.sources import find

SKIPPED = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests marked `real` where there is no real API server, or refuse to run."""
    real = [item for item in items if item.get_closest_marker("real")]
    reason = _why_not() if real else ""
    if not reason:
        return
    if os.environ.get("SYNCER_REQUIRE_REAL") == "1":
        raise pytest.UsageError(f"SYNCER_REQUIRE_REAL=1, but {reason}")
    config.stash[SKIPPED] = f"{len(real)} tests on real API servers were SKIPPED: {reason}"
    for item in real:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Say in one loud line, after all others, what was skipped, and how to get it."""
    yield
    if line := config.stash.get(SKIPPED, ""):
        terminalreporter.write_line(line, red=True, bold=True)


def _why_not() -> str:
    try:
        find()
    except NotAvailable as error:
        return str(error)
    return ""


@pytest.fixture(scope="session")
def programs() -> Programs:
    """What control planes are made of here."""
    return find()


@pytest.fixture(scope="session")
def planes(programs: Programs) -> Iterator[tuple[ControlPlane, ControlPlane]]:
    """Two running clusters, host and virtual, started at the same time.

    Both have a kube-controller-manager, except with setup-envtest's programs, which have none: then the ServiceAccount
    admission plugin is off and `controllers` is empty.
    """
    has_controllers = programs.has(CONTROLLER_MANAGER)
    host = ControlPlane("host", programs=programs, controllers=HOST_CONTROLLERS if has_controllers else "")
    virtual = ControlPlane(
        "virtual",
        programs=programs,
        controllers=VIRTUAL_CONTROLLERS if has_controllers else "",
        service_range="10.97.0.0/16",  # so that a ClusterIP tells which side it is from
    )
    start_all(host, virtual)
    yield host, virtual
    host.stop()
    virtual.stop()


@pytest.fixture(scope="session")
def host_plane(planes: tuple[ControlPlane, ControlPlane]) -> ControlPlane:
    """The running host cluster of this session; tests use namespaces of their own."""
    return planes[0]


@pytest.fixture(scope="session")
def virtual_plane(planes: tuple[ControlPlane, ControlPlane]) -> ControlPlane:
    """The running virtual cluster of this session; tests use namespaces of their own."""
    return planes[1]
