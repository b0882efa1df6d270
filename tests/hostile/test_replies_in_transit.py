"""An API server that answers with much and never ends takes no more of the memory than there is for replies."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hostile_scene import HOME, QUIET, HostileScene, eventually

from kube_envtest import ApiServer
from kube_envtest.apiserver.request import Response

#: The most memory of the objects of the virtual cluster, in MB; replies have a quarter of it.
MEGABYTES = 64
#: The size of a reply, and of the pieces in which it is sent; the daemon reads pages of 8 MiB.
SIZE, PIECE = 7 << 20, 64 << 10
#: The lists that the daemon reads at a time at least.
LISTS = 10
#: The most by which the daemon grows, in MB. Measured: 24 to 26 while all stall, which are those 16, a reply that goes
#: on without room, and some of each other one, and 44 to 48 until all have come. Without a limit it was 77 while they
#: stalled.
GROWTH = 60


class Stalled:
    """Answers of a server to lists: blanks, then nothing for long, and then the list."""

    def __init__(self) -> None:
        self.asked = 0
        #: The bytes that the daemon has taken.
        self.taken = 0
        self.begins = False
        self.ends = False

    def stall(self, server: ApiServer) -> None:
        """Let a server answer lists so."""
        serve = server.serve

        async def serving(request: Any) -> Any:
            answer = await serve(request)
            is_list = "limit" in request.query and "as=" not in request.accept
            if is_list and isinstance(answer, Response):
                return Slow(self, answer.body)
            return answer

        server.serve = serving  # type: ignore[method-assign]


class Slow:
    """An answer to a list."""

    def __init__(self, stalled: Stalled, body: bytes) -> None:
        self._stalled = stalled
        self._body = body

    async def batches(self) -> AsyncIterator[list[bytes]]:
        stalled = self._stalled
        stalled.asked += 1
        await eventually_set(lambda: stalled.begins)
        for _ in range(SIZE // PIECE):
            yield [b" " * PIECE]
            stalled.taken += PIECE
        await eventually_set(lambda: stalled.ends)
        yield [self._body]

    def close(self) -> None:
        """Nothing is open."""


async def eventually_set(look: Callable[[], bool]) -> None:
    """Wait in the server for what the test decides."""
    while not look():  # noqa: ASYNC110 — the test runs in another thread
        await asyncio.sleep(0.01)


def _stays(number: Callable[[], int]) -> bool:
    """Return True if a number above zero stays as it is for a while."""
    before = number()
    time.sleep(2 * QUIET)
    return 0 < before == number()


@pytest.mark.translators("single-namespace", reason="the memory is the same with any of them")
def test_replies_that_stall_take_no_more_than_their_share(hostile: HostileScene) -> None:
    stalled = Stalled()
    hostile.tenant.call(stalled.stall)
    entry = {
        "name": "vc",
        "kubeconfig": str(hostile.folder / "virtual"),
        "hostNamespace": HOME,
        "maxMegabytes": MEGABYTES,
    }
    sections: dict[str, Any] = {
        "cluster": None,
        "virtual": None,
        "host": {"namespace": None},
        "virtualClusters": [entry],
    }
    hostile.start(wait=False, **sections)
    eventually(lambda: stalled.asked >= LISTS and _stays(lambda: stalled.asked), "all lists are asked for")
    before = hostile.daemon.rss()
    stalled.begins = True
    eventually(lambda: _stays(lambda: stalled.taken), "the daemon takes no more")
    assert hostile.daemon.peak() - before < GROWTH
    stalled.ends = True
    hostile.daemon.wait_ready()
    hostile.serves_others()
    assert hostile.daemon.peak() - before < GROWTH
