"""`syncer explain` gives, in each case beside this file, the state and the reason that the case leads to."""

import asyncio
from typing import Any

import pytest
from sampled import CASES, registry

from syncer.api import Refused, Side, SyncRequest
from syncer.api.reasons import RequestState, StateReason
from syncer.clusters.client import SideClient
from syncer.daemon.pages.explain import explained
from syncer.daemon.process import Process
from syncer.engine.controllers.failure_reasons import failure_reason
from syncer.engine.controllers.request_status import decided_status
from syncer.observe.metrics import Metrics
from syncer.testing import ApiServer
from syncer.testing.cases import Case
from syncer.testing.world import World

#: A host that nothing is sent to.
UNUSED = SideClient("host", Side.HOST, ApiServer(seed="host").transport())


def expected_status(world: World, case: Case) -> tuple[RequestState, StateReason] | None:
    """Return the state and the reason that a worker would note; None if the object is in step, or then is."""
    try:
        decision = world.decide(case.file.syncer, case.model.ask, host_key=case.model.host_key)
    except Refused as error:
        return RequestState.PARKED, failure_reason(error, str(error))
    return decided_status(decision)


async def explain(world: World, request: SyncRequest) -> dict[str, Any]:
    """Return the explanation of a request by a command that has no daemon to ask."""
    process = Process(host=UNUSED, metrics=Metrics(version="test"))
    return await explained(process, world.pair, world.pair.controllers[request.syncer], request)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case_is_explained_with_its_reason(case: Case) -> None:
    world = case.world(registry())
    expected = expected_status(world, case)
    found = asyncio.run(explain(world, world.request(case.file.syncer, case.model.ask, host_key=case.model.host_key)))
    if expected is None:
        assert found["code"] in ("", "Unwritten")
        return
    state, reason = expected
    assert (found["state"], found["code"], found["reason"]) == (state.value, reason.code.name, reason)
    assert found["wayOut"] == reason.way_out


@pytest.mark.parametrize("case", [each for each in CASES if each.model.expect.code], ids=str)
def test_case_with_a_code_has_it_in_its_explanation(case: Case) -> None:
    world = case.world(registry())
    request = world.request(case.file.syncer, case.model.ask, host_key=case.model.host_key)
    found = asyncio.run(explain(world, request))
    assert case.model.expect.code in (found["code"], found["decision"].get("code"))
