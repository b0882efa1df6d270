"""The stage of a play: a host, tenants, daemons, and the faults found."""

import asyncio
import contextlib
import gc
import io
import random
from collections import Counter
from collections.abc import Coroutine, Iterable
from typing import Any

from custom_scene import CERTIFICATES, CLUSTER_ISSUERS, ISSUERS
from harness import WRITES, is_question, namespace
from sampled import define

from chaos.alike import differences
from chaos.daemons import CANDIDATES, OURS, SYSTEM, Cast, Daemon, bugs, configured
from chaos.guards import Guards, host_namespace
from chaos.people import KINDS, PIN, SPACES, defined, made
from chaos.servers import Server
from kube_envtest.apiserver.errors import ApiError
from kube_envtest.apiserver.faults import Rule
from kube_envtest.virtual_time import VirtualTimeLoop
from syncer.api import Obj, is_deleting
from syncer.daemon.process import Process

HOST = "host"
#: The custom kinds: all are defined on the host, and those but the published one by each tenant, too.
CUSTOM = (CERTIFICATES, ISSUERS, CLUSTER_ISSUERS)
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
#: What isn't synced: a Lease is renewed for ever, and an Event may be told of what goes on waiting. Tokens end
#: in their time, too.
APART = ("leases", "events")
#: Virtual seconds after which everything that waits has been tried again: parked requests wait 5 minutes.
HEALING = 720.0
#: Virtual seconds within which nothing may be written once all is in step.
QUIET = 60.0
#: Looks at the clock within one moment after which somebody turns in circles.
STUCK = 200_000


class _Log(io.StringIO):
    """A sink for log lines; an unexpected error is logged with its traceback."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__()
        self._wrong = wrong

    def write(self, text: str) -> int:
        if "Traceback (most recent call last)" in text:
            self._wrong.append(text)
        return len(text)


class Loop(VirtualTimeLoop):
    """Virtual time that has to pass: who turns the loop again and again and never waits is found out."""

    def __init__(self) -> None:
        super().__init__()
        self._last, self._asked = 0.0, 0

    def time(self) -> float:
        """The time, which is asked for at each turn."""
        now = super().time()
        self._asked = self._asked + 1 if now == self._last else 0
        self._last = now
        if self._asked > STUCK:
            raise RuntimeError(f"{STUCK} looks at the clock, and it still shows {now}: something never waits")
        return now


class Stage:
    """All that there is in one play. Everything runs on a loop of its own, in virtual time."""

    def __init__(self, cast: Cast = CANDIDATES) -> None:
        self.cast = cast
        random.seed(0)  # what draws without a generator of its own
        self.loop = Loop()
        self.loop.set_exception_handler(self._unheard)
        #: What must never be, and was.
        self.wrong: list[str] = []
        #: What was done to the daemons, by kind.
        self.injected: Counter[str] = Counter()
        self.run(self._open())

    def run(self, step: Coroutine[Any, Any, None]) -> None:
        """Go on until a step has been taken."""
        with contextlib.redirect_stderr(_Log(self.wrong)):
            self.loop.run_until_complete(step)

    def close(self) -> None:
        """End everything, and leave nothing behind: a process that is ready keeps what there is from being freed."""
        self.loop.set_exception_handler(lambda *_: None)
        self.run(self._close())
        self.loop.close()
        gc.unfreeze()

    # -- what a play needs -------------------------------------------------------------------------

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the servers."""
        return (HOST, *self.cast.tenants)

    def server(self, name: str) -> Server:
        """A server by its name."""
        return self.host if name == HOST else self.tenants[name]

    def copy(self, tenant: str, kind: str, space: str, name: str) -> Obj | None:
        """Return the host object under the key of a copy."""
        return self.host.get(kind, self.host_path(tenant, space, name)) if self.serves(HOST, kind) else None

    def host_path(self, tenant: str, space: str, name: str) -> str:
        """Return the host key of the copy of a tenant's object, as ``namespace/name``."""
        return f"{host_namespace(tenant)}/{name}-x-{space}-x-{tenant}"

    def serves(self, server: str, kind: str) -> bool:
        """Return True if a server serves a kind at present."""
        return self.server(server).knows(kind)

    def put(self, server: str, obj: Obj) -> None:
        """Let people make or change something; what an API server refuses them is not our affair."""
        try:
            self.server(server).put(obj)
        except (ApiError, KeyError):
            return

    def note(self, kind: str, times: int = 1) -> None:
        """Count a fault."""
        self.injected[kind] += times

    def calm(self, server: str) -> None:
        """Let the faults of a server end."""
        faults = self.server(server).faults
        for rule in faults.rules:
            self.note(_named(rule), rule.hits)
        if any(rule.drop for rule in faults.rules):
            self.server(server).expire_watches()  # an API server that loses events ends the watch
        faults.clear()

    # -- the end of a play -------------------------------------------------------------------------

    async def heal(self) -> None:
        """Let all trouble end, wait until everything has been tried again, and see that all is as it should be."""
        for name in self.servers:
            self.calm(name)
            self.server(name).thaw()
        await asyncio.sleep(10)  # servers may be down
        self._mend()
        await self._pass(60)
        self._mend()  # a CRD that was on its way out is gone by now
        await self._pass(HEALING)
        await self._touch()
        if not self.wrong:
            await self._look()

    def _mend(self) -> None:
        """People bring all into order that only they can."""
        for daemon in self.daemons.values():
            daemon.skew = 0.0
            daemon.thaw()
            daemon.start()
        self._mend_definitions()

    def _mend_definitions(self) -> None:
        for server in self.servers:
            for kind in CUSTOM if server == HOST else (CERTIFICATES, CLUSTER_ISSUERS):
                self.put(server, defined(kind))

    async def _touch(self) -> None:
        """Once more something happens to each kind on both sides, so that it shows who doesn't hear of it any more."""
        for tenant in self.cast.tenants:
            for kind in KINDS:
                self.put(tenant, made(kind, SPACES[0], "last", 0))
        await self._pass(40)
        for tenant in self.cast.tenants:
            for kind in KINDS:
                self.host.delete(kind, self.host_path(tenant, SPACES[0], "last"))
        await self._pass(40)

    async def _pass(self, seconds: float) -> None:
        """Time passes, in which kubelets stop what is to stop and no finalizer holds on to what is to go."""
        for _ in range(int(seconds / 20)):
            await asyncio.sleep(20)
            self.release()

    def release(self) -> None:
        """Let go what waits for a kubelet, or for a finalizer."""
        for server in (self.host, *self.tenants.values()):
            for kind in KINDS:
                for obj in server.objects(kind) if server.knows(kind) else ():
                    self._release(server, kind, obj)

    def _release(self, server: Server, kind: str, obj: Obj) -> None:
        metadata = obj["metadata"]
        if PIN in metadata.get("finalizers", ()):
            rest = {name: value for name, value in obj.items() if name != "status"}  # it may be gone before that
            server.put({**rest, "metadata": {**metadata, "finalizers": None}})
        elif is_deleting(obj) and server is self.host:
            server.delete(kind, f"{metadata['namespace']}/{metadata['name']}")

    async def _look(self) -> None:
        processes = {name: self._leading(name) for name in self.cast.tenants}
        self.wrong += [f"{len(found)} daemons lead {name}" for name, found in processes.items() if len(found) != 1]
        if self.wrong:
            return
        self.wrong += differences(self, {name: process for name, [process] in processes.items()})
        self.wrong += await self._writes_of(QUIET)
        if not self.wrong:
            self.wrong += await self._writes_of_a_fresh_one()

    def _leading(self, tenant: str) -> list[Process]:
        running = [daemon.process for daemon in self.daemons.values() if daemon.process]
        return [process for process in running if process.served[tenant].may_write()]

    async def _writes_of(self, seconds: float) -> list[str]:
        """Return the writes of our daemons in some seconds without any other change; refused ones don't count."""
        counts = {name: len(self.server(name).requests) for name in self.servers}
        await asyncio.sleep(seconds)
        return [
            f"in step, and yet {one.user} did {one.verb} {one.path} on {name}"
            for name, since in counts.items()
            for one in list(self.server(name).requests)[since:]
            if one.verb in WRITES and one.status < 300 and one.resource not in APART and "token" not in one.path
            if not is_question(one)
        ]

    async def _writes_of_a_fresh_one(self) -> list[str]:
        """Return the writes of a daemon that has just started, from fresh lists: none may be left."""
        for daemon in self.daemons.values():
            await daemon.stop()
        self.daemons[self.cast.daemons[0]].start()
        return [f"a fresh daemon: {each}" for each in await self._writes_of(120)]

    # -- inside ------------------------------------------------------------------------------------

    async def _open(self) -> None:
        self.host = Server(seed=HOST)
        self.tenants = {name: Server(seed=name) for name in self.cast.tenants}
        for name in (SYSTEM, *map(host_namespace, self.cast.tenants)):
            self.host.put(namespace(name))
        for server in self.tenants.values():
            for name in SPACES:
                server.put(namespace(name))
        self.guards = Guards(self.host, self.tenants, self.cast, self.wrong.append)
        for server in self.tenants.values():
            define(server, self.host)
        self._mend_definitions()
        served = [
            (configured(name, host_namespace(name), everything=name == "red"), server)
            for name, server in self.tenants.items()
        ]
        self.daemons = {
            name: Daemon(name, self.host, served, self.wrong.append, shards=self.cast.shards)
            for name in self.cast.daemons
        }
        for daemon in self.daemons.values():
            daemon.start()
        await asyncio.sleep(5)

    async def _close(self) -> None:
        for name in self.servers:
            self.server(name).thaw()
        for daemon in self.daemons.values():
            await daemon.kill(land=False)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def look(self) -> Iterable[str]:
        """Return the violations that are visible in the midst of a play."""
        for daemon in self.daemons.values():
            if daemon.process:
                self.wrong += bugs(daemon.process)
        return self.wrong

    def _unheard(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.wrong.append(f"nobody heard of {context.get('exception') or context['message']!r}")


def _named(rule: Rule) -> str:
    """Return a short name of a fault."""
    parts = [str(rule.status) if rule.status else "", f"reset {rule.reset}" if rule.reset else ""]
    parts += ["latency" if rule.latency else ""]
    parts += [name for name in ("drop", "duplicate", "cut") if getattr(rule, name)]
    return " ".join(filter(None, parts)) + (f" for {rule.user.removeprefix(OURS)}" if rule.user != f"{OURS}*" else "")
