"""Scenes for the integration tests: a virtual cluster of its own for each, on the planes of the session."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from api import Api, Loop
from scene import Scene

from hack.kubelet import Kubelet
from hack.planes import HOST_CONTROLLERS, VIRTUAL_CONTROLLERS
from hack.realnode import builds
from kube_envtest import ControlPlane, Programs, start_all
from syncer.api import Side

FIGURES = pytest.StashKey[list[str]]()
#: Fixtures whose daemons live as long as a module, which shows their logs only at its end.
LONG_LIVED = ("world", "platform")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of these logs with each test that fails."""
    report = yield
    if report.failed:
        scenes = [getattr(item, "funcargs", {}).get(name) for name in LONG_LIVED]
        for daemon, log in (each for scene in scenes if scene for each in scene.logs()):
            report.sections.append((f"end of the log of {daemon}", log))
    return report


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Show a line at the end of the run, whether or not the test passes."""

    def show(line: str) -> None:
        request.config.stash.setdefault(FIGURES, []).append(f"{request.node.name}: {line}")

    return show


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what tests have measured."""
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """The event loop of the tests' clients."""
    running = Loop()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def planes(control_plane_programs: Programs) -> Iterator[tuple[ControlPlane, ControlPlane]]:
    """Two running clusters, host and virtual.

    Both have a kube-controller-manager, except with setup-envtest's programs, which have none: then the ServiceAccount
    admission plugin is off and `controllers` is empty.
    """
    has_controllers = control_plane_programs.has("kube-controller-manager")
    host = ControlPlane(
        "host", programs=control_plane_programs, controllers=HOST_CONTROLLERS if has_controllers else ""
    )
    virtual = ControlPlane(
        "virtual",
        programs=control_plane_programs,
        controllers=VIRTUAL_CONTROLLERS if has_controllers else "",
        service_range="10.97.0.0/16",  # so that a ClusterIP tells which side it is from
    )
    start_all(host, virtual)
    yield host, virtual
    host.stop()
    virtual.stop()


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


@pytest.fixture(scope="module")
def second(control_plane_programs: Programs, loop: Loop) -> Iterator[Api]:
    """The API server of another tenant."""
    plane = ControlPlane("second", programs=control_plane_programs)
    start_all(plane)
    api = Api(loop, plane, Side.VIRTUAL)
    yield api
    api.close()
    plane.stop()


@pytest.fixture(scope="module")
def chart_host(control_plane_programs: Programs, loop: Loop) -> Iterator[Api]:
    """A host where Deployments and Jobs make pods, for releases by Helm."""
    if not control_plane_programs.has("kube-controller-manager"):
        pytest.skip("these programs have no kube-controller-manager")
    if not builds.is_built("helm") and os.environ.get("CI") != "true":
        pytest.skip("helm is not built: python -m hack.realnode.builds")
    controllers = f"{HOST_CONTROLLERS},deployment-controller,replicaset-controller,job-controller"
    plane = ControlPlane("chart-host", programs=control_plane_programs, controllers=controllers)
    plane.start()
    api = Api(loop, plane, Side.HOST)
    yield api
    api.close()
    plane.stop()


@pytest.fixture
def scene(apis: tuple[Api, Api], tmp_path: Path) -> Iterator[Scene]:
    """A virtual cluster of this test's own."""
    made = Scene(*apis, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def world(apis: tuple[Api, Api], loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A virtual cluster for a whole module, its host with a kubelet, and a daemon without a right too many."""
    made = Scene(*apis, tmp_path_factory.mktemp("world"))
    kubelet = Kubelet(made.host.cluster, made.host_namespace, node=f"node-{made.name}")
    playing = loop.start(kubelet.run())
    try:
        priorities = {"enabled": True, "maxValue": 100}
        policies = {"enabled": True, "allowedCIDRs": {"egress": [{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}]}}
        budgets = {"enabled": True}
        sync = {"toHost": {"podDisruptionBudgets": budgets, "priorityClasses": priorities, "networkPolicies": policies}}
        running = made.daemon(made.config(user="daemon", sync=sync))
        made.grant(running, "daemon")
        running.start()
        yield made
        assert kubelet.overwritten == 0, "somebody has overwritten what the kubelet had reported"
    finally:
        made.close()
        loop.end(playing)


@pytest.fixture
def ns(world: Scene) -> Iterator[str]:
    """A virtual namespace of a test's own in the world.

    The test fails if the API servers had to refuse the daemon something, or it wrote what changed nothing.
    """
    yield world.namespace()
    world.must_be_content()
