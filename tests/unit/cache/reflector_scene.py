"""An API server with scripted responses, and a reflector of it in virtual time."""

import asyncio
import contextlib
import json
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from informer_scene import MAPS

from hack.side_tasks import helped_by
from kube_envtest import virtual_time
from syncer.api import Obj, Side
from syncer.api.errors import SyncerError
from syncer.cache.informer import Informer
from syncer.cache.reflector import Reflector
from syncer.clusters.client import SideClient
from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, HttpRequest, HttpResponse, Stream


class Later(NamedTuple):
    """A reply that comes after some seconds."""

    seconds: float
    reply: HttpResponse


#: One answer: a reply, or that none comes.
Answer = HttpResponse | Later | ConnectionFailed
#: One step of a watch: events that arrive together, seconds that pass, or that the connection is cut.
Step = list[bytes] | float | ConnectionFailed

LOST = ConnectionFailed("refused")
#: How a watch begins, and goes on.
Opening = HttpResponse | ConnectionFailed | list[Step]
#: As long as a watch is asked to live where chance is even.
LIFE = 450.0


def page(version: str, *items: Obj, token: str = "") -> HttpResponse:
    """Return a page of a list."""
    body = {"kind": "ConfigMapList", "metadata": {"resourceVersion": version, "continue": token}, "items": items}
    return HttpResponse(200, {}, json.dumps(body).encode())


def refusal(code: int, reason: str) -> HttpResponse:
    """Return a Status as a reply."""
    return HttpResponse(code, {}, json.dumps(status(code, reason)).encode())


def status(code: int, reason: str) -> Obj:
    return {"kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": reason}


def line(kind: str, value: Obj) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": value}).encode()


def bookmark(version: str) -> bytes:
    return line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": version}})


class Even(random.Random):
    """Chance that always gives the middle, and so jitter that changes nothing."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


class Scripted:
    """A transport with answers for lists and watches; a watch without steps left stays open until it is silent."""

    def __init__(self, lists: Sequence[Answer], watches: Sequence[Opening]) -> None:
        self.lists, self.watches = deque(lists), deque(watches)
        #: What was asked, and when: ``list``, ``check`` or ``watch 5``.
        self.asked: list[tuple[float, str]] = []
        self.open = 0
        #: How many watches were open when each list was asked for.
        self.beside: list[int] = []
        #: The seconds that the latest watch was asked to live.
        self.life = 0.0

    async def send(self, request: HttpRequest) -> HttpResponse:
        query = parse_qs(urlsplit(request.path).query)
        self._note("check" if query["limit"] == ["1"] else "next page" if "continue" in query else "list")
        self.beside.append(self.open)
        if not self.lists:
            await asyncio.Event().wait()
        answer = self.lists.popleft()
        if isinstance(answer, Later):
            await asyncio.sleep(answer.seconds)
            answer = answer.reply
        else:
            await asyncio.sleep(0)
        if isinstance(answer, ConnectionFailed):
            raise answer
        return answer

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        query = parse_qs(urlsplit(request.path).query)
        self._note(f"watch {query['resourceVersion'][0]}")
        await asyncio.sleep(0)
        answer = self.watches.popleft() if self.watches else []
        if isinstance(answer, ConnectionFailed):
            raise answer
        self.open += 1
        try:
            assert request.idle_timeout
            self.life = float(query["timeoutSeconds"][0])
            yield Opened(answer, request.idle_timeout)
        finally:
            self.open -= 1

    async def close(self) -> None:
        """Nothing to end."""

    def _note(self, request: str) -> None:
        self.asked.append((round(asyncio.get_running_loop().time(), 3), request))


class Opened:
    """An open watch."""

    def __init__(self, answer: HttpResponse | list[Step], silence: float) -> None:
        self.headers: dict[str, str] = {}
        self._answer, self._silence = answer, silence
        self.status = answer.status if isinstance(answer, HttpResponse) else 200

    async def body(self) -> bytes:
        assert isinstance(self._answer, HttpResponse)
        return self._answer.body

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        assert isinstance(self._answer, list)
        for step in self._answer:
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, list):
                yield step
            else:
                raise step
        if not self._answer:
            await asyncio.sleep(self._silence)
            raise DeadlineExceeded("no byte came")


class Heard:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def synced(self, reflector: Reflector) -> None:
        self.calls.append("synced")

    def watching(self, reflector: Reflector) -> None:
        self.calls.append("watching")

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        self.calls.append(f"failed: {type(error).__name__}")

    def went_back(self, reflector: Reflector) -> None:
        self.calls.append("went back")

    def working(self, reflector: Reflector) -> None:
        self.calls.append("working")


class Scene:
    """A reflector at work."""

    def __init__(
        self,
        lists: Sequence[Answer] = (),
        watches: Sequence[Opening] = (),
        *,
        ordered: bool = True,
        rng: random.Random | None = None,
    ) -> None:
        self.server, self.heard = Scripted(lists, watches), Heard()
        loop = asyncio.get_running_loop()
        self.informer = Informer(MAPS, trusted=True, clock=loop.time, ordered=lambda: ordered)
        cluster = SideClient("host", Side.HOST, self.server)
        self.reflector = Reflector(cluster, self.informer, self.heard, rng=rng or Even())

    @property
    def asked(self) -> list[tuple[float, str]]:
        return self.server.asked

    def versions(self) -> dict[str, str]:
        entries = {key.name: self.informer.entry(key) for key in list(self.informer.keys())}
        return {name: entry.version for name, entry in entries.items() if entry}


@contextlib.asynccontextmanager
async def running(scene: Scene) -> AsyncIterator[Scene]:
    """Let a reflector run while the block does."""
    async with helped_by(scene.reflector.run()):
        yield scene


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtual_time.run(scenario())
