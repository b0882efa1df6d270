"""The identity of a virtual cluster is read before deletions: once after a list, however many there are."""

import asyncio

import pytest

from syncer.api import Refused
from syncer.engine.apply.preconditions import Claim

pytestmark = pytest.mark.real_time


class Server:
    """The virtual API server, as far as the identity goes."""

    def __init__(self) -> None:
        self.asked, self.has_it = 0, True

    async def check(self) -> None:
        self.asked += 1
        await asyncio.sleep(0.01)
        if not self.has_it:
            raise Refused("the identity is not stored")


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def claim(server: Server) -> Claim:
    made = Claim()
    made.check = server.check
    made.lists += 1
    return made


async def deletions(claim: Claim, number: int = 20) -> list[BaseException | None]:
    """Confirm the identity for deletions at the same time; return the error of each."""
    return await asyncio.gather(*(claim.confirm() for _ in range(number)), return_exceptions=True)


async def test_deletions_at_the_same_time_share_one_confirmation(claim: Claim, server: Server) -> None:
    assert not claim.is_confirmed
    assert await deletions(claim) == [None] * 20
    assert (server.asked, claim.is_confirmed) == (1, True)
    claim.lists += 1
    assert not claim.is_confirmed
    await deletions(claim)
    assert server.asked == 2


async def test_list_that_ends_meanwhile_needs_another_confirmation(claim: Claim, server: Server) -> None:
    first = asyncio.create_task(claim.confirm())
    await asyncio.sleep(0)
    claim.lists += 1
    await first
    assert not claim.is_confirmed
    await claim.confirm()
    assert (server.asked, claim.is_confirmed) == (2, True)


async def test_no_deletion_goes_on_without_the_identity(claim: Claim, server: Server) -> None:
    server.has_it = False
    assert all(isinstance(each, Refused) for each in await deletions(claim, 3))
    assert not claim.is_confirmed
