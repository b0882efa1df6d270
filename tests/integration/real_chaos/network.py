"""The network between the daemons and one API server, to be cut and silenced."""

import asyncio
import contextlib

from api import Loop

#: Bytes that are passed on at a time.
CHUNK = 1 << 16


class Cable:
    """Passes on what is sent to its port, while it isn't cut or silent."""

    def __init__(self, loop: Loop, *, target: int, port: int) -> None:
        self._loop, self._target, self.port = loop, target, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._open = loop.run(_set())
        self.plug()

    def plug(self) -> None:
        """Take connections."""
        self._loop.run(self._listen())

    def cut(self) -> None:
        """Reset all connections and refuse new ones, until ``plug``."""
        self._loop.run(self._refuse())

    def close(self) -> None:
        """End it."""
        self.cut()
        self.speak(reset=False)  # nothing waits any more

    def silence(self) -> None:
        """Pass nothing on, so that no end knows whether the other one is there; until ``speak``."""
        self._loop.run(self._clear())

    def speak(self, *, reset: bool) -> None:
        """Pass on what was held back and all that follows; or reset the connections that were silent."""
        self._loop.run(self._speak(reset))

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _refuse(self) -> None:
        if self._server:
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening)
            # What has been accepted becomes a transport first; asyncio loses it if its server is closed by then.
            await asyncio.sleep(0)
            self._server.close()
        self._server = None
        self._reset()

    async def _clear(self) -> None:
        self._open.clear()

    async def _speak(self, reset: bool) -> None:
        if reset:
            self._reset()
        self._open.set()

    def _reset(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        self._writers.add(writer)
        try:
            if self._server is None:
                return  # it was cut while this connection was taken
            there, away = await asyncio.open_connection("127.0.0.1", self._target)
            ends.append(away)
            self._writers.add(away)
            if self._server is None:
                return
            directions = [
                asyncio.ensure_future(direction) for direction in (self._pass(reader, away), self._pass(there, writer))
            ]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        except OSError:
            return  # nobody listens there: this side learns it, too
        finally:
            for end in ends:
                self._writers.discard(end)
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._open.wait()
                writer.write(data)
                await writer.drain()


async def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
