"""``run --once`` writes only while no daemon does, and nothing at all before its host namespace is there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from harness import HOME, Two, admin, built_in, configured, host_path, namespace, until, writes
from harness import Tenant as Given

from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import ConfigError, Forbidden, Key, Side
from syncer.clusters.client import SideClient
from syncer.clusters.errors import ClusterOrigin
from syncer.config import SyncerConfig
from syncer.daemon import runner
from syncer.daemon.pages import status
from syncer.daemon.process import Process
from syncer.daemon.start import connecting, startup
from syncer.daemon.uninstall.uninstall import uninstall
from syncer.engine.stores import identity
from syncer.leaderelection.lease import AnotherLeads, Lease
from syncer.testing.objects import configmap


def config(two: Two, *, elect: bool) -> SyncerConfig:
    made = configured(Given(two.virtual, options={"configMaps": {"all": True}}), built_in("configmaps"))
    election = made.leader_election.model_copy(update={"enabled": elect})
    virtual = tuple(each.model_copy(update={"kubeconfig": "vc.kubeconfig"}) for each in made.virtual_clusters)
    return made.model_copy(update={"leader_election": election, "virtual_clusters": virtual})


@pytest.fixture(autouse=True)
def _connected(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(given: object, side: Side, *_: object) -> SideClient:
        cluster = admin(two.host if side is Side.HOST else two.virtual, side)
        cluster.origin = ClusterOrigin(f"https://{side}")
        return cluster

    monkeypatch.setattr(connecting, "_connect", connect)


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("verb", ["get", "list", "create"])
async def test_server_that_asks_to_come_back_is_waited_for_at_a_first_start(two: Two, side: Side, verb: str) -> None:
    """A CRD that is seconds old is answered with 429, as is whatever an API server has no room for."""
    two.virtual.put(configmap("x"))
    server = two.host if side is Side.HOST else two.virtual
    rule = server.faults.add(Rule(verb=verb, status=429, retry_after=1, count=6))
    summary = await runner.run(config(two, elect=False), once=True)
    assert (summary.exit_code, summary.troubles) == (0, [])
    assert rule.hits
    assert two.host.get("configmaps", host_path("x"))


async def test_server_that_asks_to_come_back_is_waited_for_by_an_uninstall(two: Two) -> None:
    two.virtual.put(configmap("x"))
    given = config(two, elect=False)
    await runner.run(given, once=True)
    for server in (two.host, two.virtual):
        server.faults.add(Rule(verb="list", status=429, retry_after=1, count=6))
    async with connecting.connected(given, given.cluster()) as clusters:
        report = await uninstall(given, given.cluster(), clusters, yes=True, keep=False)
    assert (report.problems, report.done) == ([], True)
    assert two.host.get("configmaps", host_path("x")) is None


@pytest.mark.parametrize("elect", [True, False])
async def test_run_once_does_all_and_releases_the_lease(two: Two, elect: bool) -> None:
    two.virtual.put(configmap("x"))
    summary = await runner.run(config(two, elect=elect), once=True)
    assert summary.exit_code == 0
    assert two.host.get("configmaps", host_path("x"))
    lease = two.host.get("leases.coordination.k8s.io", f"{HOME}/vsyncer-vc")
    assert (lease["spec"]["holderIdentity"] == "") if lease else not elect


async def test_run_once_beside_a_daemon_writes_nothing_and_names_the_leader(two: Two) -> None:
    two.virtual.put(configmap("x"))
    daemon = Lease(admin(two.host, Side.HOST), key=Key(HOME, "vsyncer-vc"), identity="the-daemon")
    async with helped_by(daemon.lead(asyncio.Event().wait)):  # type: ignore[arg-type]
        await until(lambda: daemon.is_leader)
        with pytest.raises(AnotherLeads, match="the-daemon leads"):
            await runner.run(config(two, elect=True), once=True)
        assert not [line for line in writes(two.host) if "configmaps" in line]
        summary = await runner.run(config(two, elect=True), dry_run=True)
        assert any("create configmaps" in line for line in summary.planned)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_missing_host_namespace_ends_the_run_and_stores_no_identity(two: Two, dry_run: bool) -> None:
    two.host.delete("namespaces", HOME)
    with pytest.raises(ConfigError, match=f"the namespace {HOME} doesn't exist on the host"):
        await runner.run(config(two, elect=False), once=True, dry_run=dry_run)
    assert not writes(two.virtual)


def _without_ports(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """Run daemons without their ports; return their processes, once they run."""
    processes: list[Process] = []

    @contextlib.asynccontextmanager
    async def without_ports(process: Process, *_: object) -> AsyncIterator[None]:
        processes.append(process)
        yield

    monkeypatch.setattr(runner, "serving", without_ports)
    return processes


async def test_daemon_waits_for_its_host_namespace_names_it_and_stores_no_identity_before(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = _without_ports(monkeypatch)
    two.host.delete("namespaces", HOME)
    two.virtual.put(configmap("x"))
    async with helped_by(runner.run(config(two, elect=False))):
        await asyncio.sleep(20)
        assert not writes(two.virtual)
        missing = "the host namespace isn't there, or the daemon may not read it"
        assert status.unfilled(processes[0]) == {"vc": [missing]}
        two.host.put(namespace(HOME))
        await until(lambda: two.host.get("configmaps", host_path("x")) is not None)
        assert two.virtual.get("configmaps", "kube-system/vsyncer")


@pytest.mark.parametrize("once", [True, False])
async def test_only_a_daemon_waits_for_the_right_to_the_identity(
    two: Two, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    processes = _without_ports(monkeypatch)
    real, refused = identity.claim, Forbidden("get configmaps kube-system/vsyncer is forbidden")
    granted = asyncio.Event()

    async def claim(*arguments: Any, **options: Any) -> None:
        if not granted.is_set():
            raise refused
        await real(*arguments, **options)

    monkeypatch.setattr(startup, "claim", claim)
    two.virtual.put(configmap("x"))
    if once:
        with pytest.raises(Forbidden):
            await runner.run(config(two, elect=False), once=True)
        return
    async with helped_by(runner.run(config(two, elect=False))):
        await asyncio.sleep(20)
        assert not writes(two.host)
        assert status.unfilled(processes[0]) == {"vc": ["a right that the start needs is missing"]}
        granted.set()
        await until(lambda: two.host.get("configmaps", host_path("x")) is not None)
