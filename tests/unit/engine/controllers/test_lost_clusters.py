"""A cluster counts as lost when a probe gets no answer either, and as back when one does."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from syncer.api import Side
from syncer.api.errors import Unreachable
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse
from syncer.engine.controllers.connection import Connection

#: Seconds, after which a test gives up.
PATIENCE = 60.0
RESET = Unreachable("reset")


class Probed:
    """A transport that answers or doesn't, and the connection that it is of."""

    def __init__(self) -> None:
        self.answers, self.probes, self.told = True, 0, list[str]()
        cluster: Any = SimpleNamespace(virtual_cluster="vc", side=Side.VIRTUAL, transport=self)
        self.connection = Connection(
            cast("Any", cluster), lost=lambda: self.told.append("lost"), back=lambda: self.told.append("back")
        )

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.probes += 1
        if not self.answers:
            raise ConnectionFailed("refused")
        return HttpResponse(200, {}, b"ok")


async def steps() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_cluster_that_answers_the_probe_is_not_lost() -> None:
    """An API server may reset the requests for a single kind, again and again."""
    probed = Probed()

    async def scenario() -> None:
        running = asyncio.create_task(probed.connection.run())
        for number in range(1, 4):
            probed.connection.lost(RESET)
            probed.connection.lost(RESET)
            assert probed.connection.up
            await steps()
            assert (probed.connection.up, probed.told, probed.probes) == (True, [], number)
        running.cancel()

    asyncio.run(scenario())


def test_cluster_is_lost_until_a_probe_is_answered() -> None:
    probed = Probed()

    async def scenario() -> None:
        running = asyncio.create_task(probed.connection.run())
        probed.answers = False
        probed.connection.lost(RESET)
        await steps()
        assert (probed.connection.error, probed.told) == (RESET, ["lost"])
        probed.connection.lost(Unreachable("another"))
        assert probed.connection.error is RESET
        probed.answers = True
        async with asyncio.timeout(PATIENCE):
            while not probed.connection.up:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
        assert probed.told == ["lost", "back"]
        running.cancel()

    asyncio.run(scenario())
