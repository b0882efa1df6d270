"""A Pod gets the variables of a Service that was created just before it, however slow the host is."""

import pytest
from harness import Two, admin, built_in, play, until

from kube_envtest import Rule
from syncer.api import Side
from syncer.resources.kinds import PODS, SERVICES
from syncer.resources.pods.env import COPY_SECONDS
from syncer.testing.objects import pod, service

SYNCERS = built_in("pods", "services", "nodes")


@pytest.mark.parametrize(
    ("seconds", "is_there"),
    [
        pytest.param(2.0, True, id="the copy is made in time"),
        pytest.param(COPY_SECONDS + 10, False, id="the copy is made too late"),
    ],
)
def test_pod_waits_for_the_variables_of_a_new_service_for_a_time(two: Two, seconds: float, is_there: bool) -> None:
    async def scenario() -> None:
        tenant = admin(two.virtual, Side.VIRTUAL)
        async with two.daemon(SYNCERS) as daemon:
            await daemon.settled()
            two.host.faults.add(Rule(verb="create", resource="services", latency=seconds))
            await tenant.create(SERVICES, service("db"))
            await tenant.create(PODS, pod("web"))
            await until(lambda: two.copy("pods", "web") is not None)
            copy = two.copy("pods", "web") or {}
            names = [variable["name"] for variable in copy["spec"]["containers"][0].get("env") or ()]
            assert ("DB_SERVICE_HOST" in names) is is_there

    play(scenario)
