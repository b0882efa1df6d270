"""Clusters of a cache in virtual time: API servers in this process, at addresses that may be dead."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from hack.side_tasks import helped_by
from syncer.api import Key, Obj
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.login import Login
from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, Endpoint, HttpRequest, HttpResponse
from syncer.multicluster import (
    ClusterCache,
    ClusterCacheOptions,
    ClusterEvent,
    ClusterSource,
    ProvidedCluster,
    Provider,
    StaticProvider,
)
from syncer.testing.in_process import ApiServer, MemoryTransport

#: The token that a server accepts unless told otherwise.
GOOD = "good"


class Site:
    """An API server at an address, and what it does to those who connect."""

    def __init__(self, name: str) -> None:
        self.name, self.server = name, ApiServer()
        #: False: connections are swallowed, as by a firewall.
        self.is_reachable = True
        self.tokens = {GOOD}
        #: The times of requests for a path.
        self.asked: list[tuple[float, str]] = []
        #: Tokens that came with requests, in order, each once in a row.
        self.used_tokens: list[str] = []
        self.closed = 0
        #: Paths that are answered with a status, so many times.
        self.refusals: dict[str, tuple[int, float]] = {}

    def refuse(self, path: str = "/", *, status: int = 500, count: float = float("inf")) -> None:
        """Answer a path with a status, so many times."""
        self.refusals[path] = status, count

    def refusal(self, path: str) -> HttpResponse | None:
        """Return the answer if the path is refused."""
        status, count = self.refusals.get(path, (0, 0))
        if count <= 0:
            return None
        self.refusals[path] = status, count - 1
        return HttpResponse(status, {}, b'{"kind": "Status", "code": %d}' % status)

    def login(self, token: str = GOOD, *, host: str = "", source: str = "the test") -> Login:
        return Login(Endpoint(host or self.name, 6443, tls=False, source=source), token=token)

    def at(self, path: str) -> list[float]:
        return [when for when, asked in self.asked if asked == path]


class Door:
    """A transport to whatever is at an address."""

    def __init__(self, sites: Mapping[str, Site], credentials: LoginCredentials) -> None:
        self._credentials = credentials
        self._site = sites.get(credentials.login.endpoint.host)
        self._inner = MemoryTransport(self._site.server) if self._site else None
        self._is_closed = asyncio.Event()

    async def _enter(self, request: HttpRequest) -> bool:
        """Return True if the credentials are accepted."""
        site = self._site
        if self._is_closed.is_set():
            raise ConnectionFailed("closed by us")
        if site is not None:
            site.asked.append((asyncio.get_running_loop().time(), request.path.partition("?")[0]))
        if site is None or not site.is_reachable:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(request.timeout):
                    await self._is_closed.wait()
                    raise ConnectionFailed("closed by us")
            raise DeadlineExceeded("no connection in time")
        access = await self._credentials.access()
        token = dict(access.headers).get("Authorization", "").removeprefix("Bearer ")
        if site.used_tokens[-1:] != [token]:
            site.used_tokens.append(token)
        return token in site.tokens

    async def send(self, request: HttpRequest) -> HttpResponse:
        if not await self._enter(request):
            return HttpResponse(401, {}, b'{"kind": "Status", "code": 401, "reason": "Unauthorized"}')
        assert self._site is not None
        assert self._inner is not None
        return self._site.refusal(request.path) or await self._inner.send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Any]:
        if not await self._enter(request):
            raise ConnectionFailed("401")
        assert self._inner is not None
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        self._is_closed.set()
        if self._site is not None:
            self._site.closed += 1


class CacheScene:
    """A cache of clusters, each a site; times are virtual, and delays to reconnect are the longest possible."""

    def __init__(
        self,
        *names: str,
        providers: list[Provider] | None = None,
        environ: Mapping[str, str] | None = None,
        vary: bool = False,
        **options: Any,
    ) -> None:
        self.sites = {name: Site(name) for name in names}
        self.static = StaticProvider({name: site.login() for name, site in self.sites.items()})
        made = ClusterCacheOptions(**{"user_agent": "test", **options})
        self.cache = ClusterCache(
            [self.static] if providers is None else providers,
            made,
            environ=environ or {},
            clock=asyncio.get_running_loop().time,
            dial=lambda credentials, _: Door(self.sites, credentials),
        )
        if not vary:
            self.cache._vary = lambda a, b: b

    def __getitem__(self, name: str) -> Site:
        return self.sites[name]

    def member(self, name: str, token: str = GOOD, **parts: Any) -> ProvidedCluster:
        login = self.sites[name].login(token) if name in self.sites else Site(name).login(token)

        async def read() -> Login:
            return login

        return replace(ProvidedCluster(read=read, version=login), **parts)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ClusterCache]:
        async with helped_by(self.cache.run()):
            await asyncio.sleep(0.1)
            yield self.cache


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(time: float) -> None:
    await asyncio.sleep(max(0.0, time - now()))


def waiting(source: ClusterSource) -> list[ClusterEvent]:
    return list(source._waiting)


class Handler:
    """Notes what a watch is told: names, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, key: Key, _: Obj) -> None:
        self.names.append(key.name)
