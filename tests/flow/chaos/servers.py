"""The API servers of a play, and the wire to them that a process loses when it is killed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from wrapped_stream import WrappedStream

from kube_envtest.apiserver.deletion import DeleteOptions
from kube_envtest.apiserver.storage import Event
from syncer.api import Key
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse, Stream
from syncer.testing import ApiServer
from syncer.testing.in_process import MemoryTransport

Changed = Callable[[str, Event], None]


class Server(ApiServer):
    """An API server that reports the user of each change."""

    #: The user whose request is being answered; ``""`` where people of the play change something.
    by = ""

    def __init__(self, *, seed: str) -> None:
        super().__init__(seed=seed)

    def _answer(self, request: Any, rules: Any, call: Any) -> Any:
        self.by = request.user.name
        try:
            return super()._answer(request, rules, call)
        finally:
            self.by = ""

    def listen(self, changed: Changed) -> None:
        """Tell of every change, by table and event, at the moment when it happens."""
        self._parts.storage.listeners.append(changed)

    def knows(self, resource: str) -> bool:
        """Return True if it serves a resource at present."""
        try:
            self._type(resource)
        except KeyError:
            return False
        return True

    def end(self, resource: str, key: str) -> None:
        """Delete as ``kubectl delete`` does: Pods have their grace period."""
        rt, found = self._type(resource), Key.parse(key)
        entry = self._parts.storage.get(rt.table_name, f"{found.namespace}/{found.name}")
        if entry is not None:
            self._parts.deleter.delete(rt, entry, DeleteOptions(propagation="Background", now=self._clock()))
            self._parts.controllers.run()


class _Read(WrappedStream):
    """A watch that stays unread while the process is frozen."""

    def __init__(self, inner: Stream, thawed: asyncio.Event) -> None:
        super().__init__(inner)
        self._thawed = thawed

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        async for batch in self.inner:
            await self._thawed.wait()
            yield batch


class Wire(MemoryTransport):
    """The requests of a process to a server; when the process is killed, those under way may still be done.

    While ``thawed`` isn't set, the process is frozen: it sends nothing, and reads no answer.
    """

    def __init__(self, server: Server, user: str, thawed: asyncio.Event) -> None:
        super().__init__(server, server._user(user))
        self._thawed = thawed
        self._dead = False
        self._under_way: set[asyncio.Task[HttpResponse]] = set()

    def die(self, *, land: bool) -> None:
        """Send nothing any more; what is under way is still done, or is not."""
        self._dead = True
        for task in self._under_way if not land else ():
            task.cancel()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request, which goes on when its caller waits for it no longer."""
        await self._may_go_on()
        response = await self._sent(super().send(request))
        await self._may_go_on()
        return response

    async def _sent(self, sent: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        task = asyncio.create_task(sent)
        self._under_way.add(task)
        task.add_done_callback(self._done)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not self._dead:
                task.cancel()
            me = asyncio.current_task()
            if me and not me.cancelling():  # it was the request that ended, and not who waits for it
                raise ConnectionFailed("the process is dead") from None
            raise

    def _done(self, task: "asyncio.Task[HttpResponse]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        """Open a watch."""
        await self._may_go_on()
        async with super().stream(request) as stream:
            yield _Read(stream, self._thawed)

    async def _may_go_on(self) -> None:
        await self._thawed.wait()
        if self._dead:
            raise ConnectionFailed("the process is dead")
