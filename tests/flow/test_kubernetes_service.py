"""The virtual Service ``default/kubernetes`` gets the address that pods use, however long another Service has it."""

import asyncio

import pytest
from harness import CLUSTER, HOME, Two, admin, between, built_in, play, until
from sampled import config_model

from syncer.api import Key, Side, dig
from syncer.daemon.pages.status import degraded
from syncer.resources.kinds import SERVICES
from syncer.resources.services import KUBERNETES
from syncer.testing.objects import service

#: In the range of the virtual API server.
ADDRESS = "10.96.0.77"


def test_refused_address_is_given_once_it_is_free_and_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing that the Service itself shows changes when another one sets the address free."""
    model = config_model(built_in("services"))
    here = {"cluster": CLUSTER, "host": {"namespace": HOME}, "networking": {"apiServer": {"host": ADDRESS}}}
    config = model.model_validate(here)

    async def scenario() -> None:
        two = Two()
        two.virtual.put(service("kubernetes", namespace="default", spec={"clusterIP": "10.96.0.1"}))
        client = admin(two.virtual, Side.VIRTUAL)
        await client.create(SERVICES, service("other", namespace="default", spec={"clusterIP": ADDRESS}))
        async with between(two.host, [(config, two.virtual)]) as daemon:
            await until(lambda: degraded(daemon.process))
            await asyncio.sleep(600)
            assert "can't have the address" in str(dict(degraded(daemon.process)))
            since = len(two.virtual.requests)
            await asyncio.sleep(600)
            patches = [one for one in list(two.virtual.requests)[since:] if one.verb == "patch"]
            assert len(patches) <= 10
            await client.delete(SERVICES, Key("default", "other"))
            await until(
                lambda: dig(two.virtual.get("services", KUBERNETES) or {}, "spec.clusterIP") == ADDRESS, within=120
            )
            await until(lambda: not degraded(daemon.process))

    play(scenario)
    assert capsys.readouterr().err.count("can't have the address") == 1
