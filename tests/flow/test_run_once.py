"""``run --once`` writes only while no daemon does."""

import asyncio

import pytest
from harness import HOME, Two, admin, built_in, configured, place, play, until, writes
from harness import Tenant as Given

from syncer.api import Key, Side
from syncer.config import SyncerConfig
from syncer.engine import runner
from syncer.engine.leaderelection.lease import AnotherLeads, Lease
from syncer.testing.objects import configmap


def config(two: Two, *, elect: bool) -> SyncerConfig:
    made = configured(Given(two.virtual, options={"configMaps": {"all": True}}), built_in("configmaps"))
    election = made.leader_election.model_copy(update={"enabled": elect})
    return made.model_copy(update={"leader_election": election})


@pytest.fixture(autouse=True)
def _connected(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_: object) -> runner.Clusters:
        return runner.Clusters(admin(two.host, Side.HOST), {"vc": admin(two.virtual, Side.VIRTUAL)})

    monkeypatch.setattr(runner, "_connected", connected)


@pytest.mark.parametrize("elect", [True, False])
def test_alone_it_does_all_and_leaves_the_lease_to_others(two: Two, elect: bool) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x"))
        summary = await runner.run(config(two, elect=elect), once=True)
        assert summary.exit_code == 0
        assert two.host.get("configmaps", place("x"))
        lease = two.host.get("leases.coordination.k8s.io", f"{HOME}/vsyncer-vc")
        assert (lease["spec"]["holderIdentity"] == "") if lease else not elect

    play(scenario)


def test_beside_a_daemon_it_writes_nothing_and_says_who_leads(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x"))
        daemon = Lease(admin(two.host, Side.HOST), key=Key(HOME, "vsyncer-vc"), identity="the-daemon")
        leading = asyncio.create_task(daemon.lead(asyncio.Event().wait))  # type: ignore[arg-type]
        await until(lambda: daemon.is_leader)
        with pytest.raises(AnotherLeads, match="the-daemon leads"):
            await runner.run(config(two, elect=True), once=True)
        assert not [line for line in writes(two.host) if "configmaps" in line]
        summary = await runner.run(config(two, elect=True), dry_run=True)
        assert any("create configmaps" in line for line in summary.planned)
        leading.cancel()
        await asyncio.wait({leading})

    play(scenario)
