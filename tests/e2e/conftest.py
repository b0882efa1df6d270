"""A real node for the tests of this folder; where none can run, they are skipped in one loud line."""

from collections.abc import Iterator

import pytest
from chart_scene import Chart, load_images
from node_scene import Node
from tenant_scene import Tenant

from hack.realnode import outside
from hack.realnode.node_site import NodeSite

#: The tests that ran on a node.
_ran: list[str] = []


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """Return the node of this checkout; one that runs already is left running."""
    site = NodeSite.here()
    if reason := outside.why_not():
        pytest.skip(f"NO REAL NODE: {reason}")
    runs_already = outside.pid_of(site) is not None
    outside.up(site)
    try:
        yield Node(site)
    finally:
        if not runs_already:
            outside.down(site)


@pytest.fixture(scope="session")
def images(node: Node, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load the images of the charts onto the node."""
    load_images(node, tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def tenant(node: Node, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    """Return a release of the chart on the node, with etcd's data on a volume."""
    tenant = Tenant(node, tmp_path_factory.mktemp("tenant"))
    with tenant.running():
        yield tenant


@pytest.fixture(scope="session")
def chart(tenant: Tenant) -> Chart:
    """Return the same, without what only a tenant looks at."""
    return tenant


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that ran on a node."""
    if report.when == "call" and report.nodeid.startswith("tests/e2e/"):
        _ran.append(report.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how many tests ran on a node."""
    terminalreporter.write_line(f"{len(_ran)} tests ran on a real node")
