"""The pytest plugin of this package, registered in the entry-point group ``pytest11``, so that its
fixtures need no import.

Tests that use ``control_plane`` or ``control_plane_programs``, and tests marked ``controlplane``,
need a real kube-apiserver. Without one they are skipped, with a loud summary; with
`ENVTEST_REQUIRED=1` in the environment pytest refuses to run instead.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

import kube_envtest

SKIPPED = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "controlplane: needs a real kube-apiserver (see kube_envtest.find)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests that need a real API server if there is none, or refuse to run."""
    real = [item for item in items if _needs_one(item)]
    reason = _why_not() if real else ""
    if not reason:
        return
    if os.environ.get("ENVTEST_REQUIRED") == "1":
        raise pytest.UsageError(f"ENVTEST_REQUIRED=1, but {reason}")
    config.stash[SKIPPED] = f"{len(real)} tests on real API servers were SKIPPED: {reason}"
    for item in real:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Print a last line with the number of skipped tests, and the way to a real API server."""
    yield
    if line := config.stash.get(SKIPPED, ""):
        terminalreporter.write_line(line, red=True, bold=True)


def _needs_one(item: pytest.Item) -> bool:
    named = "control_plane_programs" in getattr(item, "fixturenames", ())  # including those of its fixtures' fixtures
    return named or item.get_closest_marker("controlplane") is not None


def _why_not() -> str:
    try:
        kube_envtest.find()
    except kube_envtest.NotAvailable as error:
        return str(error)
    return ""


@pytest.fixture
def api_server() -> Iterator[kube_envtest.BackgroundApiServer]:
    """Yield an empty API server in this process, for this test alone; every user may do everything."""
    with kube_envtest.BackgroundApiServer() as server:
        yield server


@pytest.fixture
def api_server_kubeconfig(api_server: kube_envtest.BackgroundApiServer, tmp_path: Path) -> Path:
    """Return a kubeconfig of the administrator of ``api_server``."""
    return api_server.kubeconfig(tmp_path / "api-server.kubeconfig")


@pytest.fixture(scope="session")
def control_plane_programs() -> kube_envtest.Programs:
    """Return the programs of control planes here, for fixtures that start their own with
    ``ControlPlane(programs=…)``.
    """
    return kube_envtest.find()


@pytest.fixture(scope="session")
def control_plane(control_plane_programs: kube_envtest.Programs) -> Iterator[kube_envtest.ControlPlane]:
    """Yield a real etcd and kube-apiserver for the session, without controllers; tests use
    namespaces of their own.
    """
    with kube_envtest.ControlPlane("envtest", programs=control_plane_programs) as plane:
        yield plane
