"""The in-process API server: its tests create it, send requests, and break it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, NamedTuple

from kube_envtest.apiserver import http
from kube_envtest.apiserver.assembly import assemble
from kube_envtest.apiserver.changes import Change, Changes
from kube_envtest.apiserver.clock import Clock, http_date, loop_clock, timestamp
from kube_envtest.apiserver.contents import Contents
from kube_envtest.apiserver.errors import ApiError
from kube_envtest.apiserver.faults import AFTER, BEFORE, Faults, Rule, failure
from kube_envtest.apiserver.lag import Lag, shown
from kube_envtest.apiserver.memory import ConnectionLost, MemoryClient
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.request import Call, Request, Response
from kube_envtest.apiserver.rest import refusal
from kube_envtest.apiserver.services import SERVICE_RANGE
from kube_envtest.apiserver.storage import HISTORY, Snapshot
from kube_envtest.apiserver.watch import Watch

Obj = dict[str, Any]

#: The user who may do everything.
ADMIN = User("admin", ("system:masters", "system:authenticated"))

#: The user without a credential, with RBAC.
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))

#: Number of requests in ``ApiServer.requests``.
REMEMBERED = 200_000


class Logged(NamedTuple):
    """A request: verb (``get``, ``watch``, …), path without query, user, HTTP status, plural, time in
    seconds, and whether it was a dry run.

    The status is 0 if the connection was lost before a response.
    """

    verb: str
    path: str
    user: str
    status: int
    resource: str = ""
    at: float = 0.0
    dry_run: bool = False


class ApiServer(Contents):
    """A Kubernetes API server in this process: over HTTP for kubectl, or directly in memory.

    Args:
        tokens: Bearer tokens of users; by default ``admin-token`` is the administrator's.
        rbac: True to enforce roles; otherwise every user may do everything.
        clock: Returns seconds since 1970; by default virtual time on a virtual loop, else real
            time.
        controllers: True to run controllers of a kube-controller-manager: garbage collection, and
            default service accounts (with the ServiceAccount admission).
        seed: Makes uids and generated names reproducible; two servers of a test need different
            seeds.
        history: The number of changes that are kept for each resource.
        service_range: The range of ClusterIPs, as a CIDR.
    """

    def __init__(
        self,
        *,
        tokens: Mapping[str, User] | None = None,
        rbac: bool = False,
        clock: Clock | None = None,
        controllers: bool = True,
        seed: int | str | None = None,
        history: int = HISTORY,
        service_range: str = SERVICE_RANGE,
    ) -> None:
        chance = SystemRandom() if seed is None else Random(seed)
        self.faults = Faults()
        self.requests: deque[Logged] = deque(maxlen=REMEMBERED)
        self.rbac = rbac
        self.url = ""
        users = {"admin-token": ADMIN} if tokens is None else dict(tokens)
        now = clock or loop_clock
        parts = assemble(
            users, chance, now, rbac=rbac, controllers=controllers, history=history, service_range=service_range
        )
        super().__init__(parts, now)
        self._changes = Changes(self._parts.storage)
        #: The open watches, each with its resource and its user.
        self._watches: dict[Watch, tuple[str, str]] = {}
        self._lags: list[Lag] = []
        self._gate = asyncio.Event()
        self._gate.set()
        self._death = asyncio.Event()
        self._down_until = 0.0
        self._site: http.Site | None = None

    # --- requests -----------------------------------------------------------------------------------------------

    def client(self, user: str | User = "admin", *, agent: str = "kube-envtest") -> MemoryClient:
        """Return a client with direct access to the server.

        ``user`` is a name in ``tokens``, or any other user.
        """
        return MemoryClient(self, self._user(user), agent)

    def _user(self, user: str | User) -> User:
        if isinstance(user, User):
            return user
        known = {one.name: one for one in self._parts.tokens.users.values()}
        if user == ADMIN.name:
            return known.get(user, ADMIN)
        return known.get(user) or User(user, ("system:authenticated",))

    def authenticate(self, token: str) -> User:
        """Return the user of a bearer token.

        Raises:
            ApiError: Unauthorized.
        """
        if not token:
            return ANONYMOUS if self.rbac else ADMIN
        return self._parts.tokens.user(token, self._clock())

    def impersonate(self, user: User, wanted: User) -> User:
        """Return the user that ``user`` may act as.

        Raises:
            ApiError: Forbidden.
        """
        return self._parts.impersonate(user, wanted)

    async def serve(self, request: Request) -> Response | Watch:
        """Answer a request.

        Raises:
            ConnectionLost: There is no response.
        """
        death = self._death
        if asyncio.get_running_loop().time() < self._down_until:
            raise ConnectionLost("the API server is down")
        await self.passable()
        self._alive(death)
        call = self._parts.rest.call_of(request, self._clock())
        verb, resource = (call.verb, call.type.plural) if call else (request.method.lower(), "")
        rules = self.faults.for_request(verb, resource, request)
        await self._delay(rules, death)
        if any(rule.reset == BEFORE for rule in rules):
            raise self._lost(request, verb, resource)
        answer = self._answer(request, rules, call)
        if isinstance(answer, Response):
            for rewrite in (rule.rewrite for rule in rules if rule.rewrite):
                answer = replace(answer, body=rewrite(answer.body))
            answer.headers = {**answer.headers, "Date": http_date(self._clock())}
        status = answer.status if isinstance(answer, Response) else 200
        if any(rule.reset == AFTER for rule in rules):
            raise self._lost(request, verb, resource, answer)
        self.requests.append(
            Logged(verb, request.path, request.user.name, status, resource, self._clock(), request.dry_run)
        )
        return answer

    def _alive(self, death: asyncio.Event) -> None:
        if death.is_set():
            raise ConnectionLost("the API server was restarted")

    async def _delay(self, rules: list[Rule], death: asyncio.Event) -> None:
        seconds = sum(rule.latency for rule in rules)
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await death.wait()
        except TimeoutError:
            await self.passable()
        self._alive(death)

    def _lost(self, request: Request, verb: str, resource: str, answer: Response | Watch | None = None) -> Exception:
        if isinstance(answer, Watch):
            answer.close()
        self.requests.append(Logged(verb, request.path, request.user.name, 0, resource, self._clock()))
        return ConnectionLost("the connection was reset")

    def _answer(self, request: Request, rules: list[Rule], call: Call | None) -> Response | Watch:
        problem = failure(rules)
        if problem is not None:
            return refusal(problem)
        now = self._clock()
        if call is not None:
            call.now = timestamp(now)
            call.until = shown(self._lags, call.type.plural, request.user.name)
        self._changes.user = request.user.name
        answer = self._parts.rest.answer(request, call, now)
        self._changes.user = ""
        self._parts.controllers.run()
        if isinstance(answer, Watch):
            plural = ""
            if call is not None:
                plural = call.type.plural
            self._follow(answer, request, plural)
        return answer

    def _follow(self, watch: Watch, request: Request, resource: str) -> None:
        self._watches = {one: whose for one, whose in self._watches.items() if one.open}
        self._watches[watch] = resource, request.user.name
        strike = self.faults.for_events(resource, request)

        def mangle(line: bytes) -> list[bytes]:
            rule = strike()
            if rule is None:
                return [line]
            if rule.rewrite:
                return [rule.rewrite(line)]
            if rule.cut:
                watch.tear()
            return [] if rule.drop or rule.cut else [line, line]

        watch.mangle = mangle

    async def passable(self) -> None:
        """Wait while the server is frozen."""
        if not self._gate.is_set():
            await self._gate.wait()

    # --- breaking it --------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Answer and send nothing, with all connections open, as after SIGSTOP."""
        self._gate.clear()

    def thaw(self) -> None:
        """End :meth:`freeze`."""
        self._gate.set()

    def restart(self, *, down: float = 0.0) -> None:
        """Close every connection and watch, keep the storage; refuse connections for ``down`` seconds."""
        if down:
            self._down_until = asyncio.get_running_loop().time() + down
        death = self._death
        self._death = asyncio.Event()
        death.set()
        self._gate.set()
        self.cut_watches()
        if self._site is not None:
            self._site.reset()

    def snapshot(self) -> Snapshot:
        """Return the stored state, for :meth:`restore`."""
        return self._parts.storage.snapshot()

    def restore(self, snapshot: Snapshot, *, down: float = 0.0) -> None:
        """Restore a snapshot and restart, as after etcd is restored: resourceVersions go back, and
        are reused.

        A watch from a version of the lost history shows nothing, not even bookmarks, until that
        version is reached again. Followers (:meth:`follow`) are not notified.

        Raises:
            ValueError: CustomResourceDefinitions have changed since the snapshot; they can't be
                restored.
        """
        self._parts.check_definitions(snapshot)
        self._lags.clear()
        self.restart(down=down)
        self._parts.restore(snapshot)

    def cut_watches(self) -> int:
        """Break every open watch; return their number."""
        watches = self._watches
        self._watches = {}
        for watch in watches:
            watch.tear()
        return len(watches)

    def expire_watches(self) -> None:
        """Compact, and send every open watch an ERROR event with code 410."""
        self.compact()
        watches = self._watches
        self._watches = {}
        for watch in watches:
            self._expire(watch)

    def _expire(self, watch: Watch) -> None:
        watch.fail(ApiError(410, "Expired", f"too old resource version: {watch.revision} ({self.revision})"))

    def lag(self, revision: int, *, user: str = "*", resource: str = "*", relist: bool = False) -> Lag:
        """Fall behind: lists and watches show nothing after ``revision`` until ``end()`` of the
        result is called.

        GETs are fresh, as quorum reads are. It needs the history, so it doesn't work across
        :meth:`compact`.

        Args:
            revision: The last visible revision.
            user: Shell pattern of the affected users.
            resource: Shell pattern of the affected resources, by plural.
            relist: True: open watches end with 410, so that their clients go back in time. False:
                they stall.

        Raises:
            ValueError: ``revision`` can't be shown.
        """
        if not self._parts.storage.compacted <= revision <= self.revision:
            why = "is compacted" if revision < self.revision else f"is not reached, {self.revision} is"
            raise ValueError(f"revision {revision} {why}")
        lag = Lag(revision, user, resource, self._caught_up)
        self._lags.append(lag)
        for watch in [watch for watch, whose in self._watches.items() if relist and lag.matches(*whose)]:
            del self._watches[watch]
            self._expire(watch)
        self._show()
        return lag

    def _caught_up(self, lag: Lag) -> None:
        self._lags.remove(lag)
        self._show()

    def _show(self) -> None:
        for watch, whose in self._watches.items():
            watch.show(shown(self._lags, *whose))

    def compact(self) -> None:
        """Forget all history: watches and pages from before now get 410."""
        self._parts.storage.compact()

    def follow(self, follower: Callable[[Change], None]) -> None:
        """Call ``follower`` for every stored change, at once and with its author."""
        self._changes.follow(follower)

    @property
    def certificate(self) -> str:
        """The CA certificate (PEM) if the server serves HTTPS, else ""."""
        return self._site.certificate if self._site is not None else ""

    @property
    def revision(self) -> int:
        """The latest resourceVersion."""
        return self._parts.storage.revision

    @property
    def open_watches(self) -> int:
        """The number of open watches."""
        return sum(1 for watch in self._watches if watch.open)

    # --- over HTTP ----------------------------------------------------------------------------------------------

    async def start(self, port: int = 0, *, host: str = "127.0.0.1", tls: bool = False) -> str:
        """Serve HTTP, or HTTPS with its own certificate, on a port (0: any); return the URL."""
        self._site = await http.start(self, host, port, tls=tls)
        self.url = self._site.url
        if tls:
            self._parts.internal.publish(self._site.certificate)
        return self.url

    async def stop(self) -> None:
        """Stop serving HTTP."""
        self.cut_watches()
        if self._site is not None:
            await self._site.stop()
            self._site = None

    def replace_token(self, user: str, token: str) -> None:
        """Give a user another bearer token, from now on its only one; open watches go on."""
        users = self._parts.tokens.users
        [found] = {one for one in users.values() if one.name == user}
        for former in [each for each, one in users.items() if one == found]:
            del users[former]
        users[token] = found

    def kubeconfig(self, path: str | Path, user: str = "admin") -> Path:
        """Write a kubeconfig for a user in ``tokens``; call :meth:`start` first."""
        if self._site is None:
            raise RuntimeError("the server has no URL yet: await server.start() before server.kubeconfig(…)")
        tokens = [token for token, one in self._parts.tokens.users.items() if one.name == user]
        if not tokens:
            raise KeyError(f"no token for user {user!r}: name the user in ApiServer(tokens=…)")
        return http.write_kubeconfig(Path(path), self._site, user, tokens[0])
