"""The daemons of a play: two candidates for one Lease, each of which can be killed, stopped and started again."""

import asyncio
import functools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from harness import built_in, utcnow
from sampled import to_host

from chaos.servers import Server, Wire
from syncer.api import Key, Request, Side, SyncerError
from syncer.clusters.client import Cluster
from syncer.config import SyncerConfig, config_with
from syncer.engine.engine import Engine
from syncer.engine.leaderelection.lease import Lease
from syncer.names import SingleNamespace
from syncer.observe.metrics import Metrics
from syncer.testing.merge import merged

CANDIDATES = ("ann", "bob")
#: Where the Lease is, apart from the tenants' host namespaces.
SYSTEM, LEASE = "vsyncer-system", "vsyncer"
#: How the names of all our users begin; people's don't.
OURS = "vsyncer-"
#: Seconds before a process that could not start is started again.
CRASH_SECONDS = 5.0
EXAMPLES = Path(__file__).parents[3] / "examples" / "custom"


@functools.cache
def configured(cluster: str, home: str, *, everything: bool) -> SyncerConfig:
    """All kinds for one tenant; ``everything``: ConfigMaps and Secrets that nothing uses, too, and patrolled.

    Of the other tenant nobody looks after what an event should have brought.
    """
    model = config_with(built_in(), translator=SingleNamespace)
    custom = yaml.safe_load((EXAMPLES / "cert-manager.yaml").read_text())["sync"]["custom"]
    unused = {"configMaps": {"all": everything}, "secrets": {"all": everything}}
    sync = {
        "toHost": merged(dict(to_host()), unused),
        "fromHost": {"customResourceDefinitions": {"enabled": True}},
        "custom": custom,
    }
    patrol = {"enabled": everything}
    return model.model_validate({"cluster": cluster, "host": {"namespace": home}, "sync": sync, "patrol": patrol})


class Daemon:
    """One candidate, in one process after the other."""

    def __init__(
        self, name: str, host: Server, tenants: Sequence[tuple[SyncerConfig, Server]], wrong: Callable[[str], None]
    ) -> None:
        self.name, self.started = name, 0
        #: Seconds by which its wall clock is wrong.
        self.skew = 0.0
        self.engine: Engine | None = None
        self._host, self._tenants, self._wrong = host, tenants, wrong
        self._wires: list[Wire] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def user(self) -> str:
        """Who the present process is, on all servers and in the Lease."""
        return f"{OURS}{self.name}-{self.started}"

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start a process, if there is none."""
        if not self.running:
            self._task = asyncio.create_task(self._live())

    async def kill(self, *, land: bool) -> None:
        """As SIGKILL: nothing more goes out; requests under way are still done by the servers, or are not."""
        for wire in self._wires:
            wire.die(land=land)
        await self._end()

    async def stop(self) -> None:
        """As SIGTERM: it finishes what it has begun and gives the Lease up, or is killed after some time."""
        if self.engine:
            self.engine.queue.close()
        if self._task:
            await asyncio.wait({self._task}, timeout=20)
        await self.kill(land=False)

    async def _end(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=60)
            if not self._task.done():
                self._wrong(f"the daemon {self.user} was cancelled and lives on")
        self._task = self.engine = None
        self._wires.clear()

    async def _live(self) -> None:
        while True:
            self.started += 1
            try:
                await self._serve()
            except SyncerError:
                me = asyncio.current_task()
                if me is not None and me.cancelling():
                    return  # asyncio.gather gives the error of a child, and forgets that it was cancelled
                await asyncio.sleep(CRASH_SECONDS)  # it could not start; whoever runs it starts it again
            except Exception as error:
                self._wrong(f"the daemon {self.user} died: {_all_of(error)}")
                return
            else:
                return

    async def _serve(self) -> None:
        here = Cluster("host", Side.HOST, self._wire(self._host))
        rng = random.Random(self.user)
        engine = self.engine = Engine(
            host=here, metrics=Metrics(version="test"), workers=8, utcnow=self._utcnow, rng=rng
        )
        for config, server in self._tenants:
            cluster = config.cluster()
            engine.add(
                cluster.settings(),
                [(each.syncer, each.section) for each in cluster.enabled()],
                virtual=Cluster(cluster.name, Side.VIRTUAL, self._wire(server)),
                entries=cluster.custom_entries(),
            )
        self._watch_workers(engine)
        await engine.prepare()
        lease = Lease(here, key=Key(SYSTEM, LEASE), identity=self.user, random=rng.random, utcnow=self._utcnow)
        engine.may_write = lambda: lease.is_leader
        async with engine.running():
            await lease.lead(engine.work)

    def _wire(self, server: Server) -> Wire:
        wire = Wire(server, self.user)
        self._wires.append(wire)
        return wire

    def _utcnow(self) -> datetime:
        return utcnow() + timedelta(seconds=self.skew)

    def _watch_workers(self, engine: Engine) -> None:
        """Say so where two workers are at one request, or an error isn't one of those that may happen."""
        busy: Counter[Request] = Counter()
        handle = engine.workers.handle

        async def handled(request: Request, *args: Any, **kwargs: Any) -> int:
            busy[request] += 1
            if busy[request] > 1:
                self._wrong(f"two workers are at {request}")
            try:
                return await handle(request, *args, **kwargs)
            finally:
                busy[request] -= 1

        engine.workers.handle = handled  # type: ignore[method-assign]


def _all_of(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_all_of(each) for each in error.exceptions)
    return repr(error)


def bugs(engine: Engine) -> Iterable[str]:
    """What a syncer has raised that isn't an error of the tree: nothing that happens here may lead to that."""
    known = _names(SyncerError)
    for request, status in engine.statuses.troubles():
        if status.error and status.error not in known:
            yield f"{request} of {request.cluster} raised {status.error}: {status.reason}"


def _names(error: type[BaseException]) -> set[str]:
    return {error.__name__}.union(*(_names(each) for each in error.__subclasses__()))
