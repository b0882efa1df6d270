"""The network of the chaos on real servers leaves no connection behind, whenever it is cut."""

import asyncio
import gc
import socket
from collections.abc import Iterator

import pytest
from api import Loop
from real_chaos.network import Cable

from hack.ports import free_port


@pytest.fixture
def own_loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.stop()


def test_connection_that_is_taken_while_the_network_is_cut_is_closed(own_loop: Loop) -> None:
    cable = Cable(own_loop, target=free_port(), port=free_port())

    async def cut_at_once() -> socket.socket:
        """Cut it when the event loop has accepted a connection, and has not made a transport of it."""
        client = socket.create_connection(("127.0.0.1", cable.port))
        for _ in range(2):
            await asyncio.sleep(0)
        await cable._refuse()
        return client

    with own_loop.run(cut_at_once()):
        gc.collect()
    cable.close()
